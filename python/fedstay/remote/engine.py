"""What the core's loop asks of an engine whose agents are behind a network, whatever carries it."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from typing import Any, Generic, Literal

import numpy as np
from numpy.typing import NDArray

from .._core import Error
from ..engine import Assessed, Gathered
from ..engine import Member as Listed
from .answers import Answers
from .patience import Patience
from .roll import M, Roll
from .showing import Showing


class RemoteEngine(Generic[M]):
    """The part of an engine that does not depend on the framework."""

    #: Every agent can be sent weights of its own, those among them that join later.
    personal = True
    newcomers = True
    #: Whether the policy hides the server's own model from some agents.
    hides = False

    roll: Roll[M]
    patience: Patience
    round: int = 0
    #: Why the run ends after this round, once patience is over.
    given_up: str | None = None
    #: What a run that was given up is continued by.
    start_again = "Start the same again, with the same `out`,"

    def say(self, text: str, *, warn: bool = False) -> None:
        """Logs a line."""
        raise NotImplementedError

    def shown_name(self, member: M) -> str | None:
        """What an agent is called, where that is more than its number."""
        return member.name

    def agents(self) -> list[Listed]:
        """Every agent that ever told a target loss; that of the others is not known."""
        return [
            Listed(m.id, m.epsilon, self.shown_name(m))
            for m in self.roll.everybody()
            if m.epsilon is not None
        ]

    def shown(
        self,
        weights: NDArray[np.float64],
        personal: Mapping[int, NDArray[np.float64]] | None,
        newcomers: NDArray[np.float64] | None,
    ) -> Showing:
        """What everybody is shown in this round."""
        if self.hides and self.round > 1 and newcomers is None:
            raise Error(
                "the checkpoint is of an earlier fedstay and does not say what agents are shown that "
                "join later; start the run again in another folder"
            )
        return Showing(weights, personal, newcomers, [member.id for member in self.agents()])

    def gathered(
        self,
        answers: Answers,
        faults: list[tuple[int, str]],
        assessment: list[Assessed] | None,
        returned: list[int] | None = None,
    ) -> Gathered:
        """A round in which enough agents have answered, for the core."""
        reports = [answers.reports[agent] for agent in sorted(answers.reports)]
        absent = max(len(self.roll.still_in()) - len(reports), 0)
        goodbyes, back = sorted(answers.goodbyes), sorted(returned or ())
        return Gathered(reports, goodbyes, back, faults, assessment, absent=absent)

    def judge_the_number(
        self, attempt: int, answers: Answers, asked: int, strangers: int = 0
    ) -> Literal["enough", "ask"] | Gathered:
        """Whether enough have reported after this attempt, or the missing ones are to be asked again
        (it has waited for them then); else what the core is given instead of a round.

        asked, strangers: how many were asked, and how many of those may be agents that nobody knows.
        """
        roll, patience = self.roll, self.patience
        # Nobody is left only if everybody said so; an agent that is silent may come back.
        nobody = not roll.still_in() and bool(roll.members)
        if len(answers.reports) >= patience.min_agents or nobody:
            return "enough"
        got = (
            f"{len(answers.reports)} of at least {patience.min_agents} agents reported in round "
            f"{self.round}"
        )
        what = patience.few(attempt, roll, strangers)
        if what == "ask":
            why = f" ({asked} asked{answers.reasons()})"
            self.say(f"{got}{why}; waiting {patience.wait:g} s", warn=True)
            time.sleep(patience.wait)
            return "ask"
        if what is None:
            got += f", after {attempt} more tries"
            if self.round == 1 and not answers.goodbyes:
                # Nothing was trained and nobody has left, so there is nothing to sum up.
                raise Error(f"{got}{answers.reasons()}. {self.start_again} to try again")
            self.given_up = f"{got}{answers.reasons()}"
        self.say(f"{got}{answers.reasons()}; the run ends here", warn=True)
        faults, goodbyes = self.close(answers), sorted(answers.goodbyes)
        if what == "over":
            return Gathered([], goodbyes, faults=faults, too_few=True)
        # A round that moves nothing; `ends` stops the run after it.
        return Gathered([], goodbyes, faults=faults, absent=len(roll.still_in()))

    def delivers(self) -> bool:
        """Whether the end of the run is the delivery: one that was given up for want of answers may go on,
        and then still hides what it hides."""
        return self.given_up is None or not self.hides

    def ends(self) -> Literal["too-few"] | None:
        """What `closed` says of a round after which the run ends because patience was over."""
        return "too-few" if self.given_up is not None else None

    def close(self, answers: Answers) -> list[tuple[int, str]]:
        """Counts the silent rounds of agents that gave no usable answer."""
        faults = []
        for name, why in sorted(answers.faults.items()):
            member = self.roll.members[name]
            if answers.heard(member) or member.left is not None:
                continue
            if self.roll.failed(member, self.round):
                why += f"; set aside after {member.silent} silent rounds"
            self.say(f"round {self.round}: agent {name} is skipped: {why}", warn=True)
            faults.append((member.id, why))
        return sorted(faults)

    def assessed_by_all(
        self, told: Mapping[int, tuple[float, float | None]], showing: Showing
    ) -> list[Assessed] | None:
        """How good the server's model is for everybody in the header, if all of them told it: whoever
        was shown another model did not."""
        ids = [member.id for member in self.agents()]
        if any(agent not in told or showing.hides_from(agent) for agent in ids):
            return None
        # A column of accuracies is everybody's or nobody's.
        full = all(told[agent][1] is not None for agent in ids)
        return [Assessed(agent, told[agent][0], told[agent][1] if full else None) for agent in ids]

    def assessed_at_the_end(self, told: Mapping[int, tuple[float, float | None]]) -> list[Assessed]:
        """How good the delivered model is, where agents told it; else what they last reported."""
        assessed = []
        for member in self.roll.everybody():
            if member.epsilon is None:
                continue
            if member.id in told:
                assessed.append(Assessed(member.id, *told[member.id]))
            elif member.loss is None and member.left is None:
                # It never told a loss, and did not leave: nobody knows.
                assessed.append(Assessed(member.id, math.nan))
            else:
                # Content from the start, it never reported a loss: it is at most its target loss.
                loss = member.loss if member.loss is not None else member.epsilon
                as_of = member.loss_round or member.left or 0
                assessed.append(Assessed(member.id, loss, as_of=as_of))
        return assessed

    def dropped(self, agent: int, why: str) -> None:
        """The core could not step with this agent's report, and stepped without it."""
        for member in self.roll.everybody():
            if member.id == agent:
                self.say(f"round {self.round}: agent {member.name} is skipped: {why}", warn=True)
                self.roll.failed(member, self.round)

    def warnings(self) -> list[str]:
        """What the summary should warn about."""
        if self.given_up is None:
            return []
        return [f"the run ended because {self.given_up}. {self.start_again} to continue it"]

    def more(self) -> dict[str, Any]:
        """What else a restart needs."""
        return {}

    def save(self) -> str:
        """What a restart needs, for the checkpoint."""
        # Everything kept can be written as JSON; if that were ever untrue, it must fail here.
        state = {"round": self.round, **self.roll.memory(), **self.more()}
        return json.dumps(state, allow_nan=False)

    def restored(self, saved: str) -> dict[str, Any]:
        """Takes up what `save` gave, and returns it."""
        state = json.loads(saved)
        if not isinstance(state, dict) or not {"round", "members"} <= set(state):
            raise Error(
                "the checkpoint does not say who takes part, so this run cannot be resumed; start it "
                "again in another folder"
            )
        self.round = state["round"]
        self.roll.recall(state)
        return state

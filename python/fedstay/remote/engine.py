"""What the core's loop asks of an engine whose agents are behind a network, whatever carries it."""

from __future__ import annotations

import itertools
import json
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Literal

import numpy as np
from numpy.typing import NDArray

from .._core import Error, Outcome, drive
from ..engine import Assessed, Gathered
from ..engine import Member as Listed
from ..worth import Worth, needing_a_judge
from .answers import Answers
from .layout import Layout
from .patience import Patience
from .reader import Reader
from .roll import M, Roll
from .showing import Showing

#: Loss and, where there is one, accuracy by agent.
Evaluated = Mapping[int, tuple[float, float | None]]


@dataclass(frozen=True)
class Evaluation:
    """When agents evaluate the model, and which."""

    every: int
    at_end: bool
    leavers: bool

    def is_due(self, round: int) -> bool:
        """Whether they do in this round."""
        return bool(self.every) and (round == 1 or round % self.every == 0)

    def asked(self, roll: Roll[M], showing: Showing) -> list[M]:
        """Who does: everybody still in and, with `leavers`, those that left. While a policy hides the model
        from them, these are shown nothing."""
        members = roll.everybody() if self.leavers else roll.still_in()
        return [
            member
            for member in members
            if member.aside is None and (member.left is None or not showing.hides_from(member.id))
        ]


@dataclass(kw_only=True, eq=False)
class RemoteEngine(Generic[M]):
    """The part of an engine that does not depend on the framework.

    What does: `ask` sends a round's messages and reads what comes back, `evaluate` asks how good models are.
    `hides` says whether the policy hides the server's own model from some agents.
    """

    #: Every agent can be sent weights of its own, those among them that join later.
    personal: ClassVar[bool] = True
    newcomers: ClassVar[bool] = True
    #: What a run that was given up is continued by.
    start_again: ClassVar[str] = "Start the same again, with the same `out`,"

    roll: Roll[M]
    reader: Reader
    patience: Patience
    evaluation: Evaluation
    rounds: int
    hides: bool
    round: int = field(default=0, init=False)
    #: What agents are to add to the gradient of every local step in this round.
    by: Mapping[int, NDArray[np.float64]] = field(default_factory=dict, init=False)
    #: Why the run ends after this round, once patience is over.
    given_up: str | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.corrections, self.rates = self.reader.asks.corrections, self.reader.asks.rates

    def begin(self, showing: Showing) -> Answers:
        """Begins a round, in which nobody has answered yet."""
        return Answers()

    def ask(self, showing: Showing, exact: bool, answers: Answers, again: bool) -> tuple[int, int]:
        """One exchange with everybody who has not answered yet; `again` if it is not the round's first.
        Returns how many were asked, and how many of those may be agents that nobody knows."""
        raise NotImplementedError

    def took(self, answers: Answers) -> None:
        """Hears of the answers with which the round's step will be taken."""

    def evaluate(self, showing: Showing, at_end: bool = False) -> Evaluated:
        """How good the model is for the agents that can be asked, each at what it is shown. What cannot be
        used is ignored and logged."""
        raise NotImplementedError

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

    def gather(
        self,
        *,
        round: int,
        weights: NDArray[np.float64],
        step_size: float,
        exact: bool,
        personal: Mapping[int, NDArray[np.float64]] | None = None,
        newcomers: NDArray[np.float64] | None = None,
        corrections: Mapping[int, NDArray[np.float64]] | None = None,
    ) -> Gathered:
        """Asks until enough agents have answered, or patience is over."""
        self.round, self.by = round, corrections or {}
        showing = self.shown(weights, personal, newcomers)
        answers = self.begin(showing)
        for attempt in itertools.count():
            asked, strangers = self.ask(showing, exact, answers, again=attempt > 0)
            judged = self.judge_the_number(attempt, answers, asked, strangers)
            if judged == "enough":
                break
            if judged != "ask":
                return judged
        faults = self.close(answers)
        self.took(answers)
        reports = [made for _, made in sorted(answers.reports.items())]
        absent = max(len(self.roll.still_in()) - len(reports), 0)
        looks = self.evaluation.is_due(round)
        assessment = self.assessed_by_all(self.evaluate(showing), showing) if looks else None
        goodbyes, back = sorted(answers.goodbyes), sorted(answers.returned)
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
        # A round that moves nothing; `closed` stops the run after it.
        return Gathered([], goodbyes, faults=faults, absent=len(roll.still_in()))

    def delivers(self) -> bool:
        """Whether the end of the run is the delivery: one that was given up for want of answers may go on,
        and then still hides what it hides."""
        return self.given_up is None or not self.hides

    def closed(self, line: str, promised: list[tuple[int, float]]) -> bool | str | None:
        """Hears of a finished round; says "too-few" if the run ends after it because patience was over."""
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

    def assess(self, weights: NDArray[np.float64]) -> list[Assessed]:
        """How good the delivered model is, where agents can be asked; else what they last reported."""
        asks = self.evaluation.at_end and self.delivers()
        # The run is over: this is the delivery.
        delivered = Showing.the_same(weights)
        return self.assessed_at_the_end(self.evaluate(delivered, at_end=True) if asks else {})

    def assessed_by_all(self, told: Evaluated, showing: Showing) -> list[Assessed] | None:
        """How good the server's model is for everybody in the header, if all of them told it: whoever
        was shown another model did not."""
        ids = [member.id for member in self.agents()]
        if any(agent not in told or showing.hides_from(agent) for agent in ids):
            return None
        # A column of accuracies is everybody's or nobody's.
        full = all(told[agent][1] is not None for agent in ids)
        return [Assessed(agent, told[agent][0], told[agent][1] if full else None) for agent in ids]

    def assessed_at_the_end(self, told: Evaluated) -> list[Assessed]:
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

    def judge(self, weights: NDArray[np.float64]) -> float:
        """What a model is worth on rows that nobody trains on."""
        raise NotImplementedError

    def drive(
        self,
        given: Any,
        layout: Layout,
        start: NDArray[Any],
        worth: Worth,
        settings: Mapping[str, Any],
        **kept: Any,
    ) -> Outcome:
        """Drives the core's loop with what was `given`, a strategy or a controller. `settings` stand in
        config.toml, and `kept` says where the run is kept and whether it continues there."""
        return drive(
            self,
            start,
            given.rule,
            step_size=given.step_size,
            rounds=self.rounds,
            policy=given.policy,
            on=given.on,
            seconds_between_checkpoints=0.0,
            settings=json.dumps(settings),
            layout=layout.tensors(),
            worth=list(worth.methods),
            judge=self.judge if needing_a_judge(worth) else None,
            **kept,
        )

    def settings(self, **more: Any) -> dict[str, Any]:
        """What config.toml says besides the rule: a run is continued with the same."""
        settings: dict[str, Any] = {
            "agents": self.roll.settings(),
            "min_agents": self.patience.min_agents,
            "on_few": self.patience.on_few,
            "max_reach": self.reader.max_reach,
            "max_ratio": self.reader.max_ratio,
        }
        if self.reader.epsilon is not None:
            settings["epsilon"] = self.reader.epsilon
        return {**settings, **more}

    def more(self) -> dict[str, Any]:
        """What else a restart needs."""
        return {}

    def save(self) -> str:
        """What a restart needs, for the checkpoint."""
        # Everything kept can be written as JSON; if that were ever untrue, it must fail here.
        state = {"round": self.round, **self.roll.memory(), **self.more()}
        return json.dumps(state, allow_nan=False)

    def restore(self, saved: str) -> dict[str, Any]:
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

"""What the core's loop asks for: a round gathered from FLARE's sites, with patience."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from nvflare.app_common.abstract.fl_model import FLModel, ParamsType
from nvflare.app_common.app_constant import AppConstants

from .._core import Error
from ..engine import Assessed, Gathered
from ..remote.answers import Answers
from ..remote.door import NONCE, reason
from ..remote.engine import RemoteEngine
from ..remote.judge import judged
from ..remote.patience import Deadline, Patience
from ..remote.showing import Showing
from ._exchange import Courier
from ._layout import CORRECTION, KEY, Layout
from ._replies import Reader
from ._roll import Member, Roll


@dataclass(frozen=True)
class Evaluation:
    """When sites evaluate the model, and which."""

    every: int
    at_end: bool
    leavers: bool


class Engine(RemoteEngine[Member]):
    """The engine behind FLARE: one task per round, or several where sites get weights of their own."""

    roll: Roll
    start_again = "Submit the same job again, with the same `out`,"

    def __init__(
        self,
        courier: Courier,
        layout: Layout,
        roll: Roll,
        reader: Reader,
        patience: Patience,
        evaluation: Evaluation,
        rounds: int,
        judges: Any = None,
        hides: bool = False,
    ) -> None:
        self.courier, self.layout, self.roll, self.reader = courier, layout, roll, reader
        self.patience, self.evaluation, self.rounds = patience, evaluation, rounds
        #: Who tells the loss of models that were never sent out, for scores that ask.
        self.judges, self.hides = judges, hides
        self.corrections, self.rates = reader.asks.corrections, reader.asks.rates
        #: What agents are to add to the gradient of every local step in this round.
        self.by: Mapping[int, NDArray[np.float64]] = {}

    def say(self, text: str, *, warn: bool = False) -> None:
        """Logs a line."""
        self.courier.log(text, warn=warn)

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
        answers = Answers()
        for attempt in itertools.count():
            asked = self._ask(weights, showing, exact, answers)
            judged = self.judge_the_number(attempt, answers, asked)
            if judged == "enough":
                break
            if judged != "ask":
                return judged
        faults = self.close(answers)
        return self.gathered(answers, faults, self._assessment(showing))

    def _ask(
        self,
        weights: NDArray[np.float64],
        showing: Showing,
        exact: bool,
        answers: Answers,
    ) -> int:
        """One exchange with everybody who has not answered yet; returns how many those were."""
        roll, connected = self.roll, self.courier.connected()
        roll.welcome(connected)
        asked = [m for m in roll.to_ask(self.round, connected) if not answers.heard(m)]
        for member in roll.missing(connected):
            answers.faults.setdefault(member.name, "not connected")
        messages = self._messages("train", asked, showing, self.by)
        deadline = self.patience.deadline(len(answers.reports))
        told, failed = self.courier.exchange(AppConstants.TASK_TRAIN, messages, deadline)
        for member in asked:
            if member.name in told:
                sent = showing.to(member.id)
                self.reader.hear(member, told[member.name], sent, self.round, answers)
            else:
                answers.faults[member.name] = failed[member.name]
        if exact:
            answers.drop_secrets(roll, self.reader.asks.rule)
        answers.drop_garbage(roll, weights, self.reader.max_ratio)
        for member in asked:
            if member.id in answers.goodbyes:
                self.say(f"round {self.round}: agent {member.name} leaves")
            if answers.heard(member) and roll.answered(member):
                self.say(f"round {self.round}: agent {member.name} is back")
        return len(asked)

    def _messages(
        self,
        task: str,
        members: Sequence[Member],
        showing: Showing,
        by: Mapping[int, NDArray[np.float64]] | None = None,
    ) -> dict[str, FLModel]:
        """One message for every site, with what it is shown: the same object for the same content."""
        same: dict[int, FLModel] = {}
        messages = {}
        for member in members:
            weights, add = showing.to(member.id), (by or {}).get(member.id)
            if add is not None:
                messages[member.name] = self._message(task, weights, add)
                continue
            if id(weights) not in same:
                same[id(weights)] = self._message(task, weights)
            messages[member.name] = same[id(weights)]
        return messages

    def _message(
        self, task: str, weights: NDArray[np.float64], by: NDArray[np.float64] | None = None
    ) -> FLModel:
        """What a site receives: the model, what it decides with, and what it adds to every local step."""
        said: dict[str, Any] = {
            "task": task,
            "round": self.round,
            "step_size": self.reader.step_size,
        }
        if self.reader.epsilon is not None:
            said["epsilon"] = self.reader.epsilon
        if task == "train":
            said |= {**self.reader.asks.words(), NONCE: self.reader.nonces.of(self.round)}
        if by is not None:
            # Beside the model and not in it: `params` stays what a module can load.
            said[CORRECTION] = self.layout.pack_floats(by)
        return FLModel(
            params_type=ParamsType.FULL,
            params=self.layout.pack(weights),
            # FLARE counts rounds from 0.
            current_round=max(self.round - 1, 0),
            total_rounds=self.rounds,
            meta={KEY: said},
        )

    def _evaluate(self, showing: Showing) -> dict[int, tuple[float, float | None]]:
        """Loss and accuracy by agent, each at what it is shown; agents that left are not shown what is
        hidden from them. What cannot be used is ignored and logged."""
        connected = set(self.courier.connected())
        members = self.roll.everybody() if self.evaluation.leavers else self.roll.still_in()
        asked = [
            m
            for m in members
            if m.aside is None
            and m.name in connected
            and (m.left is None or not showing.hides_from(m.id))
        ]
        messages = self._messages("evaluate", asked, showing)
        deadline = Deadline(self.patience.timeout)
        told, failed = self.courier.exchange(AppConstants.TASK_VALIDATION, messages, deadline)
        found = {}
        for member in asked:
            try:
                if member.name not in told:
                    raise Error(failed[member.name])
                found[member.id] = self.reader.evaluation(told[member.name])
            # As for a report: it can only lose its own place.
            except Exception as error:  # noqa: BLE001
                self.say(f"agent {member.name} did not evaluate: {reason(error)}", warn=True)
        return found

    def _assessment(self, showing: Showing) -> list[Assessed] | None:
        """How good the model is for everybody in the header, if all of them can be asked."""
        every = self.evaluation.every
        if not every or (self.round != 1 and self.round % every):
            return None
        found = self._evaluate(showing)
        if found and any(showing.hides_from(agent) for agent in found):
            mean = sum(loss for loss, _ in found.values()) / len(found)
            self.say(
                f"round {self.round}: mean loss {mean:.6g} of {len(found)} agents, each at what it is shown"
            )
        return self.assessed_by_all(found, showing)

    def closed(self, line: str, promised: list[tuple[int, float]]) -> str | None:
        """Why the run ends after this round, if it does."""
        return self.ends()

    def judge(self, weights: NDArray[np.float64]) -> float:
        """What a model is worth on rows that nobody trains on, by the job's judge."""
        arrays = self.layout.pack(weights)
        return judged(self.judges, arrays, lambda: self.layout.unpack(arrays))

    def assess(self, weights: NDArray[np.float64]) -> list[Assessed]:
        """How good the delivered model is, where agents can be asked; else what they last reported."""
        # The run is over: this is the delivery.
        delivered = Showing.the_same(weights)
        asks = self.evaluation.at_end and self.delivers()
        return self.assessed_at_the_end(self._evaluate(delivered) if asks else {})

    def restore(self, saved: str) -> None:
        """Takes up what `save` gave."""
        self.restored(saved)

"""What the core's loop asks for: a round gathered from FLARE's sites, with patience."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from nvflare.app_common.abstract.fl_model import FLModel, ParamsType
from nvflare.app_common.app_constant import AppConstants

from .._core import Error
from ..remote.answers import Answers
from ..remote.door import NONCE, reason
from ..remote.engine import Evaluated, RemoteEngine
from ..remote.judge import judged
from ..remote.patience import Deadline
from ..remote.showing import Showing
from ._exchange import Courier
from ._layout import CORRECTION, KEY, Layout
from ._replies import Reader
from ._roll import Member, Roll


@dataclass(kw_only=True, eq=False)
class Engine(RemoteEngine[Member]):
    """The engine behind FLARE: one task per round, or several where sites get weights of their own."""

    start_again = "Submit the same job again, with the same `out`,"

    roll: Roll
    reader: Reader
    courier: Courier
    layout: Layout
    #: Who tells the loss of models that were never sent out, for scores that ask.
    judges: Any = None

    def say(self, text: str, *, warn: bool = False) -> None:
        """Logs a line."""
        self.courier.log(text, warn=warn)

    def ask(self, showing: Showing, exact: bool, answers: Answers, again: bool) -> tuple[int, int]:
        """One exchange with everybody who has not answered yet: a task for each, or one for many."""
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
            answers.drop_secrets(roll, self.reader.needing)
        answers.drop_garbage(roll, showing.weights, self.reader.max_ratio)
        for member in asked:
            if member.id in answers.goodbyes:
                self.say(f"round {self.round}: agent {member.name} leaves")
            if answers.heard(member) and roll.answered(member):
                self.say(f"round {self.round}: agent {member.name} is back")
        return len(asked), 0

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

    def evaluate(self, showing: Showing, at_end: bool = False) -> Evaluated:
        """Loss and accuracy by agent, each at what it is shown. What cannot be used is ignored and logged."""
        connected = set(self.courier.connected())
        asked = [m for m in self.evaluation.asked(self.roll, showing) if m.name in connected]
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
        if found and any(showing.hides_from(agent) for agent in found):
            mean = sum(loss for loss, _ in found.values()) / len(found)
            self.say(
                f"round {self.round}: mean loss {mean:.6g} of {len(found)} agents, each at what it is shown"
            )
        return found

    def judge(self, weights: NDArray[np.float64]) -> float:
        """What a model is worth on rows that nobody trains on, by the job's judge."""
        arrays = self.layout.pack(weights)
        return judged(self.judges, arrays, lambda: self.layout.unpack(arrays))

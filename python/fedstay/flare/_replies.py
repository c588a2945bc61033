"""Answers sorted into reports, goodbyes and faults. Their order does not matter.

Whatever a site sends, it can only lose its own place in this round: every answer is read inside a
`try`, nothing of it is kept before all of it has been checked, and what it says reaches the log only as
one short printable line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from nvflare.app_common.abstract.fl_model import FLModel, ParamsType

from .._core import Error, Report
from ._door import LARGEST, number, outliers, reason, shown
from ._layout import GRADIENT, KEY, Layout
from ._roll import Member, Roll


@dataclass
class Answers:
    """What came back in a round so far, by agent."""

    reports: dict[int, Report] = field(default_factory=dict)
    goodbyes: list[int] = field(default_factory=list)
    #: How far each report would move the model, and the largest number in it.
    moves: dict[int, float] = field(default_factory=dict)
    tells: dict[int, float] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)

    def reasons(self) -> str:
        """Why answers are missing, as far as that is known."""
        told = [f"agent {name}: {why}" for name, why in self.faults.items()]
        more = f" (and {len(told) - 3} more)" if len(told) > 3 else ""
        return "".join(f"; {why}" for why in told[:3]) + more

    def heard(self, member: Member) -> bool:
        """Whether the agent gave a usable answer."""
        return member.id in self.reports or member.id in self.goodbyes

    def drop(self, member: Member, why: str) -> None:
        """Takes a report back as its agent's fault."""
        for by_agent in (self.reports, self.moves, self.tells):
            by_agent.pop(member.id, None)
        self.faults[member.name] = why


@dataclass
class Reader:
    """Reads the answers of a round.

    step_size, epsilon: what the sites were sent.
    max_reach: how many times the step size a site's `reach` may be.
    max_ratio: how many times larger than the model and than the other reports a report may be.
    """

    roll: Roll
    layout: Layout
    step_size: float
    epsilon: float | None
    max_reach: float
    max_ratio: float

    def hear(
        self,
        member: Member,
        answer: FLModel,
        sent: NDArray[np.float64],
        round: int,
        answers: Answers,
    ) -> None:
        """Takes one answer of an agent that was sent the weights `sent`."""
        try:
            said = _said(answer)
            if said.get("leaves") is True:
                # The layout of a goodbye: that it leaves, its target loss, and nothing else.
                epsilon = self._target(said, member)
                member.left = round
                answers.goodbyes.append(member.id)
            else:
                made, move, tells = self._report(member, said, answer, sent)
                epsilon = made.epsilon
                answers.reports[member.id] = made
                answers.moves[member.id], answers.tells[member.id] = move, tells
                if made.loss is not None:
                    member.loss, member.loss_round = made.loss, round
            if epsilon is not None:
                member.epsilon = epsilon
        # Whatever a site sends, it can only lose its own place in this round.
        except Exception as error:  # noqa: BLE001
            answers.faults[member.name] = reason(error).removeprefix(f"agent {member.id}: ")
            return
        answers.faults.pop(member.name, None)

    def _target(self, said: Mapping[str, Any], member: Member) -> float | None:
        """The target loss an agent reported now or before, else the one it was sent."""
        if said.get("epsilon") is not None:
            return number(said, "epsilon")
        return member.epsilon if member.epsilon is not None else self.epsilon

    def _report(
        self, member: Member, said: Mapping[str, Any], answer: FLModel, sent: NDArray[np.float64]
    ) -> tuple[Report, float, float]:
        """The report in an answer, checked; how far it would move the model, and the largest number it
        tells."""
        if not isinstance(answer.params, dict):
            raise Error("its answer is neither a goodbye nor a report: it has no arrays")
        reach = self._reach(said)
        work = {k: v for k, v in answer.params.items() if not str(k).startswith(GRADIENT)}
        slope = {
            k.removeprefix(GRADIENT): v
            for k, v in answer.params.items()
            if str(k).startswith(GRADIENT)
        }
        if bool(slope) != (said.get("gradient") is True):
            raise Error(
                "the gradient beside its weights did not arrive; set the executor's "
                "params_transfer_type to FULL"
            )
        direction = self.layout.unpack(work)
        exact = self.layout.unpack(slope) if slope else None
        if said.get("kind") == "weights":
            direction = self._moved(answer, direction, sent, reach)
        elif said.get("kind") == "direction":
            # It is the gradient at what the site was sent, and previews may be made from it.
            exact = direction
        else:
            raise Error(f"its report is of kind {shown(repr(said.get('kind')), 60)}")
        numbers: dict[str, Any] = {
            name: number(said, name)
            for name in ("loss", "epsilon", "standard_error")
            if name in said
        }
        if "loss" in numbers and self.epsilon is not None:
            numbers.setdefault("epsilon", self.epsilon)
        made = Report(
            member.id,
            direction,
            gradient=exact,
            reach=reach,
            samples=max(int(number(said, "samples")), 1) if "samples" in said else 1,
            **numbers,
        )
        move = max(self.step_size, reach or 0.0) * made.check(self.layout.length)
        if move > LARGEST:
            raise Error(f"its report would move the model by {move:g}, out of all range")
        return made, move, max((abs(value) for value in numbers.values()), default=0.0)

    def _moved(
        self,
        answer: FLModel,
        trained: NDArray[Any],
        sent: NDArray[np.float64],
        reach: float | None,
    ) -> NDArray[Any]:
        """What an agent's training amounts to as a direction: FLARE passes on either the trained
        weights or, if the job says so, their difference from what was sent."""
        with np.errstate(all="ignore"):  # What is not finite is found later.
            moved = -trained.astype(np.float64)
            if answer.params_type != ParamsType.DIFF:
                moved += self.layout.unpack(self.layout.pack(sent), np.float64)
            moved /= self.step_size if reach is None else reach
            return moved.astype(self.layout.dtype)

    def _reach(self, said: Mapping[str, Any]) -> float | None:
        if said.get("reach") is None:
            return None
        reach, most = number(said, "reach"), self.max_reach * self.step_size
        if not 0.0 < reach <= most:
            raise Error(
                f"its reach is {reach:g}, but must be above zero and at most {most:g}, `max_reach` = "
                f"{self.max_reach:g} times the step size"
            )
        return reach

    def drop_garbage(self, weights: NDArray[np.float64], answers: Answers) -> None:
        """Finite nonsense stands out: it is beyond all that the model and the others are like."""
        with np.errstate(over="ignore"):
            length = float(np.linalg.norm(weights))
        by_id = {member.id: member for member in self.roll.members.values()}
        beyond = f"is taken for garbage, beyond `max_ratio` = {self.max_ratio:g} times"
        for agent, typical in outliers(answers.moves, max(length, 1.0), self.max_ratio).items():
            why = f"its report would move the model by {answers.moves[agent]:.3g} and {beyond}"
            answers.drop(
                by_id[agent], f"{why} {typical:.3g}, what the model and the others are like"
            )
        for agent, typical in outliers(answers.tells, 1.0, self.max_ratio).items():
            why = f"it tells a loss or a target of size {answers.tells[agent]:.3g}, which {beyond}"
            answers.drop(by_id[agent], f"{why} {typical:.3g}, what the others tell")

    @staticmethod
    def evaluation(answer: FLModel) -> tuple[float, float | None]:
        """Loss and, where there is one, accuracy; raises where the answer is not an evaluation."""
        said = _said(answer)
        if said.get("kind") != "evaluation" or "loss" not in said:
            raise Error(
                'its answer is not an evaluation; does its script handle the task "evaluate"?'
            )
        if said.get("accuracy") is None:
            return number(said, "loss"), None
        accuracy = number(said, "accuracy")
        if not 0.0 <= accuracy <= 1.0:
            raise Error(f"its accuracy is {accuracy}, not a number from 0 to 1")
        return number(said, "loss"), accuracy


def _said(answer: FLModel) -> Mapping[str, Any]:
    """What an answer says in words and numbers; a fault that the site reports itself is raised."""
    said = answer.meta.get(KEY) if isinstance(answer.meta, Mapping) else None
    if not isinstance(said, Mapping):
        raise Error(f"its answer has no `{KEY}` in its meta; use fedstay.flare.serve or Site")
    if said.get("fault") is not None:
        raise Error(f"it says: {shown(said['fault'])}")
    return said

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
from ..remote.answers import Answers, target_loss
from ..remote.asks import Asks
from ..remote.door import LARGEST, Nonces, number, reach, reason, share, shown
from ._layout import GRADIENT, KEY, Layout
from ._roll import Member

#: What a site does whose report should have been corrected.
HOW_TO_CORRECT = (
    "let its script `serve` an agent that has `corrected`, or have its own loop add `site.correction(model)` "
    "to every gradient and say so: `site.report(…, corrects=True, reach=…)`"
)


@dataclass
class Reader:
    """Reads the answers of a round.

    step_size, epsilon: what the sites were sent.
    max_reach: how many times the step size a site's `reach` may be.
    max_ratio: how many times larger than the model and than the other reports a report may be.
    asks: what the rule asks for beyond a loss and a direction.
    """

    layout: Layout
    step_size: float
    epsilon: float | None
    max_reach: float
    max_ratio: float
    asks: Asks = Asks()
    nonces: Nonces = field(default_factory=Nonces)

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
            self.nonces.refuse_old(said, round)
            if said.get("leaves") is True:
                # The layout of a goodbye: that it leaves, its target loss, and nothing else.
                epsilon = target_loss(said, member, self.epsilon)
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

    def _report(
        self, member: Member, said: Mapping[str, Any], answer: FLModel, sent: NDArray[np.float64]
    ) -> tuple[Report, float, float]:
        """The report in an answer, checked; how far it would move the model, and the largest number it
        tells."""
        if not isinstance(answer.params, dict):
            raise Error("its answer is neither a goodbye nor a report: it has no arrays")
        local = reach(said, self.step_size, self.max_reach)
        self.asks.refuse_uncorrected(said, local, HOW_TO_CORRECT)
        work = {k: v for k, v in answer.params.items() if not str(k).startswith(GRADIENT)}
        slope = {
            k.removeprefix(GRADIENT): v
            for k, v in answer.params.items()
            if str(k).startswith(GRADIENT)
        }
        if bool(slope) != (said.get("gradient") is True):
            raise Error(
                "the gradient beside its report did not arrive; set the executor's "
                "params_transfer_type to FULL"
            )
        direction = self.layout.unpack(work)
        exact = self.layout.unpack(slope) if slope else None
        if said.get("kind") == "weights":
            direction = self._moved(answer, direction, sent, local)
        elif said.get("kind") == "direction":
            # It is the gradient at what the site was sent, and previews may be made from it; unless a
            # correction was added to it, and then the gradient is beside it.
            if exact is None and not self.asks.corrections:
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
            reach=local,
            samples=max(int(number(said, "samples")), 1) if "samples" in said else 1,
            rates=self.asks.rates_in(said),
            **numbers,
        )
        move = max(self.step_size, local or 0.0) * made.check(self.layout.length)
        if move > LARGEST:
            raise Error(f"its report would move the model by {move:g}, out of all range")
        return made, move, max((abs(value) for value in numbers.values()), default=0.0)

    def _moved(
        self,
        answer: FLModel,
        trained: NDArray[Any],
        sent: NDArray[np.float64],
        local: float | None,
    ) -> NDArray[Any]:
        """What an agent's training amounts to as a direction: FLARE passes on either the trained
        weights or, if the job says so, their difference from what was sent."""
        with np.errstate(all="ignore"):  # What is not finite is found later.
            moved = -trained.astype(np.float64)
            if answer.params_type != ParamsType.DIFF:
                moved += self.layout.unpack(self.layout.pack(sent), np.float64)
            moved /= self.step_size if local is None else local
            return moved.astype(self.layout.dtype)

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
        return number(said, "loss"), share(said, "accuracy")


def _said(answer: FLModel) -> Mapping[str, Any]:
    """What an answer says in words and numbers; a fault that the site reports itself is raised."""
    said = answer.meta.get(KEY) if isinstance(answer.meta, Mapping) else None
    if not isinstance(said, Mapping):
        raise Error(f"its answer has no `{KEY}` in its meta; use fedstay.flare.serve or Site")
    if said.get("fault") is not None:
        raise Error(f"it says: {shown(said['fault'])}")
    return said

"""Answers sorted into reports, goodbyes and faults. Their order does not matter.

Whatever a site sends, it can only lose its own place in this round: every answer is read inside a
`try`, nothing of it is kept before all of it has been checked, and what it says reaches the log only as
one short printable line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from nvflare.app_common.abstract.fl_model import FLModel, ParamsType

from .._core import Error, Report
from ..remote import reader as shared
from ..remote.answers import Answers, target_loss
from ..remote.door import number, reach, share, shown
from ._layout import GRADIENT, KEY, Layout
from ._roll import Member

#: What a site does whose report should have been corrected.
HOW_TO_CORRECT = (
    "let its script `serve` an agent that has `corrected`, or have its own loop add `site.correction(model)` "
    "to every gradient and say so: `site.report(…, corrects=True, reach=…)`"
)


@dataclass(kw_only=True)
class Reader(shared.Reader):
    """Reads the answers of a round."""

    layout: Layout

    def hear(
        self,
        member: Member,
        answer: FLModel,
        sent: NDArray[np.float64],
        round: int,
        answers: Answers,
    ) -> None:
        """Takes one answer of an agent that was sent the weights `sent`."""
        with answers.of(member):
            said = _said(answer)
            self.nonces.refuse_old(said, round, member)
            if said.get("leaves") is True:
                # The layout of a goodbye: that it leaves, its target loss, and nothing else.
                epsilon = target_loss(said, member, self.epsilon)
                member.left = round
                answers.goodbyes.append(member.id)
            else:
                made, move, tells = self._report(member, said, answer, sent)
                epsilon = made.epsilon
                answers.add(member, made, move, tells, round)
            if epsilon is not None:
                member.epsilon = epsilon

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
            before = self.layout.unpack(self.layout.pack(sent), np.float64)
            if answer.params_type == ParamsType.DIFF:
                # The job has FLARE pass on the difference from what was sent.
                before = np.zeros_like(before)
            direction = self.direction(before, direction, local)
        elif said.get("kind") == "direction":
            # It is the gradient at what the site was sent, and previews may be made from it; unless a
            # correction was added to it, and then the gradient is beside it.
            if exact is None and not self.asks.corrections:
                exact = direction
        else:
            raise Error(f"its report is of kind {shown(repr(said.get('kind')), 60)}")
        samples = max(int(number(said, "samples")), 1) if "samples" in said else 1
        return self.report(member, said, direction, gradient=exact, reach=local, samples=samples)

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

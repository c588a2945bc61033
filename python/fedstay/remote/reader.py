"""What agents report, checked: how they were asked, and what of an answer is believed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core import Error, Report
from .asks import Asks
from .door import LARGEST, Nonces, number
from .roll import Member

__all__ = ["Reader"]

#: The numbers of a report that go to the core.
NUMBERS = ("loss", "epsilon", "tau", "standard_error")


@dataclass(kw_only=True)
class Reader:
    """Reads reports, whatever carries them.

    step_size, epsilon: what the agents were sent.
    max_reach: how many times the step size an agent's `reach` may be.
    max_ratio: how many times larger than the model and than the other reports a report may be.
    asks: what the rule asks for beyond a loss and a direction.
    needing: the policy or the rule that computes with losses, where one does.
    """

    step_size: float
    epsilon: float | None
    max_reach: float
    max_ratio: float
    asks: Asks = Asks()
    needing: str = "the rule"
    nonces: Nonces = field(default_factory=Nonces)

    def direction(
        self, sent: NDArray[np.float64], trained: NDArray[Any], local: float | None
    ) -> NDArray[Any]:
        """What training amounts to as a direction, over the sum of the local step sizes, if it is known."""
        with np.errstate(all="ignore"):  # What is not finite is found later.
            moved = sent - trained.astype(np.float64)
            moved /= self.step_size if local is None else local
            return moved.astype(trained.dtype)

    def report(
        self, member: Member, said: Mapping[str, Any], direction: NDArray[Any], **more: Any
    ) -> tuple[Report, float, float]:
        """A report, checked; how far it would move the model, and the largest number it tells. `more` is
        what the core is told besides."""
        numbers: dict[str, Any] = {
            name: number(said, name, may_be_infinite=name == "tau")
            for name in NUMBERS
            if name in said
        }
        if "loss" in numbers and self.epsilon is not None:
            numbers.setdefault("epsilon", self.epsilon)
        made = Report(member.id, direction, rates=self.asks.rates_in(said), **numbers, **more)
        move = max(self.step_size, made.reach or 0.0) * made.check(direction.size)
        if move > LARGEST:
            raise Error(f"its report would move the model by {move:g}, out of all range")
        tells = max((abs(value) for name, value in numbers.items() if name != "tau"), default=0.0)
        return made, move, tells

"""What a rule asks of agents behind a network beyond a loss and a direction: how they are asked, and what
they must answer. `..asks` says whether an agent can do it at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .._core import Error, Rates, asks_of_agents
from ..scale import kind_of
from .door import number

__all__ = ["CORRECTS", "TELL_RATES", "Asks"]

#: What agents are told when they are to train: add the correction to the gradient of every local step.
CORRECTS = "corrects"
#: And: tell how well the received weights serve your groups.
TELL_RATES = "tell-rates"


@dataclass(frozen=True)
class Asks:
    """What a rule asks for, and its name."""

    rule: str = "the rule"
    corrections: bool = False
    rates: bool = False

    @classmethod
    def of(cls, rule: Any) -> Asks:
        """What this rule asks for."""
        asks = asks_of_agents(rule)
        return cls(str(kind_of(rule) or rule), "corrections" in asks, "rates" in asks)

    def words(self) -> dict[str, bool]:
        """What agents are told of it when they are to train."""
        said = {CORRECTS: self.corrections, TELL_RATES: self.rates}
        return {name: True for name, asked in said.items() if asked}

    def refuse_uncorrected(self, said: Mapping[str, Any], reach: float | None, how: str) -> None:
        """A rule that corrects local steps takes back what was added, so it must have been added; `how`
        says how an agent does that."""
        if not self.corrections:
            return
        if said.get("corrects") is not True:
            raise Error(
                f"{self.rule} corrects every local step, and its report does not say that it did: {how}"
            )
        if said.get("kind") == "weights" and reach is None:
            raise Error(
                f"{self.rule} needs the sum of its local step sizes to know its gradients: give `reach=`"
            )

    def rates_in(self, said: Mapping[str, Any]) -> Rates | None:
        """How well an agent's groups are served, where the rule asks."""
        if not self.rates:
            return None
        told: Any = said.get("rates")
        if told is None:
            raise Error(
                f"{self.rule} asks how well agents' groups are served, and its report does not tell: give "
                "its agent `rates(weights)`, a `fedstay.TorchAgent` `groups=`, or `report(…, rates=…)`"
            )
        if not isinstance(told, list) or len(told) != 6:
            raise Error("its rates are not six counts")
        counts = [int(number({"rates": value}, "rates")) for value in told]
        if not all(0 <= count < 2**53 for count in counts):
            raise Error("its rates are not counts")
        right, of = (counts[0], counts[1]), (counts[2], counts[3])
        return Rates(right=right, of=of, correct=counts[4], rows=counts[5])

"""The agents' side of what rules ask beyond a loss and a direction, whatever carries the messages."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from .._core import Rates
from ..asks import no_corrections, no_rates
from .asks import CORRECTS, TELL_RATES
from .door import NONCE

__all__ = ["asked", "counts", "echoed", "seed"]


def asked(sent: Mapping[str, Any], agent: Any) -> tuple[list[str], str | None]:
    """What the rule asks of this agent, and why it cannot do it, if so."""
    asks: list[str] = []
    for key, what, lacks in (
        (CORRECTS, "corrections", no_corrections),
        (TELL_RATES, "rates", no_rates),
    ):
        if not sent.get(key):
            continue
        lack = lacks(agent)
        if lack is not None:
            return asks, f"it cannot do what the rule asks ({what}): {lack}"
        asks.append(what)
    return asks, None


def echoed(sent: Mapping[str, Any]) -> dict[str, Any]:
    """What every answer repeats of the message that it answers."""
    return {NONCE: sent[NONCE]} if sent.get(NONCE) is not None else {}


def counts(rates: Rates) -> list[int]:
    """The six counts of a report that tells how well groups are served."""
    return [*rates.right, *rates.of, rates.correct, rates.rows]


def seed(name: str, round: int) -> int:
    """What an agent's local work draws from: another one for every agent and round."""
    return int.from_bytes(hashlib.sha256(f"{name}/{round}".encode()).digest()[:4])

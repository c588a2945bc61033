"""The agents' side, whatever carries the messages: who decides, what a report says, what rules ask."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from .._core import Error, Participant, Rates
from ..asks import no_corrections, no_rates
from .asks import CORRECTS, TELL_RATES
from .door import NONCE

__all__ = ["asked", "echoed", "participant", "said", "seed"]


def participant(epsilon: float, behaviour: Any, remembered: str | None, who: str) -> Participant:
    """Who decides for an agent, with what it remembers; `who` begins the sentence that refuses."""
    made = Participant(0, epsilon, behaviour)
    if made.comes_back or made.repeats:
        raise Error(
            f"{who}`{made.behaviour}` is for simulations: an agent that left is not asked again, and nobody "
            "repeats a report"
        )
    if remembered is not None:
        made.restore(remembered)
    return made


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


def said(
    sent: Mapping[str, Any],
    told: Mapping[str, Any],
    *,
    trained: bool,
    reach: float | None,
    samples: int,
    corrects: bool,
    rates: Rates | None,
) -> dict[str, Any]:
    """What a report says beside its arrays; `told` is the loss, and what else goes with it."""
    words: dict[str, Any] = {"kind": "weights" if trained else "direction", **told}
    words |= {"samples": int(samples), **echoed(sent)}
    if reach is not None:
        words["reach"] = float(reach)
    if corrects:
        words["corrects"] = True
    if rates is not None:
        # How well groups are served, in six counts.
        words["rates"] = [*rates.right, *rates.of, rates.correct, rates.rows]
    return words


def seed(name: str, round: int) -> int:
    """What an agent's local work draws from: another one for every agent and round."""
    return int.from_bytes(hashlib.sha256(f"{name}/{round}".encode()).digest()[:4])

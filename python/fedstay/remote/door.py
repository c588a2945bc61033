"""The door: whatever an agent says is checked here, before anything is computed or kept."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from typing import Any

from .._core import Error
from .roll import Member

#: What the messages of a round say, and their answers repeat.
NONCE = "nonce"

#: No number may be larger: its square, and a sum of many squares, is then still finite.
LARGEST = 1e100


def shown(text: object, limit: int = 300) -> str:
    """Text from outside, made fit for a log: short, on one line, nothing a terminal would obey."""
    whole = str(text)
    safe = "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode() for c in whole[:limit]
    )
    return safe if len(whole) <= limit else safe + " …"


def reason(error: Exception) -> str:
    """An exception as a reason for a log and for rounds.jsonl."""
    return shown(error if isinstance(error, Error) else f"{type(error).__name__}: {error}")


def number(said: Mapping[str, Any], name: str, *, may_be_infinite: bool = False) -> float:
    """A number that an agent told: a real one, finite, and not absurdly large."""
    value = said[name]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise Error(f"its {name} is {shown(repr(value), 60)}, not a number")
    if may_be_infinite and value in (float("inf"), float("-inf")):
        return float(value)
    # An integer of any length can be compared, but not printed or made a float.
    if isinstance(value, int) and abs(value) > LARGEST:
        raise Error(f"its {name} is an integer beyond {LARGEST:g}")
    if not -LARGEST <= value <= LARGEST:
        raise Error(f"its {name} is {value}, not a finite number up to {LARGEST:g}")
    return float(value)


class Nonces:
    """One for every round, which nobody can know before: an old answer that is sent again has another.

    It guards against answers that are kept and repeated, by a client that caches for instance. It is no
    proof: who wants to lie can put this round's nonce into an old report. Clients of fedstay 0.1 know of no
    nonces: an answer without one is let through until its agent has given one, and never after that.
    """

    def __init__(self) -> None:
        self._secret = secrets.token_hex(16)

    def of(self, round: int) -> str:
        """The nonce of a round."""
        return hashlib.sha256(f"{self._secret}/{round}".encode()).hexdigest()[:16]

    def refuse_old(self, said: Mapping[str, Any], round: int, member: Member) -> None:
        """Refuses an answer to another round's message, or to nobody knows which."""
        told = said.get(NONCE)
        if told is None and member.repeats_nonces:
            raise Error(
                "it repeats no nonce, which earlier answers of this agent did: it may be an old answer, "
                "changed and sent again"
            )
        if told not in (None, self.of(round)):
            raise Error(
                "it answers another round's message, by the nonce in it: an old answer that was sent again"
            )
        member.repeats_nonces |= told is not None


def share(said: Mapping[str, Any], name: str) -> float:
    """A number from 0 to 1."""
    value = number(said, name)
    if not 0.0 <= value <= 1.0:
        raise Error(f"its {name} is {value}, not a number from 0 to 1")
    return value


def reach(said: Mapping[str, Any], step_size: float, max_reach: float) -> float | None:
    """The sum of an agent's local step sizes, if it told one that is plausible."""
    if said.get("reach") is None:
        return None
    told, most = number(said, "reach"), max_reach * step_size
    if not 0.0 < told <= most:
        raise Error(
            f"its reach is {told:g}, but must be above zero and at most {most:g}, `max_reach` = "
            f"{max_reach:g} times the step size"
        )
    return told


def outliers(sizes: Mapping[int, float], usual: float, most: float) -> dict[int, float]:
    """Finds whose number is absurdly large: more than `most` times the usual one and more than `most`
    times the median of the others'; also returns what it was compared with. Finite garbage looks like
    that; honest agents hardly ever do, because where all are large nobody stands out."""
    found = {}
    for agent, size in sizes.items():
        others = sorted(other for who, other in sizes.items() if who != agent)
        typical = max(usual, others[(len(others) - 1) // 2] if others else 0.0)
        if size > most * typical:
            found[agent] = typical
    return found

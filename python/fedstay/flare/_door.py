"""The door: what a site says is checked here, before anything is computed or kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._core import Error

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


def number(said: Mapping[str, Any], name: str) -> float:
    """A number that a site told: a real one, finite, and not absurdly large."""
    value = said[name]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise Error(f"its {name} is {shown(repr(value), 60)}, not a number")
    # An integer of any length can be compared, but not printed or made a float.
    if not -LARGEST <= value <= LARGEST:
        what = "an integer" if isinstance(value, int) else f"{value}"
        raise Error(f"its {name} is {what}, not a finite number up to {LARGEST:g}")
    return float(value)


def outliers(sizes: Mapping[int, float], usual: float, most: float) -> dict[int, float]:
    """Finds whose number is absurdly large: more than `most` times the usual one and more than `most`
    times the median of the others'; also returns what it was compared with."""
    found = {}
    for agent, size in sizes.items():
        others = sorted(other for who, other in sizes.items() if who != agent)
        typical = max(usual, others[(len(others) - 1) // 2] if others else 0.0)
        if size > most * typical:
            found[agent] = typical
    return found

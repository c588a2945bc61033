"""The door: whatever an agent says is checked here, before anything is computed or kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flwr.app import RecordDict

from .._core import Error
from ._layout import RECORD

#: The most characters of an agent's name.
LONGEST_NAME = 128
#: No number may be larger: its square, and a sum of many squares, is then still finite.
LARGEST = 1e100

#: What Flower's mod for secure aggregation says where the server is not its own.
SECURE_AGGREGATION_MARK = "secaggplus_configs"
SECURE_AGGREGATION = (
    "its app uses secure aggregation, which shows the server only the sum of all reports, and "
    "fedstay's rules work with each agent's own (docs/privacy.md); take secaggplus_mod out of the "
    "app's mods"
)


def shown(text: object, limit: int = 300) -> str:
    """Text from outside, made fit for a log: short, on one line, nothing a terminal would obey."""
    whole = str(text)
    safe = "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode() for c in whole[:limit]
    )
    return safe if len(whole) <= limit else safe + " …"


def claimed_name(content: RecordDict) -> str:
    """The name under which a reply comes."""
    said = content.config_records.get(RECORD)
    name = said.get("agent") if said is not None else None
    if not isinstance(name, str):
        raise Error(
            f"its reply has no `{RECORD}` record with an `agent`; use decide_and_report or agent_mod"
        )
    if len(name) > LONGEST_NAME or not name.isprintable() or not name.strip():
        raise Error(
            f"its name is {shown(repr(name[:40]))} ({len(name)} characters), but must be 1 to "
            f"{LONGEST_NAME} printable characters"
        )
    return name


def number(
    record: Mapping[str, Any], name: str, who: str, *, may_be_infinite: bool = False
) -> float:
    """A number from a record: a real one, finite, and not absurdly large."""
    value = record[name]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise Error(f"agent {who}: its {name} is {shown(repr(value), 60)}, not a number")
    if may_be_infinite and value in (float("inf"), float("-inf")):
        return float(value)
    if isinstance(value, int) and abs(value) > LARGEST:
        raise Error(f"agent {who}: its {name} is an integer beyond {LARGEST:g}")
    if not -LARGEST <= value <= LARGEST:
        raise Error(f"agent {who}: its {name} is {value}, not a finite number up to {LARGEST:g}")
    return float(value)


def share(record: Mapping[str, Any], name: str, who: str) -> float:
    """A number from 0 to 1."""
    value = number(record, name, who)
    if not 0.0 <= value <= 1.0:
        raise Error(f"agent {who}: its {name} is {value}, not a number from 0 to 1")
    return value


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

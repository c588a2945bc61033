"""Replies sorted into reports, goodbyes and faults. Their order does not matter."""

from __future__ import annotations

from dataclasses import dataclass, field

from flwr.app import ConfigRecord

from .._core import Error, Report
from ._roll import Member


@dataclass
class Answers:
    """What came back in a round so far, by agent."""

    reports: dict[int, Report] = field(default_factory=dict)
    goodbyes: list[int] = field(default_factory=list)
    faults: dict[str, str] = field(default_factory=dict)
    #: The same of nodes that have not told their names, by node.
    strangers: dict[int, str] = field(default_factory=dict)

    def reasons(self) -> str:
        """Why answers are missing, as far as anybody said."""
        told = [f"agent {name}: {why}" for name, why in self.faults.items()]
        told += [f"node {node}: {why}" for node, why in self.strangers.items()]
        more = f" (and {len(told) - 3} more)" if len(told) > 3 else ""
        return "".join(f"; {why}" for why in told[:3]) + more

    def heard(self, member: Member) -> bool:
        return member.id in self.reports or member.id in self.goodbyes


def number(record: ConfigRecord, name: str, who: str) -> float:
    value = record[name]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise Error(f"agent {who}: its {name} is {value!r}, not a number")
    return float(value)

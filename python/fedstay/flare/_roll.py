"""Who takes part: sites by name, their silence and their departures.

An agent is its site's name, which FLARE has checked: a site authenticates with its certificate, and a
result counts only if it comes from the site that has the task.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..remote import roll as shared
from ..remote.roll import Member

__all__ = ["Member", "Roll"]


@dataclass
class Roll(shared.Roll[Member]):
    """Everybody heard of so far."""

    def __post_init__(self) -> None:
        for number, name in enumerate(self.expected or ()):
            self.members[name] = Member(number, name)

    def member(self, **known: Any) -> Member:
        """A member as `memory` has it."""
        return Member(**known)

    def welcome(self, connected: Iterable[str]) -> None:
        """Numbers sites that are there for the first time, in the order of their names."""
        if self.expected is None:
            for name in sorted(set(connected) - set(self.members), key=_order):
                self.members[name] = Member(len(self.members), name)

    def to_ask(self, round: int, connected: Iterable[str]) -> list[Member]:
        """Whom to send this round's weights, of those that are connected."""
        connected = set(connected)
        for member in self.still_in():
            if member.aside is not None and member.name not in connected:
                member.absent = True
        return [m for m in self.still_in() if m.name in connected and self.is_due(m, round)]

    def missing(self, connected: Iterable[str]) -> list[Member]:
        """The agents that should be asked and are not connected."""
        connected = set(connected)
        return [m for m in self.still_in() if m.aside is None and m.name not in connected]


def _order(name: str) -> tuple[list[tuple[int, int, str]], str]:
    """Names with numbers in them in the order of the numbers: site-2 before site-10."""
    parts = re.findall(r"[0-9]{1,15}|[^0-9]+", name)
    return [(0, int(p), "") if p[0] in "0123456789" else (1, 0, p) for p in parts], name

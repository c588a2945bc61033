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
        there = set(connected)
        self.note_absent(there)
        return [m for m in self.still_in() if m.name in there and self.is_due(m, round)]

    def is_there(self, member: Member, connected: set[str]) -> bool:
        """A site is known by its name."""
        return member.name in connected


def _order(name: str) -> tuple[list[tuple[int, int, str]], str]:
    """Names with numbers in them in the order of the numbers: site-2 before site-10."""
    parts = re.findall(r"[0-9]{1,15}|[^0-9]+", name)
    return [(0, int(p), "") if p[0] in "0123456789" else (1, 0, p) for p in parts], name

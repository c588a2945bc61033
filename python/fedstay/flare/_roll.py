"""Who takes part: sites by name, their silence and their departures.

An agent is its site's name, which FLARE has checked: a site authenticates with its certificate, and a
result counts only if it comes from the site that has the task.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

__all__ = ["Member", "Roll"]


@dataclass
class Member:
    """What the server knows about one agent."""

    id: int
    name: str
    epsilon: float | None = None
    #: How many rounds in a row it gave no usable answer.
    silent: int = 0
    #: The round in which it was set aside, if it is.
    aside: int | None = None
    #: Set aside and not connected: asked at once when it is back.
    absent: bool = False
    left: int | None = None
    #: What it last reported, and in which round.
    loss: float | None = None
    loss_round: int | None = None


@dataclass
class Roll:
    """Everybody heard of so far.

    expected: the names that may take part, in the order of their numbers; anybody, if not given.
    max_silent: after this many rounds without a usable answer an agent is set aside.
    retry_every: an agent that was set aside is asked again after this many rounds.
    """

    expected: Sequence[str] | None = None
    max_silent: int = 3
    retry_every: int = 5
    members: dict[str, Member] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for number, name in enumerate(self.expected or ()):
            self.members[name] = Member(number, name)

    def welcome(self, connected: Iterable[str]) -> None:
        """Numbers sites that are there for the first time, in the order of their names."""
        if self.expected is None:
            for name in sorted(set(connected) - set(self.members), key=_order):
                self.members[name] = Member(len(self.members), name)

    def everybody(self) -> list[Member]:
        """All agents, by number."""
        return sorted(self.members.values(), key=lambda member: member.id)

    def still_in(self) -> list[Member]:
        """The agents that have not left, by number."""
        return [member for member in self.everybody() if member.left is None]

    def to_ask(self, round: int, connected: Iterable[str]) -> list[Member]:
        """Whom to send this round's weights, of those that are connected."""
        connected = set(connected)
        for member in self.still_in():
            if member.aside is not None and member.name not in connected:
                member.absent = True
        return [m for m in self.still_in() if m.name in connected and self._is_due(m, round)]

    def _is_due(self, member: Member, round: int) -> bool:
        if member.aside is None or member.absent:
            return True
        return (round - member.aside) % self.retry_every == 0

    def missing(self, connected: Iterable[str]) -> list[Member]:
        """The agents that should be asked and are not connected."""
        connected = set(connected)
        return [m for m in self.still_in() if m.aside is None and m.name not in connected]

    def answered(self, member: Member) -> bool:
        """Notes a usable answer; returns whether the agent had been set aside."""
        back = member.aside is not None
        member.silent, member.aside, member.absent = 0, None, False
        return back

    def failed(self, member: Member, round: int) -> bool:
        """Notes a round without a usable answer; returns whether the agent is now set aside."""
        member.silent += 1
        if member.aside is not None:
            # Another attempt failed: the next one is as far away as before.
            member.absent = False
            return False
        if member.silent >= self.max_silent:
            member.aside = round
        return member.aside is not None

    def memory(self) -> dict[str, Any]:
        """Everything it knows, for a checkpoint."""
        return {"members": [asdict(member) for member in self.everybody()]}

    def recall(self, memory: Mapping[str, Any]) -> None:
        """Takes up what `memory` gave."""
        self.members = {saved["name"]: Member(**saved) for saved in memory["members"]}

    def settings(self) -> str:
        """What config.toml says about it."""
        expected = list(self.expected) if self.expected is not None else "anybody"
        return json.dumps([expected, self.max_silent, self.retry_every])


def _order(name: str) -> tuple[list[tuple[int, int, str]], str]:
    """Names with numbers in them in the order of the numbers: site-2 before site-10."""
    parts = re.findall(r"[0-9]{1,15}|[^0-9]+", name)
    return [(0, int(p), "") if p[0] in "0123456789" else (1, 0, p) for p in parts], name

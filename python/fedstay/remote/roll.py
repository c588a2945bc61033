"""Who takes part behind a network: names, numbers, silence, departures."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Generic, TypeVar

__all__ = ["LONGEST", "Member", "Roll", "Silence"]

#: How many times `retry_every` the wait for another attempt may become. Every attempt may cost all of the
#: others the whole timeout.
LONGEST = 16


@dataclass(kw_only=True)
class Silence:
    """How long somebody has given no usable answer."""

    #: How many rounds in a row.
    silent: int = 0
    #: The round in which it was set aside, or asked in vain since then, if it is.
    aside: int | None = None
    #: After how many rounds from then it is asked again; `retry_every`, if it is 0.
    wait: int = 0
    #: Set aside and not connected: asked at once when it is back.
    absent: bool = False


@dataclass
class Member(Silence):
    """What the server knows about one agent."""

    id: int
    name: str
    epsilon: float | None = None
    left: int | None = None
    #: What it last reported, and in which round.
    loss: float | None = None
    loss_round: int | None = None
    #: Whether an answer of it has repeated its message's nonce: then all have to.
    repeats_nonces: bool = False


M = TypeVar("M", bound=Member)


@dataclass
class Roll(Generic[M]):
    """Everybody heard of so far.

    expected: the names that may take part, in the order of their numbers; anybody, if not given.
    max_silent: after this many rounds without a usable answer an agent is set aside.
    retry_every: an agent that was set aside is asked again after this many rounds; whenever that is in vain,
        after twice as many as before, up to LONGEST times this.
    """

    expected: Sequence[str] | Mapping[str, Any] | None = None
    max_silent: int = 3
    retry_every: int = 5
    members: dict[str, M] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for number, name in enumerate(self.expected or ()):
            self.members[name] = self.member(id=number, name=name)

    def member(self, **known: Any) -> M:
        """A member of the engine's own kind, as `memory` has it."""
        raise NotImplementedError

    def everybody(self) -> list[M]:
        """All agents, by number."""
        return sorted(self.members.values(), key=lambda member: member.id)

    def still_in(self) -> list[M]:
        """The agents that have not left, by number."""
        return [member for member in self.everybody() if member.left is None]

    def is_due(self, who: Silence, round: int) -> bool:
        """Whether somebody who is in and connected is asked in a round."""
        if who.aside is None or who.absent:
            return True
        return round - who.aside >= (who.wait or self.retry_every)

    def is_there(self, member: M, connected: set[Any]) -> bool:
        """Whether an agent is among those that are connected, however the engine knows them."""
        raise NotImplementedError

    def note_absent(self, connected: set[Any]) -> None:
        """Those that were set aside and are not connected are asked at once when they are back."""
        for member in self.still_in():
            if member.aside is not None and not self.is_there(member, connected):
                member.absent = True

    def missing(self, connected: Iterable[Any]) -> list[M]:
        """The agents that should have been asked and could not: still in, and not connected."""
        there = set(connected)
        return [m for m in self.still_in() if m.aside is None and not self.is_there(m, there)]

    def answered(self, member: M) -> bool:
        """Notes a usable answer; returns whether the agent had been set aside."""
        back = member.aside is not None
        member.silent, member.aside, member.wait, member.absent = 0, None, 0, False
        return back

    def failed(self, who: Silence, round: int) -> bool:
        """Notes a round without a usable answer; returns whether it is now set aside for that."""
        who.silent += 1
        if who.aside is None:
            if who.silent >= self.max_silent:
                who.aside, who.wait = round, self.retry_every
            return who.aside is not None
        if not who.absent:
            who.wait = min(2 * (who.wait or self.retry_every), LONGEST * self.retry_every)
        who.aside, who.absent = round, False
        return False

    def memory(self) -> dict[str, Any]:
        """Everything it knows, for a checkpoint."""
        return {"members": [asdict(member) for member in self.members.values()]}

    def recall(self, memory: Mapping[str, Any]) -> None:
        """Takes up what `memory` gave."""
        self.members = {saved["name"]: self.member(**saved) for saved in memory["members"]}

    def settings(self) -> str:
        """What config.toml says about it."""
        expected = list(self.expected) if self.expected is not None else "anybody"
        return json.dumps([expected, self.max_silent, self.retry_every])

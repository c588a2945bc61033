"""Who takes part behind Flower: names, numbers, nodes, silence, departures. Without Flower itself.

An agent is its name. A node is only where it was last heard from: a node that restarts may come back
under another number, and a reply under somebody else's name is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from .._core import Error
from ..remote import roll as shared
from ..remote.roll import Silence

__all__ = ["Member", "Roll"]


@dataclass
class Member(shared.Member):
    """What the server knows about one agent, and where it was last heard from."""

    node: int | None = None
    #: The node that first answered under the name; any other only stands in for it.
    first: int | None = None
    #: How often its node has answered since it has the name.
    answers: int = 0
    #: The node that said goodbye.
    left_node: int | None = None


@dataclass
class Roll(shared.Roll[Member]):
    """Everybody heard of so far, and the nodes they are heard from.

    `expected` may also be a mapping from names to node ids (None where any node may have the name).
    """

    #: Nodes that are there and have never answered, by how long they have not.
    strangers: dict[int, Silence] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.expected, Mapping):
            for name, node in self.expected.items():
                self.members[name].node = node

    def member(self, **known: Any) -> Member:
        """A member as `memory` has it."""
        return Member(**known)

    def of_node(self, node: int) -> Member | None:
        """The agent whose node it is."""
        return next((m for m in self.members.values() if m.node == node), None)

    def to_ask(self, round: int, listed: Iterable[int]) -> list[int]:
        """The nodes to send this round's weights to, of those that are connected."""
        listed = sorted(listed)
        self.strangers = {node: kept for node, kept in self.strangers.items() if node in listed}
        self.note_absent(set(listed))
        return [node for node in listed if self._asks(node, round)]

    def _asks(self, node: int, round: int) -> bool:
        member = self.of_node(node)
        if member is None:
            # A stranger may be a new agent, or an old one on a new node.
            due = self.is_due(self.strangers.get(node, Silence()), round)
            return due and not self.only_known_nodes()
        return member.left is None and self.is_due(member, round)

    def stranger_failed(self, node: int, round: int) -> int | None:
        """Notes a round in which a node that nobody knows gave no answer. If that sets it aside, returns
        after how many."""
        kept = self.strangers.setdefault(node, Silence())
        return kept.silent if self.failed(kept, round) else None

    def memory(self) -> dict[str, Any]:
        """Everything it knows, for a checkpoint."""
        strangers = [[node, asdict(kept)] for node, kept in sorted(self.strangers.items())]
        return {**super().memory(), **({"strangers": strangers} if strangers else {})}

    def recall(self, memory: Mapping[str, Any]) -> None:
        """Takes up what `memory` gave."""
        super().recall(memory)
        self.strangers = {node: Silence(**kept) for node, kept in memory.get("strangers", ())}

    def only_known_nodes(self) -> bool:
        """Whether every name belongs to one node for good."""
        return isinstance(self.expected, Mapping) and None not in self.expected.values()

    def is_there(self, member: Member, connected: set[int]) -> bool:
        """An agent is where it was last heard from."""
        return member.node in connected

    def admit(self, claims: Mapping[int, str], listed: Iterable[int]) -> dict[int, Member | Error]:
        """Which agent each node is, given the names they answered under; or why not."""
        listed = set(listed)
        admitted: dict[int, Member | Error] = {}

        def turn(claim: tuple[int, str]) -> tuple[Any, ...]:
            """Nodes by name; the node that had the name first comes before one that stands in."""
            member = self.members.get(claim[1])
            return *_order(claim[1]), member is None or member.first != claim[0], claim[0]

        for node, name in sorted(claims.items(), key=turn):
            try:
                admitted[node] = self._admit(node, name, claims, listed)
            except Error as error:
                admitted[node] = error
        return admitted

    def _admit(self, node: int, name: str, claims: Mapping[int, str], listed: set[int]) -> Member:
        own = self.of_node(node)
        if own is not None and own.name != name:
            raise Error(f"agent {own.name}: its node {node} answered as agent {name}; refused")
        member = self.members.get(name)
        if member is None:
            if self.expected is not None:
                raise Error(f"node {node} answered as agent {name}, who is not expected; refused")
            rivals = sorted(other for other, claimed in claims.items() if claimed == name)
            if len(rivals) > 1:
                raise Error(
                    f"agent {name}: nodes {rivals} all answered under this name; refused, give every "
                    "node its own `agent` or `partition-id`"
                )
            member = self.members[name] = Member(self._number(name), name, node=node)
        if member.node != node:
            back = member.first == node
            if self._is_bound(name) or (member.node in listed and not back):
                raise Error(
                    f"agent {name} is node {member.node}, but node {node} answered under its name; "
                    "refused"
                )
            if member.node is None and sum(claimed == name for claimed in claims.values()) > 1:
                raise Error(f"agent {name}: several nodes answered under this name; refused")
            member.node, member.answers = node, 0
        if member.first is None:
            member.first = node
        self.strangers.pop(node, None)
        return member

    def _is_bound(self, name: str) -> bool:
        """Whether a name belongs to one node for good."""
        return isinstance(self.expected, Mapping) and self.expected.get(name) is not None

    def believes_goodbye(self, member: Member) -> bool:
        """Whether a goodbye under this name counts: not in the first answer of a node, because an
        agent that has left is not asked again, and anybody may answer for a node that is away."""
        return self._is_bound(member.name) or member.answers >= 1

    def was_sent_away(self, member: Member) -> bool:
        """Whether its goodbye was said by a node that stood in, and the first one is back."""
        return member.node == member.first != member.left_node

    def _number(self, name: str) -> int:
        """A partition keeps its number; other names are numbered in order of appearance."""
        taken = {member.id for member in self.members.values()}
        own = int(name) if name.isdecimal() and len(name) < 16 else None
        if own is not None and str(own) == name and own not in taken:
            return own
        return next(number for number in range(len(taken) + 1) if number not in taken)


def _order(name: str) -> tuple[int, int, str]:
    """Numbers before names, each in their own order."""
    return (0, int(name), name) if name.isdecimal() else (1, 0, name)

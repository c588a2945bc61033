"""Which share of the nodes is asked in a round."""

from __future__ import annotations

import random
from dataclasses import dataclass

from ._roll import Roll


@dataclass
class Draw:
    """Draws a share of the nodes, but not too few: the same for the same seed and agents."""

    roll: Roll
    share: float
    least: int
    seed: str
    #: The round that was drawn for last, and the nodes.
    _drawn: tuple[int, set[int]] | None = None

    def of(self, round: int, nodes: list[int]) -> list[int]:
        """Those of the nodes that are asked in a round; agents that were asked may be asked again."""
        if self.share >= 1.0:
            return nodes
        if self._drawn is None or self._drawn[0] != round:
            wanted = max(int(len(nodes) * self.share), self.least)
            draw = random.Random(f"{self.seed}/{round}")
            chosen = draw.sample(sorted(nodes, key=self._place), min(wanted, len(nodes)))
            self._drawn = round, set(chosen)
        return [node for node in nodes if node in self._drawn[1]]

    def anybody(self) -> None:
        """Draws again in this round: too few of those that were asked have answered."""
        self._drawn = None

    def _place(self, node: int) -> tuple[bool, int]:
        """Agents by number, whatever their nodes are, before nodes that nobody knows."""
        member = self.roll.of_node(node)
        return (True, node) if member is None else (False, member.id)

"""What everybody may be shown in a round. All weights that go out come from here.

A policy may hide the server's own model from some agents until it is delivered. So an engine does not
choose between that model and another one, message by message: it asks, for the agent that a message
is for.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
from numpy.typing import NDArray

__all__ = ["Showing"]

Weights = NDArray[np.float64]


class Showing:
    """The weights that every agent receives: what is the same is one array.

    known : the agents that the core has told about, and `personal` has those among them that receive
        weights of their own. Everybody else is new, and receives `newcomers`.
    """

    def __init__(
        self,
        weights: Weights,
        personal: Mapping[int, Weights] | None = None,
        newcomers: Weights | None = None,
        known: Collection[int] = (),
    ) -> None:
        #: The server's own.
        self.weights = weights
        self._personal = dict(personal or {})
        self._newcomers, self._known = newcomers, frozenset(known)

    @classmethod
    def the_same(cls, weights: Weights) -> Showing:
        """One model for everybody: the first of all, and the one that is delivered."""
        return cls(weights)

    def to(self, agent: int | None) -> Weights:
        """What an agent receives; None is somebody whose number nobody knows."""
        if agent is not None and agent in self._personal:
            return self._personal[agent]
        if self._newcomers is not None and (agent is None or agent not in self._known):
            return self._newcomers
        return self.weights

    def is_first(self, weights: Weights) -> bool:
        """Whether these are the weights that everybody began with, for agents that are new."""
        return weights is self._newcomers

    def hides_from(self, agent: int | None) -> bool:
        """Whether an agent receives other weights than the server's own."""
        return self.to(agent) is not self.weights

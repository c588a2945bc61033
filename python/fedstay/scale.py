"""Whether what agents report predicts what happens to their losses.

Rules that keep agents read directions as gradients. A direction that was made by dividing trained weights
by a step size is one only for plain gradient descent: momentum makes it several times too long, and Adam
hundreds of times and of another direction. Then a step brings far more than it promises, or far less, and
the rule cannot know. The record does: for every agent that was shown the model itself in two rounds running,

    promised = ⟨what it reported, the step⟩,   achieved = its loss now − its loss before,

and over some rounds the ratio of their sums should be about 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._core import asks_of_agents, policy_facts

__all__ = ["Scale", "kind_of"]

#: How many rounds are looked at together.
ROUNDS = 5
#: The ratio may be this many times too large or too small before anybody is told.
TOLERANCE = 4.0


def kind_of(what: Any) -> str | None:
    """The kind of a rule, whichever way it was given."""
    if isinstance(what, str):
        return what
    if isinstance(what, Mapping):
        return what.get("kind")
    kind: str | None = getattr(what, "kind", None)
    return kind


class Scale:
    """Compares promised with achieved changes of losses, for rules that rely on the promise."""

    def __init__(self, rule: Any, policy: Any) -> None:
        asks = asks_of_agents(rule) if rule is not None else []
        readers = [kind_of(rule)] if "gradients" in asks else []
        readers += [name for name, _, reads in policy_facts(policy) if reads]
        self._reader = readers[0] if readers else None
        #: The agents that saw the model itself in the last round: loss there, and promised change.
        self._before: dict[int, tuple[float, float]] = {}
        self._sums: list[tuple[float, float]] = []
        self.warnings: list[str] = []
        self._told = 0

    def note(self, line: Mapping[str, Any], promised: list[tuple[int, float]]) -> None:
        """Takes note of a finished round: its line, and what its step promised every agent."""
        if self._reader is None:
            return
        others = {shown["agent"] for shown in line.get("shown", [])}
        told = zip(line["agents"], line["loss"], strict=True)
        losses = {agent: v for agent, v in told if v is not None and agent not in others}
        both = [agent for agent in losses if agent in self._before]
        if both:
            achieved = sum(losses[agent] - self._before[agent][0] for agent in both)
            self._sums.append((sum(self._before[agent][1] for agent in both), achieved))
        self._before = {a: (losses[a], change) for a, change in promised if a in losses}
        if len(self._sums) == ROUNDS:
            self._judge(line["round"])
            self._sums = []

    def _judge(self, round: int) -> None:
        promised, achieved = (sum(column) for column in zip(*self._sums, strict=True))
        if promised >= 0.0 or self.warnings:
            return
        ratio = achieved / promised
        if 1.0 / TOLERANCE <= ratio <= TOLERANCE:
            return
        self.warnings.append(
            f"until round {round}, in the last {ROUNDS} rounds, losses changed by {ratio:.2g} times "
            f"what the agents' reports promised: {self._reader} takes directions for gradients that "
            "they are not, or the step is too long. Let agents report the gradient at the received "
            "weights, set `step_size` to the sum of their local step sizes, or use averaging with the "
            "policy preview, which does not care how agents train"
        )

    def news(self) -> list[str]:
        """The warnings that nobody was told yet."""
        fresh, self._told = self.warnings[self._told :], len(self.warnings)
        return fresh

    def memory(self) -> dict[str, Any]:
        """What must survive a restart."""
        if self._reader is None:
            return {}
        before = [[agent, *pair] for agent, pair in self._before.items()]
        return {"scale": {"before": before, "sums": self._sums, "warnings": self.warnings}}

    def recall(self, memory: Mapping[str, Any]) -> None:
        """Takes up what `memory` gave."""
        kept = memory.get("scale")
        if kept is not None:
            self._before = {agent: (loss, change) for agent, loss, change in kept["before"]}
            self._sums = [(promised, achieved) for promised, achieved in kept["sums"]]
            self.warnings = list(kept["warnings"])
            self._told = len(self.warnings)

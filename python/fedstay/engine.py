"""What reaches the agents of a run, for engines written in Python.

`fedstay.simulate` has one for objects in this process and `fedstay.flower` one for Flower's nodes. An
engine for another framework implements `Engine` and is driven by `fedstay._core.drive`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from ._core import Report

__all__ = ["Assessed", "Engine", "Gathered", "Member"]


class Member(NamedTuple):
    """One agent that takes part."""

    id: int
    #: Its target loss.
    epsilon: float
    #: Its display name, if it has one.
    name: str | None = None
    #: How it behaves, as a configuration names it, where that is known.
    behaviour: str | None = None


class Assessed(NamedTuple):
    """How good weights are for one agent."""

    agent: int
    loss: float
    accuracy: float | None = None
    #: The round in which it reported this loss, where it could not be asked about these weights.
    as_of: int | None = None
    #: What else was measured, by name: `{"balanced": 0.8}`. A name is small letters, digits, `_` and `-`.
    #: Names that `fedstay list measures` has are shown as there, others as numbers of which more is
    #: better.
    measures: Mapping[str, float] = {}  # noqa: RUF012


class Gathered(NamedTuple):
    """What came back in a round."""

    reports: list[Report]
    #: The agents that said goodbye.
    goodbyes: list[int]
    #: The agents that had left and came back.
    returned: list[int] = []  # noqa: RUF012
    #: The agents that should have answered and did not, and why.
    faults: list[tuple[int, str]] = []  # noqa: RUF012
    #: How good the weights are for every agent, in rounds in which the engine looks.
    assessment: list[Assessed] | None = None
    #: Whether too few answered: then no step is taken, and the run ends.
    too_few: bool = False
    #: How many agents are still in but were not heard from in this round: not asked, or silent.
    absent: int = 0


class Engine(Protocol):
    """Whatever reaches the agents.

    An engine may also have

    personal : True, if it can send every agent weights of its own. `gather` then has one more keyword,
        `personal`: the weights of those agents, by number, that are to receive others than `weights`.
        Without it the policy "preview" is refused.
    newcomers : True, if agents may join in any round, and it can send every agent weights of its own.
        `gather` then has one more keyword, `newcomers`: the weights of agents that were not heard yet, if
        they are to receive others than `weights`; else None. Agents in `personal` that are to receive them
        have the very same array there.
    corrections : True, if its agents add what a rule says to the gradient of every local step. `gather`
        then has one more keyword, `corrections`: what to add, by number, for agents that were heard
        before, under a rule that corrects. Without it such a rule ("scaffold") is refused.
    rates : True, if its reports tell how well agents' groups are served, for rules that ask. Without it
        such a rule ("fairfed") is refused.
    dropped(agent, why) : its agents are strangers. It hears that a report could not be used, and the
        round continues without it. Without that method such a report ends the run.
    closed(line, promised) : hears of every finished round, as the line of rounds.jsonl, and by how much
        the step was to change every agent's loss, to first order; returns whether the run should end, or
        "too-few" if that is why.
    constant() : the mean loss and, if there is one, the accuracy that the best constant prediction has for
        the agents (always the shares of the classes), as a pair, or None. A model that is no better is
        called "empty" in the verdict; without that method nobody can say.
    warnings() : sentences that the summary's warnings are to end with.
    """

    def agents(self) -> list[Member]:
        """Everybody who takes part, by number. Agents may join in any round."""

    def gather(
        self, *, round: int, weights: NDArray[np.float64], step_size: float, exact: bool
    ) -> Gathered:
        """Sends the weights to the agents still in and collects their answers.

        exact : whether the rule computes with losses, so that a report must carry one.
        """

    def assess(self, weights: NDArray[np.float64]) -> list[Assessed]:
        """How good weights are for every agent, including those that left."""

    def save(self) -> str:
        """Returns what a restart needs, as JSON."""

    def restore(self, saved: str) -> Any:
        """Takes up what `save` gave."""

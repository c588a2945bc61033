"""What some rules ask of agents beyond a loss and a gradient, and whether these agents can do it.

`scaffold` corrects every local step, and `fairfed` weighs agents by how well their groups are served.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._core import Error, Rates

__all__ = ["corrected", "no_corrections", "no_rates", "rates_of", "refuse"]


def no_corrections(agent: Any) -> str | None:
    """Why an agent's local steps cannot be corrected; None if they can."""
    own: str | None = getattr(agent, "no_corrections", None)
    if own is not None:
        return own
    if not callable(getattr(agent, "work", None)) or callable(getattr(agent, "corrected", None)):
        return None
    return (
        "it trains by `work`; give it `corrected(weights, correction, seed=…)`, which adds `correction` to "
        "the gradient of each of its steps, and returns where they lead and the sum of their step sizes"
    )


def no_rates(agent: Any) -> str | None:
    """Why an agent cannot tell how well its groups are served; None if it can."""
    own: str | None = getattr(agent, "no_rates", None)
    if own is not None or callable(getattr(agent, "rates", None)):
        return own
    return "give it `rates(weights)`, which counts that in a `fedstay.Rates`"


def refuse(asks: Sequence[str], rule: Any, agents: Sequence[Any], shown: Sequence[Any]) -> None:
    """Raises, naming the agent, if one of them cannot do what the rule asks."""
    for what, lacks, why in (
        ("corrections", no_corrections, "corrects every local step"),
        ("rates", no_rates, "asks how well agents' groups are served"),
    ):
        if what not in asks:
            continue
        for index, (agent, name) in enumerate(zip(agents, shown, strict=True)):
            lack = lacks(agent)
            if lack is not None:
                error = Error(f"{rule} {why}, and agent {name} cannot do that: {lack}")
                error.agent = index
                raise error


def corrected(
    agent: Any, weights: NDArray[Any], by: NDArray[Any], seed: int
) -> tuple[NDArray[Any], float] | None:
    """Where an agent's corrected local steps lead, and the sum of their sizes; None if its one step is
    its gradient."""
    steps = getattr(agent, "corrected", None)
    led = steps(weights, by, seed=seed) if callable(steps) else None
    if led is None:
        return None
    trained, reach = led
    if not float(reach) > 0.0:
        raise Error(
            f"`corrected` gave {reach!r} as the sum of its step sizes, not a number above 0"
        )
    return np.asarray(trained), float(reach)


def rates_of(agent: Any, weights: NDArray[Any], name: Any) -> Rates:
    """How well weights serve an agent's groups."""
    told = agent.rates(weights)
    if not isinstance(told, Rates):
        raise Error(
            f"agent {name}: its `rates(weights)` gave a {type(told).__name__}; give a `fedstay.Rates`"
        )
    return told

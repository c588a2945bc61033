"""Who judges models on the server, for scores that ask about models which were never sent out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from ..worth import telling

__all__ = ["judged"]


def judged(judge: Any, arrays: Any, weights: Callable[[], NDArray[Any]]) -> float:
    """The loss that a judge tells about a model: a function is given its `arrays`, as the framework has
    them, and anything with `loss` or `loss_and_grad` its `weights`, as agents are."""
    if callable(judge) and not hasattr(judge, "loss_and_grad"):
        return float(judge(arrays))
    tells = telling(judge)
    assert tells is not None
    return float(tells(weights()))

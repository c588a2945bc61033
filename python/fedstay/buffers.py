"""What models keep beside their weights, BatchNorm's running means for instance: averaged and saved."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["averaged", "packed", "unpacked"]


def packed(array: NDArray[Any]) -> list[Any]:
    """An array on its way into a checkpoint, bit for bit."""
    return [str(array.dtype), list(array.shape), b64encode(array.tobytes()).decode()]


def unpacked(packed: Sequence[Any]) -> NDArray[Any]:
    """An array from a checkpoint."""
    dtype, shape, text = packed
    return np.frombuffer(b64decode(text), dtype).reshape(shape).copy()


def averaged(
    buffers: Sequence[Mapping[str, NDArray[Any]]], weights: Sequence[float] | None = None
) -> dict[str, NDArray[Any]]:
    """What agents' models keep beside their weights, made one: the mean of numbers, in which everybody
    counts alike unless there are `weights`, and the median of counters, which no single agent can carry
    away."""
    made = {}
    for name, first in buffers[0].items():
        every = np.stack([own[name] for own in buffers])
        if first.dtype.kind == "f":
            mean = (
                every.mean(axis=0, dtype=np.float64)
                if weights is None
                else np.average(every.astype(np.float64), axis=0, weights=weights)
            )
            made[name] = np.asarray(mean, first.dtype)
        else:
            made[name] = np.asarray(np.sort(every, axis=0)[(len(every) - 1) // 2])
    return made

"""The arrays of a model that are trained, and the one vector that a server works with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core import Error

__all__ = ["Layout"]


class Layout:
    """How the trained arrays of a model lie in one vector, whatever carries them."""

    def __init__(
        self,
        keys: Sequence[str],
        dtypes: Mapping[str, np.dtype[Any]],
        shapes: Mapping[str, tuple[int, ...]],
    ) -> None:
        if not keys:
            raise Error("the model has no floating-point arrays, so there is nothing to train")
        #: The names of the arrays that are trained, and the types and shapes of all.
        self.keys, self.dtypes, self.shapes = list(keys), dict(dtypes), dict(shapes)
        single = all(self.dtypes[key].itemsize <= 4 for key in self.keys)
        #: The dtype in which directions are read.
        self.dtype = np.dtype(np.float32 if single else np.float64)

    def tensors(self) -> list[tuple[str, list[int]]]:
        """Names and shapes, for model.safetensors; none where float32 would lose something."""
        if self.dtype != np.float32:
            return []
        return [(key, list(self.shapes[key])) for key in self.keys]

    def parts(self, vector: NDArray[Any]) -> Iterator[tuple[str, NDArray[Any]]]:
        """A vector as the arrays that it consists of, by name, in its own numbers."""
        start = 0
        for key in self.keys:
            end = start + int(np.prod(self.shapes[key]))
            yield key, vector[start:end].reshape(self.shapes[key])
            start = end

    def refuse_unknown(self, arrays: Iterable[str], who: str = "") -> None:
        """Refuses arrays that the model does not have; `who` begins the sentence."""
        unknown = [key for key in arrays if key not in self.shapes]
        if unknown:
            raise Error(
                f"{who}its reply has arrays that the model does not have: {unknown[:3]}; do all agents "
                "train the same model?"
            )

    def fitting(self, array: NDArray[Any], key: str, who: str = "") -> NDArray[Any]:
        """An array in the place of one of the model's; raises where its shape is another."""
        if array.shape != self.shapes[key]:
            raise Error(
                f"{who}its array `{key}` has shape {array.shape} where the model has "
                f"{self.shapes[key]}; do all agents train the same model?"
            )
        return array

    def joined(
        self, arrays: Mapping[str, NDArray[Any]], who: str = "", dtype: Any = None
    ) -> NDArray[Any]:
        """The trained arrays as a vector; raises where they do not fit."""
        parts = []
        for key in self.keys:
            if key not in arrays:
                raise Error(f"{who}its reply lacks the array `{key}`")
            part = self.fitting(arrays[key], key, who)
            if part.dtype.kind != "f":
                raise Error(f"{who}its array `{key}` is of {part.dtype}, not of floats")
            parts.append(part.reshape(-1))
        with np.errstate(over="ignore"):  # The reader of the vector refuses what is not finite.
            return np.concatenate(parts).astype(dtype or self.dtype, copy=False)

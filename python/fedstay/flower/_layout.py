"""A model's arrays and the one vector a server works with."""

from __future__ import annotations

from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord
from numpy.typing import NDArray

from .._core import Error

#: The record in which server and agents talk to each other.
RECORD = "fedstay"


class Layout:
    """A model's arrays and the one vector a server works with. Integers are passed on untouched."""

    def __init__(self, arrays: ArrayRecord) -> None:
        self.dtypes = {key: np.dtype(array.dtype) for key, array in arrays.items()}
        self.shapes = {key: tuple(array.shape) for key, array in arrays.items()}
        self.fixed = {k: a for k, a in arrays.items() if self.dtypes[k].kind != "f"}
        self.keys = [key for key in arrays if key not in self.fixed]
        if not self.keys:
            raise Error("the model has no floating-point arrays, so there is nothing to train")
        single = all(self.dtypes[key].itemsize <= 4 for key in self.keys)
        #: The dtype in which directions are read.
        self.dtype = np.dtype(np.float32 if single else np.float64)

    def tensors(self) -> list[tuple[str, list[int]]]:
        """Names and shapes, for model.safetensors; none where float32 would lose something."""
        if self.dtype != np.float32:
            return []
        return [(key, list(self.shapes[key])) for key in self.keys]

    def pack(self, weights: NDArray[np.float64]) -> ArrayRecord:
        """The vector as the model's arrays."""
        arrays: dict[str, Array] = {}
        start = 0
        for key, shape in self.shapes.items():
            if key in self.fixed:
                arrays[key] = self.fixed[key]
                continue
            end = start + int(np.prod(shape))
            part = weights[start:end].reshape(shape).astype(self.dtypes[key])
            arrays[key] = Array(part)
            start = end
        return ArrayRecord(arrays)

    def unpack(self, arrays: ArrayRecord, who: str, dtype: Any = None) -> NDArray[Any]:
        """The model's arrays as a vector; raises, naming `who`, where they do not fit."""
        unknown = [key for key in arrays if key not in self.shapes]
        if unknown:
            raise Error(
                f"agent {who}: its reply has arrays that the model does not have: {unknown[:3]}; do all "
                "agents train the same model?"
            )
        parts = []
        for key in self.keys:
            if key not in arrays:
                raise Error(f"agent {who}: its reply lacks the array `{key}`")
            part = arrays[key].numpy()
            if part.shape != self.shapes[key]:
                raise Error(
                    f"agent {who}: its array `{key}` has shape {part.shape} where the model has "
                    f"{self.shapes[key]}; do all agents train the same model?"
                )
            if part.dtype.kind != "f":
                raise Error(f"agent {who}: its array `{key}` is of {part.dtype}, not of floats")
            parts.append(part.reshape(-1))
        with np.errstate(over="ignore"):  # The reader of the vector refuses what is not finite.
            return np.concatenate(parts).astype(dtype or self.dtype, copy=False)

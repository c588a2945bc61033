"""A model's arrays and the one vector a server works with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core import Error

#: Under this key of a message's meta, server and sites talk to each other.
KEY = "fedstay"
#: Before the names of the arrays of an exact gradient that comes beside trained weights.
GRADIENT = "gradient/"
#: In what a site is sent: the arrays that it adds to the gradient of every local step.
CORRECTION = "correction"

Arrays = Mapping[str, NDArray[Any]]


class Layout:
    """A model's arrays and the one vector a server works with. Integers are passed on untouched."""

    def __init__(self, arrays: Mapping[str, Any]) -> None:
        if not isinstance(arrays, Mapping) or not arrays:
            raise Error(
                "there is no model to start from: give FedStay `weights`, or the job a persistor with one"
            )
        model = {name: np.asarray(array) for name, array in arrays.items()}
        reserved = [name for name in model if name.startswith(GRADIENT)]
        if reserved:
            raise Error(f"array `{reserved[0]}`: names that begin with `{GRADIENT}` are reserved")
        self.dtypes = {name: array.dtype for name, array in model.items()}
        self.shapes = {name: array.shape for name, array in model.items()}
        self.fixed = {name: array for name, array in model.items() if array.dtype.kind != "f"}
        self.names = [name for name in model if name not in self.fixed]
        if not self.names:
            raise Error("the model has no floating-point arrays, so there is nothing to train")
        single = all(self.dtypes[name].itemsize <= 4 for name in self.names)
        #: The dtype in which directions are read.
        self.dtype = np.dtype(np.float32 if single else np.float64)
        self.length = sum(model[name].size for name in self.names)

    def tensors(self) -> list[tuple[str, list[int]]]:
        """Names and shapes, for model.safetensors; none where float32 would lose something."""
        if self.dtype != np.float32:
            return []
        return [(name, list(self.shapes[name])) for name in self.names]

    def pack(self, weights: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """The vector as the model's arrays."""
        arrays: dict[str, NDArray[Any]] = {}
        start = 0
        for name, shape in self.shapes.items():
            if name in self.fixed:
                arrays[name] = self.fixed[name]
                continue
            end = start + int(np.prod(shape))
            arrays[name] = weights[start:end].reshape(shape).astype(self.dtypes[name])
            start = end
        return arrays

    def pack_floats(self, vector: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """A vector as the model's arrays, without those that are not trained."""
        return {name: part for name, part in self.pack(vector).items() if name not in self.fixed}

    def unpack(self, arrays: Mapping[str, Any], dtype: Any = None) -> NDArray[Any]:
        """The model's arrays as a vector; raises where they do not fit."""
        unknown = [name for name in arrays if name not in self.shapes]
        if unknown:
            raise Error(
                f"it sent arrays that the model does not have: {unknown[:3]}; do all sites train the "
                "same model?"
            )
        parts = []
        for name in self.names:
            if name not in arrays:
                raise Error(f"it did not send the array `{name}`")
            part = arrays[name]
            if not isinstance(part, np.ndarray):
                raise Error(
                    f"its array `{name}` is a {type(part).__name__}, not a NumPy array; leave the "
                    "executor's server_expected_format as it is"
                )
            if part.shape != self.shapes[name]:
                raise Error(
                    f"its array `{name}` has shape {part.shape} where the model has "
                    f"{self.shapes[name]}; do all sites train the same model?"
                )
            if part.dtype.kind != "f":
                raise Error(f"its array `{name}` is of {part.dtype}, not of floats")
            parts.append(part.reshape(-1))
        with np.errstate(over="ignore"):  # The reader of the vector refuses what is not finite.
            return np.concatenate(parts).astype(dtype or self.dtype, copy=False)

"""A model's arrays and the one vector a server works with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core import Error
from ..remote import layout as shared

#: Under this key of a message's meta, server and sites talk to each other.
KEY = "fedstay"
#: Before the names of the arrays of an exact gradient that comes beside trained weights.
GRADIENT = "gradient/"
#: In what a site is sent: the arrays that it adds to the gradient of every local step.
CORRECTION = "correction"


class Layout(shared.Layout):
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
        self.fixed = {name: array for name, array in model.items() if array.dtype.kind != "f"}
        super().__init__(
            [name for name in model if name not in self.fixed],
            {name: array.dtype for name, array in model.items()},
            {name: array.shape for name, array in model.items()},
        )
        self.length = sum(model[name].size for name in self.keys)

    def pack(self, weights: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """The vector as the model's arrays."""
        arrays = {**self.fixed, **self.pack_floats(weights)}
        return {name: arrays[name] for name in self.shapes}

    def pack_floats(self, vector: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """A vector as the model's arrays, without those that are not trained."""
        return {name: part.astype(self.dtypes[name]) for name, part in self.parts(vector)}

    def unpack(self, arrays: Mapping[str, Any], dtype: Any = None) -> NDArray[Any]:
        """The model's arrays as a vector; raises where they do not fit."""
        self.refuse_unknown(arrays)
        for name, array in arrays.items():
            if name not in self.fixed and not isinstance(array, np.ndarray):
                raise Error(
                    f"its array `{name}` is a {type(array).__name__}, not a NumPy array; leave the "
                    "executor's server_expected_format as it is"
                )
        return self.joined(arrays, dtype=dtype)

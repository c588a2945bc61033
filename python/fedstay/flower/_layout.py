"""A model's arrays: the one vector that a server works with, and the buffers beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord
from numpy.typing import NDArray

from .._core import Error
from ..buffers import averaged, packed, unpacked
from ..remote import layout as shared

#: The record in which server and agents talk to each other.
RECORD = "fedstay"
#: What it says in the place of numbers that a private agent keeps to itself.
WITHHOLDS = "withholds"
#: The arrays that an agent adds to the gradient of every local step.
CORRECTION = "correction"
#: How buffers of normalising layers are called, for models whose clients do not say what is one.
BUFFERS = ("running_mean", "running_var", "num_batches_tracked")


class Layout(shared.Layout):
    """A model's arrays: parameters are one vector, buffers travel beside it.

    parameters: the names of the arrays that are trained. If not given, all floating-point arrays, except
        those that are called like the buffers of normalising layers.
    tied: names of arrays that are the same parameter as another one, and its name.
    """

    def __init__(
        self,
        arrays: ArrayRecord,
        parameters: Iterable[str] | None = None,
        tied: Mapping[str, str] | None = None,
    ) -> None:
        dtypes = {key: np.dtype(array.dtype) for key, array in arrays.items()}
        shapes = {key: tuple(array.shape) for key, array in arrays.items()}
        self.tied = dict(tied or {})
        if parameters is None:
            keys = [key for key, dtype in dtypes.items() if _looks_trained(key, dtype)]
        else:
            wanted = set(parameters)
            keys = [key for key in arrays if key in wanted]
            self._refuse_wrong(wanted, keys, dtypes)
        super().__init__(keys, dtypes, shapes)
        #: What the model has beside its parameters, as everybody receives it.
        self.buffers: dict[str, NDArray[Any]] = {
            key: arrays[key].numpy()
            for key in arrays
            if key not in self.keys and key not in self.tied
        }
        #: As everybody received them at first, beside the first weights.
        self.first_buffers = dict(self.buffers)

    def _refuse_wrong(
        self, wanted: set[str], keys: list[str], dtypes: Mapping[str, np.dtype[Any]]
    ) -> None:
        missing = sorted(wanted - set(dtypes))
        if missing:
            raise Error(
                f"the initial arrays lack {missing[:3]}, which the agents train; do server and agents "
                "have the same model?"
            )
        odd = sorted(key for key in keys if dtypes[key].kind != "f")
        if odd:
            raise Error(f"`{odd[0]}` is to be trained, but is of {dtypes[odd[0]]}")
        lost = sorted(f for t, f in self.tied.items() if f not in wanted or t not in dtypes)
        if lost:
            raise Error(f"an array is tied to `{lost[0]}`, which is not a parameter of the model")

    def guessed(self) -> list[str]:
        """The floating-point arrays that count as buffers because of what they are called."""
        return [key for key in self.buffers if self.dtypes[key].kind == "f"]

    def rest(self, weights: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
        """What a state dict has beside the parameters."""
        if not self.tied:
            return dict(self.buffers)
        whole = self.pack(weights)
        return {**self.buffers, **{key: whole[key].numpy() for key in self.tied}}

    def pack(self, weights: NDArray[np.float64], *, first: bool = False) -> ArrayRecord:
        """The vector as the model's arrays, with the buffers: those of now, or the first ones."""
        parts: dict[str, NDArray[Any]] = dict(self.first_buffers if first else self.buffers)
        with np.errstate(over="ignore"):
            parts |= {key: part.astype(self.dtypes[key]) for key, part in self.parts(weights)}
        for key, other in self.tied.items():
            parts[key] = parts[other].astype(self.dtypes[key])
        return ArrayRecord({key: Array(parts[key]) for key in self.shapes})

    def pack_parameters(self, vector: NDArray[np.float64]) -> ArrayRecord:
        """A vector as arrays under the names of the parameters, without buffers: a correction."""
        parts = {key: Array(part.astype(self.dtype)) for key, part in self.parts(vector)}
        return ArrayRecord(parts)

    def unpack(self, arrays: ArrayRecord, who: str, dtype: Any = None) -> NDArray[Any]:
        """The parameters as a vector; raises, naming `who`, where they do not fit."""
        agent = f"agent {who}: "
        self.refuse_unknown(arrays, agent)
        own = {key: arrays[key].numpy() for key in self.keys if key in arrays}
        return self.joined(own, agent, dtype)

    def unpack_buffers(self, arrays: ArrayRecord, who: str) -> dict[str, NDArray[Any]]:
        """The buffers of an agent's model, in the model's types; empty unless it sent all of them."""
        if any(key not in arrays for key in self.buffers):
            return {}
        own = {}
        for key, mine in self.buffers.items():
            part = self.fitting(arrays[key].numpy(), key, f"agent {who}: ")
            if part.dtype.kind != mine.dtype.kind:
                raise Error(f"agent {who}: its array `{key}` is of {part.dtype}, not {mine.dtype}")
            if not np.isfinite(part).all():
                raise Error(f"agent {who}: its array `{key}` has values that are not finite")
            own[key] = part.astype(mine.dtype)
        return own

    def take_buffers(
        self,
        told: Sequence[Mapping[str, NDArray[Any]]],
        weights: Sequence[float] | None = None,
    ) -> None:
        """Makes one of the buffers of a round's agents, if any sent theirs."""
        if told:
            self.buffers = averaged(told, weights)

    def memory(self) -> dict[str, Any]:
        """The buffers, for a checkpoint."""
        return {key: packed(array) for key, array in self.buffers.items()}

    def recall(self, memory: Mapping[str, Any]) -> None:
        """Takes up what `memory` gave."""
        self.buffers |= {key: unpacked(text) for key, text in memory.items()}


def _looks_trained(key: str, dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "f" and key.rpartition(".")[2] not in BUFFERS


def as_arrays(named: Mapping[str, Any]) -> ArrayRecord:
    """Arrays by name as a record, whatever holds them."""
    if isinstance(named, ArrayRecord):
        return named
    return ArrayRecord({key: Array(np.asarray(value)) for key, value in named.items()})

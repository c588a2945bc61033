"""Named tensors in a run's folder: model.safetensors."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._core import Error

__all__ = ["named", "read_tensors", "write_tensors"]

#: Types of the format that a model has here.
TYPES = {"F16": np.float16, "F32": np.float32, "F64": np.float64, "I64": np.int64, "I32": np.int32,
         "U8": np.uint8, "BOOL": np.bool_}  # fmt: skip


def named(
    weights: NDArray[Any], layout: list[tuple[str, list[int]]], dtype: Any = np.float32
) -> dict[str, NDArray[Any]]:
    """One vector as the tensors it consists of."""
    tensors, start = {}, 0
    for name, shape in layout:
        end = start + int(np.prod(shape))
        tensors[name] = weights[start:end].reshape(shape).astype(dtype)
        start = end
    return tensors


def write_tensors(path: Path, tensors: Mapping[str, NDArray[Any]]) -> None:
    """Writes model.safetensors, whole or not at all."""
    names = {np.dtype(dtype): name for name, dtype in TYPES.items()}
    header: dict[str, Any] = {}
    start = 0
    for name, tensor in tensors.items():
        end = start + tensor.nbytes
        kind, shape = names[tensor.dtype], list(tensor.shape)
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [start, end]}
        start = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    whole = len(text).to_bytes(8, "little") + text
    whole += b"".join(np.ascontiguousarray(tensor).tobytes() for tensor in tensors.values())
    _replace(path, whole)
    _note_hash(path, whole)


def _replace(path: Path, content: bytes) -> None:
    partial = path.with_suffix(".tmp")
    partial.write_bytes(content)
    os.replace(partial, path)


def _note_hash(path: Path, content: bytes) -> None:
    """Puts the hash of a run's file into SHA256SUMS: written again by the run itself, it is not damaged."""
    sums, end = path.with_name("SHA256SUMS"), f"  {path.name}"
    if sums.exists():
        own = hashlib.sha256(content).hexdigest() + end
        lines = sums.read_text().splitlines()
        told = "".join(f"{own if line.endswith(end) else line}\n" for line in lines)
        _replace(sums, told.encode())


def read_tensors(path: Path) -> dict[str, NDArray[Any]]:
    """Reads model.safetensors."""
    whole = path.read_bytes()
    try:
        length = int.from_bytes(whole[:8], "little")
        header: dict[str, Any] = json.loads(whole[8 : 8 + length])
        header.pop("__metadata__", None)
        tensors = {}
        for name, about in header.items():
            start, end = (8 + length + offset for offset in about["data_offsets"])
            values: NDArray[Any] = np.frombuffer(whole[start:end], TYPES[about["dtype"]])
            tensors[name] = values.reshape(about["shape"]).copy()
        return tensors
    except (ValueError, KeyError, TypeError) as error:
        raise Error(f"{path} is not a model that fedstay wrote: {error!r}") from None

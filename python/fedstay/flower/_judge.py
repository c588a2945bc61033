"""Who judges models on the server, for scores that ask about models which were never sent out."""

from __future__ import annotations

from typing import Any

import numpy as np
from flwr.app import ArrayRecord

from ..pytorch import TorchAgent
from ..remote import judge as shared
from ._layout import Layout
from ._torch import take_up


def judged(judge: Any, arrays: ArrayRecord, layout: Layout) -> float:
    """The loss that a judge tells about a model: an agent's on its own data, or what a function of the
    arrays says."""
    if isinstance(judge, TorchAgent):
        take_up(judge, arrays)
        return judge.measure()
    return shared.judged(
        judge,
        arrays,
        lambda: layout.unpack(arrays, "(judge)", np.float64).astype(layout.dtype),
    )

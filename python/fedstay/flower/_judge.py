"""Who judges models on the server, for scores that ask about models which were never sent out."""

from __future__ import annotations

from typing import Any

import numpy as np
from flwr.app import ArrayRecord

from ..pytorch import TorchAgent
from ..worth import telling
from ._layout import Layout
from ._torch import take_up


def judged(judge: Any, arrays: ArrayRecord, layout: Layout) -> float:
    """The loss that a judge tells about a model: an agent's on its own data, or what a function of the
    arrays says."""
    if isinstance(judge, TorchAgent):
        take_up(judge, arrays)
        return judge.measure()
    if callable(judge) and not hasattr(judge, "loss_and_grad"):
        return float(judge(arrays))
    tells = telling(judge)
    assert tells is not None
    return float(tells(layout.unpack(arrays, "(judge)", np.float64).astype(layout.dtype)))

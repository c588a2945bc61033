"""What the server itself says of models: by the app's `evaluate_fn`, and by a judge, for scores that ask
about models which were never sent out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, MetricRecord

from .._core import Error
from ..pytorch import TorchAgent
from ..remote.judge import judged
from ._layout import Layout
from ._torch import take_up

#: As Flower's strategies take it.
EvaluateFn = Callable[[int, ArrayRecord], MetricRecord | None]


@dataclass(frozen=True)
class Central:
    """The functions that the app gave; `loss_key` is what the loss is called in the records."""

    evaluate: EvaluateFn | None
    judge: Any
    loss_key: str

    def loss(self, round: int, arrays: ArrayRecord, layout: Layout) -> float:
        """What a model is worth on rows that nobody trains on: an agent says it on its own data, or a
        function of the arrays, or else `evaluate_fn`."""
        if isinstance(self.judge, TorchAgent):
            take_up(self.judge, arrays)
            return self.judge.measure()
        if self.judge is not None:
            return judged(
                self.judge,
                arrays,
                lambda: layout.unpack(arrays, "(judge)", np.float64).astype(layout.dtype),
            )
        assert self.evaluate is not None
        metrics: Any = self.evaluate(round, arrays) or {}
        for key in (self.loss_key, "loss"):
            if key in metrics:
                return float(metrics[key])
        raise Error(
            f"`evaluate_fn` judges models for `worth`, and gives neither `{self.loss_key}` nor `loss`; or "
            "give `fedstay.Worth(…, judge=…)`"
        )

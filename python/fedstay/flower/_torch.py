"""Loss, gradient and accuracy of a PyTorch module over all its batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord

from .._core import Error


def _batch(batch: Any, device: Any) -> tuple[Any, Any]:
    """Inputs and labels, whether a batch is a pair or a dict of two."""
    inputs, labels = batch.values() if isinstance(batch, Mapping) else batch
    return inputs.to(device), labels.to(device)


def torch_pass(
    model: Any, data: Any, loss: Callable[[Any, Any], Any] | None, *, backward: bool
) -> tuple[float, int]:
    """The mean loss over all samples and their number; with `backward`, the gradient in the model."""
    import torch

    device = next(model.parameters()).device
    total, count = 0.0, 0
    model.eval()
    model.zero_grad()
    with torch.set_grad_enabled(backward):
        for batch in data:
            inputs, labels = _batch(batch, device)
            if loss is None:
                value = torch.nn.functional.cross_entropy(model(inputs), labels)
            else:
                value = loss(model, batch)
            if backward:
                (value * len(labels)).backward()
            total += float(value.detach()) * len(labels)
            count += len(labels)
    if count == 0:
        raise Error("the agent has no data: its batches are empty")
    if backward:
        for parameter in model.parameters():
            if parameter.grad is not None:
                parameter.grad /= count
    return total / count, count


def torch_gradients(model: Any) -> ArrayRecord:
    """The gradient under the names of the state dict; zero for what is not trained."""
    slopes = {
        name: p.grad.detach().cpu().numpy()
        for name, p in model.named_parameters()
        if p.grad is not None
    }
    arrays: dict[str, Array] = {}
    for name, value in model.state_dict().items():
        own = value.detach().cpu().numpy()
        arrays[name] = Array(slopes.get(name, np.zeros_like(own)))
    return ArrayRecord(arrays)


def torch_accuracy(model: Any, data: Any) -> float:
    import torch

    device = next(model.parameters()).device
    right, count = 0, 0
    with torch.no_grad():
        for batch in data:
            inputs, labels = _batch(batch, device)
            right += int((model(inputs).argmax(1) == labels).sum())
            count += len(labels)
    return right / count

"""PyTorch modules as Flower's arrays, in any precision."""

from __future__ import annotations

from typing import Any

from flwr.app import Array, ArrayRecord

from ..pytorch import TorchAgent, numbers


def arrays_of(model: Any) -> ArrayRecord:
    """A module's state as Flower's arrays: `ArrayRecord(model.state_dict())`, also for bfloat16, which
    travels as float32."""
    return ArrayRecord({key: Array(numbers(value)) for key, value in model.state_dict().items()})


def take_up(agent: TorchAgent, arrays: ArrayRecord) -> None:
    """Loads received arrays into an agent's module, which keeps its own precision."""
    agent.model.load_state_dict(arrays.to_torch_state_dict())


def gradient_of(agent: TorchAgent) -> ArrayRecord:
    """The gradient that `measure(gradient=True)` left, by parameter."""
    return ArrayRecord({key: Array(slope) for key, slope in agent.gradients().items()})


def parameters_of(agent: TorchAgent) -> ArrayRecord:
    """The module's parameters, by name."""
    named = agent.model.named_parameters()
    return ArrayRecord({key: Array(numbers(parameter)) for key, parameter in named})


def names_of(model: Any) -> dict[str, Any]:
    """Which of a module's arrays are parameters, and which of those are the same one twice."""
    first = {id(parameter): name for name, parameter in model.named_parameters()}
    every = model.named_parameters(remove_duplicate=False)
    tied = {name: first[id(p)] for name, p in every if first[id(p)] != name}
    told: dict[str, Any] = {"parameters": list(first.values())}
    if tied:
        told |= {"tied": list(tied), "tied-to": list(tied.values())}
    return told

"""Agents that are PyTorch modules: loss, gradient, local training and evaluation, counted for you.

`TorchAgent` takes part in `fedstay.simulate` and, through `fedstay.flower`, in a federation of machines.
PyTorch is imported when an agent is made, not before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._core import Error

__all__ = ["TorchAgent"]


class TorchAgent:
    """A module and its data: everything that a federation asks of an agent.

    model : torch.nn.Module
        Agents may share one: the weights of a round are loaded before anything is computed. Only the
        parameters are weights; buffers (BatchNorm's running means) are averaged beside them.
    data : iterable of batches
        A `DataLoader`, or a list of `(inputs, labels)`; dicts of two work as well.
    loss : callable, optional
        `loss(model, batch)`, the mean loss of a batch; cross entropy of the labels unless given.
    optimizer : callable, optional
        Makes the optimiser of a round from the parameters:
        `lambda parameters: torch.optim.Adam(parameters, lr=1e-3)`. Without one (and without `train`)
        the agent reports its gradient and does not train.
    epochs, steps : int
        How long it trains in a round: so many passes over the data, or so many batches.
    train : callable, optional
        `train(model)` does the local work in place, instead of `optimizer`.
    test : iterable of batches, optional
        What accuracy is counted on; the data unless given.
    epsilon, behaviour : optional
        The loss at which it leaves, and how it decides, if not as everybody.

    The loss and the gradient are those over all of the data, in evaluation mode, at exactly the
    weights that were received: that is what decisions and previews are made from. Training may be
    anything.
    """

    def __init__(
        self,
        model: Any,
        data: Iterable[Any],
        *,
        loss: Callable[[Any, Any], Any] | None = None,
        optimizer: Callable[[Any], Any] | None = None,
        epochs: int = 1,
        steps: int | None = None,
        train: Callable[[Any], Any] | None = None,
        test: Iterable[Any] | None = None,
        epsilon: float | None = None,
        behaviour: Any = None,
    ) -> None:
        if train is not None and optimizer is not None:
            raise Error("an agent trains by `train` or by `optimizer`, not by both")
        if (steps if steps is not None else epochs) < 1:
            raise Error("`epochs` and `steps` must be 1 or more")
        self.model, self.data, self.test = model, data, test
        self._loss, self._optimizer, self._train = loss, optimizer, train
        self._epochs, self._steps = epochs, steps
        self.epsilon = epsilon
        if behaviour is not None:
            self.behaviour = behaviour
        #: The number of samples, once they have been counted.
        self.samples = 1

    # -- what `fedstay.simulate` asks for ----------------------------------------------------------

    def layout(self) -> list[tuple[str, list[int]]]:
        """Names and shapes of the parameters, in the order in which they are one vector."""
        return [(name, list(p.shape)) for name, p in self.model.named_parameters()]

    def weights(self) -> NDArray[np.float32]:
        """The module's parameters as they are now, as one vector: where training may start."""
        return np.concatenate([numbers(p).reshape(-1) for p in self.model.parameters()])

    def loss_and_grad(self, weights: NDArray[Any]) -> tuple[float, NDArray[np.float32]]:
        """The loss over all of its data at these weights, and the gradient."""
        self.load(weights)
        value = self.measure(gradient=True)
        return value, np.concatenate([slope.reshape(-1) for slope in self.gradients().values()])

    def loss(self, weights: NDArray[Any]) -> float:
        """The loss over all of its data at these weights."""
        self.load(weights)
        return self.measure()

    def accuracy(self, weights: NDArray[Any]) -> float | None:
        """The share of right answers on its test data; None for a loss of its own, whose answers
        have no classes."""
        if not self.classifies:
            return None
        self.load(weights)
        return self.score()

    def work(self, weights: NDArray[Any], *, seed: int) -> NDArray[np.float32] | None:
        """Trains from these weights; where that leads, or None if it does not train at all."""
        if not self.trains:
            return None
        self.load(weights)
        self.practise(seed)
        return self.weights()

    def buffers(self) -> dict[str, NDArray[Any]]:
        """What the module keeps beside its parameters."""
        own = {name for name, _ in self.model.named_parameters(remove_duplicate=False)}
        return {n: numbers(v) for n, v in self.model.state_dict().items() if n not in own}

    def set_buffers(self, buffers: Mapping[str, NDArray[Any]]) -> None:
        """Takes up buffers of a round."""
        import torch

        state = self.model.state_dict()
        with torch.no_grad():
            for name, value in buffers.items():
                state[name].copy_(torch.from_numpy(np.array(value)))

    # -- on the module as it is --------------------------------------------------------------------

    @property
    def trains(self) -> bool:
        """Whether it does local work."""
        return self._train is not None or self._optimizer is not None

    @property
    def classifies(self) -> bool:
        """Whether its answers are classes, as far as it says."""
        return self._loss is None or self.test is not None

    def load(self, weights: NDArray[Any]) -> None:
        """Puts a vector of weights into the module."""
        import torch

        start, given = 0, torch.from_numpy(np.array(weights).reshape(-1))
        wanted = sum(parameter.numel() for parameter in self.model.parameters())
        if len(given) != wanted:
            raise Error(f"the module has {wanted} parameters, and {len(given)} weights came")
        with torch.no_grad():
            for parameter in self.model.parameters():
                end = start + parameter.numel()
                parameter.copy_(given[start:end].reshape(parameter.shape))
                start = end

    def measure(self, *, gradient: bool = False) -> float:
        """The mean loss over all samples, in evaluation mode; with `gradient`, see `gradients`."""
        import torch

        total, count = 0.0, 0
        self.model.eval()
        self.model.zero_grad()
        with torch.set_grad_enabled(gradient):
            for batch in self.data:
                value, size = self._value(batch), len(labels(batch))
                if gradient:
                    (value * size).backward()
                total += float(value.detach()) * size
                count += size
        if count == 0:
            raise Error("the agent has no data: its batches are empty")
        self.samples = count
        return total / count

    def gradients(self) -> dict[str, NDArray[np.float32]]:
        """The gradient of the mean loss that `measure(gradient=True)` left, by parameter; zero for
        parameters that are not trained."""
        return {
            name: np.zeros(tuple(p.shape), np.float32)
            if p.grad is None
            else numbers(p.grad).astype(np.float32) / np.float32(self.samples)
            for name, p in self.model.named_parameters()
        }

    def score(self) -> float:
        """The share of right answers on the test data, in evaluation mode."""
        import torch

        right, count = 0, 0
        self.model.eval()
        with torch.no_grad():
            for batch in self.data if self.test is None else self.test:
                inputs, wanted = pair(batch, self._device())
                right += int((self.model(inputs).argmax(1) == wanted).sum())
                count += len(wanted)
        if count == 0:
            raise Error("the agent has nothing to be tested on: its batches are empty")
        return right / count

    def practise(self, seed: int) -> Any:
        """Does the local work on the module, in place; the same for the same seed. Returns what
        `train` returned."""
        import torch

        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.model.train()
            if self._train is not None:
                return self._train(self.model)
            if self._optimizer is not None:
                self._descend()
        return None

    def follow(self) -> None:
        """Lets buffers follow the weights, for an agent that reports gradients and does not train."""
        import torch

        if not any(value.is_floating_point() for value in self.model.buffers()):
            return
        self.model.train()
        with torch.no_grad():
            for batch in self.data:
                self._value(batch)

    def _descend(self) -> None:
        assert self._optimizer is not None
        optimizer = self._optimizer(self.model.parameters())
        left = self._steps if self._steps is not None else -1
        epochs = self._epochs if self._steps is None else None
        while left and epochs != 0:
            begun = False
            for batch in self.data:
                begun = True
                optimizer.zero_grad()
                self._value(batch).backward()
                optimizer.step()
                left -= 1
                if left == 0:
                    break
            if not begun:
                raise Error("the agent has no data: its batches are empty")
            epochs = None if epochs is None else epochs - 1

    def _value(self, batch: Any) -> Any:
        import torch

        if self._loss is not None:
            return self._loss(self.model, batch)
        inputs, wanted = pair(batch, self._device())
        return torch.nn.functional.cross_entropy(self.model(inputs), wanted)

    def _device(self) -> Any:
        return next(self.model.parameters()).device


def pair(batch: Any, device: Any) -> tuple[Any, Any]:
    """Inputs and labels, whether a batch is a pair or a dict of two."""
    inputs, wanted = batch.values() if isinstance(batch, Mapping) else batch
    return inputs.to(device), wanted.to(device)


def labels(batch: Any) -> Any:
    """Whatever of a batch has one entry per sample."""
    return (list(batch.values()) if isinstance(batch, Mapping) else batch)[-1]


def numbers(tensor: Any) -> NDArray[Any]:
    """A tensor as an array of its own; float32 where NumPy has no such precision (bfloat16)."""
    import torch

    tensor = tensor.detach().cpu()
    if tensor.is_floating_point() and tensor.dtype not in (
        torch.float16,
        torch.float32,
        torch.float64,
    ):
        tensor = tensor.float()
    array: NDArray[Any] = tensor.numpy().copy()
    return array

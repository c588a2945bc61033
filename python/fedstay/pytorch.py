"""Agents that are PyTorch modules: loss, gradient, local training and evaluation, counted for you.

`TorchAgent` takes part in `fedstay.simulate` and, through `fedstay.flower`, in a federation of machines.
PyTorch is imported when an agent is made, not before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ._core import Error, Rates

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
        How long it trains in a round: the passes over the data, or the batches.
    batch_size : int, optional
        Train on batches of this size, shuffled anew in every pass, instead of on the batches of `data`;
        these are then only what losses are measured in. `data` is a list of pairs of tensors then.
    train : callable, optional
        `train(model)` does the local work in place, instead of `optimizer`.
    test : iterable of batches, optional
        What accuracy is counted on; the data unless given.
    groups : callable, optional
        `groups(batch)` says of every sample of a batch whether it belongs to the second of two groups, for
        rules that ask how well these are served (fairfed).
    positive : int, optional
        The class of which equal opportunity speaks; without it every sample of a group counts.
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
        batch_size: int | None = None,
        train: Callable[[Any], Any] | None = None,
        test: Iterable[Any] | None = None,
        groups: Callable[[Any], Any] | None = None,
        positive: int | None = None,
        epsilon: float | None = None,
        behaviour: Any = None,
    ) -> None:
        refuse_no_module(model)
        refuse_no_batches(data, loss)
        if optimizer is not None and not callable(optimizer):
            made = type(optimizer).__name__
            raise Error(
                f"`optimizer` is an optimiser that is made already ({made}), but agents make one in every "
                f"round: `optimizer=lambda parameters: torch.optim.{made}(parameters, lr=…)`"
            )
        if train is not None and optimizer is not None:
            raise Error("an agent trains by `train` or by `optimizer`, not by both")
        if (steps if steps is not None else epochs) < 1:
            raise Error("`epochs` and `steps` must be 1 or more")
        if batch_size is not None and batch_size < 1:
            raise Error(f"`batch_size` is {batch_size}, but must be 1 or more")
        if batch_size is not None and not of_tensors(data):
            raise Error("with `batch_size`, `data` must be a list of pairs of tensors")
        self.model, self.data, self.test = model, data, test
        self._loss, self._optimizer, self._train = loss, optimizer, train
        self._epochs, self._steps, self._batch_size = epochs, steps, batch_size
        self._groups, self._positive = groups, positive
        #: Whether PyTorch's global generator is its own while it computes: not in a thread.
        self._seeds = True
        self._whole: tuple[Any, Any] | None = None
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

    def loss_above(self, weights: NDArray[Any], bound: float) -> tuple[float, bool]:
        """The loss at these weights if it is at most `bound`; else some number above the bound that it is
        not below, and True. The sum is ended early, which needs losses that are not negative."""
        self.load(weights)
        return self._measure_until(bound)

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

    def corrected(
        self, weights: NDArray[Any], correction: NDArray[Any], *, seed: int
    ) -> tuple[NDArray[np.float32], float] | None:
        """Trains from these weights, with a correction added to the gradient of every step: where that
        leads, and the sum of the step sizes. None if it does not train at all."""
        if not self.trains:
            return None
        self.load(weights)
        reach = self.practise_corrected(correction, seed)
        return self.weights(), reach

    @property
    def no_corrections(self) -> str | None:
        """Why its local steps cannot be corrected; None if they can."""
        import torch

        if not self.trains or type(self).corrected is not TorchAgent.corrected:
            return None
        what = "or override `corrected` with steps that add `correction` to every gradient"
        if self._optimizer is None:
            return f"it trains by a function of its own; train by `optimizer=`, {what}"
        made = self._optimizer(self.model.parameters())
        plain = type(made) is torch.optim.SGD and not any(g["momentum"] for g in made.param_groups)
        if plain:
            return None
        return (
            f"with {type(made).__name__} a step is not a multiple of the gradient; train by "
            f"`torch.optim.SGD` without momentum, {what}"
        )

    def rates(self, weights: NDArray[Any]) -> Rates:
        """How well these weights serve the two groups among its samples."""
        self.load(weights)
        return self.count()

    @property
    def no_rates(self) -> str | None:
        """Why it cannot tell how well its groups are served; None if it can."""
        return "give it `groups=`, which says who is in which" if self._groups is None else None

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
        # A loader that shuffles must not change in which order numbers are added up.
        with self._seeded(0), torch.set_grad_enabled(gradient):
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

    def _measure_until(self, bound: float) -> tuple[float, bool]:
        """Like `measure`, up to where the sum decides."""
        import torch

        if not isinstance(self.data, Sequence):
            return self.measure(), False  # How many samples there are is known at the end only.
        self.samples = count = sum(len(labels(batch)) for batch in self.data)
        total = 0.0
        self.model.eval()
        with self._seeded(0), torch.no_grad():
            for place, batch in enumerate(self.data):
                total += float(self._value(batch)) * len(labels(batch))
                if total > bound * count and place + 1 < len(self.data):
                    return total / count, True
        if count == 0:
            raise Error("the agent has no data: its batches are empty")
        return total / count, False

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
        with self._seeded(0), torch.no_grad():
            for batch in self.data if self.test is None else self.test:
                inputs, wanted = pair(batch, self._device())
                right += int((self.model(inputs).argmax(1) == wanted).sum())
                count += len(wanted)
        if count == 0:
            raise Error("the agent has nothing to be tested on: its batches are empty")
        return right / count

    def count(self) -> Rates:
        """How well the module serves the two groups among its samples, in evaluation mode."""
        import torch

        if self._groups is None:
            raise Error(f"an agent has no groups: {self.no_rates}")
        right, of, correct, rows = [0, 0], [0, 0], 0, 0
        self.model.eval()
        with self._seeded(0), torch.no_grad():
            for batch in self.data:
                inputs, wanted = pair(batch, self._device())
                hit = self.model(inputs).argmax(1) == wanted
                second = torch.as_tensor(self._groups(batch)).bool().to(wanted.device)
                told = torch.ones_like(hit) if self._positive is None else wanted == self._positive
                for group, own in enumerate((told & ~second, told & second)):
                    right[group] += int((hit & own).sum())
                    of[group] += int(own.sum())
                correct, rows = correct + int(hit.sum()), rows + len(wanted)
        return Rates(right=(right[0], right[1]), of=(of[0], of[1]), correct=correct, rows=rows)

    def practise_corrected(self, correction: NDArray[Any], seed: int) -> float:
        """Does the local work on the module, with a correction added to the gradient of every step.
        Returns the sum of the step sizes."""
        lack = self.no_corrections
        if lack is not None:
            raise Error(f"an agent's local steps cannot be corrected: {lack}")
        with self._seeded(seed):
            self.model.train()
            return self._descend(seed, self._parts(correction))

    def trainers(self) -> list[Any]:
        """What it trains by, as it was given."""
        return [self._train, self._optimizer, self._loss]

    def practise(self, seed: int) -> Any:
        """Does the local work on the module, in place; the same for the same seed. Returns what
        `train` returned."""
        with self._seeded(seed):
            self.model.train()
            if self._train is not None:
                return self._train(self.model)
            if self._optimizer is not None:
                self._descend(seed)
        return None

    def follow(self) -> None:
        """Lets buffers follow the weights, for an agent that reports gradients and does not train."""
        import torch

        if not any(value.is_floating_point() for value in self.model.buffers()):
            return
        self.model.train()
        with self._seeded(0), torch.no_grad():
            for batch in self.data:
                self._value(batch)

    def _descend(self, seed: int, correction: Sequence[Any] | None = None) -> float:
        """Trains by the optimiser. With a correction, one tensor for every parameter, it is added to every
        gradient, and the sum of the step sizes is returned."""
        assert self._optimizer is not None
        optimizer = self._optimizer(self.model.parameters())
        reach = 0.0
        for batch in self.batches(seed):
            optimizer.zero_grad()
            self._value(batch).backward()
            if correction is not None:
                self._correct(correction)
                reach += _step_size(optimizer)
            optimizer.step()
        return reach

    def _correct(self, correction: Sequence[Any]) -> None:
        """Adds a correction to the gradient."""
        for parameter, part in zip(self.model.parameters(), correction, strict=True):
            if parameter.requires_grad:
                own = parameter.grad
                parameter.grad = part.clone() if own is None else own + part

    def _parts(self, vector: NDArray[Any]) -> list[Any]:
        """A vector as tensors like the parameters."""
        import torch

        parts, start = [], 0
        given = torch.from_numpy(np.array(vector).reshape(-1))
        for parameter in self.model.parameters():
            end = start + parameter.numel()
            part = given[start:end].reshape(parameter.shape)
            parts.append(part.to(parameter.device, parameter.dtype))
            start = end
        return parts

    def batches(self, seed: int) -> Iterator[Any]:
        """What it trains on in a round, batch by batch."""
        left = self._steps
        epochs = self._epochs if self._steps is None else None
        draw = self._generator(seed)
        while left != 0 and epochs != 0:
            begun = False
            for batch in self.data if draw is None else self._shuffled(draw):
                begun = True
                yield batch
                left = None if left is None else left - 1
                if left == 0:
                    break
            if not begun:
                raise Error("the agent has no data: its batches are empty")
            epochs = None if epochs is None else epochs - 1

    def _generator(self, seed: int) -> Any:
        """A generator of its own for shuffling, where it shuffles itself."""
        import torch

        return None if self._batch_size is None else torch.Generator().manual_seed(seed)

    def _shuffled(self, draw: Any) -> Iterator[Any]:
        import torch

        inputs, wanted = self.whole()
        order = torch.randperm(len(wanted), generator=draw).to(wanted.device)
        for chosen in order.split(self._batch_size):
            yield inputs[chosen], wanted[chosen]

    # -- what several agents at once are asked -----------------------------------------------------

    def on(self, module: Any) -> Self:
        """The same agent with another module, for a thread: it leaves the global generator alone."""
        twin = copy(self)
        twin.model, twin._seeds = module, False
        return twin

    @property
    def has_own_training(self) -> bool:
        """Whether it trains by a function of the user's."""
        return self._train is not None

    @property
    def has_own_loss(self) -> bool:
        """Whether its loss is a function of the user's."""
        return self._loss is not None

    @property
    def has_lists(self) -> bool:
        """Whether its data are a list of pairs of tensors, which nobody draws."""
        return of_tensors(self.data)

    @property
    def draws_apart(self) -> bool:
        """Whether it can be expected not to draw from the global generator."""
        return self.has_lists and not self.has_own_training

    @property
    def schedule(self) -> tuple[int, int | None, int | None, bool]:
        """How much it trains in a round."""
        return self._epochs, self._steps, self._batch_size, self.trains

    def lists(self) -> list[tuple[Any, Any]]:
        """Its batches, where they are a list of pairs of tensors, on the module's device."""
        return [pair(batch, self._device()) for batch in self.data]

    def whole(self) -> tuple[Any, Any]:
        """All of its data as one batch."""
        import torch

        if self._whole is None:
            inputs, wanted = zip(*self.lists(), strict=True)
            self._whole = torch.cat(inputs), torch.cat(wanted)
        return self._whole

    def sizes(self) -> list[int]:
        """How large the batches of one pass of training are."""
        sizes = [len(labels(batch)) for batch in self.data]
        return sizes if self._batch_size is None else [sum(sizes)]

    @contextmanager
    def _own_generator(self, seed: int) -> Iterator[None]:
        import torch

        with torch.random.fork_rng():
            torch.manual_seed(seed)
            yield

    def _seeded(self, seed: int) -> AbstractContextManager[None]:
        """PyTorch's global generator with this seed, and as it was afterwards."""
        return self._own_generator(seed) if self._seeds else nullcontext()

    def _value(self, batch: Any) -> Any:
        import torch

        if self._loss is not None:
            return self._loss(self.model, batch)
        inputs, wanted = pair(batch, self._device())
        return torch.nn.functional.cross_entropy(self.model(inputs), wanted)

    def _device(self) -> Any:
        return next(self.model.parameters()).device


def _step_size(optimizer: Any) -> float:
    """The size of an optimiser's next step, which must be the same for all parameters."""
    sizes = {float(group["lr"]) for group in optimizer.param_groups}
    if len(sizes) > 1:
        raise Error("corrected steps have one size: give all parameters the same `lr`")
    return sizes.pop()


def refuse_no_module(model: Any) -> None:
    """Refuses what is no module, before anything is asked of it."""
    if not callable(getattr(model, "named_parameters", None)):
        raise Error(f"`model` is a {type(model).__name__}, but must be a `torch.nn.Module`")


def refuse_no_batches(data: Any, loss: Any) -> None:
    """Refuses data that are no batches, as far as that can be seen before a pass over them."""
    if hasattr(data, "__next__"):
        raise Error(
            f"`data` is a {type(data).__name__}, which is used up after one pass; give a list of batches or "
            "a DataLoader"
        )
    arrays = isinstance(data, (tuple, list)) and all(hasattr(part, "shape") for part in data)
    if loss is None and arrays and len(data) == 2:
        raise Error(
            "`data` is a pair of arrays, but must be an iterable of batches: one batch of everything is "
            "`data=[(inputs, labels)]`"
        )


def of_tensors(data: Any) -> bool:
    """Whether data are a list of pairs of tensors."""
    import torch

    if not isinstance(data, (list, tuple)) or not data:
        return False
    return all(
        isinstance(batch, (tuple, list))
        and len(batch) == 2
        and all(isinstance(part, torch.Tensor) for part in batch)
        for batch in data
    )


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

"""Several PyTorch agents as one stack of weights, by `torch.func`.

A step of all agents is then one call of every operation instead of one for each agent. That saves what
PyTorch spends on a call, and loses what its kernels for single convolutions and large products gain: measured
on a CPU, small dense nets are faster as a stack, and convolutional ones slower (docs/flower.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .pytorch import TorchAgent, numbers
from .together import Job, Looked

__all__ = ["Stack", "faster", "obstacle"]

#: The optimisers that treat every weight by itself, so that a stack of weights is to them as one agent's.
ELEMENTWISE = ("SGD", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "Adagrad", "Adadelta")
#: Up to how many weights a dense net is faster as a stack on a CPU.
SMALL = 30_000


def faster(agents: Sequence[TorchAgent]) -> bool:
    """Whether a stack was faster wherever it was measured: on a GPU, and for small dense nets."""
    parameters = list(agents[0].model.parameters())
    if agents[0]._device().type != "cpu":
        return True
    return all(p.dim() <= 2 for p in parameters) and sum(p.numel() for p in parameters) <= SMALL


def obstacle(agents: Sequence[TorchAgent]) -> str | None:
    """Why agents cannot be computed as one stack; None if they can."""
    first = agents[0]
    alike = (str(first.model), first.layout(), first._device(), first.schedule)
    for agent in agents:
        if agent.has_own_loss or agent.has_own_training:
            return "a loss or a train function of its own must be called for each agent alone"
        if (str(agent.model), agent.layout(), agent._device(), agent.schedule) != alike:
            return "they do not have the same module and the same amount of local work"
        if not agent.has_lists:
            return "their data must be lists of pairs of tensors"
    if next(first.model.buffers(), None) is not None:
        return "their module has buffers"
    if len({p.dtype for p in first.model.parameters()}) > 1:
        return "their parameters are of several precisions"
    return _optimiser_obstacle(agents) or _vector_obstacle(first)


def _optimiser_obstacle(agents: Sequence[TorchAgent]) -> str | None:
    import torch

    seen = set()
    for agent in agents:
        if agent._optimizer is None:
            seen.add("none")
            continue
        made = agent._optimizer([torch.nn.Parameter(torch.zeros(1))])
        if type(made).__module__.split(".")[:2] != ["torch", "optim"] or (
            type(made).__name__ not in ELEMENTWISE
        ):
            return f"{type(made).__name__} may look at more than one weight at a time"
        seen.add(f"{type(made).__name__} {sorted(made.defaults.items(), key=str)}")
    return "they do not have the same optimiser" if len(seen) > 1 else None


def _vector_obstacle(agent: TorchAgent) -> str | None:
    """Whether `torch.func` takes the module, in both modes: dropout, for instance, draws."""
    import torch

    inputs, wanted = agent.whole()
    stacked = {n: torch.stack([p.detach()] * 2) for n, p in agent.model.named_parameters()}
    try:
        for training in (True, False):
            model = deepcopy(agent.model).train(training)
            losses(model)(stacked, torch.stack([inputs[:2]] * 2), torch.stack([wanted[:2]] * 2))
    except (RuntimeError, TypeError) as error:
        return str(error).split("\n")[0]
    return None


def losses(model: Any) -> Any:
    """Every agent's mean cross entropy, from stacks of weights, inputs and labels."""
    from torch.func import functional_call, vmap
    from torch.nn.functional import cross_entropy

    def loss(weights: Any, inputs: Any, wanted: Any) -> Any:
        return cross_entropy(functional_call(model, weights, (inputs,)), wanted)

    return vmap(loss)


class Stack:
    """Agents with the same module, computed together where their batches are of the same sizes."""

    def __init__(self, agents: Sequence[TorchAgent]) -> None:
        self._model = deepcopy(agents[0].model)
        self._named = list(self._model.named_parameters())

    def look(self, jobs: Sequence[Job]) -> list[Looked]:
        """Every agent's loss and gradient at its weights."""
        found: dict[int, Looked] = {}
        for group in alike(jobs, lambda job: [len(y) for _, y in job.agent.lists()]):
            # Where nobody needs a gradient there is none; all agents are in the same rule's round.
            slopes = any(jobs[place].bound is None for place in group)
            for place, looked in zip(
                group, self._look([jobs[place] for place in group], slopes), strict=True
            ):
                found[place] = looked
        return [found[place] for place in range(len(jobs))]

    def _look(self, jobs: Sequence[Job], slopes: bool) -> list[Looked]:
        import torch

        self._model.eval()
        weights, every = self._stacked(jobs), losses(self._model)
        totals, count = np.zeros(len(jobs)), 0
        with torch.set_grad_enabled(slopes):
            for batches in zip(*(job.agent.lists() for job in jobs), strict=True):
                inputs, wanted = (torch.stack(part) for part in zip(*batches, strict=True))
                size = wanted.shape[1]
                values = every(weights, inputs, wanted)
                if slopes:
                    (values * size).sum().backward()
                totals += numbers(values).astype(np.float64) * size
                count += size
        for job in jobs:
            job.agent.samples = count
        means = totals / count
        if not slopes:
            return [Looked(float(mean), None) for mean in means]
        rows = np.concatenate(
            [
                np.zeros((len(jobs), w[0].numel()), np.float32)
                if w.grad is None
                else numbers(w.grad).astype(np.float32).reshape(len(jobs), -1) / np.float32(count)
                for w in weights.values()
            ],
            axis=1,
        )
        return [Looked(float(mean), row) for mean, row in zip(means, rows, strict=True)]

    def work(self, jobs: Sequence[Job]) -> list[tuple[Any, dict[str, NDArray[Any]]]]:
        """Where every agent's training leads."""
        done: dict[int, Any] = {}
        for group in alike(jobs, lambda job: job.agent.sizes()):
            chosen = [jobs[place] for place in group]
            trained = [None] * len(chosen) if not chosen[0].agent.trains else self._work(chosen)
            done |= dict(zip(group, trained, strict=True))
        return [(done[place], {}) for place in range(len(jobs))]

    def _work(self, jobs: Sequence[Job]) -> list[NDArray[np.float32]]:
        import torch

        self._model.train()
        weights, every = self._stacked(jobs), losses(self._model)
        optimizer = jobs[0].agent._optimizer(list(weights.values()))
        for batches in zip(*(job.agent.batches(job.seed) for job in jobs), strict=True):
            inputs, wanted = (torch.stack(part) for part in zip(*batches, strict=True))
            optimizer.zero_grad()
            every(weights, inputs, wanted).sum().backward()
            optimizer.step()
        rows = np.concatenate([numbers(w).reshape(len(jobs), -1) for w in weights.values()], axis=1)
        return list(rows)

    def _stacked(self, jobs: Sequence[Job]) -> dict[str, Any]:
        """The weights of all jobs, parameter by parameter."""
        import torch

        rows = torch.from_numpy(np.stack([np.asarray(job.weights).reshape(-1) for job in jobs]))
        stacked, start = {}, 0
        for name, parameter in self._named:
            end = start + parameter.numel()
            part = rows[:, start:end].reshape(len(jobs), *parameter.shape)
            own = part.to(parameter.device, parameter.dtype, copy=True)
            stacked[name] = own.requires_grad_(parameter.requires_grad)
            start = end
        return stacked

    def close(self) -> None:
        """Nothing is left to end."""


def alike(jobs: Sequence[Job], trait: Any) -> Iterator[list[int]]:
    """The places of jobs that have something in common, group by group."""
    groups: dict[str, list[int]] = {}
    for place, job in enumerate(jobs):
        groups.setdefault(str(trait(job)), []).append(place)
    yield from groups.values()

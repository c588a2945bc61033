"""Several PyTorch agents at once, in one process: which way is chosen, and threads.

Whatever way it is, a run repeats bit for bit on a CPU. Threads give the bits that one agent after the
other gives when PyTorch itself computes in one thread; a stack (`fedstay.stack`) rounds differently.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from queue import SimpleQueue
from typing import Any, NamedTuple, Protocol, TypeVar

from numpy.typing import NDArray

from ._core import Error
from .pytorch import TorchAgent

__all__ = ["Job", "Looked", "Together", "chosen"]

WAYS = ("auto", "stacked", "threads", "off")
Done = TypeVar("Done")


class Looked(NamedTuple):
    """What an agent found at the weights that it received."""

    loss: float
    #: None where nobody needs it.
    gradient: Any
    #: Whether the loss is only a lower bound.
    at_least: bool = False


class Job(NamedTuple):
    """What one agent is to compute."""

    agent: Any
    weights: NDArray[Any]
    #: What models keep beside their weights.
    buffers: Mapping[str, NDArray[Any]]
    #: If given, a loss above this need not be known any better, and the gradient not at all.
    bound: float | None = None
    seed: int = 0


class Together(Protocol):
    """A way to let several agents compute at once."""

    def look(self, jobs: Sequence[Job]) -> list[Looked]:
        """Every agent's loss and gradient at its weights."""

    def work(self, jobs: Sequence[Job]) -> list[tuple[Any, dict[str, NDArray[Any]]]]:
        """Where every agent's training leads (None if it does not train), and its buffers then."""

    def close(self) -> None:
        """Ends what was started."""


def chosen(way: str, agents: Sequence[Any]) -> Together | None:
    """How these agents compute at once; None for one after the other."""
    if way not in WAYS:
        raise Error(f'`together` is "{way}", but must be one of {", ".join(WAYS)}')
    if way == "off" or len(agents) < 2 or not all(isinstance(a, TorchAgent) for a in agents):
        if way in ("stacked", "threads"):
            raise Error(f'`together="{way}"` needs two or more `fedstay.TorchAgent`s')
        return None
    from .stack import Stack, faster, obstacle

    if way == "stacked" or (way == "auto" and faster(agents)):
        why = obstacle(agents)
        if why is None:
            return Stack(agents)
        if way == "stacked":
            raise Error(f"these agents cannot be computed as one stack: {why}")
    import torch

    on_cpu = all(a._device().type == "cpu" for a in agents)
    if way == "threads" and not on_cpu:
        raise Error('`together="threads"` is for CPUs; a GPU is busy with one agent already')
    if way == "threads" or (way == "auto" and on_cpu and torch.get_num_threads() > 1):
        if way == "threads" or all(a.draws_apart for a in agents):
            return Threads(torch.get_num_threads())
    return None


class Threads:
    """Agents in threads, each on a copy of its module, and each computed by one core.

    PyTorch's global generator is one for all threads, so whoever draws from it (dropout, a loader that
    shuffles) must work alone. That is seen by looking at the generator: if it moved, what was computed is
    thrown away and computed one after the other, and threads are not tried again for this kind of
    work. What is kept is thus the same however threads took turns.
    """

    def __init__(self, count: int) -> None:
        import torch

        self._pool = ThreadPoolExecutor(count, initializer=torch.set_num_threads, initargs=(1,))
        #: Every worker's modules, by the module that they are copies of.
        self._desks: SimpleQueue[dict[int, Any]] = SimpleQueue()
        for _ in range(count):
            self._desks.put({})
        self._alone: set[str] = set()

    def look(self, jobs: Sequence[Job]) -> list[Looked]:
        """Every agent's loss and gradient at its weights."""
        found = self._all("look", look, jobs)
        for job, (_, samples) in zip(jobs, found, strict=True):
            job.agent.samples = samples
        return [looked for looked, _ in found]

    def work(self, jobs: Sequence[Job]) -> list[tuple[Any, dict[str, NDArray[Any]]]]:
        """Where every agent's training leads, and its buffers then."""
        # A train function of the user's may keep something between rounds.
        if any(job.agent.has_own_training for job in jobs):
            self._alone.add("work")
        return self._all("work", work, jobs)

    def _all(
        self, kind: str, compute: Callable[[TorchAgent, Job], Done], jobs: Sequence[Job]
    ) -> list[Done]:
        import torch

        if kind not in self._alone:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(0)
                before = torch.random.get_rng_state()
                done = list(self._pool.map(lambda job: self._at_desk(compute, job), jobs))
                if torch.equal(before, torch.random.get_rng_state()):
                    return done
            self._alone.add(kind)
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            return [compute(job.agent, job) for job in jobs]
        finally:
            torch.set_num_threads(threads)

    def _at_desk(self, compute: Callable[[TorchAgent, Job], Done], job: Job) -> Done:
        desk = self._desks.get()
        try:
            module = desk.get(id(job.agent.model))
            if module is None:
                module = desk[id(job.agent.model)] = deepcopy(job.agent.model)
            return compute(job.agent.on(module), job)
        finally:
            self._desks.put(desk)

    def close(self) -> None:
        """Ends the threads."""
        self._pool.shutdown()


def look(agent: TorchAgent, job: Job) -> tuple[Looked, int]:
    """One agent's loss and gradient, and how many samples it has."""
    if job.buffers:
        agent.set_buffers(job.buffers)
    if job.bound is not None:
        value, at_least = agent.loss_above(job.weights, job.bound)
        return Looked(value, None, at_least), agent.samples
    value, gradient = agent.loss_and_grad(job.weights)
    return Looked(value, gradient), agent.samples


def work(agent: TorchAgent, job: Job) -> tuple[Any, dict[str, NDArray[Any]]]:
    """One agent's training."""
    if job.buffers:
        agent.set_buffers(job.buffers)
    trained = agent.work(job.weights, seed=job.seed)
    if not job.buffers:
        return trained, {}
    if trained is None:
        agent.load(job.weights)
        agent.follow()
    return trained, agent.buffers()

"""The loop with agents that are Python objects, in this process."""

from __future__ import annotations

import hashlib
import json
import time
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from . import _core
from .callbacks import Callback, Progress, describe, tell
from .engine import Assessed, Gathered, Member
from .policies import PolicyLike
from .result import Result, from_outcome
from .rules import RuleLike, usual_epsilon
from .scale import Scale
from .settings import flat

__all__ = ["Agent", "run", "simulate"]


class Agent(Protocol):
    """Whatever can compute its loss and its gradient at given weights.

    It may also have `epsilon` (the loss at which it leaves), `behaviour` (how it decides), `samples`,
    `loss(weights)` and `accuracy(weights)`; and, if it trains in some way of its own,
    `work(weights, seed=…)`, which returns where its local work leads from these weights. Its gradient is
    then used for what it is shown and for predictions, and its work for the step. Models that have
    more than weights have `buffers()` and `set_buffers(buffers)`: these are averaged outside the rule.
    `fedstay.TorchAgent` has all of this.
    """

    def loss_and_grad(self, weights: NDArray[Any]) -> tuple[float, Any]:
        """The loss on the agent's own data, and the gradient, at these weights."""


class LocalAgents:
    """The engine behind `simulate`: asks agents in order, and lets each decide for itself."""

    personal = True

    def __init__(
        self,
        agents: Mapping[str, Agent] | Sequence[Agent],
        epsilon: float | Sequence[float] | None,
        behaviour: Any,
        dtype: np.dtype[Any],
        seed: int,
        rounds: int = 0,
        callbacks: Sequence[Callback] = (),
        scale: Scale | None = None,
    ) -> None:
        self._agents: list[Agent]
        self._names: list[str | None]
        if isinstance(agents, Mapping):
            self._agents, self._names = list(agents.values()), list(agents)
        else:
            self._agents, self._names = list(agents), [None] * len(agents)
        if not self._agents:
            raise _core.Error("nobody takes part: `agents` is empty")
        dealt = _core.Behaviour(behaviour).assign(len(self._agents), seed)
        self._participants = [
            _core.Participant(
                index, self._target(index, epsilon), getattr(agent, "behaviour", common)
            )
            for index, (agent, common) in enumerate(zip(self._agents, dealt, strict=True))
        ]
        #: The last direction and gradient of agents that may repeat them.
        self._last: dict[int, tuple[NDArray[Any], NDArray[Any]]] = {}
        self._dtype, self._seed = dtype, seed
        #: What models keep beside their weights, as everybody receives it.
        self.buffers: dict[str, NDArray[Any]] = {}
        first = self._agents[0]
        if callable(getattr(first, "buffers", None)):
            self.buffers = first.buffers()  # type: ignore[attr-defined]
        self._rounds, self._callbacks = rounds, callbacks
        self.scale = scale if scale is not None else Scale(None, None)
        self._since = time.monotonic()

    def _target(self, index: int, epsilon: float | Sequence[float] | None) -> float:
        own = getattr(self._agents[index], "epsilon", None)
        if own is not None:
            return float(own)
        if epsilon is None:
            raise _core.Error(
                f"agent {self._shown(index)} has no `epsilon`, the loss at which it leaves; give it one, or give "
                "`epsilon=` for all"
            )
        if isinstance(epsilon, (int, float)):
            return float(epsilon)
        if len(epsilon) != len(self._agents):
            raise _core.Error(
                f"`epsilon` lists {len(epsilon)} numbers for {len(self._agents)} agents; give one for "
                "each, or one for all"
            )
        return float(epsilon[index])

    def _shown(self, index: int) -> int | str:
        return index if self._names[index] is None else str(self._names[index])

    def agents(self) -> list[Member]:
        """Everybody who takes part, by number."""
        everybody = zip(self._participants, self._names, strict=True)
        return [
            Member(index, participant.epsilon, name, participant.behaviour)
            for index, (participant, name) in enumerate(everybody)
        ]

    def gather(
        self,
        *,
        round: int,
        weights: NDArray[np.float64],
        step_size: float,
        exact: bool,
        personal: Mapping[int, NDArray[np.float64]] | None = None,
    ) -> Gathered:
        """Sends the weights to the agents still in, and collects their answers."""
        self._since, personal = time.monotonic(), personal or {}
        gathered = Gathered([], [], [])
        kept: list[dict[str, NDArray[Any]]] = []
        for index, participant in enumerate(self._participants):
            if not participant.looks:
                continue
            agent = self._agents[index]
            sent = personal.get(index, weights).astype(self._dtype, copy=False)
            self._lend_buffers(agent)
            value, gradient = agent.loss_and_grad(sent)
            answer = participant.answer(
                loss=float(value),
                round=round,
                step_size=step_size,
                descended=partial(descended, agent, sent),
            )
            if answer == "leaves":
                gathered.goodbyes.append(index)
            if answer == "returns":
                gathered.returned.append(index)
            if answer in ("reports", "returns"):
                work = partial(self._work, index, round, sent, step_size, kept)
                gathered.reports.append(self._report(index, float(value), gradient, work))
        if kept:
            self.buffers = averaged(kept)
        return gathered

    def _lend_buffers(self, agent: Agent) -> None:
        if self.buffers:
            agent.set_buffers(self.buffers)  # type: ignore[attr-defined]

    def _work(
        self,
        index: int,
        round: int,
        sent: NDArray[Any],
        step_size: float,
        kept: list[dict[str, NDArray[Any]]],
    ) -> NDArray[Any] | None:
        """The direction in which an agent's own training leads; None if it only has a gradient."""
        agent = self._agents[index]
        work = getattr(agent, "work", None)
        seed = int.from_bytes(hashlib.sha256(f"{self._seed}/{round}/{index}".encode()).digest()[:4])
        trained = work(sent, seed=seed) if callable(work) else None
        if self.buffers:
            if trained is None:
                agent.follow()  # type: ignore[attr-defined]
            kept.append(agent.buffers())  # type: ignore[attr-defined]
        if trained is None:
            return None
        moved = sent.astype(np.float64) - np.asarray(trained, np.float64).reshape(sent.shape)
        return (moved / step_size).astype(self._dtype)

    def _report(self, index: int, loss: float, gradient: Any, work: Any) -> _core.Report:
        """The report of an agent that stays."""
        participant = self._participants[index]
        slope = np.asarray(gradient)
        if participant.repeats and not participant.works and index in self._last:
            direction, slope = self._last[index]
        else:
            led = work()
            direction = slope if led is None else led
        if participant.repeats:
            self._last[index] = (np.array(direction), np.array(slope))
        return _core.Report(
            index,
            direction,
            gradient=slope,
            loss=participant.told(loss),
            epsilon=participant.epsilon,
            samples=int(getattr(self._agents[index], "samples", 1)),
        )

    def closed(self, line: str, promised: list[tuple[int, float]]) -> bool:
        """Tells the callbacks of a finished round; whether one of them ends the run."""
        read = json.loads(line)
        self.scale.note(read, promised)
        if not self._callbacks:
            return False
        names = {index: self._shown(index) for index in range(len(self._agents))}
        seconds = time.monotonic() - self._since
        return tell(self._callbacks, describe(read, names, self._rounds, seconds))

    def warnings(self) -> list[str]:
        """What the summary should warn about."""
        return self.scale.warnings

    def assess(self, weights: NDArray[np.float64]) -> list[Assessed]:
        """How good weights are for every agent, including those that left."""
        sent = weights.astype(self._dtype, copy=False)
        assessed = []
        for index, agent in enumerate(self._agents):
            self._lend_buffers(agent)
            ask = getattr(agent, "loss", None)
            loss = ask(sent) if callable(ask) else agent.loss_and_grad(sent)[0]
            accuracy = getattr(agent, "accuracy", None)
            share = accuracy(sent) if accuracy else None
            right = float(share) if share is not None else None
            assessed.append(Assessed(index, float(loss), right))
        return assessed

    def save(self) -> str:
        """Who left and what the others remember, for a checkpoint."""
        state: dict[str, Any] = {
            "participants": [participant.save() for participant in self._participants],
            "last": {str(i): [packed(array) for array in pair] for i, pair in self._last.items()},
            **self.scale.memory(),
        }
        if self.buffers:
            state["buffers"] = {name: packed(array) for name, array in self.buffers.items()}
        return json.dumps(state, allow_nan=False)

    def restore(self, saved: str) -> None:
        """Takes up what `save` gave."""
        state = json.loads(saved)
        if not isinstance(state, dict) or "participants" not in state:
            raise _core.Error(
                "the checkpoint does not say who has left, so this run cannot be resumed; start it again "
                "in another folder"
            )
        for participant, text in zip(self._participants, state["participants"], strict=True):
            participant.restore(text)
        self._last = {
            int(agent): (unpacked(pair[0]), unpacked(pair[1]))
            for agent, pair in state["last"].items()
        }
        self.buffers = {name: unpacked(text) for name, text in state.get("buffers", {}).items()}
        self.scale.recall(state)


def packed(array: NDArray[Any]) -> list[Any]:
    """An array on its way into a checkpoint, bit for bit."""
    return [str(array.dtype), list(array.shape), b64encode(array.tobytes()).decode()]


def unpacked(packed: Sequence[Any]) -> NDArray[Any]:
    """An array from a checkpoint."""
    dtype, shape, text = packed
    return np.frombuffer(b64decode(text), dtype).reshape(shape).copy()


def averaged(buffers: Sequence[Mapping[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """What agents' models keep beside their weights, made one: the mean of numbers, and the median
    of counters, which no single agent can carry away."""
    made = {}
    for name, first in buffers[0].items():
        every = np.stack([own[name] for own in buffers])
        if first.dtype.kind == "f":
            made[name] = np.asarray(every.mean(axis=0, dtype=np.float64), first.dtype)
        else:
            made[name] = np.asarray(np.sort(every, axis=0)[(len(every) - 1) // 2])
    return made


def descended(agent: Agent, weights: NDArray[Any], steps: int, rate: float) -> float:
    """An agent's loss after this many gradient steps of its own."""
    weights = weights.copy()
    for _ in range(steps):
        weights -= rate * np.asarray(agent.loss_and_grad(weights)[1]).reshape(weights.shape)
    return float(agent.loss_and_grad(weights)[0])


def simulate(
    agents: Mapping[str, Agent] | Sequence[Agent],
    rule: RuleLike,
    *,
    weights: Any = None,
    step_size: float = 1.0,
    rounds: int = 300,
    epsilon: float | Sequence[float] | None = None,
    behaviour: Any = "threshold",
    policy: PolicyLike | None = None,
    seed: int = 0,
    out: str | Path | None = None,
    resume: bool = False,
    on: str = "python",
    callbacks: Sequence[Callback] = (),
    progress: bool = False,
) -> Result:
    """Runs a federation of Python agents until the rule stops, nobody is left, or rounds are over.

    Parameters
    ----------
    agents : list or dict of agents
        Anything with `loss_and_grad(weights)`; keys of a dict are the agents' names.
    rule : Rule, str, dict or an object of your own
        How the server aggregates: `fedstay.AdaGd()`, "fedavg", anything with `aggregate(round)` …
    weights : array
        Where training starts. Agents receive the weights in its dtype; the server keeps float64.
        Not needed for `fedstay.TorchAgent`s: they start from the first one's module.
    step_size : float
        The server's step size. For agents that train by themselves the mean of their models is
        1.0; it then is how far the server follows them.
    epsilon : float or list
        The loss at which an agent leaves, unless it has its own `epsilon`; the rule's if not given.
    behaviour : str or dict
        How agents decide, unless they have their own `behaviour`; as in TOML.
    policy : Policy, str or dict, optional
        What the server does around the rule: `fedstay.Preview()`, "guard", "early-stop", "keep-best".
    seed : int
        Assigns the behaviours of a mixed population, and is what agents that train draw from; other
        agents use their own randomness.
    out : path, optional
        Keep the run in this folder, as `fedstay run` does; with `resume`, continue the run there.
    callbacks : list of callables, optional
        Told of every round; one that returns True ends the run: see `fedstay.callbacks`.
    progress : bool
        Show a line with the round and the time left, on a terminal.

    >>> import numpy as np, fedstay
    >>> class Bowl:  # wants to be at `centre`
    ...     def __init__(self, centre):
    ...         self.centre = np.array(centre)
    ...     def loss_and_grad(self, weights):
    ...         away = weights - self.centre
    ...         return 0.5 * away @ away, away
    >>> agents = {"near": Bowl([1.0, 0.0]), "far": Bowl([0.0, 4.0])}
    >>> start = {"weights": [3.0, 0.0], "step_size": 0.1, "epsilon": 1.0}
    >>> fedstay.simulate(agents, "fedavg", **start)
    Result(fedavg on python: harmful, 2 of 2 left, 1 of 2 content, everyone-left after 15 rounds)
    >>> fedstay.simulate(agents, fedstay.AdaGd(delta=0.1), **start).left
    []
    >>> fedstay.simulate(agents, "fedavg", policy=fedstay.Preview(), rounds=30, **start).left
    []
    """
    _core.refuse_loads(rule, "agents in Python")
    listed = list(agents.values()) if isinstance(agents, Mapping) else list(agents)
    if weights is None:
        begin = getattr(listed[0], "weights", None) if listed else None
        if not callable(begin):
            raise _core.Error("`weights` is missing: where training starts")
        weights = begin()
    start = np.asarray(weights)
    dtype = start.dtype if start.dtype == np.float32 else np.dtype(np.float64)
    usual = epsilon if epsilon is not None else usual_epsilon(rule)
    told: list[Callback] = [*callbacks, Progress()] if progress else list(callbacks)
    scale = Scale(rule, policy)
    engine = LocalAgents(agents, usual, behaviour, dtype, seed, rounds, told, scale)
    shapes = getattr(listed[0], "layout", None)
    layout = shapes() if callable(shapes) and dtype == np.float32 else []
    targets = [member.epsilon for member in engine.agents()]
    outcome = _core.drive(
        engine,
        start,
        rule,
        step_size=step_size,
        rounds=rounds,
        policy=policy,
        behaviour=behaviour,
        on=on,
        seed=seed,
        out=Path(out) if out is not None else None,
        resume=resume,
        settings=json.dumps({"epsilon": targets}),
        layout=layout,
    )
    return from_outcome(outcome, out, layout, engine.buffers)


def run(
    experiment: str | Path | Mapping[str, Any] | None = None,
    *,
    set: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    threads: int | None = None,
) -> Result:
    """Runs an experiment in the native simulator: a TOML file, or the default one, with keys `set`.

    >>> import fedstay
    >>> fedstay.run(set={"problem.kind": "observation-3", "rule.kind": "ada-gd"}).verdict
    'unsatisfied'
    """
    try:
        text = Path(experiment).read_text() if isinstance(experiment, (str, Path)) else None
    except OSError as error:
        raise _core.Error(f"{experiment}: {error.strerror}") from None
    if isinstance(experiment, Mapping):
        text = ""
    pairs = [*flat(experiment if isinstance(experiment, Mapping) else {}), *flat(set or {})]
    kept = Path(out) if out is not None else None
    outcome = _core.run_experiment(text, pairs, out=kept, resume=resume, threads=threads)
    return from_outcome(outcome, out)

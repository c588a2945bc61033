"""The loop with agents that are Python objects, in this process."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from . import _core
from .result import Result, from_outcome
from .rules import Rule, usual_epsilon
from .settings import flat

__all__ = ["Agent", "RuleLike", "run", "simulate"]

#: A rule as an object, by name, or as a dict as in TOML.
RuleLike = Rule | str | Mapping[str, Any]


class Agent(Protocol):
    """Whatever can tell its loss and its gradient at given weights.

    It may also have `epsilon` (the loss at which it leaves), `behaviour` (how it decides), `samples`,
    `loss(weights)` and `accuracy(weights)`.
    """

    def loss_and_grad(self, weights: NDArray[Any]) -> tuple[float, Any]:
        """The loss on the agent's own data, and the gradient, at these weights."""


class LocalAgents:
    """The engine behind `simulate`: asks agents in order, and lets each decide for itself."""

    def __init__(
        self,
        agents: Mapping[str, Agent] | Sequence[Agent],
        epsilon: float | Sequence[float] | None,
        behaviour: Any,
        dtype: np.dtype[Any],
        seed: int,
    ) -> None:
        self._agents: list[Agent]
        self._names: list[str | None]
        if isinstance(agents, Mapping):
            self._agents, self._names = list(agents.values()), list(agents)
        else:
            self._agents, self._names = list(agents), [None] * len(agents)
        if not self._agents:
            raise _core.Error("nobody takes part: `agents` is empty")
        self._epsilon = [self._precision(i, epsilon) for i in range(len(self._agents))]
        dealt = _core.Behaviour(behaviour).assign(len(self._agents), seed)
        self._behaviour = [
            _core.Behaviour(getattr(agent, "behaviour", common))
            for agent, common in zip(self._agents, dealt, strict=True)
        ]
        #: The last gradient of those who may repeat it.
        self._last: dict[int, NDArray[Any]] = {}
        self._left: dict[int, int] = {}
        self._dtype = dtype

    def _precision(self, index: int, epsilon: float | Sequence[float] | None) -> float:
        own = getattr(self._agents[index], "epsilon", None)
        if own is not None:
            return float(own)
        if epsilon is None:
            raise _core.Error(
                f"agent {index} has no `epsilon`, the loss at which it leaves; give it one, or give "
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

    def agents(self) -> list[tuple[int, float, str | None]]:
        """Number, precision and name of everybody."""
        return [(i, e, n) for i, (e, n) in enumerate(zip(self._epsilon, self._names, strict=True))]

    def behaviours(self) -> list[str]:
        """How everybody behaves."""
        return [behaviour.name for behaviour in self._behaviour]

    def gather(
        self, *, round: int, weights: NDArray[np.float64], step_size: float, **_: Any
    ) -> tuple[list[_core.Report], list[int], list[int], list[tuple[int, str]], None, None]:
        """Sends the weights to those still in, and collects what they say."""
        reports: list[_core.Report] = []
        goodbyes: list[int] = []
        returned: list[int] = []
        sent = weights.astype(self._dtype, copy=False)
        for index, behaviour in enumerate(self._behaviour):
            present = index not in self._left
            if not present and not behaviour.comes_back:
                continue
            report = self._answer(index, sent, round, step_size, present)
            if report is not None:
                reports.append(report)
                if self._left.pop(index, None) is not None:
                    returned.append(index)
            elif present:
                self._left[index] = round
                goodbyes.append(index)
        return reports, goodbyes, returned, [], None, None

    def _answer(
        self, index: int, weights: NDArray[Any], round: int, step_size: float, present: bool
    ) -> _core.Report | None:
        """What an agent reports; None if it leaves, or stays away."""
        agent, behaviour = self._agents[index], self._behaviour[index]
        value, gradient = agent.loss_and_grad(weights)
        loss, epsilon = float(value), self._epsilon[index]
        if behaviour.leaves(
            loss=loss,
            epsilon=epsilon,
            round=round,
            agent=index,
            present=present,
            step_size=step_size,
            descended=lambda steps, rate: descended(agent, weights, steps, rate),
        ):
            return None
        if behaviour.repeats:
            if behaviour.works or index not in self._last:
                self._last[index] = np.array(gradient)
            gradient = self._last[index]
        samples = int(getattr(agent, "samples", 1))
        told = behaviour.told(loss)
        return _core.Report(index, gradient, loss=told, epsilon=epsilon, samples=samples)

    def assess(
        self, weights: NDArray[np.float64]
    ) -> list[tuple[int, float, float | None, int | None]]:
        """How good weights are for everybody, those who left included."""
        sent = weights.astype(self._dtype, copy=False)
        told: list[tuple[int, float, float | None, int | None]] = []
        for index, agent in enumerate(self._agents):
            ask = getattr(agent, "loss", None)
            loss = ask(sent) if callable(ask) else agent.loss_and_grad(sent)[0]
            accuracy = getattr(agent, "accuracy", None)
            told.append((index, float(loss), float(accuracy(sent)) if accuracy else None, None))
        return told

    def memory(self) -> str:
        """Who left and what the others remember, for a checkpoint."""
        last = {str(i): [str(g.dtype), g.tobytes().hex()] for i, g in self._last.items()}
        behaviours = [behaviour.memory() for behaviour in self._behaviour]
        left = {str(agent): round for agent, round in self._left.items()}
        return json.dumps({"left": left, "behaviours": behaviours, "last": last}, allow_nan=False)

    def recall(self, memory: str) -> None:
        """Takes up what `memory` gave."""
        saved = json.loads(memory)
        if not isinstance(saved, dict) or "left" not in saved:
            raise _core.Error(
                "the checkpoint does not say who has left, so this run cannot be resumed; start it anew "
                "in another folder"
            )
        self._left = {int(agent): round for agent, round in saved["left"].items()}
        for behaviour, remembered in zip(self._behaviour, saved["behaviours"], strict=True):
            behaviour.recall(remembered)
        self._last = {
            int(agent): np.frombuffer(bytes.fromhex(text), dtype)
            for agent, (dtype, text) in saved["last"].items()
        }


def descended(agent: Agent, weights: NDArray[Any], steps: int, rate: float) -> float:
    """An agent's loss after so many gradient steps of its own."""
    weights = weights.copy()
    for _ in range(steps):
        weights -= rate * np.asarray(agent.loss_and_grad(weights)[1]).reshape(weights.shape)
    return float(agent.loss_and_grad(weights)[0])


def simulate(
    agents: Mapping[str, Agent] | Sequence[Agent],
    rule: RuleLike,
    *,
    weights: Any,
    step_size: float,
    rounds: int = 300,
    epsilon: float | Sequence[float] | None = None,
    behaviour: Any = "threshold",
    policy: str | Mapping[str, Any] | None = None,
    seed: int = 0,
    out: str | Path | None = None,
    resume: bool = False,
    on: str = "python",
) -> Result:
    """Runs a federation of Python agents until the rule stops, nobody is left, or rounds are over.

    Parameters
    ----------
    agents : list or dict of agents
        Anything with `loss_and_grad(weights)`; keys of a dict are the agents' names.
    rule : Rule, str or dict
        How the server aggregates: `fedstay.AdaGd()`, "fedavg" …
    weights : array
        Where training starts. Agents receive the weights in its precision; the server keeps float64.
    step_size : float
        The server's step size.
    epsilon : float or list
        The loss at which an agent leaves, unless it has its own `epsilon`; the rule's if not given.
    behaviour : str or dict
        How agents decide, unless they have their own `behaviour`; as in TOML.
    policy : str or dict, optional
        What the server does around the rule: "early-stop", "keep-best", "guard".
    seed : int
        Deals a mixed population's behaviours out; the agents' own randomness is theirs.
    out : path, optional
        Keep the run in this folder, as `fedstay run` does; with `resume`, go on with the run there.

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
    """
    _core.refuse_loads(rule, "agents in Python")
    start = np.asarray(weights)
    dtype = start.dtype if start.dtype == np.float32 else np.dtype(np.float64)
    usual = epsilon if epsilon is not None else usual_epsilon(rule)
    engine = LocalAgents(agents, usual, behaviour, dtype, seed)
    precisions = [precision for _, precision, _ in engine.agents()]
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
        settings=json.dumps({"epsilon": precisions}),
    )
    return from_outcome(outcome, out)


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

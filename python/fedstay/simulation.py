"""The loop with agents that are Python objects, in this process."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from . import _core
from .engine import Assessed, Gathered, Member
from .result import Result, from_outcome
from .rules import RuleLike, usual_epsilon
from .settings import flat

__all__ = ["Agent", "run", "simulate"]


class Agent(Protocol):
    """Whatever can compute its loss and its gradient at given weights.

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
        dealt = _core.Behaviour(behaviour).assign(len(self._agents), seed)
        self._participants = [
            _core.Participant(
                index, self._target(index, epsilon), getattr(agent, "behaviour", common)
            )
            for index, (agent, common) in enumerate(zip(self._agents, dealt, strict=True))
        ]
        #: The last gradients of agents that may repeat them.
        self._last: dict[int, NDArray[Any]] = {}
        self._dtype = dtype

    def _target(self, index: int, epsilon: float | Sequence[float] | None) -> float:
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

    def agents(self) -> list[Member]:
        """Everybody who takes part, by number."""
        everybody = zip(self._participants, self._names, strict=True)
        return [
            Member(index, participant.epsilon, name, participant.behaviour)
            for index, (participant, name) in enumerate(everybody)
        ]

    def gather(
        self, *, round: int, weights: NDArray[np.float64], step_size: float, exact: bool
    ) -> Gathered:
        """Sends the weights to the agents still in, and collects their answers."""
        gathered = Gathered([], [], [])
        sent = weights.astype(self._dtype, copy=False)
        for index, participant in enumerate(self._participants):
            if not participant.looks:
                continue
            agent = self._agents[index]
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
                gathered.reports.append(self._report(index, float(value), gradient))
        return gathered

    def _report(self, index: int, loss: float, gradient: Any) -> _core.Report:
        """The report of an agent that stays."""
        participant = self._participants[index]
        if participant.repeats:
            if participant.works or index not in self._last:
                self._last[index] = np.array(gradient)
            gradient = self._last[index]
        samples = int(getattr(self._agents[index], "samples", 1))
        told = participant.told(loss)
        return _core.Report(
            index, gradient, loss=told, epsilon=participant.epsilon, samples=samples
        )

    def assess(self, weights: NDArray[np.float64]) -> list[Assessed]:
        """How good weights are for every agent, including those that left."""
        sent = weights.astype(self._dtype, copy=False)
        assessed = []
        for index, agent in enumerate(self._agents):
            ask = getattr(agent, "loss", None)
            loss = ask(sent) if callable(ask) else agent.loss_and_grad(sent)[0]
            accuracy = getattr(agent, "accuracy", None)
            share = float(accuracy(sent)) if accuracy else None
            assessed.append(Assessed(index, float(loss), share))
        return assessed

    def save(self) -> str:
        """Who left and what the others remember, for a checkpoint."""
        last = {
            str(i): [str(g.dtype), b64encode(g.tobytes()).decode()] for i, g in self._last.items()
        }
        participants = [participant.save() for participant in self._participants]
        return json.dumps({"participants": participants, "last": last}, allow_nan=False)

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
            int(agent): np.frombuffer(b64decode(text), dtype)
            for agent, (dtype, text) in state["last"].items()
        }


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
    rule : Rule, str, dict or an object of your own
        How the server aggregates: `fedstay.AdaGd()`, "fedavg", anything with `aggregate(round)` …
    weights : array
        Where training starts. Agents receive the weights in its dtype; the server keeps float64.
    step_size : float
        The server's step size.
    epsilon : float or list
        The loss at which an agent leaves, unless it has its own `epsilon`; the rule's if not given.
    behaviour : str or dict
        How agents decide, unless they have their own `behaviour`; as in TOML.
    policy : str or dict, optional
        What the server does around the rule: "early-stop", "keep-best", "guard".
    seed : int
        Assigns the behaviours of a mixed population; agents use their own randomness.
    out : path, optional
        Keep the run in this folder, as `fedstay run` does; with `resume`, continue the run there.

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

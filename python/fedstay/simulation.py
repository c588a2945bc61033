"""A whole run in one call: agents that are Python objects, or the native simulator."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from . import _core
from .asks import refuse
from .callbacks import Callback, Progress
from .local import Agent, LocalAgents
from .policies import PolicyLike, around
from .result import Result, from_outcome
from .rules import RuleLike, usual_epsilon
from .scale import Scale, kind_of
from .settings import flat
from .together import chosen
from .worth import WorthLike, asked, telling

__all__ = ["Agent", "run", "simulate"]


def simulate(
    agents: Mapping[str, Agent] | Sequence[Agent],
    rule: RuleLike,
    *,
    weights: Any = None,
    step_size: float | None = None,
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
    together: str = "auto",
    early_exit: bool = False,
    worth: WorthLike | None = None,
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
        The server's step size. Agents that all train by themselves need none: under averaging their
        models are averaged as they are, whatever it is.
    epsilon : float or list
        The loss at which an agent leaves, unless it has its own `epsilon`; the rule's if not given.
    behaviour : str or dict
        How agents decide, unless they have their own `behaviour`; as in TOML.
    policy : Policy, str, dict or a list of them, optional
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
    together : "auto", "stacked", "threads" or "off"
        How several `fedstay.TorchAgent`s compute at once: as one stack by `torch.func`, in as many
        threads as PyTorch has, or not at all. "auto" stacks them where that is faster, else uses
        threads where they may be used, else asks one after the other.
    early_exit : bool
        Where the rule does not compute with losses, stop summing up a loss as soon as it is above the
        agent's target, and leave the gradient out: for agents that train by themselves and whose loss is
        a sum of losses that are not negative. The record marks such losses as lower bounds.
    worth : Worth or list of str, optional
        The scores that say what every agent gives and gets, booked round by round: `fedstay.Worth`.
        Every loss is then computed in full.

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
    Result(fedavg on python: harmful, 2 of 2 left (near, far), 1 of 2 content, everyone-left after 15 rounds)
    >>> fedstay.simulate(agents, fedstay.AdaGd(delta=0.1), **start).left
    []
    >>> fedstay.simulate(agents, "fedavg", policy=fedstay.Preview(), rounds=30, **start).left
    []
    """
    _core.refuse_loads(rule, "agents in Python")
    listed = list(agents.values()) if isinstance(agents, Mapping) else list(agents)
    names = list(agents) if isinstance(agents, Mapping) else range(len(listed))
    _refuse_what_is_none(listed, names, rounds, epsilon)
    if weights is None:
        begin = getattr(listed[0], "weights", None) if listed else None
        if not callable(begin):
            raise _core.Error("`weights` is missing: where training starts")
        weights = begin()
    if step_size is None:
        if not all(getattr(agent, "trains", False) for agent in listed):
            raise _core.Error(
                "`step_size` is missing: how far the server follows the agents' gradients"
            )
        step_size = 1.0
    start = np.asarray(weights)
    dtype = start.dtype if start.dtype == np.float32 else np.dtype(np.float64)
    usual = epsilon if epsilon is not None else usual_epsilon(rule)
    told: list[Callback] = [*callbacks, Progress()] if progress else list(callbacks)
    policy = around(rule, policy)
    scale = Scale(rule, policy)
    asks, scores = _core.asks_of_agents(rule), asked(worth)
    refuse(asks, kind_of(rule), listed, names)
    if "corrections" in asks and together in ("stacked", "threads"):
        raise _core.Error(
            f'`together="{together}"`: corrected local steps are taken one agent after the other; leave '
            "it out"
        )
    at_once = None if "corrections" in asks else chosen(together, listed)
    early_exit = early_exit and not scores.methods
    engine = LocalAgents(
        agents, usual, behaviour, dtype, seed, rounds, told, scale, at_once, early_exit, asks
    )
    tells = telling(scores.judge)
    shapes = getattr(listed[0], "layout", None)
    layout = shapes() if callable(shapes) and dtype == np.float32 else []
    targets = [member.epsilon for member in engine.agents()]
    try:
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
            worth=list(scores.methods),
            judge=None if tells is None else engine.judge(scores.judge, tells),
        )
    finally:
        if at_once is not None:
            at_once.close()
    return from_outcome(outcome, out, layout, engine.buffers)


def _refuse_what_is_none(
    agents: Sequence[Any], names: Iterable[Any], rounds: Any, epsilon: Any
) -> None:
    """Refuses agents, rounds and targets that are none, by name and with what to give instead."""
    if not agents:
        raise _core.Error("nobody takes part: `agents` is empty")
    for name, agent in zip(names, agents, strict=True):
        if not callable(getattr(agent, "loss_and_grad", None)):
            how = "give it `loss_and_grad(weights)`"
            if callable(getattr(agent, "named_parameters", None)):
                how = "a module and its batches are an agent: `fedstay.TorchAgent(module, batches)`"
            raise _core.Error(f"agent {name} is a {type(agent).__name__}, and no agent: {how}")
    if isinstance(rounds, bool) or not isinstance(rounds, (int, np.integer)) or rounds < 1:
        raise _core.Error(f"`rounds` is {rounds}, but must be a whole number, 1 or more")
    if isinstance(epsilon, str):
        raise _core.Error(
            f'`epsilon` is "{epsilon}", but must be a number, or a list with one for every agent; formulas '
            "are for experiments (`fedstay.run`)"
        )


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
    text, pairs = _asked(experiment, set)
    kept = Path(out) if out is not None else None
    outcome = _core.run_experiment(text, pairs, out=kept, resume=resume, threads=threads)
    return from_outcome(outcome, out)


def baselines(
    experiment: str | Path | Mapping[str, Any] | None = None,
    *,
    set: Mapping[str, Any] | None = None,
) -> dict[str, list[dict[str, Any]]]:
    """What the federation of an experiment is measured against.

    "constant" tells everybody the base rates or the mean, "alone" is the best model of each agent's own
    rows, "pooled" the best one of all agents' rows together. For each there is one entry per agent: its
    name, the losses and measures on its training rows and, where it has some, on the rows that it holds
    back, and the strength of the "ridge" (`C = 1 / ridge` of scikit-learn's `LogisticRegression`, `alpha`
    of its `Ridge`), or the "steps" of a net.

    >>> import fedstay
    >>> made = fedstay.baselines(set={"agents": 2, "model.kind": "softmax-regression"})
    >>> [round(agent["training"]["measures"]["accuracy"], 1) for agent in made["alone"]]
    [1.0, 1.0]
    """
    told: dict[str, list[dict[str, Any]]] = json.loads(_core.baselines(*_asked(experiment, set)))
    return told


def _asked(
    experiment: str | Path | Mapping[str, Any] | None, set: Mapping[str, Any] | None
) -> tuple[str | None, list[tuple[str, str]]]:
    """An experiment's text, and the keys to set on top of it."""
    try:
        text = Path(experiment).read_text() if isinstance(experiment, (str, Path)) else None
    except OSError as error:
        raise _core.Error(f"{experiment}: {error.strerror}") from None
    if isinstance(experiment, Mapping):
        text = ""
    return text, [*flat(experiment if isinstance(experiment, Mapping) else {}), *flat(set or {})]

"""The engine behind `fedstay.simulate`: agents that are Python objects in this process."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from . import _core
from .asks import corrected, rates_of
from .buffers import averaged, packed, unpacked
from .callbacks import Callback, describe, tell
from .engine import Assessed, Gathered, Member
from .scale import Scale
from .together import Job, Looked, Together

__all__ = ["Agent", "LocalAgents", "descended"]


class Agent(Protocol):
    """Whatever can compute its loss and its gradient at given weights.

    It may also have `epsilon` (the loss at which it leaves), `behaviour` (how it decides), `samples`,
    `loss(weights)`, `accuracy(weights)` and `measures(weights)`, a dict of what else says how good
    weights are (`{"f1": 0.8}`), which the result shows too; and, if it trains in some way of its own,
    `work(weights, seed=…)`, which returns where its local work leads from these weights. Its gradient is
    then used for what it is shown and for predictions, and its work for the step. Models that have
    more than weights have `buffers()` and `set_buffers(buffers)`: these are averaged outside the rule.
    Under a rule that corrects local steps (scaffold), an agent that trains has
    `corrected(weights, correction, seed=…)`: the same work with `correction` added to the gradient of
    every step, which returns where it leads and the sum of the step sizes. Under one that asks how well
    groups are served (fairfed), agents have `rates(weights)`, which gives a `fedstay.Rates`.
    `fedstay.TorchAgent` has all of this.
    """

    def loss_and_grad(self, weights: NDArray[Any]) -> tuple[float, Any]:
        """The loss on the agent's own data, and the gradient, at these weights."""


class Led(NamedTuple):
    """What an agent's own training led to."""

    #: None if it only has a gradient.
    direction: NDArray[Any] | None
    #: The sum of its step sizes, where it told it.
    reach: float | None = None


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
        together: Together | None = None,
        early_exit: bool = False,
        asks: Sequence[str] = (),
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
        self._together, self._early_exit = together, early_exit
        #: Whether the rule corrects local steps, and whether it asks how well groups are served.
        self.corrections, self.rates = "corrections" in asks, "rates" in asks
        #: What agents are to add to the gradient of every local step in this round.
        self._by: dict[int, NDArray[Any]] = {}
        #: The sum of the step sizes behind a direction that may be repeated, where it was told.
        self._reach: dict[int, float] = {}

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
        corrections: Mapping[int, NDArray[np.float64]] | None = None,
    ) -> Gathered:
        """Sends the weights to the agents still in, and collects their answers."""
        by = (corrections or {}).items()
        self._by = {agent: vector.astype(self._dtype, copy=False) for agent, vector in by}
        self._since, personal = time.monotonic(), personal or {}
        gathered = Gathered([], [], [])
        kept: dict[int, dict[str, NDArray[Any]]] = {}
        asked = {
            index: personal.get(index, weights).astype(self._dtype, copy=False)
            for index, participant in enumerate(self._participants)
            if participant.looks
        }
        if self._together is not None:
            self._gather_together(asked, round, step_size, exact, gathered, kept)
        else:
            for index, sent in asked.items():
                looked = self._look(index, sent, exact)
                if self._answer(index, sent, looked, round, step_size, gathered):
                    work = partial(self._work, index, round, sent, step_size, kept)
                    gathered.reports.append(self._report(index, sent, looked, work))
        if kept:
            self.buffers = averaged([kept[index] for index in sorted(kept)])
        return gathered

    def _gather_together(
        self,
        asked: Mapping[int, NDArray[Any]],
        round: int,
        step_size: float,
        exact: bool,
        gathered: Gathered,
        kept: dict[int, dict[str, NDArray[Any]]],
    ) -> None:
        """A round of agents that compute several at once: all look, all decide, all work."""
        assert self._together is not None
        jobs = {
            index: Job(self._agents[index], sent, self.buffers, self._bound(index, exact))
            for index, sent in asked.items()
        }
        looked = dict(zip(jobs, self._together.look(list(jobs.values())), strict=True))
        stay = [
            index
            for index, sent in asked.items()
            if self._answer(index, sent, looked[index], round, step_size, gathered)
        ]
        at_work = [index for index in stay if not self._repeats(index)]
        seeded = [jobs[index]._replace(seed=self._draw(round, index)) for index in at_work]
        done = dict(zip(at_work, self._together.work(seeded), strict=True))

        def work(index: int) -> Led:
            trained, beside = done[index]
            if self.buffers:
                kept[index] = beside
            return Led(self._direction(asked[index], trained, step_size))

        for index, sent in asked.items():
            if index in stay:
                made = self._report(index, sent, looked[index], partial(work, index))
                gathered.reports.append(made)

    def _bound(self, index: int, exact: bool) -> float | None:
        """Above what an agent's loss need not be known, if it need not be known exactly."""
        participant = self._participants[index]
        if exact or not self._early_exit or not participant.is_plain:
            return None
        agent = self._agents[index]
        knows = getattr(agent, "trains", False) and callable(getattr(agent, "loss_above", None))
        return participant.epsilon if knows else None

    def _look(self, index: int, sent: NDArray[Any], exact: bool) -> Looked:
        """An agent's loss at what it received, and its gradient there unless nobody needs it."""
        agent, bound = self._agents[index], self._bound(index, exact)
        self._lend_buffers(agent)
        if bound is not None:
            value, at_least = agent.loss_above(sent, bound)  # type: ignore[attr-defined]
            return Looked(float(value), None, at_least)
        value, gradient = agent.loss_and_grad(sent)
        return Looked(float(value), gradient)

    def _answer(
        self,
        index: int,
        sent: NDArray[Any],
        looked: Looked,
        round: int,
        step_size: float,
        gathered: Gathered,
    ) -> bool:
        """Lets an agent decide; whether it reports."""
        answer = self._participants[index].answer(
            loss=looked.loss,
            round=round,
            step_size=step_size,
            descended=partial(descended, self._agents[index], sent),
        )
        if answer == "leaves":
            gathered.goodbyes.append(index)
        if answer == "returns":
            gathered.returned.append(index)
        return answer in ("reports", "returns")

    def _lend_buffers(self, agent: Agent) -> None:
        if self.buffers:
            agent.set_buffers(self.buffers)  # type: ignore[attr-defined]

    def _draw(self, round: int, index: int) -> int:
        """What an agent's local work in a round draws from."""
        text = f"{self._seed}/{round}/{index}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4])

    def _work(
        self,
        index: int,
        round: int,
        sent: NDArray[Any],
        step_size: float,
        kept: dict[int, dict[str, NDArray[Any]]],
    ) -> Led:
        """The direction in which an agent's own training leads."""
        agent, seed, reach = self._agents[index], self._draw(round, index), None
        work = getattr(agent, "work", None)
        if self.corrections:
            by = self._by.get(index)
            led = corrected(agent, sent, np.zeros_like(sent) if by is None else by, seed)
            trained, reach = (None, None) if led is None else led
        else:
            trained = work(sent, seed=seed) if callable(work) else None
        if self.buffers:
            follow = getattr(agent, "follow", None)
            if trained is None and callable(follow):
                follow()
            kept[index] = agent.buffers()  # type: ignore[attr-defined]
        return Led(self._direction(sent, trained, reach or step_size), reach)

    def _direction(
        self, sent: NDArray[Any], trained: NDArray[Any] | None, reach: float
    ) -> NDArray[Any] | None:
        if trained is None:
            return None
        moved = sent.astype(np.float64) - np.asarray(trained, np.float64).reshape(sent.shape)
        return (moved / reach).astype(self._dtype)

    def _repeats(self, index: int) -> bool:
        """Whether an agent sends its last report once more instead of working."""
        participant = self._participants[index]
        return participant.repeats and not participant.works and index in self._last

    def _report(
        self, index: int, sent: NDArray[Any], looked: Looked, work: Callable[[], Led]
    ) -> _core.Report:
        """The report of an agent that stays."""
        participant, agent = self._participants[index], self._agents[index]
        direction: Any
        bare: Any
        slope = None if looked.gradient is None else np.asarray(looked.gradient)
        by, rates = self._by.get(index), None
        if self.rates:
            # At the weights that it received, before it trains.
            rates = rates_of(agent, sent, self._shown(index))
        if self._repeats(index):
            # The correction of then is not in it: the server adds and subtracts the one of now.
            (bare, slope), reach = self._last[index], self._reach.get(index)
            direction = bare if by is None else bare + by
        else:
            led, reach = work()
            # A gradient is one step, and its correction is added here.
            bare = slope if led is None else led
            direction = bare if by is None or led is not None else bare.reshape(by.shape) + by
            if led is not None and by is not None:
                bare = led - by
        if participant.repeats and slope is not None:
            self._last[index] = (np.array(bare), np.array(slope))
            if reach is not None:
                self._reach[index] = reach
        try:
            return _core.Report(
                index,
                direction,
                gradient=slope,
                loss=participant.told(looked.loss),
                at_least=looked.at_least,
                epsilon=participant.epsilon,
                samples=int(getattr(agent, "samples", 1)),
                reach=reach,
                rates=rates,
            )
        except _core.Error as error:
            raise self._by_name(error, index) from None

    def _by_name(self, error: _core.Error, index: int) -> _core.Error:
        """What the core says about an agent's report, with the agent's name where it has one."""
        name = self._names[index]
        if name is None:
            return error
        named = _core.Error(str(error).replace(f"agent {index}", str(name), 1))
        named.agent = index
        return named

    def closed(self, line: str, promised: list[tuple[int, float]]) -> bool:
        """Tells the callbacks of a finished round; whether one of them ends the run."""
        read = json.loads(line)
        self.scale.note(read, promised)
        if not self._callbacks:
            return False
        names = {index: self._shown(index) for index in range(len(self._agents))}
        seconds = time.monotonic() - self._since
        return tell(self._callbacks, describe(read, names, self._rounds, seconds))

    def judge(
        self, judge: Any, tells: Callable[[NDArray[Any]], float]
    ) -> Callable[[NDArray[np.float64]], float]:
        """The loss that a judge tells about weights, which it receives as the agents do."""

        def loss(weights: NDArray[np.float64]) -> float:
            if callable(getattr(judge, "set_buffers", None)):
                self._lend_buffers(judge)
            return float(tells(weights.astype(self._dtype, copy=False)))

        return loss

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
            measures = getattr(agent, "measures", None)
            more = (
                {name: float(value) for name, value in measures(sent).items()} if measures else {}
            )
            assessed.append(Assessed(index, float(loss), right, measures=more))
        return assessed

    def save(self) -> str:
        """Who left and what the others remember, for a checkpoint."""
        state: dict[str, Any] = {
            "participants": [participant.save() for participant in self._participants],
            "last": {str(i): [packed(array) for array in pair] for i, pair in self._last.items()},
            **self.scale.memory(),
        }
        if self._reach:
            state["reach"] = {str(agent): reach for agent, reach in self._reach.items()}
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
        self._reach = {int(agent): reach for agent, reach in state.get("reach", {}).items()}
        self.buffers = {name: unpacked(text) for name, text in state.get("buffers", {}).items()}
        self.scale.recall(state)


def descended(agent: Agent, weights: NDArray[Any], steps: int, rate: float) -> float:
    """An agent's loss after this many gradient steps of its own."""
    weights = weights.copy()
    for _ in range(steps):
        weights -= rate * np.asarray(agent.loss_and_grad(weights)[1]).reshape(weights.shape)
    return float(agent.loss_and_grad(weights)[0])

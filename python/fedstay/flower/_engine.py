"""What the core's loop asks for: a round gathered over the network, with patience."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Mapping
from logging import INFO, WARNING
from typing import TYPE_CHECKING, Any

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Message, MessageType, MetricRecord
from flwr.common.logger import log
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Result as FlowerResult
from numpy.typing import NDArray

from .._core import Error, Report
from ..callbacks import describe, tell
from ..engine import Assessed, Gathered
from ..remote.engine import RemoteEngine
from ..remote.showing import Showing
from ..scale import Scale, kind_of
from ._judge import judged
from ._layout import Layout
from ._metrics import mean
from ._replies import Answers, Sent
from ._roll import Member, Roll

if TYPE_CHECKING:
    from ._strategy import FedStay

#: How often replies are checked for, in seconds.
POLL = 0.2


class Engine(RemoteEngine[Member]):
    """The engine behind Flower: a round gathered over the network, with patience."""

    roll: Roll

    def __init__(
        self,
        strategy: FedStay,
        grid: Grid,
        timeout: float,
        train_config: ConfigRecord,
        evaluate_config: ConfigRecord,
        evaluate_fn: Callable[[int, ArrayRecord], MetricRecord | None] | None,
        rounds: int = 0,
    ) -> None:
        self.strategy, self.grid, self.timeout = strategy, grid, timeout
        self.roll = strategy.roll
        self.rounds = rounds
        self.train_config, self.evaluate_config = train_config, evaluate_config
        self.evaluate_fn = evaluate_fn
        self.flower = FlowerResult()
        self.begun = False
        self.hides = strategy.previews
        #: The first exchange of all, made before the layout of the model was known.
        self.early: tuple[list[int], list[int], list[Message], dict[str, int]] | None = None
        self.since = time.monotonic()
        self.drawn: tuple[int, set[int]] | None = None
        self.scale = Scale(strategy.rule, strategy.policy)
        self.corrections, self.rates = strategy.reader.asks.corrections, strategy.reader.asks.rates
        #: What agents are to add to the gradient of every local step in this round.
        self.by: Mapping[int, NDArray[np.float64]] = {}

    def say(self, text: str, *, warn: bool = False) -> None:
        """Logs a line."""
        log(WARNING if warn else INFO, "fedstay: %s", text)

    def shown_name(self, member: Member) -> str | None:
        """An agent that is called by its number needs no other name."""
        return None if member.name == str(member.id) else member.name

    def ask_early(self, arrays: ArrayRecord, layout: Layout) -> list[Message]:
        """Sends the first model of all, before it is known which of its arrays are parameters: the
        replies say it, and count as those of round 1."""
        self._open(1, arrays)
        first = Showing.the_same(layout.unpack(arrays, "(server)", np.float64))
        listed = list(self.grid.get_node_ids())
        nodes = self._draw(1, self.roll.to_ask(1, listed))
        config = ConfigRecord({**self.train_config, "tell-parameters": True})
        messages = self.strategy._messages(nodes, 1, first, config, MessageType.TRAIN)
        replies, sent = self._exchange(messages)
        self.early = listed, nodes, replies, sent
        return replies

    def _open(self, round: int, arrays: ArrayRecord) -> None:
        """Begins a round: what the server itself thinks of the model, and who is there."""
        if self.early is not None:
            return
        self.since = time.monotonic()
        log(INFO, "fedstay: [ROUND %d/%d]", round, self.rounds)
        if self.evaluate_fn is not None:
            self._central(round - 1, arrays)
        if not self.begun:
            self._wait_for_nodes(round)
            self.begun = True

    def gather(
        self,
        *,
        round: int,
        weights: NDArray[np.float64],
        step_size: float,
        exact: bool,
        personal: Mapping[int, NDArray[np.float64]] | None = None,
        newcomers: NDArray[np.float64] | None = None,
        corrections: Mapping[int, NDArray[np.float64]] | None = None,
    ) -> Gathered:
        """Asks until enough agents have answered, or patience is over."""
        strategy, roll = self.strategy, self.roll
        self.round, self.by = round, corrections or {}
        showing = strategy.showing = self.shown(weights, personal, newcomers)
        assert strategy._layout is not None
        arrays = strategy._layout.pack(weights)
        self._open(round, arrays)
        answers = Answers()
        for attempt in range(strategy.tries + 1):
            asked = self._ask(round, weights, showing, exact, answers)
            if answers.introduced:
                asked += self._ask(round, weights, showing, exact, answers)
            enough = len(answers.reports) >= strategy.min_agents
            # Nobody is left only if everybody said so; an agent that is silent may come back.
            nobody = not roll.still_in() and bool(roll.members)
            if enough or nobody:
                break
            strangers = sum(roll.of_node(node) is None for node in asked)
            hopeless = bool(roll.members) and len(roll.still_in()) + strangers < strategy.min_agents
            got = f"{len(answers.reports)} of at least {strategy.min_agents} agents reported in round {round}"
            if strategy.on_few == "stop" or hopeless:
                faults = self.close(answers)
                log(WARNING, "fedstay: %s; the run ends here", got)
                return Gathered([], sorted(answers.goodbyes), faults=faults, too_few=True)
            if attempt == strategy.tries:
                raise Error(
                    f"{got}, after {attempt} more tries{answers.reasons()}. Start the same app again to "
                    "go on with this round"
                )
            self.drawn = None  # Now anybody will do.
            log(
                WARNING,
                "fedstay: %s (%d nodes asked%s); waiting %g s",
                got,
                len(asked),
                answers.reasons(),
                strategy.wait,
            )
            time.sleep(strategy.wait)
        faults = self.close(answers)
        reports = [answers.reports[agent] for agent in sorted(answers.reports)]
        self._metrics(round, reports, answers)
        told = [answers.buffers[agent] for agent in sorted(answers.buffers)]
        strategy._layout.take_buffers([buffers for buffers in told if buffers])
        assessment = self._assessment(round, arrays, showing)
        return self.gathered(answers, faults, assessment, answers.returned)

    def _ask(
        self,
        round: int,
        weights: NDArray[np.float64],
        showing: Showing,
        exact: bool,
        answers: Answers,
    ) -> list[int]:
        """One exchange with everybody who has not answered yet."""
        strategy, roll = self.strategy, self.roll
        if self.early is not None:
            (listed, nodes, replies, sent), self.early = self.early, None
            at = dict.fromkeys(nodes, weights)
        else:
            listed = list(self.grid.get_node_ids())
            heard = {m.node for m in roll.members.values() if answers.heard(m)}
            nodes = [node for node in roll.to_ask(round, listed) if node not in heard]
            nodes = self._draw(round, nodes)
            train = MessageType.TRAIN
            by = strategy._by_node(nodes, self.by)
            messages = strategy._messages(nodes, round, showing, self.train_config, train, by)
            at = strategy._at(nodes, showing)
            replies, sent = self._exchange(messages)
        for member in roll.missing(listed):
            answers.faults.setdefault(member.name, "not connected")
        answers.introduced.clear()
        went = Sent(sent, weights, showing, at)
        strategy.reader.read(replies, went, listed, round, answers)
        silent = set(sent.values()) - {sent.get(r.metadata.reply_to_message_id) for r in replies}
        for node in silent:
            strategy.reader.blame(node, f"no answer within {self.timeout:g} s", answers)
        if exact:
            needing = kind_of(strategy.policy) or kind_of(strategy.rule) or strategy.rule
            answers.drop_secrets(roll, str(needing))
        return nodes

    def _draw(self, round: int, nodes: list[int]) -> list[int]:
        """The share of the nodes that is asked in a round: the same for the same seed and agents."""
        strategy = self.strategy
        if strategy.fraction_train >= 1.0:
            return nodes
        if self.drawn is None or self.drawn[0] != round:

            def place(node: int) -> tuple[bool, int]:
                member = self.roll.of_node(node)
                return (True, node) if member is None else (False, member.id)

            wanted = max(int(len(nodes) * strategy.fraction_train), strategy.min_agents)
            draw = random.Random(f"{strategy.seed}/{round}")
            chosen = draw.sample(sorted(nodes, key=place), min(wanted, len(nodes)))
            self.drawn = round, set(chosen)
        # Agents that were introduced in this round are asked once more.
        return [node for node in nodes if node in self.drawn[1]]

    def _exchange(self, messages: list[Message]) -> tuple[list[Message], dict[str, int]]:
        """Sends messages, and waits for the replies as long as an agent may take."""
        nodes = [message.metadata.dst_node_id for message in messages]
        ids = list(self.grid.push_messages(messages)) if messages else []
        sent = {id: node for id, node in zip(ids, nodes, strict=False) if id}
        waiting, replies = set(sent), []
        until = time.monotonic() + self.timeout
        while waiting and time.monotonic() < until:
            came = list(self.grid.pull_messages(list(waiting)))
            replies += came
            waiting -= {reply.metadata.reply_to_message_id for reply in came}
            if waiting:
                time.sleep(POLL)
        return replies, sent

    def _wait_for_nodes(self, round: int) -> None:
        """Waits for nodes before the first round, and after a restart, when they connect one by one."""
        wanted = self.strategy.min_available_nodes
        if self.roll.members and round > 1:
            wanted = min(wanted, sum(member.aside is None for member in self.roll.still_in()))
        there = 0
        for _ in range(self.strategy.tries):
            there = len(self.roll.to_ask(round, self.grid.get_node_ids()))
            if there >= wanted:
                return
            log(INFO, "fedstay: %d of %d nodes are there; waiting", there, wanted)
            time.sleep(min(self.strategy.wait, 3.0))
        if round == 1:
            raise Error(f"fewer than {wanted} nodes came; start SuperNodes, then this app again")
        log(WARNING, "fedstay: only %d of %d nodes came back; continuing", there, wanted)

    def _metrics(self, round: int, reports: list[Report], answers: Answers) -> None:
        exact = [made for made in reports if made.agent not in answers.withheld]
        losses = [made.loss for made in exact if made.loss is not None]
        metrics: dict[str, Any] = {"left": len(answers.goodbyes), "reported": len(reports)}
        if losses:
            metrics["loss"] = sum(losses) / len(losses)
        names = {member.id: member.name for member in self.roll.members.values()}
        told = {names[agent]: own for agent, own in sorted(answers.metrics.items()) if own}
        metrics |= self._means("train", round, told)
        self.flower.train_metrics_clientapp[round] = MetricRecord(metrics)

    def _means(self, kind: str, round: int, told: dict[str, dict[str, float]]) -> dict[str, float]:
        """Keeps what clients sent along, and returns the means; says which are missing from whom."""
        self.strategy.kept.add(kind, round, told)
        means, missing = mean(told)
        for key, without in missing.items():
            if (kind, key) not in self.strategy.missing_keys:
                self.strategy.missing_keys.add((kind, key))
                log(WARNING, "fedstay: `%s` (%s metrics) is not averaged: agents %s do not send it",
                    key, kind, ", ".join(without[:5]))  # fmt: skip
        return means

    def closed(self, line: str, promised: list[tuple[int, float]]) -> bool:
        """Logs a finished round and tells the callbacks; whether one of them ends the run."""
        names: dict[int, int | str] = {m.id: m.name for m in self.roll.members.values()}
        own = self.strategy.kept.rounds["train"].get(self.round, {})
        seconds = time.monotonic() - self.since
        read = json.loads(line)
        self.scale.note(read, promised)
        info = describe(read, names, self.rounds, seconds, own)
        log(INFO, "fedstay: %s", info)
        for warning in self.scale.news():
            log(WARNING, "fedstay: %s", warning)
        return tell(self.strategy.callbacks, info)

    def warnings(self) -> list[str]:
        """What the summary should warn about."""
        return self.scale.warnings

    def judge(self, weights: NDArray[np.float64]) -> float:
        """What a model is worth on rows that nobody trains on, by the server's judge or `evaluate_fn`."""
        layout, judge = self.strategy._layout, self.strategy.worth.judge
        assert layout is not None
        arrays = layout.pack(weights)
        if judge is not None:
            return judged(judge, arrays, layout)
        assert self.evaluate_fn is not None
        metrics: Any = self.evaluate_fn(self.round, arrays) or {}
        for key in (self.strategy.loss_key, "loss"):
            if key in metrics:
                return float(metrics[key])
        raise Error(
            f"`evaluate_fn` judges models for `worth`, and gives neither `{self.strategy.loss_key}` nor "
            "`loss`; or give `fedstay.Worth(…, judge=…)`"
        )

    def _central(self, round: int, arrays: ArrayRecord) -> None:
        assert self.evaluate_fn is not None
        metrics = self.evaluate_fn(round, arrays)
        if metrics is not None:
            self.flower.evaluate_metrics_serverapp[round] = metrics

    def _evaluate(
        self, round: int, arrays: ArrayRecord, showing: Showing
    ) -> dict[int, tuple[float, float | None]]:
        """Loss and accuracy by agent, each at what it is shown."""
        strategy = self.strategy
        strategy.showing = showing
        messages = list(strategy.configure_evaluate(round, arrays, self.evaluate_config, self.grid))
        replies, sent = self._exchange(messages)
        told, everything = strategy._evaluations(replies, sent)
        means = self._means("evaluate", round, everything)
        metrics = strategy._mean(told)
        if metrics is not None or means:
            # A mean over the agents is the agents'; whoever has more samples is not more of an agent.
            plain: dict[str, Any] = {**means, **(dict(metrics) if metrics is not None else {})}
            self.flower.evaluate_metrics_clientapp[round] = MetricRecord(plain)
        return told

    def _assessment(
        self, round: int, arrays: ArrayRecord, showing: Showing
    ) -> list[Assessed] | None:
        """How good the model is for everybody in the header, if all of them can be asked."""
        every = self.strategy.evaluate_every
        if not every or (round != 1 and round % every):
            return None
        return self.assessed_by_all(self._evaluate(round, arrays, showing), showing)

    def assess(self, weights: NDArray[np.float64]) -> list[Assessed]:
        """How good the delivered model is, where agents can be asked; else what they last reported."""
        strategy = self.strategy
        assert strategy._layout is not None
        arrays = strategy._layout.pack(weights)
        told: dict[int, tuple[float, float | None]] = {}
        if strategy.evaluate_at_end:
            # The run is over: this is the delivery.
            told = self._evaluate(self.round + 1, arrays, Showing.the_same(weights))
        if self.evaluate_fn is not None:
            self._central(self.round, arrays)
        return self.assessed_at_the_end(told)

    def more(self) -> dict[str, Any]:
        """What else a restart needs."""
        layout = self.strategy._layout
        buffers = layout.memory() if layout is not None and layout.buffers else None
        return {**self.scale.memory(), **({"buffers": buffers} if buffers else {})}

    def restore(self, saved: str) -> None:
        """Takes up what `save` gave."""
        state = self.restored(saved)
        self.scale.recall(state)
        if "buffers" in state and self.strategy._layout is not None:
            self.strategy._layout.recall(state["buffers"])
        self.strategy.kept.open(self.strategy.folder, self.round)

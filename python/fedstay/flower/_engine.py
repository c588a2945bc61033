"""What the core's loop asks for: a round gathered over the network, with patience."""

from __future__ import annotations

import itertools
import json
import random
import time
from collections.abc import Callable, Iterable, Mapping
from logging import INFO, WARNING
from typing import TYPE_CHECKING, Any

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.common.logger import log
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Result as FlowerResult
from flwr.serverapp.strategy import Strategy
from numpy.typing import NDArray

from .._core import Error, Report
from ..callbacks import describe, tell
from ..engine import Assessed, Gathered
from ..policies import called
from ..remote import answers as shared
from ..remote.engine import RemoteEngine
from ..remote.patience import Deadline
from ..remote.showing import Showing
from ..scale import Scale, kind_of
from ._judge import judged
from ._layout import Layout
from ._metrics import mean
from ._overrides import Asking, Stepped, kept_to, overrides, refuse_lost
from ._replies import Answers, Sent, is_report
from ._roll import Member, Roll

if TYPE_CHECKING:
    from ._strategy import FedStay

#: How often replies are checked for, in seconds.
POLL = 0.2


class Engine(RemoteEngine[Member]):
    """The engine behind Flower: a round gathered over the network, with patience."""

    roll: Roll
    start_again = "Start the same app again, with the same `out`,"

    def __init__(
        self,
        strategy: FedStay,
        grid: Grid,
        timeout: float,
        train_config: ConfigRecord,
        evaluate_config: ConfigRecord,
        evaluate_fn: Callable[[int, ArrayRecord], MetricRecord | None] | None,
        rounds: int = 0,
        base: type = Strategy,
    ) -> None:
        #: The class whose methods a subclass may have overridden.
        self.base = base
        self.strategy, self.grid, self.timeout = strategy, grid, timeout
        self.roll, self.patience = strategy.roll, strategy.patience(timeout)
        self.rounds = rounds
        self.train_config, self.evaluate_config = train_config, evaluate_config
        self.evaluate_fn = evaluate_fn
        self.flower = FlowerResult()
        self.begun = False
        self.hides = strategy.previews
        #: The round for which `configure_train` was called, and the config that it was given first.
        self.configured: tuple[int, dict[str, Any]] | None = None
        #: The round whose step `aggregate_train` is to be told of, and its replies.
        self.unaggregated: tuple[int, list[Message]] | None = None
        #: The first exchange of all, made before the layout of the model was known.
        self.early: tuple[list[int], list[int], list[Message], dict[str, int]] | None = None
        #: Why those who were asked in an exchange have not answered.
        self.silence = ""
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
        asking = Asking(nodes, first, words={"tell-parameters": True})
        messages = self._train_messages(1, arrays, asking)
        replies, sent, self.silence = self._exchange(messages, self.patience.deadline(0))
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
        self._tell_the_step(weights)
        arrays = strategy._layout.pack(weights)
        self._open(round, arrays)
        answers = Answers()
        for attempt in itertools.count():
            asked = self._ask(round, arrays, weights, showing, exact, answers)
            if answers.introduced:
                asked += self._ask(round, arrays, weights, showing, exact, answers)
            strangers = sum(roll.of_node(node) is None for node in asked)
            judged = self.judge_the_number(attempt, answers, len(asked), strangers)
            if judged == "enough":
                break
            if judged != "ask":
                self.unaggregated = None  # There is no step to tell of.
                return judged
            self.drawn = None  # Now anybody will do.
        faults = self.close(answers)
        reports = [answers.reports[agent] for agent in sorted(answers.reports)]
        self._metrics(round, reports, answers)
        strategy._layout.take_buffers(*answers.all_buffers(strategy.reader.weighs))
        assessment = self._assessment(round, arrays, showing)
        return self.gathered(answers, faults, assessment, answers.returned)

    def _ask(
        self,
        round: int,
        arrays: ArrayRecord,
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
            by = strategy._by_node(nodes, self.by)
            messages = self._train_messages(round, arrays, Asking(nodes, showing, by))
            at = strategy._at(nodes, showing)
            deadline = self.patience.deadline(len(answers.reports))
            replies, sent, self.silence = self._exchange(messages, deadline)
        for member in roll.missing(listed):
            answers.faults.setdefault(member.name, "not connected")
        if overrides(strategy, self.base, "aggregate_train"):
            before = self.unaggregated[1] if self.unaggregated is not None else []
            self.unaggregated = round, [*before, *replies]
        answers.introduced.clear()
        went = Sent(sent, weights, showing, at)
        strategy.reader.read(replies, went, listed, round, answers)
        silent = set(sent.values()) - {sent.get(r.metadata.reply_to_message_id) for r in replies}
        answers.mute |= silent
        for node in silent:
            strategy.reader.blame(node, self.silence, answers)
        if exact:
            needing = called(strategy.policy) or kind_of(strategy.rule) or strategy.rule
            answers.drop_secrets(roll, str(needing))
        return nodes

    def _train_messages(self, round: int, arrays: ArrayRecord, asking: Asking) -> list[Message]:
        """The messages of one exchange, as `configure_train` makes them."""
        strategy = self.strategy
        if self.configured is None or self.configured[0] != round:
            self.configured = round, dict(self.train_config)
        else:
            # What a schedule does to the config, it does once in a round.
            self.train_config.clear()
            self.train_config.update(self.configured[1])
        strategy._asking, strategy._outgoing = asking, {}
        try:
            made = list(strategy.configure_train(round, arrays, self.train_config, self.grid))
        finally:
            strategy._asking = None
        return self._kept_to("configure_train", made)

    def _kept_to(self, name: str, made: Iterable[Message]) -> list[Message]:
        """Messages as an override of this method may have changed them."""
        strategy, made = self.strategy, list(made)
        if overrides(strategy, self.base, name):
            who, key = f"{type(strategy).__name__}.{name}", strategy.configrecord_key
            made = kept_to(who, made, strategy._outgoing, key)
        return made

    def _tell_the_step(self, weights: NDArray[np.float64]) -> None:
        """Calls `aggregate_train` for the round before, whose step has led to these weights."""
        if self.unaggregated is None:
            return
        (round, replies), self.unaggregated = self.unaggregated, None
        strategy, metrics = self.strategy, self.flower.train_metrics_clientapp
        assert strategy._layout is not None
        stepped = Stepped(strategy._layout.pack(weights), metrics.get(round), replies)
        strategy._stepped = stepped
        try:
            given = strategy.aggregate_train(round, replies)
        finally:
            strategy._stepped = None
        made = refuse_lost(f"{type(strategy).__name__}.aggregate_train", given, stepped)
        if made is not None:
            metrics[round] = made

    def _draw(self, round: int, nodes: list[int]) -> list[int]:
        """The share of the nodes that is asked in a round: the same for the same seed and agents."""
        strategy = self.strategy
        if strategy.fraction_train >= 1.0:
            return nodes
        if self.drawn is None or self.drawn[0] != round:

            def place(node: int) -> tuple[bool, int]:
                member = self.roll.of_node(node)
                return (True, node) if member is None else (False, member.id)

            least = max(strategy.min_train_nodes, strategy.min_agents)
            wanted = max(int(len(nodes) * strategy.fraction_train), least)
            draw = random.Random(f"{strategy.seed}/{round}")
            chosen = draw.sample(sorted(nodes, key=place), min(wanted, len(nodes)))
            self.drawn = round, set(chosen)
        # Agents that were introduced in this round are asked once more.
        return [node for node in nodes if node in self.drawn[1]]

    def _exchange(
        self, messages: list[Message], deadline: Deadline
    ) -> tuple[list[Message], dict[str, int], str]:
        """Sends messages, and waits for the replies as long as agents may take. Also returns which node
        each went to, and why others have not answered."""
        nodes = [message.metadata.dst_node_id for message in messages]
        ids = list(self.grid.push_messages(messages)) if messages else []
        sent = {id: node for id, node in zip(ids, nodes, strict=False) if id}
        waiting = set(sent)
        replies: list[Message] = []
        while waiting and (left := deadline.left(sum(map(is_report, replies)))) > 0.0:
            came = list(self.grid.pull_messages(list(waiting)))
            replies += came
            waiting -= {reply.metadata.reply_to_message_id for reply in came}
            if waiting:
                time.sleep(min(POLL, left))
        return replies, sent, deadline.silence

    def _wait_for_nodes(self, round: int) -> None:
        """Waits for nodes before the first round, and after a restart, when they connect one by one."""
        wanted = self.strategy.min_available_nodes
        if self.roll.expected is not None:
            wanted = min(wanted, len(self.roll.expected))
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
        strategy = self.strategy
        exact = [made for made in reports if made.agent not in answers.withheld]
        losses = [made.loss for made in exact if made.loss is not None]
        metrics: dict[str, Any] = {"left": len(answers.goodbyes), "reported": len(reports)}
        if losses:
            metrics["loss"] = sum(losses) / len(losses)
        names = {member.id: member.name for member in self.roll.members.values()}
        told = {names[agent]: own for agent, own in sorted(answers.metrics.items()) if own}
        means: dict[str, Any] = self._means("train", round, told)
        own = strategy.train_metrics_aggr_fn
        if own is not None and answers.contents:
            sent = [answers.contents[agent] for agent in sorted(answers.contents)]
            means = {**own(sent, strategy.weighted_by_key)}
        metrics |= means
        self.flower.train_metrics_clientapp[round] = MetricRecord(metrics)

    def _means(self, kind: str, round: int, told: dict[str, dict[str, float]]) -> dict[str, float]:
        """Keeps what clients sent along, and returns the means; says which are missing from whom."""
        self.strategy.kept.add(kind, round, told)
        means, missing = mean(told, self.strategy.weighted_by_key)
        for key, without in missing.items():
            if (kind, key) not in self.strategy.missing_keys:
                self.strategy.missing_keys.add((kind, key))
                log(WARNING, "fedstay: `%s` (%s metrics) is not averaged: agents %s do not send it",
                    key, kind, ", ".join(without[:5]))  # fmt: skip
        return means

    def closed(self, line: str, promised: list[tuple[int, float]]) -> bool | str:
        """Logs a finished round and tells the callbacks; whether the run ends here, or why."""
        names: dict[int, int | str] = {m.id: m.name for m in self.roll.members.values()}
        own = self.strategy.kept.rounds["train"].get(self.round, {})
        seconds = time.monotonic() - self.since
        read = json.loads(line)
        self.scale.note(read, promised)
        info = describe(read, names, self.rounds, seconds, own)
        log(INFO, "fedstay: %s", info)
        for warning in self.scale.news():
            log(WARNING, "fedstay: %s", warning)
        asked = tell(self.strategy.callbacks, info)
        return self.ends() or asked

    def close(self, answers: shared.Answers) -> list[tuple[int, str]]:
        """Counts the silent rounds of agents, and of nodes that have not told their names: these are in
        the record under their own numbers."""
        faults = super().close(answers)
        assert isinstance(answers, Answers)
        for node, why in sorted(answers.strangers.items()):
            if self.roll.of_node(node) is not None:
                continue
            # One that answers, and is refused, costs no time: it may be an agent whose old node is about
            # to disappear.
            mute = node in answers.mute
            after = self.roll.stranger_failed(node, self.round) if mute else None
            why = f"node {node}, which has not told its name: {why}"
            if after is not None:
                why += f"; set aside after {after} silent rounds"
            self.say(f"round {self.round}: {why}", warn=True)
            faults.append((node, why))
        return sorted(faults)

    def warnings(self) -> list[str]:
        """What the summary should warn about."""
        return [*super().warnings(), *self.scale.warnings]

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
        strategy._outgoing = {}
        messages = self._kept_to(
            "configure_evaluate",
            strategy.configure_evaluate(round, arrays, self.evaluate_config, self.grid),
        )
        replies, sent, _ = self._exchange(messages, Deadline(self.timeout))
        usable: list[RecordDict] = []
        told, everything = strategy._evaluations(replies, sent, usable)
        means = self._means("evaluate", round, everything)
        made = strategy._aggregated_evaluations(told, means, usable)
        if replies and overrides(strategy, self.base, "aggregate_evaluate"):
            strategy._evaluated = replies, made
            try:
                made = strategy.aggregate_evaluate(round, replies)
            finally:
                strategy._evaluated = None
        if made is not None:
            self.flower.evaluate_metrics_clientapp[round] = made
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
        self._tell_the_step(weights)
        arrays = strategy._layout.pack(weights)
        told: dict[int, tuple[float, float | None]] = {}
        if strategy.evaluate_at_end and self.delivers():
            # The run is over: this is the delivery.
            told = self._evaluate(self.round + 1, arrays, Showing.the_same(weights))
        if self.evaluate_fn is not None:
            self._central(self.round, arrays)
        return self.assessed_at_the_end(told)

    def more(self) -> dict[str, Any]:
        """What else a restart needs."""
        layout = self.strategy._layout
        buffers = layout.memory() if layout is not None and layout.buffers else None
        state = {**self.scale.memory(), **({"buffers": buffers} if buffers else {})}
        if overrides(self.strategy, self.base, "configure_train"):
            # What a schedule has made of it.
            plain = self.train_config.items()
            state["train_config"] = {k: v for k, v in plain if not isinstance(v, bytes)}
        return state

    def restore(self, saved: str) -> None:
        """Takes up what `save` gave."""
        state = self.restored(saved)
        self.scale.recall(state)
        self.train_config.update(state.get("train_config", {}))
        if "buffers" in state and self.strategy._layout is not None:
            self.strategy._layout.recall(state["buffers"])
        self.strategy.kept.open(self.strategy.folder, self.round)

"""What the core's loop asks for: a round gathered from Flower's nodes, with patience."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from logging import INFO, WARNING
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, Message, MetricRecord
from flwr.common.logger import log
from flwr.serverapp.strategy import Result as FlowerResult
from numpy.typing import NDArray

from ..callbacks import Callback, describe, tell
from ..engine import Assessed
from ..remote import answers as shared
from ..remote.engine import Evaluated, RemoteEngine
from ..remote.patience import Deadline
from ..remote.showing import Showing
from ..scale import Scale
from ._contract import Contract
from ._courier import Courier, Exchanged
from ._draw import Draw
from ._judge import Central
from ._layout import Layout
from ._mail import Mail
from ._metrics import Aggregation, Kept
from ._overrides import Asking, Stepped
from ._replies import Answers, Reader, Sent
from ._roll import Member, Roll


@dataclass(kw_only=True, eq=False)
class Engine(RemoteEngine[Member]):
    """The engine behind Flower: one message per node, made and aggregated by the strategy's methods."""

    start_again = "Start the same app again, with the same `out`,"

    roll: Roll
    reader: Reader
    courier: Courier
    contract: Contract
    mail: Mail
    draw: Draw
    central: Central
    aggregation: Aggregation
    kept: Kept
    scale: Scale
    callbacks: Sequence[Callback]
    #: What Flower's own loop would return.
    flower: FlowerResult = field(default_factory=FlowerResult, init=False)
    since: float = field(default_factory=time.monotonic, init=False)
    begun: bool = field(default=False, init=False)
    #: The replies of this round, and those of the last one whose step the strategy is to be told of.
    replies: list[Message] = field(default_factory=list, init=False)
    unaggregated: tuple[int, list[Message]] | None = field(default=None, init=False)
    #: The first exchange of all, made before the layout of the model was known: who was there, who was
    #: asked, and what came of it.
    early: tuple[list[int], list[int], Exchanged] | None = field(default=None, init=False)

    def say(self, text: str, *, warn: bool = False) -> None:
        """Logs a line."""
        log(WARNING if warn else INFO, "fedstay: %s", text)

    def shown_name(self, member: Member) -> str | None:
        """An agent that is called by its number needs no other name."""
        return None if member.name == str(member.id) else member.name

    # -- a round --------------------------------------------------------------------------------

    def ask_early(self, arrays: ArrayRecord, layout: Layout) -> list[Message]:
        """Sends the first model of all, before it is known which of its arrays are parameters: the
        replies say it, and count as those of round 1."""
        self._open(1, arrays)
        first = Showing.the_same(layout.unpack(arrays, "(server)", np.float64))
        listed = self.courier.nodes()
        nodes = self.draw.of(1, self.roll.to_ask(1, listed))
        asking = Asking(nodes, first, words={"tell-parameters": True})
        messages = self.contract.configure_train(1, arrays, asking)
        self.early = listed, nodes, self.courier.exchange(messages, self.patience.deadline(0))
        return self.early[2][0]

    def _open(self, round: int, arrays: ArrayRecord) -> None:
        """Begins a round: what the server itself thinks of the model, and who is there."""
        self.since = time.monotonic()
        log(INFO, "fedstay: [ROUND %d/%d]", round, self.rounds)
        self._central(round - 1, arrays)
        if not self.begun:
            self.courier.wait_for_nodes(round, self.roll, self.patience)
            self.begun = True

    def begin(self, showing: Showing) -> Answers:
        """Begins a round; the strategy hears of the step that has led to its weights."""
        self.contract.showing, self.replies = showing, []
        self._tell_the_step(showing.weights)
        if self.early is None:
            self._open(self.round, self.reader.model.pack(showing.weights))
        return Answers()

    def ask(
        self, showing: Showing, exact: bool, answers: shared.Answers, again: bool
    ) -> tuple[int, int]:
        """One exchange with everybody who has not answered yet, and another one with agents whose nodes
        turn out to be new."""
        assert isinstance(answers, Answers)
        if again:
            self.draw.anybody()
        asked = self._ask_once(showing, exact, answers)
        if answers.introduced:
            asked += self._ask_once(showing, exact, answers)
        return len(asked), sum(self.roll.of_node(node) is None for node in asked)

    def _ask_once(self, showing: Showing, exact: bool, answers: Answers) -> list[int]:
        roll, weights = self.roll, showing.weights
        if self.early is not None:
            (listed, nodes, came), self.early = self.early, None
            at = dict.fromkeys(nodes, weights)
        else:
            listed = self.courier.nodes()
            heard = {m.node for m in roll.members.values() if answers.heard(m)}
            nodes = [node for node in roll.to_ask(self.round, listed) if node not in heard]
            nodes = self.draw.of(self.round, nodes)
            asking = Asking(nodes, showing, self.mail.corrections(nodes, self.by))
            arrays = self.reader.model.pack(weights)
            messages = self.contract.configure_train(self.round, arrays, asking)
            at = self.mail.shown(nodes, showing)
            came = self.courier.exchange(messages, self.patience.deadline(len(answers.reports)))
        replies, sent, silence = came
        for member in roll.missing(listed):
            answers.faults.setdefault(member.name, "not connected")
        self.replies += replies
        answers.introduced.clear()
        self.reader.read(replies, Sent(sent, showing, at), listed, self.round, answers)
        silent = set(sent.values()) - {sent.get(r.metadata.reply_to_message_id) for r in replies}
        answers.mute |= silent
        for node in silent:
            self.reader.blame(node, silence, answers)
        if exact:
            answers.drop_secrets(roll, self.reader.needing)
        return nodes

    def took(self, answers: shared.Answers) -> None:
        """The round's numbers, and the buffers of its agents' models."""
        assert isinstance(answers, Answers)
        if self.contract.has_own("aggregate_train"):
            self.unaggregated = self.round, self.replies
        exact = [made for id, made in sorted(answers.reports.items()) if id not in answers.withheld]
        losses = [made.loss for made in exact if made.loss is not None]
        metrics: dict[str, Any] = {"left": len(answers.goodbyes), "reported": len(answers.reports)}
        if losses:
            metrics["loss"] = sum(losses) / len(losses)
        names = {member.id: member.name for member in self.roll.members.values()}
        told = {names[agent]: own for agent, own in sorted(answers.metrics.items()) if own}
        means = self.kept.means("train", self.round, told)
        metrics |= self.aggregation.trained(means, answers.contents)
        self.flower.train_metrics_clientapp[self.round] = MetricRecord(metrics)
        self.reader.model.take_buffers(*answers.all_buffers(self.reader.weighs))

    def _tell_the_step(self, weights: NDArray[np.float64]) -> None:
        """Calls `aggregate_train` for the round before, whose step has led to these weights."""
        if self.unaggregated is None:
            return
        (round, replies), self.unaggregated = self.unaggregated, None
        metrics = self.flower.train_metrics_clientapp
        stepped = Stepped(self.reader.model.pack(weights), metrics.get(round), replies)
        made = self.contract.aggregate_train(round, stepped)
        if made is not None:
            metrics[round] = made

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

    def closed(self, line: str, promised: list[tuple[int, float]]) -> bool | str | None:
        """Logs a finished round and tells the callbacks; whether the run ends here, or why."""
        names: dict[int, int | str] = {m.id: m.name for m in self.roll.members.values()}
        own = self.kept.rounds["train"].get(self.round, {})
        read = json.loads(line)
        self.scale.note(read, promised)
        info = describe(read, names, self.rounds, time.monotonic() - self.since, own)
        self.say(str(info))
        for warning in self.scale.news():
            self.say(warning, warn=True)
        asked = tell(self.callbacks, info)
        return super().closed(line, promised) or asked

    # -- how good models are ----------------------------------------------------------------------

    def judge(self, weights: NDArray[np.float64]) -> float:
        """What a model is worth on rows that nobody trains on, by the server's judge or `evaluate_fn`."""
        layout = self.reader.model
        return self.central.loss(self.round, layout.pack(weights), layout)

    def _central(self, round: int, arrays: ArrayRecord) -> None:
        metrics = (
            self.central.evaluate(round, arrays) if self.central.evaluate is not None else None
        )
        if metrics is not None:
            self.flower.evaluate_metrics_serverapp[round] = metrics

    def evaluate(self, showing: Showing, at_end: bool = False) -> Evaluated:
        """Loss and accuracy by agent, each at what it is shown."""
        round, arrays = self.round + at_end, self.reader.model.pack(showing.weights)
        messages = self.contract.configure_evaluate(round, arrays, showing)
        replies, sent, _ = self.courier.exchange(messages, Deadline(self.patience.timeout))
        told, numbers, usable = self.reader.evaluations(
            replies, sent, self.aggregation.loss_key, self.aggregation.accuracy_key
        )
        means = self.kept.means("evaluate", round, numbers)
        made = self.aggregation.evaluated(told, means, usable)
        made = self.contract.aggregate_evaluate(round, replies, made)
        if made is not None:
            self.flower.evaluate_metrics_clientapp[round] = made
        return told

    def assess(self, weights: NDArray[np.float64]) -> list[Assessed]:
        """How good the delivered model is; also for the server itself."""
        self._tell_the_step(weights)
        assessed = super().assess(weights)
        self._central(self.round, self.reader.model.pack(weights))
        return assessed

    # -- checkpoints ------------------------------------------------------------------------------

    def warnings(self) -> list[str]:
        """What the summary should warn about."""
        return [*super().warnings(), *self.scale.warnings]

    def more(self) -> dict[str, Any]:
        """What else a restart needs."""
        layout = self.reader.layout
        buffers = layout.memory() if layout is not None and layout.buffers else None
        state = {**self.scale.memory(), **({"buffers": buffers} if buffers else {})}
        return {**state, **self.contract.memory()}

    def restore(self, saved: str) -> dict[str, Any]:
        """Takes up what `save` gave."""
        state = super().restore(saved)
        self.scale.recall(state)
        self.contract.recall(state)
        if "buffers" in state and self.reader.layout is not None:
            self.reader.layout.recall(state["buffers"])
        self.kept.open(self.kept.folder, self.round)
        return state

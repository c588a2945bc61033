"""Replies sorted into reports, goodbyes and faults. Their order does not matter.

Whatever an agent sends, it can only lose its own place in this round: every reply is read inside a
`try`, nothing of it is kept before all of it has been checked, and what it says reaches the log only
as one short printable line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from logging import INFO, WARNING
from typing import Any, NamedTuple

import numpy as np
from flwr.app import ArrayRecord, Message, RecordDict
from flwr.common.logger import log
from numpy.typing import NDArray

from .._core import Error, Report
from ..remote import answers as shared
from ..remote import reader
from ..remote.answers import target_loss
from ..remote.door import number, reach, reason, share, shown
from ..remote.roll import M
from ..remote.roll import Member as AnyMember
from ..remote.roll import Roll as AnyRoll
from ..remote.showing import Showing
from ._door import SECURE_AGGREGATION, SECURE_AGGREGATION_MARK, claimed_name
from ._layout import RECORD, WITHHOLDS, Layout
from ._metrics import WEIGHT, scalars
from ._private import NOISE
from ._roll import Member, Roll

#: The only array records of a report.
ARRAYS = {"arrays", "gradient", "buffers"}
#: The largest weight that a client may give itself under `weighted_by_key`, and in how many parts one
#: is counted.
LARGEST_WEIGHT, WEIGHT_UNITS = 1e9, 2**20
#: What an agent does whose report should have been corrected.
HOW_TO_CORRECT = (
    "let its train function be `decide_and_report`, or have its own train function add the message's "
    "`correction` to every gradient and say so: `agent_mod(…, corrects=True, reach=…)`"
)


@dataclass
class Sent:
    """What went out in a round."""

    #: Which node each message went to.
    nodes: dict[str, int]
    #: What every agent is shown, and what each node was sent.
    showing: Showing
    at: Mapping[int, NDArray[np.float64]]

    def to(self, member: Member) -> NDArray[np.float64]:
        """What an agent's node was sent."""
        assert member.node is not None
        return self.at[member.node]


@dataclass
class Answers(shared.Answers):
    """What came back in a round so far, by agent."""

    #: The buffers of agents' models, and the numbers that agents sent along.
    buffers: dict[int, dict[str, NDArray[Any]]] = field(default_factory=dict)
    metrics: dict[int, dict[str, float]] = field(default_factory=dict)
    #: Whole replies, where somebody wants to see them.
    contents: dict[int, RecordDict] = field(default_factory=dict)
    #: Agents that were sent what newcomers are shown, and are none: their nodes are new.
    introduced: set[str] = field(default_factory=set)
    #: Agents that are private and withhold their losses.
    withheld: set[int] = field(default_factory=set)
    #: The faults of nodes that have not told their names, by node.
    strangers: dict[int, str] = field(default_factory=dict)
    #: The nodes that have not answered at all.
    mute: set[int] = field(default_factory=set)

    def told(self) -> list[str]:
        """Every reason for a missing answer, as far as that is known."""
        return super().told() + [f"node {node}: {why}" for node, why in self.strangers.items()]

    def drop_secrets(self, roll: AnyRoll[M], rule: str) -> None:
        """Also those that are said to be private, with what can be done about it."""
        super().drop_secrets(roll, rule)
        for member in roll.still_in():
            if member.id in self.withheld:
                self.drop(
                    member,
                    f"it is private and withholds its loss, which {rule} needs: {NOISE} to its agent_mod, "
                    'or use FedStay("fedavg"), which needs no loss',
                )

    def by_agent(self) -> list[dict[int, Any]]:
        """Everything that belongs to a report."""
        return [*super().by_agent(), self.buffers, self.metrics, self.contents]

    def all_buffers(self, weigh: bool) -> tuple[list[dict[str, NDArray[Any]]], list[float] | None]:
        """Everybody's buffers, by number, and how much each counts if not all alike."""
        told = [agent for agent in sorted(self.buffers) if self.buffers[agent]]
        counts = [float(self.reports[agent].samples) for agent in told]
        return [self.buffers[agent] for agent in told], counts if weigh else None

    def drop(self, member: AnyMember, why: str) -> None:
        """Takes a report back as its agent's fault."""
        self.withheld.discard(member.id)
        super().drop(member, why)


class Evaluations(NamedTuple):
    """What agents said of a model that is usable."""

    #: Loss and, where there is one, accuracy by agent; and everybody's numbers by name.
    told: dict[int, tuple[float, float | None]]
    numbers: dict[str, dict[str, float]]
    #: The replies as they came.
    contents: list[RecordDict]


@dataclass(kw_only=True)
class Reader(reader.Reader):
    """Reads the replies of a round."""

    roll: Roll
    #: The layout of the model, once it is known.
    layout: Layout | None = None
    #: Whether a step size was chosen, for agents that report gradients instead of training.
    expects_gradients: bool = True
    #: Whether the rule weighs reports, and by which of the numbers that clients send.
    weighs: bool = False
    weighted_by: str = WEIGHT
    #: Whether whole replies are kept, for `train_metrics_aggr_fn`.
    keeps_replies: bool = False

    @property
    def model(self) -> Layout:
        """The layout of the model, where messages are made or read."""
        assert self.layout is not None
        return self.layout

    def read(
        self,
        replies: Iterable[Message],
        sent: Sent,
        listed: Iterable[int],
        round: int,
        answers: Answers,
    ) -> None:
        """Sorts replies to the messages in `sent` into reports, goodbyes and faults."""
        contents: dict[int, RecordDict] = {}
        claims: dict[int, str] = {}
        twice: set[int] = set()
        for reply in replies:
            node = sent.nodes.get(reply.metadata.reply_to_message_id)
            if node is None:
                continue
            try:
                content = _content(reply, node)
                if node in contents:
                    twice.add(node)
                claims[node] = claimed_name(content)
                contents[node] = content
            # As in `_hear`.
            except Exception as error:  # noqa: BLE001
                self.blame(node, reason(error), answers)
        for node in twice:
            del claims[node]
            self.blame(node, f"node {node} answered twice; refused", answers)
        for node, member in self.roll.admit(claims, listed).items():
            if isinstance(member, Error):
                self.blame(node, str(member), answers)
            else:
                self._hear(member, contents[node], sent, round, answers)
        self._drop_garbage(sent.showing.weights, answers)
        for member in self.roll.members.values():
            if answers.heard(member) and self.roll.answered(member):
                log(INFO, "fedstay: round %d: agent %s is back", round, member.name)

    def _hear(
        self,
        member: Member,
        content: RecordDict,
        sent: Sent,
        round: int,
        answers: Answers,
    ) -> None:
        gone = member.left is not None
        if gone and not self.roll.was_sent_away(member):
            log(INFO, "fedstay: agent %s left in round %d and is not asked again", member.name,
                member.left)  # fmt: skip
            return
        said = content.config_records[RECORD]
        believed = self.roll.believes_goodbye(member)
        member.answers += 1
        with answers.of(member):
            self.nonces.refuse_old(said, round, member)
            if said.get("leaves") is True:
                epsilon = target_loss(said, member, self.epsilon)
                if not believed:
                    raise Error(
                        f"it says goodbye in the first answer of node {member.node}, where anybody "
                        "could be speaking under its name; it is believed when it says so again"
                    )
                if not gone:
                    member.left, member.left_node = round, member.node
                    answers.goodbyes.append(member.id)
                    log(INFO, "fedstay: round %d: agent %s leaves", round, member.name)
            else:
                received = sent.to(member)
                if received is not sent.showing.to(member.id):
                    answers.introduced.add(member.name)
                    raise Error("its node is new and was shown the first model; it is asked again")
                made, move, tells = self._report(member, content, received)
                answers.buffers[member.id] = self._buffers(content, member.name)
                answers.metrics[member.id] = scalars(content)
                if self.keeps_replies:
                    answers.contents[member.id] = content
                epsilon, withholds = made.epsilon, said.get("at-least") is True
                answers.add(member, made, move, tells, None if withholds else round)
                if withholds:
                    answers.withheld.add(member.id)
                if gone:
                    member.left = member.left_node = None
                    answers.returned.append(member.id)
                    log(INFO, "fedstay: round %d: agent %s is back: the goodbye was said by another "
                        "node", round, member.name)  # fmt: skip
            if epsilon is not None:
                member.epsilon = epsilon

    def _report(
        self, member: Member, content: RecordDict, weights: NDArray[np.float64]
    ) -> tuple[Report, float, float]:
        """The report in a reply, checked; how far it would move the model, and the largest number it
        reports."""
        said, who, layout = content.config_records[RECORD], member.name, self.model
        if "cannot" in said:
            raise Error(shown(said["cannot"]))
        arrays = content.array_records.get("arrays")
        if arrays is None:
            raise Error("its reply has no arrays")
        unknown = sorted(set(content.array_records) - ARRAYS)
        if unknown:
            raise Error(f"its reply has array records that are not ours: {unknown}")
        local = reach(said, self.step_size, self.max_reach)
        self.asks.refuse_uncorrected(said, local, HOW_TO_CORRECT)
        direction = layout.unpack(arrays, who)
        if said.get("kind") == "weights":
            sent = layout.unpack(layout.pack(weights), who, np.float64)
            direction = self.direction(sent, direction, local)
        elif not self.expects_gradients:
            self.expects_gradients = True
            log(WARNING, "fedstay: agent %s reports a gradient and no trained weights, and FedStay was not "
                "given a `step_size`: the server follows gradients with step size 1", who)  # fmt: skip
        gradient = content.array_records.get("gradient")
        slope = layout.unpack(gradient, who) if gradient is not None else None
        if slope is None and said.get("exact") is True and said.get("kind") != "weights":
            slope = direction
        return self.report(
            member,
            said,
            direction,
            gradient=slope,
            reach=local,
            samples=self._samples(said, content),
            at_least="loss" in said and said.get("at-least") is True,
        )

    def _samples(self, said: Mapping[str, Any], content: RecordDict) -> int:
        """By how much a report counts under a rule that weighs."""
        if not self.weighs or self.weighted_by == WEIGHT:
            return max(int(number(said, "samples")), 1) if "samples" in said else 1
        told = scalars(content)
        if self.weighted_by not in told:
            there = ", ".join(f"`{key}`" for key in sorted(told)) or "nothing"
            raise Error(
                f"its metrics have no number `{self.weighted_by}`, by which reports are weighed "
                f"(`weighted_by_key`), but {there}"
            )
        weight = number(told, self.weighted_by)
        if not 0.0 <= weight <= LARGEST_WEIGHT:
            raise Error(
                f"its `{self.weighted_by}` is {weight:g}, but must be from 0 to {LARGEST_WEIGHT:g}: "
                "reports are weighed by it"
            )
        # The core weighs by whole numbers, and only their ratios count.
        return max(round(weight * WEIGHT_UNITS), 1)

    def _buffers(self, content: RecordDict, who: str) -> dict[str, NDArray[Any]]:
        """The buffers in a reply, where it has them."""
        trained = content.config_records[RECORD].get("kind") == "weights"
        arrays = content.array_records.get("arrays" if trained else "buffers")
        if arrays is None or not self.model.buffers:
            return {}
        return self.model.unpack_buffers(arrays, who)

    def _drop_garbage(self, weights: NDArray[np.float64], answers: Answers) -> None:
        answers.drop_garbage(self.roll, weights, self.max_ratio)
        if self.weighs:
            counts = {agent: float(made.samples) for agent, made in answers.reports.items()}
            why = "it counts {size} samples, which {beyond}, what the others count"
            answers.drop_outliers(self.roll, counts, 1.0, self.max_ratio, why)
        sizes = {agent: _size(buffers) for agent, buffers in answers.buffers.items()}
        why = "its buffers are of size {size}, which {beyond}, what the others send"
        answers.drop_outliers(self.roll, sizes, 1.0, self.max_ratio, why)

    def blame(self, node: int, why: str, answers: Answers) -> None:
        """A node's fault is its agent's, where that is known."""
        member = self.roll.of_node(node)
        if member is None:
            answers.strangers[node] = why
        elif member.left is None and not answers.heard(member):
            answers.faults[member.name] = why.removeprefix(f"agent {member.name}: ")

    def evaluations(
        self,
        replies: Iterable[Message],
        sent: Mapping[str, int],
        loss_key: str,
        accuracy_key: str,
    ) -> Evaluations:
        """What agents say of a model. What cannot be used is ignored and logged."""
        found = Evaluations({}, {}, [])
        for reply in replies:
            node = sent.get(reply.metadata.reply_to_message_id)
            member = self.roll.of_node(node) if node is not None else None
            if node is None or member is None:
                continue
            try:
                metrics: dict[str, Any] = {}
                content = _content(reply, node)
                for record in content.metric_records.values():
                    metrics.update(record)
                numbers = scalars(content)
                said: Any = content.config_records.get(RECORD, {})
                withholds = said.get(WITHHOLDS) is True
                if not withholds or set(numbers) - {WEIGHT}:
                    found.numbers[member.name] = numbers
                if loss_key not in metrics:
                    if withholds:
                        log(INFO, "fedstay: agent %s is private and withholds its evaluation",
                            member.name)  # fmt: skip
                        continue
                    there = ", ".join(f"`{key}`" for key in sorted(metrics)) or "nothing"
                    raise Error(
                        f"its evaluation has no `{loss_key}`, but {there}: give FedStay `loss_key=`"
                    )
                loss = number(metrics, loss_key)
                found.told[member.id] = loss, None
                if accuracy_key in metrics:
                    found.told[member.id] = loss, share(metrics, accuracy_key)
                found.contents.append(content)
            # As in `_hear`.
            except Exception as error:  # noqa: BLE001
                why = reason(error).removeprefix(f"agent {member.name}: ")
                log(WARNING, "fedstay: agent %s: %s; ignored", member.name, why)
        return found


def _size(buffers: Mapping[str, NDArray[Any]]) -> float:
    """The largest number in buffers."""
    sizes = [
        np.abs(b.astype(np.float64)).max()
        for b in buffers.values()
        if b.dtype.kind == "f" and b.size
    ]
    return float(max(sizes, default=0.0))


def told_parameters(
    replies: Iterable[Message], arrays: ArrayRecord
) -> tuple[list[str], dict[str, str]] | None:
    """Which arrays the agents call parameters, and which of those are tied to another: what most of
    them say, of what is true of these arrays at all. None if nobody says."""
    votes: dict[tuple[Any, ...], int] = {}
    for reply in replies:
        try:
            said: Any = reply.content.config_records[RECORD]
            names = tuple(map(str, said["parameters"]))
            ties = zip(said.get("tied", ()), said.get("tied-to", ()), strict=True)
            vote = (names, tuple((str(a), str(b)) for a, b in ties))
            Layout(arrays, names, dict(vote[1]))
        # An agent that sends nonsense has no vote; its report is judged like any other.
        except Exception:  # noqa: BLE001, S112
            continue
        votes[vote] = votes.get(vote, 0) + 1
    if not votes:
        return None
    names, ties = max(sorted(votes), key=lambda vote: votes[vote])
    return list(names), dict(ties)


def is_report(reply: Message) -> bool:
    """Whether a reply looks like a report: goodbyes and faults have no arrays."""
    return not reply.has_error() and bool(reply.content.array_records)


def _content(reply: Message, node: int) -> RecordDict:
    """What a reply says, if it is one of the node that was asked and not an error."""
    if reply.has_error():
        # Flower itself answers for a node that failed, so the source says nothing here.
        told = str(reply.error.reason or "")
        if SECURE_AGGREGATION_MARK in told:
            raise Error(SECURE_AGGREGATION)
        lines = told.strip().splitlines()
        raise Error(f"error {reply.error.code}: {lines[-1] if lines else '?'}")
    source = reply.metadata.src_node_id
    if source != node:
        raise Error(f"the answer came from node {source}, not from node {node}, which was asked")
    if SECURE_AGGREGATION_MARK in reply.content.config_records:
        raise Error(SECURE_AGGREGATION)
    return reply.content

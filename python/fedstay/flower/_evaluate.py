"""The agents' side of an evaluation: how good a model is, and what a private agent tells of that."""

from __future__ import annotations

from collections.abc import Callable, Collection
from logging import INFO
from typing import Any

from flwr.app import ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.common.logger import log

from ..pytorch import TorchAgent
from ._layout import RECORD, WITHHOLDS, Layout
from ._private import (
    ROWS,
    Loss,
    is_private,
    open_numbers,
    outer_privatiser,
    privatiser,
    privatiser_of,
    remembered,
)
from ._sent import agent_name, sent_arrays
from ._torch import take_up

__all__ = ["evaluate_and_report", "without_secrets"]


def evaluate_and_report(
    model: Any,
    data: Any,
    message: Message,
    context: Context,
    *,
    loss: Callable[[Any, Any], Any] | None = None,
    private: bool | None = None,
    loss_clip: float | None = None,
    loss_noise: float | None = None,
) -> Message:
    """The whole evaluate function of an agent: its loss on `data`, and its accuracy where the model
    gives scores for classes. Takes what `decide_and_report` takes.

    private : whether these numbers are to be kept: a private agent sends neither loss nor accuracy. Unless
        given, it is what the agent's training was found to be, or told to be. False says that `data` may
        be told about.
    loss_clip, loss_noise : a private agent's loss with noise instead, as for `agent_mod`; no accuracy.
    """
    how = Loss(loss_clip, loss_noise)
    if data is not None:
        model = TorchAgent(model, data, loss=loss)
    torch = isinstance(model, TorchAgent)
    found = privatiser_of(model) if torch else privatiser(model)
    why = outer_privatiser() or found or remembered(context)
    quiet = is_private(private, how, why, certain=False, changed=False)
    if quiet and how.clip is None:
        # Nothing is computed that is not told.
        return _withheld(Message(RecordDict(), reply_to=message), {}, context, why)
    arrays = sent_arrays(message)
    if torch:
        take_up(model, arrays)
        value = model.measure()
    else:
        weights = Layout(arrays).unpack(arrays, agent_name(context))
        value = float(model.loss_and_grad(weights)[0])
    # As many as were measured.
    rows = {ROWS: model.samples} if torch else {}
    if quiet:
        # Its record says to `agent_mod` that nothing more is to be taken out.
        content = RecordDict({RECORD: ConfigRecord({"agent": agent_name(context)})})
        content["metrics"] = MetricRecord({"eval_loss": how.noisy(value), **rows})
        return Message(content, reply_to=message)
    metrics: dict[str, Any] = {"eval_loss": value, **rows}
    content = RecordDict()
    if private is False:
        content[RECORD] = ConfigRecord({"agent": agent_name(context)})
    if torch and model.classifies:
        metrics["eval_acc"] = model.score()
    elif not torch and callable(getattr(model, "accuracy", None)):
        metrics["eval_acc"] = float(model.accuracy(weights))
    content["metrics"] = MetricRecord(metrics)
    return Message(content, reply_to=message)


def without_secrets(
    reply: Message, context: Context, tells: Collection[str], why: str | None
) -> Message:
    """What an app's own evaluate function of a private agent replies, without the numbers that it has not
    said to be private."""
    if reply.has_error() or RECORD in reply.content.config_records:
        return reply
    metrics: dict[str, Any] = {}
    for name, record in list(reply.content.metric_records.items()):
        metrics |= open_numbers(record, tells)
        del reply.content[name]
    return _withheld(reply, metrics, context, why)


def _withheld(
    reply: Message, metrics: dict[str, Any], context: Context, why: str | None
) -> Message:
    who, left = agent_name(context), ", ".join(metrics) or "nothing"
    log(INFO, "fedstay: agent %s is private (%s): of its evaluation leaves %s", who,
        why or "as was said", left)  # fmt: skip
    reply.content[RECORD] = ConfigRecord({"agent": who, WITHHOLDS: True})
    reply.content["metrics"] = MetricRecord(metrics)
    return reply

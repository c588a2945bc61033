"""The agents' side: decide, then report or say goodbye."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from flwr.app import (
    ArrayRecord,
    ConfigRecord,
    Context,
    Message,
    MessageType,
    MetricRecord,
    RecordDict,
)

from .. import _core
from .._core import Error
from ..simulation import descended
from ._layout import RECORD, Layout
from ._torch import torch_accuracy, torch_gradients, torch_pass


def agent_name(context: Context) -> str:
    """An agent's name: `agent` of its node's config, else `partition-id`, else its node's number."""
    config = context.node_config
    return str(config.get("agent", config.get("partition-id", f"node-{context.node_id}")))


def _setting(name: str, given: Any, message: Message, context: Context) -> Any:
    """The target loss: given here, else the node's, else the app's, else the server's proposal."""
    sent: Any = message.content.config_records.get("config", {})
    for source in ({name: given}, context.node_config, context.run_config, sent):
        if source.get(name) is not None:
            return source[name]
    return None


def _target(given: float | None, message: Message, context: Context) -> float:
    epsilon = _setting("epsilon", given, message, context)
    if epsilon is None:
        raise Error(
            f"agent {agent_name(context)} has no `epsilon`, the loss at which it leaves; give it "
            "here, in the node's config, in the run's config, or to the strategy"
        )
    return float(epsilon)


def leaves(
    loss: float,
    message: Message,
    context: Context,
    *,
    epsilon: float | None = None,
    behaviour: Any = None,
    descended: Callable[[int, float], float] | None = None,
) -> bool:
    """Whether the agent leaves for good, given its loss at the weights it received.

    An agent that has left stays away: that, and what the behaviour remembers, is kept in the context.
    `descended(steps, rate)` gives the loss after private steps, for behaviours that look ahead.
    """
    kept: Any = context.state.get(RECORD, {})
    if kept.get("left"):
        return True
    participant = _core.Participant(
        0,
        _target(epsilon, message, context),
        _setting("behaviour", behaviour, message, context),
    )
    if participant.comes_back or participant.repeats:
        raise Error(
            f"agent {agent_name(context)}: `{participant.behaviour}` is for simulations: on Flower who "
            "left is not asked again, and nobody repeats a report"
        )
    if "participant" in kept:
        participant.restore(kept["participant"])
    sent: Any = message.content.config_records["config"]
    round = int(sent["server-round"])
    step_size = float(sent["step-size"])
    answer = participant.answer(loss=loss, round=round, step_size=step_size, descended=descended)
    gone = answer == "leaves"
    context.state[RECORD] = ConfigRecord(
        {
            "left": gone,
            "participant": participant.save(),
            "round": round,
            "told": participant.told(loss),
        }
    )
    return gone


def goodbye(message: Message, context: Context, *, epsilon: float | None = None) -> Message:
    """The reply of an agent that leaves. It says that, and its target loss, and nothing else."""
    said = ConfigRecord(
        {
            "agent": agent_name(context),
            "leaves": True,
            "epsilon": _target(epsilon, message, context),
        }
    )
    return Message(RecordDict({RECORD: said}), reply_to=message)


def report(
    message: Message,
    context: Context,
    *,
    loss: float,
    direction: ArrayRecord | None = None,
    weights: ArrayRecord | None = None,
    gradient: ArrayRecord | None = None,
    epsilon: float | None = None,
    reach: float | None = None,
    samples: int = 1,
) -> Message:
    """The reply of an agent that stays: a `direction` (the gradient), or the `weights` it trained.

    reach: the sum of the local step sizes; the server's step size unless given.
    """
    arrays = direction if weights is None else weights
    if arrays is None or (direction is not None and weights is not None):
        raise Error("a report has either a `direction` or trained `weights`")
    kept: Any = context.state.get(RECORD, {})
    sent: Any = message.content.config_records["config"]
    if kept.get("round") == sent["server-round"]:
        # What the behaviour reports, which need not be the truth.
        loss = kept["told"]
    said: dict[str, Any] = {
        "agent": agent_name(context),
        "kind": "direction" if weights is None else "weights",
        "loss": float(loss),
        "epsilon": _target(epsilon, message, context),
        "samples": int(samples),
    }
    if reach is not None:
        said["reach"] = float(reach)
    content = RecordDict({RECORD: ConfigRecord(said)})
    content["arrays"] = arrays
    if gradient is not None:
        content["gradient"] = gradient
    return Message(content, reply_to=message)


def decide_and_report(
    model: Any,
    data: Any,
    message: Message,
    context: Context,
    *,
    epsilon: float | None = None,
    loss: Callable[[Any, Any], Any] | None = None,
    train: Callable[[Any], Any] | None = None,
    reach: float | None = None,
    behaviour: Any = None,
) -> Message:
    """The whole train function of an agent: load the weights, decide, and report or say goodbye.

    model : a PyTorch module with `data` an iterable of batches; or, with `data` None, anything with
        `loss_and_grad(weights)`, as `fedstay.simulate` takes it.
    loss : gives the mean loss of a batch under the model; cross entropy of `(x, y)` unless given.
    train : does the agent's local steps on the model, in place; then `reach` is the sum of their
        sizes. Without it the agent takes one full-batch step, that is, reports its gradient.
    """
    arrays = message.content.array_records["arrays"]
    if data is None:
        layout = Layout(arrays)
        weights = layout.unpack(arrays, agent_name(context))
        value, slope = model.loss_and_grad(weights)
        gone = leaves(
            float(value),
            message,
            context,
            epsilon=epsilon,
            behaviour=behaviour,
            descended=lambda steps, rate: descended(model, weights, steps, rate),
        )
        if gone:
            return goodbye(message, context, epsilon=epsilon)
        flat = np.asarray(slope).reshape(-1)
        samples = int(getattr(model, "samples", 1))
        return report(
            message,
            context,
            loss=float(value),
            direction=layout.pack(flat),
            epsilon=epsilon,
            samples=samples,
        )
    model.load_state_dict(arrays.to_torch_state_dict())
    value, count = torch_pass(model, data, loss, backward=train is None)
    if leaves(value, message, context, epsilon=epsilon, behaviour=behaviour):
        return goodbye(message, context, epsilon=epsilon)
    if train is None:
        work = {"direction": torch_gradients(model)}
    else:
        train(model)
        work = {"weights": ArrayRecord(model.state_dict())}
    return report(message, context, loss=value, epsilon=epsilon, reach=reach, samples=count, **work)


def evaluate_and_report(
    model: Any,
    data: Any,
    message: Message,
    context: Context,
    *,
    loss: Callable[[Any, Any], Any] | None = None,
) -> Message:
    """The whole evaluate function of an agent: its loss on `data`, and its accuracy where the model
    gives scores for classes. Takes what `decide_and_report` takes."""
    arrays = message.content.array_records["arrays"]
    if data is None:
        weights = Layout(arrays).unpack(arrays, agent_name(context))
        metrics: dict[str, Any] = {"eval_loss": float(model.loss_and_grad(weights)[0])}
        if callable(getattr(model, "accuracy", None)):
            metrics["eval_acc"] = float(model.accuracy(weights))
    else:
        model.load_state_dict(arrays.to_torch_state_dict())
        value, count = torch_pass(model, data, loss, backward=False)
        metrics = {"eval_loss": value, "num-examples": count}
        if loss is None:
            metrics["eval_acc"] = torch_accuracy(model, data)
    return Message(RecordDict({"metrics": MetricRecord(metrics)}), reply_to=message)


def agent_mod(
    loss: Callable[[Message, Context], float],
    *,
    epsilon: float | None = None,
    reach: float | None = None,
    behaviour: Any = None,
) -> Callable[[Message, Context, Callable[[Message, Context], Message]], Message]:
    """A mod around a train function that exists already: `ClientApp(mods=[agent_mod(my_loss)])`.

    `loss` gives the agent's loss at the weights in the message. If the agent stays, the train function
    runs as before; its reply, trained weights under "arrays", is passed on as a report.
    """

    def mod(
        message: Message, context: Context, call_next: Callable[[Message, Context], Message]
    ) -> Message:
        if message.metadata.message_type.split(".")[0] != MessageType.TRAIN:
            return call_next(message, context)
        value = float(loss(message, context))
        if leaves(value, message, context, epsilon=epsilon, behaviour=behaviour):
            return goodbye(message, context, epsilon=epsilon)
        reply = call_next(message, context)
        if reply.has_error():
            return reply
        samples: Any = 1
        for record in reply.content.metric_records.values():
            samples = record.get("num-examples", samples)
        weights = reply.content.array_records["arrays"]
        return report(
            message,
            context,
            loss=value,
            weights=weights,
            epsilon=epsilon,
            reach=reach,
            samples=int(samples),
        )

    return mod

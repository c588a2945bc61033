"""The agents' side: decide, then report or say goodbye."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from logging import INFO
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
from flwr.common.logger import log

from .._core import Error, Rates
from ..asks import corrected, rates_of
from ..local import descended
from ..pytorch import TorchAgent
from ..remote.agent import asked, echoed, participant, said, seed
from ._evaluate import without_secrets
from ._layout import CORRECTION, RECORD, Layout, as_arrays
from ._private import (
    Loss,
    inner_mods,
    is_private,
    open_numbers,
    privatiser,
    privatiser_of,
    refuse_outer,
    remember,
    remembered,
    reply_of,
)
from ._sent import agent_name, sent_arrays, sent_config, trained_arrays
from ._torch import arrays_of, gradient_of, names_of, parameters_of, take_up


def _setting(name: str, given: Any, message: Message, context: Context) -> Any:
    """The target loss: given here, else the node's, else the app's, else the server's proposal."""
    sent: Any = sent_config(message)
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
    target = _target(epsilon, message, context)
    how = _setting("behaviour", behaviour, message, context)
    who = participant(target, how, kept.get("participant"), f"agent {agent_name(context)}: ")
    sent: Any = sent_config(message)
    round = int(sent["server-round"])
    step_size = float(sent["step-size"])
    answer = who.answer(loss=loss, round=round, step_size=step_size, descended=descended)
    gone = answer == "leaves"
    context.state[RECORD] = ConfigRecord(
        {
            "left": gone,
            "participant": who.save(),
            "behaviour": who.behaviour,
            "round": round,
            "told": who.told(loss),
        }
    )
    return gone


def goodbye(message: Message, context: Context, *, epsilon: float | None = None) -> Message:
    """The reply of an agent that leaves. It says that, and its target loss, and nothing else."""
    refuse_outer(strange=False)
    return _words(message, context, leaves=True, epsilon=_target(epsilon, message, context))


def report(
    message: Message,
    context: Context,
    *,
    loss: float,
    direction: ArrayRecord | None = None,
    weights: ArrayRecord | None = None,
    gradient: ArrayRecord | None = None,
    exact: bool = False,
    buffers: ArrayRecord | None = None,
    metrics: Mapping[str, Any] | None = None,
    names: Mapping[str, Any] | None = None,
    epsilon: float | None = None,
    reach: float | None = None,
    samples: int = 1,
    corrects: bool = False,
    rates: Rates | None = None,
    private: Loss | None = None,
) -> Message:
    """The reply of an agent that stays: a `direction`, or the `weights` it trained.

    gradient: the exact gradient at the received weights, by parameter; with `exact` the direction is it.
    buffers: what the model has beside its parameters, for a report without trained weights.
    metrics: numbers to send along, which the server averages and keeps.
    reach: the sum of the local step sizes; the server's step size unless given.
    corrects: whether every local step had the message's `correction` added, for rules that correct.
    rates: how well the received weights serve its groups, for rules that ask.
    private: how the loss is told where the `weights` have been made private, without a gradient and without
        rates then.
    """
    refuse_outer(strange=False)
    arrays = direction if weights is None else weights
    if arrays is None or (direction is not None and weights is not None):
        raise Error("a report has either a `direction` or trained `weights`")
    kept: Any = context.state.get(RECORD, {})
    sent: Any = sent_config(message)
    if kept.get("round") == sent["server-round"]:
        # What the behaviour reports, which need not be the truth.
        loss = kept["told"]
    target = _target(epsilon, message, context)
    told: dict[str, Any] = {"loss": float(loss)}
    if private is not None:
        if weights is None:
            raise _bare_gradient(context)
        told = private.told(float(loss), target, str(kept.get("behaviour", "threshold")))
        gradient = buffers = rates = None
    told |= {"agent": agent_name(context), "epsilon": target}
    if exact and direction is not None:
        told["exact"] = True
    if names and sent.get("tell-parameters"):
        told |= names
    more: dict[str, Any] = {"samples": samples, "corrects": corrects, "rates": rates}
    words = said(sent, told, trained=weights is not None, reach=reach, **more)
    content = RecordDict({RECORD: ConfigRecord(words)})
    content["arrays"] = arrays
    if gradient is not None:
        content["gradient"] = gradient
    if buffers is not None:
        content["buffers"] = buffers
    if metrics:
        content["metrics"] = MetricRecord(dict(metrics))
    return Message(content, reply_to=message)


def _bare_gradient(context: Context) -> Error:
    return Error(
        f"agent {agent_name(context)} is private and reports its gradient, which nothing has made private: let "
        "it train, and report `weights`"
    )


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
    private: bool | None = None,
    loss_clip: float | None = None,
    loss_noise: float | None = None,
    tells: Collection[str] = (),
) -> Message:
    """The whole train function of an agent: load the weights, decide, and report or say goodbye.

    model : a PyTorch module with `data` an iterable of batches; or, with `data` None, a
        `fedstay.TorchAgent` or anything else that `fedstay.simulate` takes.
    loss : gives the mean loss of a batch under the model; cross entropy of `(x, y)` unless given.
    train : does the agent's local steps on the model, in place; then `reach` is the sum of their
        sizes. Without it the agent takes one full-batch step, that is, reports its gradient. Numbers
        that it returns, by name or one alone, are sent along as metrics.

    private, loss_clip, loss_noise, tells : as for `agent_mod`; here it is `train` or `optimizer` that may be
        private, by Opacus for instance.

    The exact loss and gradient at the received weights are reported unless the agent is private: previews
    and predictions need no more, however the agent trains.
    """
    how = Loss(loss_clip, loss_noise)
    if data is not None:
        model = TorchAgent(model, data, loss=loss, train=train)
    if isinstance(model, TorchAgent):
        why = privatiser_of(model)
        quiet = is_private(private, how, why, certain=False, changed=False)
        if quiet:
            remember(context, why or "as was said")
        own: dict[str, Any] = {"epsilon": epsilon, "reach": reach, "behaviour": behaviour}
        return _torch_reply(
            model, message, context, **own, private=how if quiet else None, tells=tells
        )
    if is_private(private, how, privatiser(model), certain=False, changed=False):
        raise Error(
            f"agent {agent_name(context)} is private, and `decide_and_report` sends the gradient of an "
            "agent of this kind: use `agent_mod(loss)` around a train function that returns trained weights"
        )
    arrays = sent_arrays(message)
    layout = Layout(arrays)
    weights = layout.unpack(arrays, agent_name(context))
    sent: Any = sent_config(message)
    asks, lack = asked(sent, model)
    if lack is not None:
        return _words(message, context, cannot=lack)
    value, slope = model.loss_and_grad(weights)

    def ahead(steps: int, rate: float) -> float:
        return descended(model, weights, steps, rate)

    own = {"epsilon": epsilon, "behaviour": behaviour}
    if leaves(float(value), message, context, **own, descended=ahead):
        return goodbye(message, context, epsilon=epsilon)
    slope = np.asarray(slope).reshape(-1)
    more: dict[str, Any] = {"epsilon": epsilon, "samples": int(getattr(model, "samples", 1))}
    if "rates" in asks:
        more["rates"] = rates_of(model, weights, agent_name(context))
    if "corrections" not in asks:
        told: dict[str, Any] = {"direction": layout.pack(slope), "exact": True}
    else:
        told = {"corrects": True, "gradient": layout.pack(slope)}
        by = _correction(message, layout, weights)
        led = corrected(model, weights, by, seed(agent_name(context), int(sent["server-round"])))
        if led is None:
            told["direction"] = layout.pack(slope + by)
        else:
            told |= {"weights": layout.pack(led[0]), "reach": led[1]}
    return report(message, context, loss=float(value), **told, **more)


def _words(message: Message, context: Context, **words: Any) -> Message:
    """A reply without arrays: a goodbye, or why the agent `cannot` do what the rule asks, which the server
    logs under its name."""
    record = ConfigRecord({"agent": agent_name(context), **words, **echoed(sent_config(message))})
    return Message(RecordDict({RECORD: record}), reply_to=message)


def _correction(message: Message, layout: Layout, weights: Any) -> Any:
    """What to add to the gradient of every local step; nothing for an agent that was not heard yet."""
    by = message.content.array_records.get(CORRECTION)
    return np.zeros_like(weights) if by is None else layout.unpack(by, "(server)", weights.dtype)


def _correction_of_each(message: Message, parameters: ArrayRecord) -> dict[str, Any]:
    """What to add to the gradient of every parameter; nothing to those that the server does not train."""
    by: Any = message.content.array_records.get(CORRECTION, {})
    return {
        key: by[key].numpy() if key in by else np.zeros(like.shape, np.float32)
        for key, like in parameters.items()
    }


def _torch_reply(
    agent: TorchAgent,
    message: Message,
    context: Context,
    epsilon: float | None,
    reach: float | None,
    behaviour: Any,
    private: Loss | None,
    tells: Collection[str],
) -> Message:
    epsilon = epsilon if epsilon is not None else agent.epsilon
    behaviour = behaviour if behaviour is not None else getattr(agent, "behaviour", None)
    sent: Any = sent_config(message)
    asks, lack = asked(sent, agent)
    lack = _too_much(asks) if private is not None and lack is None else lack
    if lack is not None:
        return _words(message, context, cannot=lack)
    take_up(agent, sent_arrays(message))
    # Of a private agent no gradient is sent; and Opacus' modules make none outside of training.
    value = agent.measure(gradient=private is None)
    if leaves(value, message, context, epsilon=epsilon, behaviour=behaviour):
        return goodbye(message, context, epsilon=epsilon)
    if private is not None and not agent.trains:
        raise _bare_gradient(context)
    gradient, by = gradient_of(agent) if private is None else None, None
    more: dict[str, Any] = {"epsilon": epsilon, "samples": agent.samples, "private": private}
    more["names"] = names_of(agent.model)
    if "rates" in asks:
        more["rates"] = agent.count()
    if "corrections" in asks:
        like = gradient if gradient is not None else parameters_of(agent)
        by, more["corrects"] = _correction_of_each(message, like), True
    if not agent.trains:
        assert gradient is not None
        agent.follow()
        beside = agent.buffers()
        if beside:
            more["buffers"] = as_arrays(beside)
        if by is None:
            return report(message, context, loss=value, direction=gradient, exact=True, **more)
        plus = as_arrays({key: gradient[key].numpy() + part for key, part in by.items()})
        return report(message, context, loss=value, direction=plus, gradient=gradient, **more)
    draw, gave = seed(agent_name(context), int(sent["server-round"])), None
    if private is not None:
        # Who knows what noise is drawn from can take it off again.
        draw = secrets.randbits(32)
    if by is not None:
        whole = np.concatenate([part.reshape(-1) for part in by.values()])
        led = corrected(agent, agent.weights(), whole, draw)
        assert led is not None  # It trains.
        reach = led[1]
    else:
        gave = agent.practise(draw)
    metrics = gave if isinstance(gave, Mapping) else {"train_loss": gave}
    told = {k: float(v) for k, v in metrics.items() if isinstance(v, (int, float))}
    if private is not None:
        told = open_numbers(told, tells)
    more["metrics"] = {**told, "num-examples": agent.samples} if told else None
    trained: dict[str, Any] = {"weights": arrays_of(agent.model), "gradient": gradient}
    return report(message, context, loss=value, reach=reach, **trained, **more)


def _by_name(slopes: Any, arrays: ArrayRecord) -> Mapping[str, Any]:
    """A gradient under the names that its arrays have in the message."""
    if isinstance(slopes, Mapping):
        return slopes
    if len(slopes) != len(arrays):
        raise Error(
            f"agent_mod: the gradient has {len(slopes)} arrays and the model {len(arrays)}; give one for "
            "each, or a dict with the names of those that are trained"
        )
    return dict(zip(arrays, slopes, strict=True))


def agent_mod(
    loss: Callable[[Message, Context], Any] | None = None,
    gradient: Callable[[Message, Context], Any] | None = None,
    *,
    agent: Callable[[Context], Any] | None = None,
    epsilon: float | None = None,
    reach: float | None = None,
    behaviour: Any = None,
    corrects: bool = False,
    private: bool | None = None,
    loss_clip: float | None = None,
    loss_noise: float | None = None,
    tells: Collection[str] = (),
) -> Callable[[Message, Context, Callable[[Message, Context], Message]], Message]:
    """A mod around a train function that exists already: `ClientApp(mods=[agent_mod(agent=me)])`.

    agent : `me(context)` gives a `fedstay.TorchAgent`, of which loss and gradient are asked.
    loss, gradient : or give these: the agent's loss at the weights in the message, and its gradient
        there, arrays by the names of the parameters, or a list of them in the message's order. `loss` may
        also return both, as a pair. Without a gradient, previews are made by rewind, and rules read what
        was trained as one.

    corrects : whether the train function adds the arrays `message.content["correction"]`, where there are
        some, to the gradient of every local step, for a rule that corrects these (scaffold). `reach` is
        the sum of the steps' sizes then.

    private : whether the train function, or a mod behind this one, makes trained weights private. Then
        what they left is sent, without a gradient, and the loss is withheld. Unless given, it is found out:
        Flower's LocalDpMod, Opacus, and any mod that changes what the train function returned. False says
        that such a mod has another purpose, for instance compression.
    loss_clip, loss_noise : tell a private agent's loss with noise instead, for rules and previews that
        need one: clipped to [0, loss_clip], with Gaussian noise of deviation loss_noise · loss_clip / 2.
    tells : numbers of the app's own that a private agent sends nonetheless, by name: those that it has
        made private itself. All others, but for `num-examples`, are left out of its replies, those of the
        app's evaluate function included.

    If the agent stays, the train function runs as before; the trained weights in its reply are passed on as
    a report, together with its metrics. It has to be the first mod of the app.
    """
    how = Loss(loss_clip, loss_noise)
    if (loss is None) == (agent is None):
        raise Error("agent_mod takes either a `loss` (and a `gradient`), or an `agent`")

    def look(message: Message, context: Context, quiet: bool) -> tuple[float, dict[str, Any]]:
        """The loss, and what else is said about the received weights; no gradient of a PyTorch agent that is
        known to be private."""
        if agent is not None:
            made = agent(context)
            if not isinstance(made, TorchAgent):
                raise Error("agent_mod: `agent(context)` must give a `fedstay.TorchAgent`")
            take_up(made, sent_arrays(message))
            why = privatiser_of(made)
            quiet = quiet or (why is not None and private is not False)
            value = made.measure(gradient=not quiet)
            more = {"names": names_of(made.model), "samples": made.samples, "privatiser": why}
            if not quiet:
                more["gradient"] = gradient_of(made)
            sent: Any = sent_config(message)
            if sent.get("tell-rates") and made.no_rates is None:
                more["rates"] = made.count()
            return value, more
        assert loss is not None
        told = loss(message, context)
        value, slopes = told if isinstance(told, tuple) else (told, None)
        if gradient is not None:
            slopes = gradient(message, context)
        if slopes is None:
            return float(value), {}
        named = as_arrays(_by_name(slopes, sent_arrays(message)))
        return float(value), {"gradient": named, "names": {"parameters": list(named)}}

    def mod(
        message: Message, context: Context, call_next: Callable[[Message, Context], Message]
    ) -> Message:
        kind = message.metadata.message_type.split(".")[0]
        if kind == MessageType.EVALUATE:
            mods, function = inner_mods(call_next)
            certain = privatiser(*mods)
            why = certain or privatiser(function, loss, gradient, agent) or remembered(context)
            quiet = is_private(private, how, why, certain=certain is not None, changed=False)
            reply = call_next(message, context)
            return without_secrets(reply, context, tells, why) if quiet else reply
        if kind != MessageType.TRAIN:
            return call_next(message, context)
        refuse_outer(strange=private is None)
        mods, function = inner_mods(call_next)
        found, certain = privatiser(function, loss, gradient, agent), privatiser(*mods)
        # Refuses settings that contradict each other before anything is computed.
        why = certain or found
        known = is_private(private, how, why, certain=certain is not None, changed=False)
        if known:
            remember(context, why or "as was said")
        value, more = look(message, context, known)
        if leaves(value, message, context, epsilon=epsilon, behaviour=behaviour):
            return goodbye(message, context, epsilon=epsilon)
        reply, changed = reply_of(call_next, message, context)
        if reply.has_error():
            return reply
        why = certain or found or more.pop("privatiser", None)
        quiet = is_private(private, how, why, certain=certain is not None, changed=changed)
        more.pop("privatiser", None)
        sent: Any = sent_config(message)
        if quiet:
            because = why or ("a mod changes what was trained" if changed else "as was said")
            remember(context, because)
            log(INFO, "fedstay: agent %s is private (%s): no gradient and no exact loss leave",
                agent_name(context), because)  # fmt: skip
            lack = _too_much(["rates"] if sent.get("tell-rates") else [])
            if lack is not None:
                return _words(message, context, cannot=lack)
            more = {"names": more["names"]} if "names" in more else {}
        metrics: dict[str, Any] = {}
        for record in reply.content.metric_records.values():
            metrics |= record
        samples: Any = metrics.get("num-examples", more.pop("samples", 1))
        more.pop("samples", None)
        if quiet:
            metrics = open_numbers(metrics, tells)
        return report(
            message,
            context,
            loss=value,
            weights=trained_arrays(reply),
            epsilon=epsilon,
            reach=reach,
            samples=int(samples),
            metrics=metrics,
            corrects=corrects,
            private=how if quiet else None,
            **more,
        )

    return mod


def _too_much(asks: Sequence[str]) -> str | None:
    """Why a private agent cannot do what a rule asks, if so."""
    if "rates" not in asks:
        return None
    return "it is private, and the rule asks for exact counts of its rows (rates): use a rule that does not"

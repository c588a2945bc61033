"""What a subclass of the strategy may change, and what it must not.

A round is more here than one exchange and one mean: agents are asked twice, some are shown models of their
own, the step is the rule's. So the methods of Flower's contract are called around that, and a subclass
whose change would be lost, or would break what agents are promised, is refused by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

from flwr.app import Array, ArrayRecord, Message, MetricRecord, RecordDict

from .._core import Error
from ..remote.door import NONCE
from ..remote.showing import Showing

#: What to do instead of overriding a method without calling the one it overrides.
INSTEAD = {
    "start": (
        "the loop of FedStay keeps the record, the checkpoint and the result, waits, stops, resumes and "
        "delivers. Let `start` call `super().start(...)`, and do what it does in every round in "
        "`evaluate_fn`, in `callbacks=[...]` (fedstay.callbacks), or in `configure_train` and "
        "`aggregate_train`, which are called in every round"
    ),
    "configure_train": (
        "who is asked and what they are shown is the strategy's to say. Let it change `config`, and "
        "return what `super().configure_train(...)` gives"
    ),
    "aggregate_train": (
        "the step is the rule's. Let it return what `super().aggregate_train(...)` gives; to average "
        "in another way, give FedStay a rule of your own, any object with `aggregate(round)`"
    ),
    "configure_evaluate": (
        "who is asked and what they are shown is the strategy's to say. Let it change `config`, and "
        "return what `super().configure_evaluate(...)` gives"
    ),
}


@dataclass
class Asking:
    """Who is asked in one exchange, and what for."""

    nodes: list[int]
    #: What everybody is shown, and what some add to every local step.
    showing: Showing
    corrections: Mapping[int, ArrayRecord] = field(default_factory=dict)
    #: What else every message says.
    words: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class Stepped:
    """A round whose step was taken, for `aggregate_train`."""

    arrays: ArrayRecord
    metrics: MetricRecord | None
    replies: Sequence[Message]
    #: The arrays as they were before an override had them in its hands.
    before: dict[str, Array] = field(init=False)

    def __post_init__(self) -> None:
        self.before = dict(self.arrays)


def overrides(strategy: Any, base: type, name: str) -> bool:
    """Whether a strategy has a method of its own in the place of `base`'s: its class, or it alone."""
    return getattr(getattr(strategy, name), "__func__", None) is not getattr(base, name)


def refuse_replaced(strategy: Any, base: type) -> None:
    """Refuses a subclass one of whose methods takes the place of ours without calling it."""
    before = type(strategy).__mro__
    for owner in before[: before.index(base)]:
        for name, instead in INSTEAD.items():
            made = owner.__dict__.get(name)
            if made is not None and not _calls_ours(made, base.__name__):
                raise Error(
                    f"{owner.__name__}.{name} takes the place of {base.__name__}.{name}, but {instead}"
                )


def _calls_ours(made: Any, base: str) -> bool:
    """Whether a method calls the one it overrides, as far as that can be seen."""
    while hasattr(made, "__wrapped__"):
        made = made.__wrapped__
    code = getattr(made, "__code__", None)
    if not isinstance(code, CodeType):
        return True  # It is no plain function; what it gives back is checked in any case.
    return any({"super", base} & set(part.co_names) for part in _parts(code))


def _parts(code: CodeType) -> Iterator[CodeType]:
    """The code of a function, and of those inside it."""
    yield code
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _parts(part)


@dataclass
class Outgoing:
    """What a message said before an override had it in its hands."""

    arrays: dict[str, dict[str, Array]]
    numbers: dict[str, Any]

    @classmethod
    def of(cls, content: RecordDict, config_key: str) -> Outgoing:
        """What a message says that must stay as it is."""
        said: Any = content.config_records.get(config_key, {})
        return cls(
            {name: dict(arrays) for name, arrays in content.array_records.items()},
            {word: said.get(word) for word in ("server-round", "step-size", NONCE)},
        )


def kept_to(
    who: str, made: Iterable[Message], ours: Mapping[int, Outgoing], config_key: str
) -> list[Message]:
    """The messages that an override made of ours: fewer if it likes, with more in their configs, but
    with the weights and the numbers that the server computes with. `who` names the override."""
    own, kept = dict(ours), []
    for message in made:
        node = message.metadata.dst_node_id
        if node not in own:
            raise Error(
                f"{who} asks node {node}, which is not to be asked now, or asks it twice. Return messages "
                "that `super()` gave"
            )
        _refuse_other(who, node, Outgoing.of(message.content, config_key), own.pop(node))
        kept.append(message)
    return kept


def _refuse_other(who: str, node: int, made: Outgoing, ours: Outgoing) -> None:
    for name, arrays in ours.arrays.items():
        if not _same(made.arrays.get(name), arrays):
            raise Error(
                f"{who} sends node {node} other `{name}` than it is to be sent; what agents report is "
                "about what the server has sent, and some are shown a model of their own. Change the "
                "config only"
            )
    for word, wanted in ours.numbers.items():
        if made.numbers[word] != wanted:
            raise Error(
                f"{who} sends node {node} `{word}` = {made.numbers[word]}, but it is {wanted}; change "
                "other keys of the config only"
            )


def _same(one: Mapping[str, Array] | None, other: Mapping[str, Array] | None) -> bool:
    if one is other:
        return True
    if one is None or other is None or list(one) != list(other):
        return False
    return all(one[key] is other[key] or one[key].data == other[key].data for key in one)


def refuse_lost(who: str, given: Any, stepped: Stepped) -> MetricRecord | None:
    """What an override of `aggregate_train` says about a round, unless it changes the model."""
    arrays, metrics = given if isinstance(given, tuple) and len(given) == 2 else (given, None)
    if arrays is not None and not _same(arrays, stepped.before):
        raise Error(
            f"{who} returns other arrays than `super().aggregate_train(...)` gave. The step was taken by "
            "the rule, and agents are told what follows from it, so such a change would be lost. To make "
            "another step, give FedStay a rule of your own: any object with `aggregate(round)`"
        )
    return metrics if isinstance(metrics, MetricRecord) else stepped.metrics

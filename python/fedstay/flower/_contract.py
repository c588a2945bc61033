"""The methods of Flower's contract, as the loop of `start` calls them: a subclass may have its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Strategy

from ..remote.showing import Showing
from ._mail import Mail
from ._overrides import Asking, Stepped, kept_to, overrides, refuse_lost


class Contract:
    """A strategy's methods, called around a loop of our own and held to what agents are promised.

    While one is called, `asking`, `stepped` or `evaluated` says what the loop is at, for the method of ours
    that an override hands on to; `showing` is what everybody is shown now.
    """

    asking: Asking | None = None
    showing: Showing | None = None
    stepped: Stepped | None = None
    evaluated: tuple[Sequence[Message], MetricRecord | None] | None = None

    def __init__(
        self,
        strategy: Strategy,
        ours: type,
        mail: Mail,
        grid: Grid,
        train: ConfigRecord | None,
        evaluate: ConfigRecord | None,
    ) -> None:
        """`ours` is the class whose methods a subclass may have overridden."""
        self._strategy, self._ours, self._mail, self._grid = strategy, ours, mail, grid
        self._train = train if train is not None else ConfigRecord()
        self._evaluate = evaluate if evaluate is not None else ConfigRecord()
        #: The round for which `configure_train` was called, and the config that it was given first.
        self._configured: tuple[int, dict[str, Any]] | None = None

    def has_own(self, name: str) -> bool:
        """Whether the strategy overrides a method of ours."""
        return overrides(self._strategy, self._ours, name)

    def configure_train(self, round: int, arrays: ArrayRecord, asking: Asking) -> list[Message]:
        """The messages of one exchange. What a schedule does to the config, it does once in a round."""
        if self._configured is None or self._configured[0] != round:
            self._configured = round, dict(self._train)
        else:
            self._train.clear()
            self._train.update(self._configured[1])
        with self._at("asking", asking):
            return self._made("configure_train", round, arrays, self._train)

    def configure_evaluate(
        self, round: int, arrays: ArrayRecord, showing: Showing
    ) -> list[Message]:
        """The messages by which agents are asked how good what they are shown is."""
        self.showing = showing
        return self._made("configure_evaluate", round, arrays, self._evaluate)

    def _made(
        self, name: str, round: int, arrays: ArrayRecord, config: ConfigRecord
    ) -> list[Message]:
        self._mail.outgoing = {}
        made = list(getattr(self._strategy, name)(round, arrays, config, self._grid))
        if not self.has_own(name):
            return made
        return kept_to(self._called(name), made, self._mail.outgoing, self._mail.config_key)

    def _called(self, name: str) -> str:
        return f"{type(self._strategy).__name__}.{name}"

    def aggregate_train(self, round: int, stepped: Stepped) -> MetricRecord | None:
        """What the strategy says about a round whose step was taken."""
        with self._at("stepped", stepped):
            given = self._strategy.aggregate_train(round, stepped.replies)
        return refuse_lost(self._called("aggregate_train"), given, stepped)

    def aggregate_evaluate(
        self, round: int, replies: Sequence[Message], made: MetricRecord | None
    ) -> MetricRecord | None:
        """What the strategy says about an evaluation; `made` is what ours says."""
        if not replies or not self.has_own("aggregate_evaluate"):
            return made
        with self._at("evaluated", (replies, made)):
            return self._strategy.aggregate_evaluate(round, replies)

    @contextmanager
    def _at(self, what: str, value: Any) -> Iterator[None]:
        setattr(self, what, value)
        try:
            yield
        finally:
            setattr(self, what, None)

    def memory(self) -> dict[str, Any]:
        """What a schedule has made of the config, for a checkpoint."""
        if not self.has_own("configure_train"):
            return {}
        plain = {k: v for k, v in self._train.items() if not isinstance(v, bytes)}
        return {"train_config": plain}

    def recall(self, state: Mapping[str, Any]) -> None:
        """Takes up what `memory` gave."""
        self._train.update(state.get("train_config", {}))

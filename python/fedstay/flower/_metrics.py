"""Numbers that clients send along: kept for every client, and averaged as Flower's strategies do."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from logging import WARNING
from pathlib import Path
from typing import Any

from flwr.app import MetricRecord, RecordDict
from flwr.common.logger import log

#: By which number means are weighted unless another is named, where everybody sends it.
WEIGHT = "num-examples"
#: The most numbers that a client may send along, and the most characters of their names.
MOST, LONGEST = 256, 128
#: What makes one record of the metrics that clients sent, as Flower's strategies take it.
MetricsAggregation = Callable[[list[RecordDict], str], MetricRecord]
#: The file of a run's folder that has every client's numbers.
FILE = "client-metrics.jsonl"


def scalars(content: RecordDict) -> dict[str, float]:
    """The finite numbers in a reply's metrics, by name."""
    found: dict[str, float] = {}
    for record in content.metric_records.values():
        for key, value in record.items():
            if not isinstance(value, (int, float)) or isinstance(value, bool):
                continue
            fits = len(found) < MOST and len(key) <= LONGEST and key.isprintable()
            if fits and abs(value) < 1e100:
                found[key] = float(value)
    return found


def mean(
    told: Mapping[str, Mapping[str, float]], by: str = WEIGHT
) -> tuple[dict[str, float], dict[str, list[str]]]:
    """The means of what clients sent, weighted by the number called `by` where all of them say it; and
    the numbers that some sent and others did not, with who did not."""
    weights = {name: own.get(by, 0.0) for name, own in told.items()}
    if not all(weight > 0.0 for weight in weights.values()):
        weights = dict.fromkeys(told, 1.0)
    total = math.fsum(weights.values())
    means: dict[str, float] = {}
    missing: dict[str, list[str]] = {}
    for key in {key: None for own in told.values() for key in own}:
        without = [name for name, own in told.items() if key not in own]
        if without:
            missing[key] = without
        elif key != by:
            means[key] = math.fsum(weights[name] * own[key] for name, own in told.items()) / total
    return means, missing


@dataclass(frozen=True)
class Aggregation:
    """How the numbers of a round become one record: means, weighted by the number `weighted_by` where
    everybody sends it, or what the strategy was given functions for."""

    weighted_by: str
    loss_key: str
    accuracy_key: str
    train: MetricsAggregation | None
    evaluate: MetricsAggregation | None

    def trained(
        self, means: Mapping[str, float], contents: Mapping[int, RecordDict]
    ) -> dict[str, Any]:
        """What Flower's result says of what clients sent beside their reports."""
        if self.train is None or not contents:
            return dict(means)
        sent = [contents[agent] for agent in sorted(contents)]
        return {**self.train(sent, self.weighted_by)}

    def evaluated(
        self,
        told: Mapping[int, tuple[float, float | None]],
        means: Mapping[str, float],
        usable: Sequence[RecordDict],
    ) -> MetricRecord | None:
        """What Flower's result says of an evaluation."""
        if self.evaluate is not None and usable:
            return self.evaluate(list(usable), self.weighted_by)
        plain: dict[str, Any] = {}
        if told:
            plain[self.loss_key] = sum(loss for loss, _ in told.values()) / len(told)
        accuracy = [accuracy for _, accuracy in told.values() if accuracy is not None]
        if accuracy:
            plain[self.accuracy_key] = sum(accuracy) / len(accuracy)
        plain |= means
        return MetricRecord(plain) if plain else None


class Kept:
    """Every client's numbers by round, in memory and in the run's folder."""

    def __init__(self, weighted_by: str = WEIGHT) -> None:
        self.weighted_by = weighted_by
        #: The numbers, by kind and name, of which the log has said that some do not send them.
        self._missing: set[tuple[str, str]] = set()
        #: By kind ("train", "evaluate"), round and name.
        self.rounds: dict[str, dict[int, dict[str, dict[str, float]]]] = {
            "train": {},
            "evaluate": {},
        }
        self.folder: Path | None = None
        self.path: Path | None = None

    def open(self, folder: Path | None, last: int) -> None:
        """Takes up what the folder has of the rounds up to `last`; later ones come again."""
        if folder is None or not folder.exists():
            return
        self.path = folder / FILE
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        for line in lines:
            try:
                told: dict[str, Any] = json.loads(line)
            except ValueError:
                continue  # It was cut off while it wrote.
            if told["round"] <= last:
                self.rounds[told["kind"]].setdefault(told["round"], told["metrics"])
        self.path.write_text("".join(self._lines()))

    def _lines(self) -> list[str]:
        return [
            json.dumps({"kind": kind, "round": round, "metrics": told}) + "\n"
            for kind, rounds in self.rounds.items()
            for round, told in rounds.items()
        ]

    def means(self, kind: str, round: int, told: dict[str, dict[str, float]]) -> dict[str, float]:
        """Keeps what clients sent along, and returns the means; says which are missing from whom."""
        self.add(kind, round, told)
        means, missing = mean(told, self.weighted_by)
        for key, without in missing.items():
            if (kind, key) not in self._missing:
                self._missing.add((kind, key))
                log(WARNING, "fedstay: `%s` (%s metrics) is not averaged: agents %s do not send it",
                    key, kind, ", ".join(without[:5]))  # fmt: skip
        return means

    def add(self, kind: str, round: int, told: dict[str, dict[str, float]]) -> None:
        """Keeps what clients sent in a round."""
        if not told:
            return
        if self.path is None:
            self.open(self.folder, round - 1)
        self.rounds[kind][round] = told
        if self.path is not None:
            with self.path.open("a") as file:
                file.write(json.dumps({"kind": kind, "round": round, "metrics": told}) + "\n")

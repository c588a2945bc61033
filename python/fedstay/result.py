"""What came of a run: rounds as a table, who left, the verdict, a picture."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import _core
from .table import frame
from .tensors import named, read_tensors, write_tensors

__all__ = ["Departure", "Picture", "Result", "read"]

#: What runs measure besides the loss where their files do not say so.
USUAL = [{"name": "accuracy", "label": "accuracy", "better": "higher", "unit": "share"}]

#: The most agents that left that are named in a line.
MOST_NAMED = 5


class Departure(NamedTuple):
    """An agent that left: its name (its number, if it has no name), and the round."""

    agent: int | str
    round: int


@dataclass(frozen=True)
class Picture:
    """A drawing, which a notebook shows by itself."""

    svg: str

    def _repr_svg_(self) -> str:
        return self.svg


class Result:
    """A run that is over, or what there is so far of one (see `fedstay.read`).

    >>> import fedstay
    >>> result = fedstay.run(set={"problem.kind": "observation-3", "rule.kind": "fedavg"})
    >>> result.verdict, result.left
    ('harmful', [Departure(agent=1, round=39), Departure(agent=0, round=48)])
    """

    def __init__(
        self,
        header: str,
        rounds: list[str],
        summary: str | None,
        weights: NDArray[np.float64] | None,
        folder: Path | None = None,
        tensors: dict[str, NDArray[Any]] | None = None,
    ) -> None:
        self._header, self._rounds, self._summary = header, rounds, summary
        self._lines: list[dict[str, Any]] = [json.loads(line) for line in rounds]
        #: Rule, agents and what was trained: the first line of rounds.jsonl.
        self.header: dict[str, Any] = json.loads(header)
        #: Everything that summary.json says; None for a run that is not over.
        self.summary: dict[str, Any] | None = json.loads(summary) if summary else None
        #: The delivered weights; None where they were not kept.
        self.weights = weights
        #: Where the run is kept, if it is.
        self.folder = folder
        self._tensors = tensors
        agents = self.header["agents"]
        self._names: dict[int, int | str] = {a["id"]: a.get("name", a["id"]) for a in agents}

    @property
    def verdict(self) -> str | None:
        """What the departures did: "retained", "unsatisfied", "at-start", "benign", "harmful", "unknown",
        or "empty" for a model that is worth nothing."""
        return self.summary["verdict"] if self.summary else None

    @property
    def content(self) -> int | None:
        """How many agents the delivered model satisfies, of those that could be asked."""
        if self.summary is None:
            return None
        if "content" in self.summary:
            return int(self.summary["content"])
        asked = [agent for agent in self.summary["agents"] if agent.get("loss_of_round") is None]
        known = [a for a in asked if a["loss"] is not None and a["epsilon"] is not None]
        return len([agent for agent in known if agent["loss"] <= agent["epsilon"]])

    @property
    def warnings(self) -> list[str]:
        """What a reader should know before believing the rest."""
        return list(self.summary["warnings"]) if self.summary else []

    @property
    def is_good(self) -> bool:
        """Whether the run ended as one hopes: somebody is content, no departure did harm, and there
        is nothing to warn about."""
        return self.verdict in ("retained", "benign") and bool(self.content) and not self.warnings

    @property
    def stop(self) -> str | None:
        """Why the run ended: "settled", "landed", "everyone-left", "round-limit" …"""
        return self.summary["stop"] if self.summary else None

    @property
    def left(self) -> list[Departure]:
        """The agents that left, in order."""
        return [
            Departure(self._names.get(agent, agent), line["round"])
            for line in self._lines
            for agent in line["left"]
        ]

    @property
    def faults(self) -> list[tuple[int, int | str, str]]:
        """Agents that should have answered and did not: round, agent, why. These are not departures."""
        return [
            (line["round"], self._names.get(agent, agent), why)
            for line in self._lines
            for agent, why in line.get("faults", [])
        ]

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The rounds, as in rounds.jsonl."""
        return self._lines

    @property
    def measures(self) -> list[dict[str, str]]:
        """What was measured besides the loss, the headline first: `name`, `label`, which values are
        `better`, and their `unit`. Every agent of the summary has its values by these names."""
        told: list[dict[str, str]] = (self.summary or self.header).get("measures", USUAL)
        return told

    @property
    def columns(self) -> dict[str, list[Any]]:
        """The rounds as columns: one entry per round, one loss column per agent (`loss.NAME`)."""
        columns: dict[str, list[Any]] = {
            name: []
            for name in ("round", "mean_loss", "d", "left", "faults", "case", "step_size",
                         "step_norm", "stop")
        }  # fmt: skip
        columns |= {f"loss.{name}": [] for name in self._names.values()}
        looked = [line.get("assessment", {}) for line in self._lines]
        measures = [of for of in self.measures if any(line.get(of["name"]) for line in looked)]
        for of in measures:
            columns |= {f"mean_{of['name']}": [], f"worst_{of['name']}": []}
        for line in self._lines:
            losses = dict(zip(line["agents"], line["loss"], strict=True))
            told = [loss for loss in losses.values() if loss is not None]
            columns["round"].append(line["round"])
            columns["mean_loss"].append(sum(told) / len(told) if told else None)
            for name in ("d", "left"):
                columns[name].append([self._names.get(agent, agent) for agent in line[name]])
            faults = line.get("faults", [])
            columns["faults"].append([self._names.get(agent, agent) for agent, _ in faults])
            for name in ("case", "step_size", "step_norm", "stop"):
                columns[name].append(line[name])
            for agent, shown in self._names.items():
                columns[f"loss.{shown}"].append(losses.get(agent))
            for of in measures:
                name, worst = of["name"], min if of["better"] == "higher" else max
                values = line.get("assessment", {}).get(name) or [None]
                known = None not in values
                columns[f"mean_{name}"].append(sum(values) / len(values) if known else None)
                columns[f"worst_{name}"].append(worst(values) if known else None)
        return columns

    @property
    def rounds(self) -> Any:
        """One row per round: a pandas or a polars frame, whichever is installed, else `columns`."""
        return frame(self.columns)

    def plot(self, path: str | Path | None = None) -> Picture:
        """Draws the run: losses, who is about to leave, who left, how good the delivered model (◆) is.

        With a path (.svg or .png) it also writes a file.
        """
        run = self._header, self._rounds
        picture = Picture(_core.draw(*run, "svg", self._summary).decode())
        if path is not None:
            form = Path(path).suffix.lstrip(".")
            Path(path).write_bytes(_core.draw(*run, form, self._summary))
        return picture

    def state_dict(self) -> dict[str, Any]:
        """The delivered model by the names of its tensors, buffers included, for
        `model.load_state_dict`: PyTorch's tensors where PyTorch is installed, else arrays."""
        tensors, kept = self._tensors, self.folder and self.folder / "model.safetensors"
        if tensors is None and kept and kept.exists():
            tensors = read_tensors(kept)
        if not tensors:
            raise _core.Error(
                "this run has no named tensors: it is not over, or its agents are not modules; "
                "`.weights` has the delivered weights as one vector"
            )
        try:
            import torch
        except ImportError:
            return dict(tensors)
        return {name: torch.from_numpy(array.copy()) for name, array in tensors.items()}

    def _repr_html_(self) -> str:
        """What a notebook shows: how it ended, every agent, and the picture."""
        rows = []
        for agent in (self.summary or {"agents": []})["agents"]:
            cells = [
                self._names.get(agent["id"], agent["id"]),
                _short(agent.get("epsilon")),
                _short(agent.get("loss")),
                *(_short(agent.get(of["name"])) for of in self.measures),
                agent["left"] if agent.get("left") is not None else "stayed",
            ]
            rows.append("".join(f"<td>{html.escape(str(cell))}</td>" for cell in cells))
        labels = (of["label"] for of in self.measures)
        titles = ("agent", "ε", "loss", *labels, "left in round")
        head = "".join(f"<th>{html.escape(title)}</th>" for title in titles)
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        warned = "".join(f"<li>{html.escape(warning)}</li>" for warning in self.warnings)
        table = f"<table><tr>{head}</tr>{body}</table>" if rows else ""
        picture = self.plot().svg if self._lines else ""
        return f"<p><b>{html.escape(repr(self))}</b></p><ul>{warned}</ul>{table}{picture}"

    def __repr__(self) -> str:
        rule, on = self.header["rule"], self.header["on"]
        left = f"{len(self.left)} of {len(self._names)} left{self._who_left()}"
        if self.summary is None:
            return f"Result({rule} on {on}: {len(self._lines)} rounds so far, {left})"
        content = self._content_words(self.summary["agents"])
        end = f"{self.stop} after {self.summary['rounds']} rounds"
        count = len(self.warnings)
        warned = f"; {count} warning{'s' * (count > 1)}, see .warnings" if count else ""
        return f"Result({rule} on {on}: {self.verdict}, {left}, {content}, {end}{warned})"

    def _who_left(self) -> str:
        """The names of the first agents that left, where they have names."""
        named = [str(who) for who, _ in self.left if isinstance(who, str)]
        more = ", …" if len(named) > MOST_NAMED else ""
        return f" ({', '.join(named[:MOST_NAMED])}{more})" if named else ""

    def _content_words(self, agents: list[dict[str, Any]]) -> str:
        """How many agents are content; those that were not asked are not counted as if they had been."""
        asked = sum(agent.get("loss_of_round") is None for agent in agents)
        if asked == len(agents):
            return f"{self.content} of {asked} content"
        if asked == 0:
            return f"none of {len(agents)} asked about the model"
        return f"{self.content} of {asked} asked content, {len(agents) - asked} not asked"


def _short(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def from_outcome(
    outcome: _core.Outcome,
    folder: str | Path | None,
    layout: Sequence[tuple[str, list[int]]] = (),
    buffers: Mapping[str, NDArray[Any]] | None = None,
) -> Result:
    """The result of a run that has just ended; `layout` names its tensors, and `buffers` is what the
    model has beside its weights."""
    kept = Path(folder) if folder is not None else None
    tensors = named(outcome.weights, list(layout)) if layout else None
    if tensors is not None and buffers:
        tensors |= buffers
        if kept is not None:
            # What the core has written has the weights alone.
            write_tensors(kept / "model.safetensors", tensors)
    return Result(outcome.header, outcome.rounds, outcome.summary, outcome.weights, kept, tensors)


def read(folder: str | Path) -> Result:
    """Reads a run's folder: over, running, or cut off; the simulator's, Flower's, anybody's."""
    folder = Path(folder)
    header, rounds = _core.read_folder(folder)
    summary = folder / "summary.json"
    text = summary.read_text() if summary.exists() else None
    weights = json.loads(text).get("weights") if text else None
    return Result(header, rounds, text, None if weights is None else np.array(weights), folder)

"""What can be told of every round of a run: progress, early stops, TensorBoard, W&B, MLflow.

A callback is anything that can be called with a `RoundInfo`; if it returns True, the run ends after this
round, and is summed up like any other. `fedstay.simulate` and `fedstay.flower.FedStay` take a list.
Callbacks see a resumed run from its next round on.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ._core import Error

__all__ = ["Callback", "MLflow", "Patience", "Progress", "RoundInfo", "TensorBoard", "WandB"]


@dataclass(frozen=True)
class RoundInfo:
    """A finished round."""

    #: Its number, from 1, and how many there are at most.
    round: int
    rounds: int
    #: What the agents still in reported; None where nobody told a loss.
    mean_loss: float | None
    worst_loss: float | None
    worst_agent: int | str | None
    #: Who is about to leave (under previews: who is shown another model), who left, who did not
    #: answer and why, by name.
    near: list[int | str]
    left: list[int | str]
    silent: dict[int | str, str]
    seconds: float
    #: The line of rounds.jsonl.
    line: Mapping[str, Any]
    #: What clients sent along, by name and key, where there are clients that do.
    metrics: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def scalars(self) -> dict[str, float]:
        """The numbers worth a curve, by name."""
        found: dict[str, float] = {
            "left": float(len(self.left)),
            "near": float(len(self.near)),
            "silent": float(len(self.silent)),
            "seconds": self.seconds,
        }
        for name, value in (("mean_loss", self.mean_loss), ("worst_loss", self.worst_loss)):
            if value is not None:
                found[name] = value
        if isinstance(self.line.get("step_norm"), float):
            found["step_norm"] = self.line["step_norm"]
        for client, metrics in self.metrics.items():
            found |= {f"client/{client}/{key}": value for key, value in metrics.items()}
        return found

    def __str__(self) -> str:
        parts = [f"round {self.round} of {self.rounds}"]
        if self.mean_loss is not None:
            # Where somebody told a lower bound, the mean is one.
            bound = "≥ " if self.line.get("at_least") else ""
            called = self.worst_agent
            if isinstance(called, int):
                called = f"agent {called}"
            worst = f"worst {bound}{self.worst_loss:.4g} ({called})"
            parts.append(f"loss {bound}{self.mean_loss:.4g}, {worst}")
        for what, who in (("near", self.near), ("left", self.left)):
            if who:
                shown = ", ".join(map(str, who[:8])) + (" …" if len(who) > 8 else "")
                parts.append(f"{what}: {shown}")
        if self.silent:
            reasons = [f"{who} ({why})" for who, why in list(self.silent.items())[:3]]
            more = f" and {len(self.silent) - 3} more" if len(self.silent) > 3 else ""
            parts.append("no answer: " + ", ".join(reasons) + more)
        return "; ".join([*parts, f"{self.seconds:.1f} s"])


#: Called after every round; True ends the run.
Callback = Callable[[RoundInfo], Any]


def describe(
    line: Mapping[str, Any],
    names: Mapping[int, int | str],
    rounds: int,
    seconds: float,
    metrics: Mapping[str, Mapping[str, float]] | None = None,
) -> RoundInfo:
    """A line of rounds.jsonl as callbacks see it."""
    told = {a: v for a, v in zip(line["agents"], line["loss"], strict=True) if v is not None}
    worst = max(told, key=lambda agent: told[agent]) if told else None

    def known(agents: Iterable[int]) -> list[int | str]:
        return [names.get(agent, agent) for agent in agents]

    return RoundInfo(
        round=line["round"],
        rounds=rounds,
        mean_loss=sum(told.values()) / len(told) if told else None,
        worst_loss=told[worst] if worst is not None else None,
        worst_agent=names.get(worst, worst) if worst is not None else None,
        near=known(line["d"]),
        left=known(line["left"]),
        silent={names.get(agent, agent): why for agent, why in line.get("faults", [])},
        seconds=seconds,
        line=line,
        metrics=metrics or {},
    )


def tell(callbacks: Iterable[Callback], info: RoundInfo) -> bool:
    """Tells all of them; whether any wants the run to end."""
    return any([bool(callback(info)) for callback in callbacks])


class Progress:
    """One line on a terminal: the round, its losses, the time left. Quiet elsewhere."""

    def __init__(self) -> None:
        self._since, self._first = time.monotonic(), 0
        self._shown = sys.stderr.isatty()

    def __call__(self, info: RoundInfo) -> None:
        """Shows a round; clears the line after the last one."""
        if not self._shown:
            return
        self._first = self._first or info.round
        over = info.round == info.rounds or info.line.get("stop") is not None
        done = info.round - self._first + 1
        left = (info.rounds - info.round) * (time.monotonic() - self._since) / done
        text = "" if over else f"{info} · about {left:.0f} s left"
        print(f"\r\033[K{text[:150]}", end="", file=sys.stderr, flush=True)


class Patience:
    """Ends a run whose mean loss has not fallen for a while.

    rounds: how many rounds it waits.
    by: how much lower than the best so far counts as lower.

    >>> from fedstay.callbacks import Patience
    >>> Patience(rounds=0)
    Traceback (most recent call last):
    fedstay.Error: `rounds` is 0, but must be 1 or more
    """

    def __init__(self, rounds: int, by: float = 0.0) -> None:
        if rounds < 1:
            raise Error(f"`rounds` is {rounds}, but must be 1 or more")
        self._rounds, self._by = rounds, by
        self._best, self._since = float("inf"), 0

    def __call__(self, info: RoundInfo) -> bool:
        """Whether it has waited long enough."""
        if info.mean_loss is not None and info.mean_loss < self._best - self._by:
            self._best, self._since = info.mean_loss, info.round
        return info.round - self._since >= self._rounds


class TensorBoard:
    """Writes every round's numbers for TensorBoard, by the writer that comes with PyTorch."""

    def __init__(self, folder: str | Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise Error(
                "this needs PyTorch and TensorBoard: pip install torch tensorboard"
            ) from None
        self._writer = SummaryWriter(str(folder))

    def __call__(self, info: RoundInfo) -> None:
        """Writes a round."""
        for name, value in info.scalars().items():
            self._writer.add_scalar(name, value, info.round)
        self._writer.flush()


class WandB:
    """Logs every round to Weights & Biases; arguments go to `wandb.init`, unless a run is active."""

    def __init__(self, **init: Any) -> None:
        try:
            import wandb
        except ImportError:
            raise Error("W&B is not installed: pip install wandb") from None
        self._run = wandb.run if wandb.run is not None else wandb.init(**init)

    def __call__(self, info: RoundInfo) -> None:
        """Logs a round."""
        self._run.log(info.scalars(), step=info.round)


class MLflow:
    """Logs every round to MLflow: into the active run, or into one that it starts."""

    def __init__(self, **start_run: Any) -> None:
        try:
            import mlflow
        except ImportError:
            raise Error("MLflow is not installed: pip install mlflow") from None
        self._mlflow = mlflow
        if mlflow.active_run() is None:
            mlflow.start_run(**start_run)

    def __call__(self, info: RoundInfo) -> None:
        """Logs a round."""
        self._mlflow.log_metrics(info.scalars(), step=info.round)

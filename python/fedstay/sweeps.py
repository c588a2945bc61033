"""Sweeps: a study of many runs, declared in one file, kept in one store."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import _core
from .rules import usual_epsilon
from .settings import flat
from .table import frame

__all__ = ["Sweep", "sweep"]


class Sweep:
    """A sweep's results: those runs of its file that are in its store.

    The store is an SQLite file that `fedstay sweep` can read and continue, and the other way round.
    """

    def __init__(
        self,
        file: str | Path,
        *,
        set: Mapping[str, Any] | None = None,
        store: str | Path | None = None,
    ) -> None:
        rule = (set or {}).get("rule")
        if usual_epsilon(rule) is not None:
            raise _core.Error(
                "the rule brings an `epsilon`, which would replace the grid's; set `epsilon` itself"
            )
        kept = Path(store) if store is not None else None
        self._sweep = _core.Sweep(Path(file), flat(set or {}), store=kept)
        self._file = Path(file)
        #: How many runs were computed by the call that returned this.
        self.computed = 0

    @property
    def store(self) -> Path:
        """Where the results are kept: sweeps/NAME.db, unless told otherwise."""
        return Path(self._sweep.store)

    @property
    def planned(self) -> int:
        """How many runs the file asks for."""
        return self._sweep.planned

    @property
    def columns(self) -> dict[str, list[Any]]:
        """One entry per run: its settings, whether it finished, who left, accuracies and losses."""
        return self._sweep.columns(False)

    @property
    def runs(self) -> Any:
        """`columns` as a pandas or a polars frame, whichever is installed."""
        return frame(self.columns)

    @property
    def series(self) -> Any:
        """One row per round in which everybody was measured, for all runs."""
        return frame(self._sweep.columns(True))

    def __repr__(self) -> str:
        there = len(self.columns["key"]) if self.store.exists() else 0
        return f"Sweep({self._file.name}: {there} of {self.planned} runs in {self.store})"


def sweep(
    file: str | Path,
    *,
    set: Mapping[str, Any] | None = None,
    store: str | Path | None = None,
    threads: int | None = None,
) -> Sweep:
    """Computes what is missing of a sweep on this machine, as `fedstay sweep FILE` does.

    `set` replaces an axis of the grid or sets a key. Interrupt it and call it again: finished runs
    are kept. `fedstay.ray.sweep` does the same on many machines.

    >>> import fedstay, pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "study.toml").write_text('''
    ... rounds = 60
    ... problem.kind = "observation-3"
    ... [grid]
    ... rule.kind = ["fedavg", "retain"]
    ... ''')
    >>> study = fedstay.sweep(folder / "study.toml", store=folder / "study.db")
    >>> study.columns["rule.kind"], study.columns["verdict"]
    (['fedavg', 'retain'], ['harmful', 'retained'])
    """
    result = Sweep(file, set=set, store=store)
    result.computed = result._sweep.compute(threads if threads is not None else os.cpu_count() or 1)
    return result

"""Sweeps on a Ray cluster: `pip install 'fedstay[ray]'` on every machine.

Ray moves families of runs that share work to its workers, and gives those of a dead worker to
another; the store stays here. Runs are deterministic, so on machines with the same instructions
the store is the one that `fedstay sweep` would have filled on one of them.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import _core
from .sweeps import Sweep

__all__ = ["sweep"]

#: Families that wait at Ray beyond those being computed, so that no worker idles. Not all at once:
#: what is not sent need not be called back when something fails.
WAITING = 4


def sweep(
    file: str | Path,
    *,
    set: Mapping[str, Any] | None = None,
    store: str | Path | None = None,
    threads: int = 1,
    retries: int = 3,
    address: str | None = None,
) -> Sweep:
    """Computes what is missing of a sweep on a Ray cluster.

    Parameters
    ----------
    file, set, store
        As in `fedstay.sweep`. File and store are on this machine; workers need the same version of
        fedstay, and the data where `FEDSTAY_DATA` or their cache has them (`fedstay data fetch`), or
        for CSV and npz under an absolute path that is the same file everywhere.
    threads : int
        Threads, and so Ray's CPUs, for one family of runs that share work.
    retries : int
        How often a family is given to another worker when its own dies.
    address : str, optional
        The cluster, as `ray.init` takes it, unless this process is connected to one already. Without
        one, Ray is started on this machine.

    Stops at the first family that cannot be computed, with its error; what was finished is kept, and
    the same call continues.
    """
    ray = _ray()
    if threads < 1:
        raise _core.Error(f"`threads` is {threads}: give 1 or more")
    result = Sweep(file, set=set, store=store)
    families = result._sweep.missing()
    if not families:
        return result
    ours = not ray.is_initialized()
    if ours:
        ray.init(address=address, log_to_driver=False)
    try:
        return _dispatch(ray, result, families, threads, retries)
    finally:
        if ours:
            ray.shutdown()


def _dispatch(
    ray: Any, result: Sweep, families: list[list[str]], threads: int, retries: int
) -> Sweep:
    """Sends families out and stores their runs as they arrive."""
    if _capacity(ray, threads) < 1:
        raise _core.Error(
            f"no machine of the cluster has {threads} CPUs for one family; give fewer `threads`"
        )
    task = ray.remote(num_cpus=threads, max_retries=retries)(fedstay_family)
    progress = Progress(result.planned, result.planned - sum(map(len, families)))
    waiting = list(reversed(families))
    running: dict[Any, list[str]] = {}
    try:
        while waiting or running:
            # Clusters grow and shrink.
            while waiting and len(running) < _capacity(ray, threads) + WAITING:
                # Another process may have worked on the same store.
                family = result._sweep.still_missing(waiting.pop())
                if family:
                    running[task.remote(family, threads)] = family
            if running:
                _take_in(ray, result, running, timeout=1.0)
                progress.show(result.computed)
    finally:
        for reference in running:
            ray.cancel(reference, force=True)
        progress.end()
    return result


def _take_in(ray: Any, result: Sweep, running: dict[Any, list[str]], timeout: float) -> None:
    """Stores what is finished; then, if something failed, raises that."""
    failed: Exception | None = None
    done, _ = ray.wait(list(running), timeout=timeout)
    while done:
        for reference in done:
            family = running.pop(reference)
            try:
                result.computed += result._sweep.take(_fetch(ray, reference, family))
            except Exception as error:
                failed = failed or error
        done, _ = ray.wait(list(running), timeout=0) if running else ([], [])
    if failed is not None:
        raise failed


def fedstay_family(experiments: list[str], threads: int) -> str:
    """What a worker does; `ray status` and process lists show it under this name."""
    return _core.run_family(experiments, threads)


def _capacity(ray: Any, threads: int) -> int:
    """How many families the cluster can compute at once; one needs all its threads on one machine."""
    machines = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    return sum(int(machine.get("CPU", 0)) // threads for machine in machines)


def _fetch(ray: Any, reference: Any, family: list[str]) -> str:
    """A family's runs, or why there are none."""
    try:
        parcel: str = ray.get(reference)
        return parcel
    except ray.exceptions.RayTaskError as error:
        cause = error.cause
        if isinstance(cause, _core.Error):
            raise _core.Error(f"a worker says: {cause}") from None
        raise
    except ray.exceptions.RayError as error:
        raise _core.Error(
            f"a family of {len(family)} runs was lost with its workers ({error}); is there enough "
            "memory? Finished runs are kept: the same call continues. The first of them:\n"
            + family[0]
        ) from None


def _ray() -> Any:
    try:
        import ray
    except ImportError:
        raise _core.Error("Ray is not installed: pip install 'fedstay[ray]'") from None
    return ray


class Progress:
    """One line on a terminal: runs, throughput, time left. Quiet elsewhere."""

    def __init__(self, planned: int, there: int) -> None:
        self._planned, self._there = planned, there
        self._since = time.monotonic()
        self._shown = sys.stderr.isatty()
        self.show(0)

    def show(self, computed: int) -> None:
        """Shows how many runs are computed."""
        if not self._shown:
            return
        minutes = (time.monotonic() - self._since) / 60
        missing = self._planned - self._there - computed
        ahead = f" · about {missing * minutes / computed:.0f} min left" if computed else ""
        text = f"{self._there + computed}/{self._planned} runs{ahead}"
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        """Clears the line."""
        if self._shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)

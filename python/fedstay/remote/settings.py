"""What a run behind a network is told to do, refused where it is wrong."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from .._core import Error

__all__ = ["refuse_wrong"]


def refuse_wrong(given: Mapping[str, Any], whole: tuple[str, ...]) -> None:
    """Refuses settings that cannot be, by name: before the first round, and where they were made. `whole`
    are those that must be 1 or more."""
    if given["on_few"] not in ("wait", "stop"):
        raise Error(f'`on_few` is "{given["on_few"]}", but must be "wait" or "stop"')
    for name in ("min_agents", "max_silent", "retry_every", "tries", *whole):
        if given[name] < 1:
            raise Error(f"`{name}` is {given[name]}, but must be 1 or more")
    for name in ("max_reach", "max_ratio"):
        if not 1 <= given[name] < math.inf:
            raise Error(f"`{name}` is {given[name]}, but must be a finite number, 1 or more")
    for name in ("timeout", "wait", "grace"):
        seconds = given.get(name)
        if seconds is not None and not 0 <= seconds < math.inf:
            raise Error(f"`{name}` is {seconds}, but must be a finite number of seconds")

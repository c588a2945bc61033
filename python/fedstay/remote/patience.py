"""How long answers are waited for, and what is done with too few of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from .roll import Roll

__all__ = ["Deadline", "Patience"]


@dataclass(frozen=True)
class Patience:
    """How many reports a round needs, how long they may take, and what is done without them.

    timeout: how many seconds an agent has to answer.
    grace: once so many have reported, the others have this many seconds more; all of `timeout`, if not
        given.
    on_few, wait, tries: with fewer, the missing ones are asked again after `wait` seconds, at most
        `tries` times, or the run ends.
    """

    timeout: float
    min_agents: int
    grace: float | None
    on_few: Literal["wait", "stop"]
    wait: float
    tries: int

    def deadline(self, reported: int) -> Deadline:
        """Until when one exchange is waited for, where this number have reported before it."""
        return Deadline(self.timeout, max(self.min_agents - reported, 1), self.grace)

    def few(
        self, attempt: int, roll: Roll[Any], strangers: int = 0
    ) -> Literal["ask", "over"] | None:
        """What to do with too few reports: ask again, or end the run because those that are still in
        would be too few if all of them answered; None where patience is over. `strangers` may be
        agents as well."""
        left = len(roll.still_in()) + strangers
        if self.on_few == "stop" or (roll.members and left < self.min_agents):
            return "over"
        return "ask" if attempt < self.tries else None


class Deadline:
    """The end of one exchange: `seconds` after its begin, or `grace` seconds after `enough` reports."""

    def __init__(
        self,
        seconds: float,
        enough: int | None = None,
        grace: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._enough, self._grace, self._clock = enough, grace, clock
        self._until = clock() + seconds
        self._reached = False
        #: Why those who were waited for have no answer.
        self.silence = f"no answer within {seconds:g} s"

    def left(self, reports: int) -> float:
        """How many seconds are left, with this number of reports; 0 when it is over."""
        now = self._clock()
        if self._grace is not None and self._enough is not None and not self._reached:
            self._reached = reports >= self._enough
            if self._reached and now + self._grace < self._until:
                self._until = now + self._grace
                self.silence = f"no answer {self._grace:g} s after {self._enough} others"
        return max(self._until - now, 0.0)

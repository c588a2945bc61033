"""One exchange with sites: messages out, answers in, and who failed, with patience."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Protocol

from nvflare.app_common.abstract.fl_model import FLModel

from ..remote.patience import Deadline

#: How often an exchange looks whether it should end early, in seconds.
POLL = 0.1


class Courier(Protocol):
    """What an engine needs of FLARE; the controller is one, and tests have others."""

    def connected(self) -> list[str]:
        """The sites that are there."""

    def exchange(
        self, task: str, messages: Mapping[str, FLModel], deadline: Deadline
    ) -> tuple[dict[str, FLModel], dict[str, str]]:
        """Sends every site its message, and waits until the deadline. Returns the answers, and why
        others have none."""

    def log(self, text: str, *, warn: bool = False) -> None:
        """Writes a line to the job's log."""


class Exchange:
    """What has come back of an exchange so far; FLARE calls it from threads of its own."""

    def __init__(self, asked: set[str]) -> None:
        self._asked = asked
        self._lock = threading.Condition()
        self.answers: dict[str, FLModel] = {}
        self.failed: dict[str, str] = {}
        #: Why those who were waited for have no answer.
        self.silence = "no answer"

    def take(self, answer: FLModel) -> None:
        """Takes a result that FLARE could read. It has put the name of the site there itself."""
        with self._lock:
            self.answers[answer.meta["client_name"]] = answer
            self._lock.notify_all()

    def settle(self, name: str, why: str) -> None:
        """Notes that a site's result has been dealt with; if it was not taken, that is why."""
        with self._lock:
            if name not in self.answers:
                self.failed[name] = why
            self._lock.notify_all()

    def wait(self, deadline: Deadline, over: Callable[[set[str]], bool]) -> None:
        """Waits until everybody has answered or time is up.

        over: told who is still waited for, says whether that is useless.
        """
        while True:
            with self._lock:
                waiting = self._asked - self.answers.keys() - self.failed.keys()
                # Goodbyes and faults have no arrays, and a round is not made of them.
                left = deadline.left(sum(a.params is not None for a in self.answers.values()))
                self.silence = deadline.silence
                if not waiting or left == 0.0:
                    return
                self._lock.wait(min(POLL, left))
            if over(waiting):
                self.silence = "it is gone"
                return

    def result(self) -> tuple[dict[str, FLModel], dict[str, str]]:
        """The answers, and why others have none. Later results are not looked at."""
        with self._lock:
            answers, failed = dict(self.answers), dict(self.failed)
        for name in self._asked - answers.keys() - failed.keys():
            failed[name] = self.silence
        return answers, failed

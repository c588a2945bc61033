"""Loops other than `start`, in which somebody else calls the strategy's methods: one step per round, no
waiting, no folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from logging import WARNING
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, Message, MessageType, MetricRecord
from flwr.common.logger import log
from numpy.typing import NDArray

from .. import _core
from .._core import Error, RuleError
from ..remote.showing import Showing
from ._layout import Layout
from ._mail import Mail
from ._overrides import Asking
from ._replies import Answers, Sent


@dataclass
class Loop:
    """What the strategy remembers between such calls."""

    rule: Any
    policy: Any
    #: Whether the policy hides the server's own model from some agents.
    hides: bool
    mail: Mail
    server: _core.Server | None = None
    #: What went out last.
    showing: Showing | None = None

    def configure_train(
        self, round: int, arrays: ArrayRecord, config: Mapping[str, Any], nodes: list[int]
    ) -> list[Message]:
        """The messages of a round."""
        server = self._continued(arrays)
        told = {m.id: server.correction(m.id) for m in self.mail.roll.still_in()}
        by = {agent: add for agent, add in told.items() if add is not None}
        self.showing = self.shown(arrays)
        asking = Asking(nodes, self.showing, self.mail.corrections(nodes, by))
        return self.mail.messages(MessageType.TRAIN, round, asking, config)

    def aggregate_train(
        self, round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """One step from one round's replies."""
        if self.server is None or self.showing is None:
            raise Error("aggregate_train: `configure_train` comes first")
        answers, reader, sent = Answers(), self.mail.reader, self.mail.addresses()
        at = self.mail.shown(sent.values(), self.showing)
        reader.read(replies, Sent(sent, self.showing, at), list(sent.values()), round, answers)
        reported = self._step(self.server, answers)
        reader.model.take_buffers(*answers.all_buffers(reader.weighs))
        if not reported and not answers.goodbyes:
            return None, None
        metrics: dict[str, Any] = {"left": len(answers.goodbyes), "reported": reported}
        return reader.model.pack(self.server.weights), MetricRecord(metrics)

    def shown(self, arrays: ArrayRecord) -> Showing:
        """What everybody is shown now: the server knows, once there is one, and what it hides is not
        handed in."""
        server = self.server
        if not self.hides or server is None or not server.round:
            return Showing.the_same(self._unpacked(arrays))
        shared, first = server.weights, server.weights_for(None)
        everybody = [member.id for member in self.mail.roll.everybody()]
        personal = {}
        for agent in everybody:
            own = server.weights_for(agent)
            if np.array_equal(own, first):
                personal[agent] = first
            elif not np.array_equal(own, shared):
                personal[agent] = own
        return Showing(shared, personal, first, everybody)

    def _unpacked(self, arrays: ArrayRecord) -> NDArray[np.float64]:
        reader = self.mail.reader
        reader.layout = reader.layout or Layout(arrays)
        return reader.layout.unpack(arrays, "(server)", np.float64)

    def _continued(self, arrays: ArrayRecord) -> _core.Server:
        """The server continues from its own weights, so nobody may hand in others between rounds."""
        given, reader = self._unpacked(arrays), self.mail.reader
        if self.server is None:
            self.server = _core.Server(given, self.rule, reader.step_size, policy=self.policy)
            return self.server
        own = self._unpacked(reader.model.pack(self.server.weights))
        if not np.array_equal(own, given):
            raise Error(
                "configure_train was given other arrays than aggregate_train returned, by noise added "
                "in between for instance; FedStay continues from its own weights, so such a change would "
                "silently be lost. Hand in what aggregate_train returned"
            )
        return self.server

    def _step(self, server: _core.Server, answers: Answers) -> int:
        """A step with as many reports as it can be taken with. Returns how many those are."""
        roll = self.mail.roll
        members = {member.id: member for member in roll.everybody()}
        while answers.reports or answers.goodbyes:
            try:
                reports = [answers.reports[agent] for agent in sorted(answers.reports)]
                absent = max(len(roll.still_in()) - len(reports), 0)
                server.step(reports, answers.goodbyes, absent, newcomers=True)
                break
            except RuleError:
                raise  # Nobody's report is to blame.
            except Error as error:
                # As the core's own loop does: an overflow is blamed on the agent that moves farthest.
                farthest = max(answers.moves, key=lambda agent: answers.moves[agent])
                bad = members[farthest if error.agent is None else error.agent]
                log(WARNING, "fedstay: agent %s is skipped: %s", bad.name, error)
                answers.drop(bad, str(error))
        return len(answers.reports)

"""Messages to nodes and back, over Flower's grid."""

from __future__ import annotations

import time
from dataclasses import dataclass
from logging import INFO, WARNING

from flwr.app import Message
from flwr.common.logger import log
from flwr.serverapp import Grid

from .._core import Error
from ..remote.patience import Deadline, Patience
from ._replies import is_report
from ._roll import Roll

#: The replies, which node each message went to, and why others have not answered.
Exchanged = tuple[list[Message], dict[str, int], str]
#: How often replies are checked for, in seconds.
POLL = 0.2


@dataclass(frozen=True)
class Courier:
    """What an engine needs of Flower's grid; `least` nodes must be there before the first round."""

    grid: Grid
    least: int

    def nodes(self) -> list[int]:
        """The nodes that are connected."""
        return list(self.grid.get_node_ids())

    def exchange(self, messages: list[Message], deadline: Deadline) -> Exchanged:
        """Sends messages, and waits for the replies as long as agents may take."""
        nodes = [message.metadata.dst_node_id for message in messages]
        ids = list(self.grid.push_messages(messages)) if messages else []
        sent = {id: node for id, node in zip(ids, nodes, strict=False) if id}
        waiting = set(sent)
        replies: list[Message] = []
        while waiting and (left := deadline.left(sum(map(is_report, replies)))) > 0.0:
            came = list(self.grid.pull_messages(list(waiting)))
            replies += came
            waiting -= {reply.metadata.reply_to_message_id for reply in came}
            if waiting:
                time.sleep(min(POLL, left))
        return replies, sent, deadline.silence

    def wait_for_nodes(self, round: int, roll: Roll, patience: Patience) -> None:
        """Waits for nodes before the first round, and after a restart, when they connect one by one."""
        wanted = self.least
        if roll.expected is not None:
            wanted = min(wanted, len(roll.expected))
        if roll.members and round > 1:
            wanted = min(wanted, sum(member.aside is None for member in roll.still_in()))
        there = 0
        for _ in range(patience.tries):
            there = len(roll.to_ask(round, self.nodes()))
            if there >= wanted:
                return
            log(INFO, "fedstay: %d of %d nodes are there; waiting", there, wanted)
            time.sleep(min(patience.wait, 3.0))
        if round == 1:
            raise Error(f"fewer than {wanted} nodes came; start SuperNodes, then this app again")
        log(WARNING, "fedstay: only %d of %d nodes came back; continuing", there, wanted)

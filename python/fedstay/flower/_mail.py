"""The messages of a round: to every node what its agent is shown, and what it decides with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Message, MessageType, RecordDict
from numpy.typing import NDArray

from ..remote.door import NONCE
from ..remote.showing import Showing
from ._layout import CORRECTION
from ._overrides import Asking, Outgoing
from ._replies import Reader
from ._sent import ARRAYS, ARRAYS_KEY


class Mail:
    """Makes messages. `arrays_key` and `config_key` are what weights and config are called in them."""

    def __init__(self, reader: Reader, arrays_key: str, config_key: str) -> None:
        self.reader, self.roll = reader, reader.roll
        self.arrays_key, self.config_key = arrays_key, config_key
        #: The messages that were made last, and what each node's said when it was made.
        self.made: list[Message] = []
        self.outgoing: dict[int, Outgoing] = {}

    def messages(
        self, kind: str, round: int, asking: Asking, config: Mapping[str, Any]
    ) -> list[Message]:
        """One message for every node that is asked."""
        said = ConfigRecord({**config, **asking.words})
        if self.arrays_key != ARRAYS:
            said[ARRAYS_KEY] = self.arrays_key
        said["server-round"] = round
        said["step-size"] = self.reader.step_size
        if self.reader.epsilon is not None:
            said["epsilon"] = float(self.reader.epsilon)
        if kind == MessageType.TRAIN:
            said[NONCE] = self.reader.nonces.of(round)
            for name, asks in self.reader.asks.words().items():
                said[name] = asks
        # What is the same for several nodes is one object, which Flower keeps once.
        contents: dict[int, RecordDict] = {}
        self.made, self.outgoing = [], {}
        for node, weights in self.shown(asking.nodes, asking.showing).items():
            if id(weights) not in contents:
                arrays = self.reader.model.pack(weights, first=asking.showing.is_first(weights))
                contents[id(weights)] = RecordDict({self.arrays_key: arrays, self.config_key: said})
            content = contents[id(weights)]
            by = asking.corrections.get(node)
            if by is not None:
                content = RecordDict({**content, CORRECTION: by})
            self.outgoing[node] = Outgoing.of(content, self.config_key)
            self.made.append(Message(content, node, kind, group_id=str(round)))
        return self.made

    def shown(self, nodes: Iterable[int], showing: Showing) -> dict[int, NDArray[np.float64]]:
        """What the agents behind nodes are shown."""
        members = {node: self.roll.of_node(node) for node in nodes}
        return {node: showing.to(m.id if m else None) for node, m in members.items()}

    def corrections(
        self, nodes: Iterable[int], by: Mapping[int, NDArray[np.float64]]
    ) -> dict[int, ArrayRecord]:
        """What the agents behind nodes are to add to the gradient of every local step."""
        members = {node: self.roll.of_node(node) for node in nodes}
        return {
            node: self.reader.model.pack_parameters(by[member.id])
            for node, member in members.items()
            if member is not None and member.id in by
        }

    def addresses(self) -> dict[str, int]:
        """Which node each message went to; a message has its id once it was pushed."""
        return {m.metadata.message_id: m.metadata.dst_node_id for m in self.made}

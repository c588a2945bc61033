"""What a message from the server has, under whichever keys the strategy was given; and who receives it."""

from __future__ import annotations

from typing import Any

from flwr.app import ArrayRecord, Context, Message

from .._core import Error

#: Flower's own keys, and what the config calls the arrays where they have another one.
ARRAYS, CONFIG, ARRAYS_KEY = "arrays", "config", "arrayrecord-key"


def sent_config(message: Message) -> Any:
    """The config that the server sent."""
    records = message.content.config_records
    if CONFIG in records:
        return records[CONFIG]
    return next((record for record in records.values() if "server-round" in record), {})


def sent_arrays(message: Message) -> ArrayRecord:
    """The weights that the server sent."""
    key = str(sent_config(message).get(ARRAYS_KEY, ARRAYS))
    return message.content.array_records[key]


def trained_arrays(reply: Message) -> ArrayRecord:
    """The weights in the reply of a train function: its only array record, whatever it is called."""
    records = reply.content.array_records
    if ARRAYS in records:
        return records[ARRAYS]
    if len(records) != 1:
        names = ", ".join(f"`{name}`" for name in records) or "none"
        raise Error(
            f"agent_mod: the train function's reply is to have one array record, the trained weights; it "
            f"has {names}"
        )
    return next(iter(records.values()))


def agent_name(context: Context) -> str:
    """An agent's name: `agent` of its node's config, else `partition-id`, else its node's number."""
    config = context.node_config
    return str(config.get("agent", config.get("partition-id", f"node-{context.node_id}")))

"""The name under which a reply comes, and replies that come by another way than ours."""

from __future__ import annotations

from flwr.app import RecordDict

from .._core import Error
from ..remote.door import shown
from ._layout import RECORD

#: The most characters of an agent's name.
LONGEST_NAME = 128

#: What Flower's mod for secure aggregation says where the server is not its own.
SECURE_AGGREGATION_MARK = "secaggplus_configs"
SECURE_AGGREGATION = (
    "its app uses secure aggregation, which shows the server only the sum of all reports, and "
    "fedstay's rules work with each agent's own (docs/privacy.md); take secaggplus_mod out of the "
    "app's mods"
)


def claimed_name(content: RecordDict) -> str:
    """The name under which a reply comes."""
    said = content.config_records.get(RECORD)
    name = said.get("agent") if said is not None else None
    if not isinstance(name, str):
        raise Error(
            f"its reply has no `{RECORD}` record with an `agent`; use decide_and_report or agent_mod"
        )
    if len(name) > LONGEST_NAME or not name.isprintable() or not name.strip():
        raise Error(
            f"its name is {shown(repr(name[:40]))} ({len(name)} characters), but must be 1 to "
            f"{LONGEST_NAME} printable characters"
        )
    return name

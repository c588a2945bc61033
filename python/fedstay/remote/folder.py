"""The folder of a run that ended because too few answered: the next start continues it."""

from __future__ import annotations

import json
from pathlib import Path

__all__ = ["reopened"]


def reopened(folder: Path) -> bool:
    """Whether a run in a folder can be continued that was summed up because patience was over. It
    then counts as cut off.

    A run that was told to end with too few, or could not get enough any more, says so in its last round
    and is over for good.
    """
    summary, rounds = folder / "summary.json", folder / "rounds.jsonl"
    try:
        ended = json.loads(summary.read_text())["stop"]
        last = json.loads(rounds.read_text().splitlines()[-1])
        given_up = ended == "too-few" and "round" in last and last.get("stop") is None
    except (OSError, ValueError, KeyError, IndexError, TypeError):
        return False
    if given_up:
        summary.unlink()
    return bool(given_up)

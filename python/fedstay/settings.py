"""Keys of an experiment, set from Python."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from .rules import Rule

__all__ = ["flat"]


def flat(keys: Mapping[str, Any], inside: str = "") -> list[tuple[str, str]]:
    """A nested mapping as `a.b` with values as TOML writes them.

    The precision that a rule brings counts only where none is given.
    """
    pairs: list[tuple[str, str]] = []
    for key, value in keys.items():
        if isinstance(value, Rule):
            if value.epsilon is not None and "epsilon" not in keys:
                pairs.append(("epsilon", json.dumps(value.epsilon)))
            value = value.to_dict()
        if isinstance(value, Mapping):
            pairs += flat(value, f"{inside}{key}.")
        else:
            pairs.append((f"{inside}{key}", json.dumps(value)))
    return pairs

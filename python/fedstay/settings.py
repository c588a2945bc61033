"""Keys of an experiment, set from Python."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ._core import Error
from .policies import Policy
from .rules import Rule

__all__ = ["flat"]


def flat(keys: Mapping[str, Any], inside: str = "") -> list[tuple[str, str]]:
    """A nested mapping as `a.b` with values as TOML writes them.

    The target loss that a rule brings counts only where none is given.
    """
    pairs: list[tuple[str, str]] = []
    for key, value in keys.items():
        if isinstance(value, Rule):
            if value.epsilon is not None and "epsilon" not in keys:
                pairs.append(("epsilon", json.dumps(value.epsilon)))
            value = value.to_dict()
        if hasattr(value, "aggregate"):
            raise Error(
                f"`{inside}{key}` is a {type(value).__name__}, a rule of your own: `fedstay.simulate`, "
                "`fedstay.Server` and `fedstay.flower` run it; experiments and sweeps take the rules of "
                "the list"
            )
        value = plain(value)
        if isinstance(value, Mapping):
            pairs += flat(value, f"{inside}{key}.")
        else:
            pairs.append((f"{inside}{key}", toml(value)))
    return pairs


def plain(value: Any) -> Any:
    """A value without objects of ours."""
    if isinstance(value, Policy):
        return value.to_dict()
    return [plain(one) for one in value] if isinstance(value, list | tuple) else value


def toml(value: Any) -> str:
    """A value as TOML writes it in one line."""
    if isinstance(value, Mapping):
        pairs = (f"{json.dumps(key)} = {toml(one)}" for key, one in value.items())
        return "{ " + ", ".join(pairs) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value)

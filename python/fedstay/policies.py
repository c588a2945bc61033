"""Policies: what a server does around its rule.

One class per policy, with the names and the defaults a configuration has; a test compares them with
the list of the core. Wherever a policy is expected, its name ("preview") or a dict as in TOML
(`{"kind": "preview", "margin": 0.1}`) will do as well, and several act in the order of a list.

>>> import fedstay
>>> server = fedstay.Server([0.0], "fedavg", 1.0, policy=[fedstay.Guard(delta=0.05), "keep-best"])
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

from ._core import policy_facts, policy_of_rule

__all__ = ["EarlyStop", "Guard", "KeepBest", "Policy", "Preview"]


@dataclass(frozen=True, kw_only=True)
class Policy:
    """What all policies have in common.

    >>> import fedstay
    >>> fedstay.Guard(delta=0.05).to_dict()
    {'kind': 'guard', 'delta': 0.05}
    """

    kind: ClassVar[str]

    def to_dict(self) -> dict[str, Any]:
        """The policy as a configuration has it: without what is None."""
        given = {name: value for name, value in asdict(self).items() if value is not None}
        return {"kind": self.kind, **given}


@dataclass(frozen=True, kw_only=True)
class EarlyStop(Policy):
    """Stop before the first predicted departure.

    margin: stop this much earlier.
    """

    kind: ClassVar[str] = "early-stop"
    margin: float = 0.0


@dataclass(frozen=True, kw_only=True)
class KeepBest(Policy):
    """Deliver the best model so far, by the mean loss of the agents still in."""

    kind: ClassVar[str] = "keep-best"


@dataclass(frozen=True, kw_only=True)
class Guard(Policy):
    """Change a rule's step as little as possible so that nobody is predicted to leave.

    delta: how far above its target loss every agent is kept.
    """

    kind: ClassVar[str] = "guard"
    delta: float = 0.02


@dataclass(frozen=True, kw_only=True)
class Preview(Policy):
    """Let the model move freely, and show an agent that would be content with it the nearest model
    that it is not content with. At the end everybody who stayed receives the model itself.

    delta: how far above its target loss every agent is kept.
    margin: more of the same, against agents that leave early or tell too large a loss.
    by: how previews are made: "cut" (up the gradient at what the agent received), "rewind" (on the
        way from what it received to the model), "auto" (by cut where an agent reports an exact
        gradient); "stale" and "noise" are controls.
    pace: by how much the loss shown falls over the run, for impatient agents; 0 is none.
    over: the rounds over which it falls; those of the run, unless given.
    until: when to deliver: after the last round, or once everybody is "content".
    cap: no preview is farther from the model than this many times the way that has come so far.
    smoothness: a constant H such that every loss is H-smooth, where it is known.
    relative: whether delta, margin and pace are shares of how far above its target loss an agent was at
        first, instead of losses; None leaves it to the rule (`stay` says yes, all others no).

    >>> import fedstay
    >>> server = fedstay.Server([0.0], "fedavg", 1.0, policy=fedstay.Preview(delta=0.1, pace=0.0))
    >>> far = fedstay.Report(0, [-0.5], gradient=[-0.5], loss=1.0, epsilon=0.5)
    >>> decision = server.step([far, fedstay.Report(1, [-1.5], gradient=[-1.5], loss=5.0, epsilon=0.5)])
    >>> server.weights.tolist(), server.weights_for(0).tolist(), server.weights_for(1).tolist()
    ([1.0], [0.8], [1.0])
    """

    kind: ClassVar[str] = "preview"
    delta: float = 0.02
    margin: float = 0.0
    by: Literal["auto", "cut", "rewind", "stale", "noise"] = "auto"
    pace: float = 0.1
    over: int | None = None
    until: Literal["rounds", "content"] = "rounds"
    cap: float = 1.0
    smoothness: float | None = None
    relative: bool | None = None


#: A policy as an object, by name, or as a dict as in TOML.
OnePolicy = Policy | str | Mapping[str, Any]
#: One policy, or several in the order in which they act.
PolicyLike = OnePolicy | Sequence[OnePolicy]


def called(policy: PolicyLike | None) -> str | None:
    """What one policy, or several, are called in a label."""
    return "+".join(name for name, _, _ in policy_facts(policy)) or None


def shows(policy: PolicyLike | None) -> bool:
    """Whether one of them shows agents other weights than the server's own."""
    return any(others for _, others, _ in policy_facts(policy))


def around(rule: Any, policy: PolicyLike | None) -> PolicyLike | None:
    """What a rule runs under: the policy that is named, or else the one that the rule is made for."""
    made_for = policy_of_rule(rule) if policy is None else None
    return policy if made_for is None else tomllib.loads(made_for)


def classes() -> dict[str, type[Policy]]:
    """Every policy's class, by its name in a configuration."""
    return {policy.kind: policy for policy in Policy.__subclasses__()}

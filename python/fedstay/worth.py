"""What agents are worth: which scores a run keeps, and who judges models that were never sent out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from ._core import Error, worth_methods

__all__ = ["Worth", "WorthLike", "asked", "refuse_unjudged", "refuse_unknown", "telling"]


@dataclass(frozen=True)
class Worth:
    """The scores to keep, for `fedstay.simulate`, `fedstay.flower.FedStay` and `fedstay.flare.FedStay`.

    methods : list of str
        "help", "loo", "shapley", "gtg", "cgsv", "fedce", "reputation", "core": docs/members.md says what
        each of them says. They change no step.
    judge : callable or agent, optional
        Tells the loss of weights on rows that nobody trains on, which "loo", "shapley", "gtg" and "core"
        need: a function of the weights, or anything with `loss(weights)` or `loss_and_grad(weights)`,
        such as a `fedstay.TorchAgent` with validation data. On Flower a function is given an
        `ArrayRecord`, and without a judge the server's `evaluate_fn` is asked. On FLARE it is an object
        that a job can name (docs/flare.md).

    >>> import fedstay
    >>> class Bowl:
    ...     epsilon = 0.01
    ...     def __init__(self, centre):
    ...         self.centre = centre
    ...     def loss_and_grad(self, weights):
    ...         away = weights - self.centre
    ...         return 0.5 * float(away @ away), away
    >>> run = fedstay.simulate([Bowl(1.0), Bowl(2.0)], "fedavg", weights=[0.0], step_size=0.1, rounds=20,
    ...                        worth=fedstay.Worth(["help", "loo"], judge=Bowl(3.0)))
    >>> [round(agent["worth"]["given"], 2) for agent in run.summary["agents"]]
    [0.38, 0.35]
    """

    methods: Sequence[str]
    judge: Any = None


#: The methods alone will do where none of them needs a judge.
WorthLike = Worth | Sequence[str]


def asked(worth: WorthLike | None) -> Worth:
    """What is asked for, however it was given."""
    if worth is None:
        return Worth(())
    if isinstance(worth, Worth):
        return worth
    return Worth([worth] if isinstance(worth, str) else list(worth))


def needing_a_judge(worth: Worth) -> list[str]:
    """The methods among those asked for that ask about models which were never sent out."""
    needs = [name for name, needs in worth_methods() if needs]
    return [name for name in worth.methods if name in needs]


def refuse_unknown(worth: Worth) -> None:
    """Raises if a method is none, before anything is sent to other machines."""
    names = [name for name, _ in worth_methods()]
    for method in worth.methods:
        if method not in names:
            raise Error(f"`{method}` is not a way to say what agents are worth: {', '.join(names)}")


def refuse_unjudged(worth: Worth, give: str) -> None:
    """Raises if a method needs a judge and there is none; `give` says who may be one."""
    needs = needing_a_judge(worth)
    if needs and worth.judge is None:
        raise Error(
            f"{', '.join(needs)} ask how good models are on rows that nobody trains on: give {give}"
        )


def telling(judge: Any) -> Callable[[NDArray[Any]], float] | None:
    """How a judge tells the loss of a vector of weights."""
    if judge is None:
        return None
    if callable(getattr(judge, "loss", None)):
        ask: Callable[[NDArray[Any]], float] = judge.loss
        return ask
    if callable(getattr(judge, "loss_and_grad", None)):
        return lambda weights: float(judge.loss_and_grad(weights)[0])
    if callable(judge):
        return lambda weights: float(judge(weights))
    raise Error(
        f"`judge` is a {type(judge).__name__}: give a function of the weights, or something with "
        "`loss(weights)`"
    )

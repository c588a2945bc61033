"""The agents of the tests, and what `fedstay.simulate` makes of them. Sites import it, too."""

from __future__ import annotations

import os
import signal

import fedstay
import numpy as np

#: Where each site wants to be, and the loss at which it leaves.
CENTRES = {"site-1": [1.0, 0.0, 0.3], "site-2": [0.0, 4.0, -0.7], "site-3": [-2.0, 0.1, 1.9]}
EPSILONS = {"site-1": 1.0, "site-2": 1.5, "site-3": 0.5}
START = [3.0, 0.1, -0.2]
STEP_SIZE = 0.3


class Bowl:
    """Half the squared distance to a centre, in numbers that do not come out even."""

    samples = 7

    def __init__(self, name: str) -> None:
        self.centre, self.epsilon = np.array(CENTRES[name]), EPSILONS[name]

    def loss_and_grad(self, weights):
        away = weights - self.centre.astype(weights.dtype)
        return 0.5 * float(away @ away), away


class Walker(Bowl):
    """Takes four local steps, corrected if it is told so, and has two groups."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.samples = 10 * int(name[-1])

    def corrected(self, weights, correction, *, seed):
        for _ in range(4):
            weights = weights - 0.07 * (self.loss_and_grad(weights)[1] + correction)
        return weights, 4 * 0.07

    def work(self, weights, *, seed):
        return self.corrected(weights, 0.0, seed=seed)[0]

    def rates(self, weights):
        # How well the groups are served depends on the weights, and on nothing that rounding decides.
        far = np.abs(weights - self.centre) * 7
        right = (int(far[0]) % 5, int(far[1]) % 4)
        return fedstay.Rates(right=right, of=(5, 4), correct=sum(right), rows=12)


class Judge:
    """What everybody loses on average, stretched: rows that nobody trains on."""

    def __init__(self, stretch: float = 1.0) -> None:
        self.stretch = stretch

    def loss(self, weights):
        told = [bowl.loss_and_grad(weights)[0] for bowl in bowls().values()]
        return self.stretch * sum(told) / len(told)


class Unlucky(Bowl):
    """Fails at the second model that it is sent, is fine again, and ends its script at the sixth."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.seen: list[bytes] = []

    def loss_and_grad(self, weights):
        models = self.models(weights)
        if models == 2:
            raise ZeroDivisionError("no data today")
        if models == 6:
            raise SystemExit
        return super().loss_and_grad(weights)

    def models(self, weights) -> int:
        """The number of different models so far: a round may be asked about again."""
        if weights.tobytes() not in self.seen:
            self.seen.append(weights.tobytes())
        return len(self.seen)


class Doomed(Unlucky):
    """Its process is killed at the third model."""

    def loss_and_grad(self, weights):
        if self.models(weights) == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return Bowl.loss_and_grad(self, weights)


def bowls(kind: type[Bowl] = Bowl) -> dict[str, Bowl]:
    return {name: kind(name) for name in CENTRES}

"""The agents, the same for `fedstay.simulate` and for Flower."""

import numpy as np

STEP_SIZE = 0.25
START = np.linspace(-1.0, 1.0, 24)


class Bowl:
    """Loss ½‖w − centre‖², with a centre that is awkward in binary."""

    def __init__(self, seed, epsilon):
        self.centre = np.random.default_rng(seed).normal(size=START.size) / 3
        self.epsilon = epsilon
        self.samples = 10 + seed

    def loss_and_grad(self, weights):
        away = weights - self.centre
        return float(0.5 * np.dot(away, away)), away


def agents():
    """Under averaging with this start, b leaves in round 3 and the others stay."""
    return {"a": Bowl(1, 0.05), "b": Bowl(2, 2.2), "c": Bowl(3, 0.05)}

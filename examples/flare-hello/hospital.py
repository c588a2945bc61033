"""The agents: hospitals with softmax regression on data of their own. Plain NumPy."""

import numpy as np

HOSPITALS = ["site-1", "site-2", "site-3"]
CLASSES, FEATURES, PATIENTS = 3, 8, 120
#: Where training starts.
START = {"weight": np.zeros((CLASSES, FEATURES)), "bias": np.zeros(CLASSES)}


class Hospital:
    """Mostly sees the patients of one class; leaves once the model is good enough for those."""

    epsilon = 0.45
    samples = PATIENTS

    def __init__(self, name):
        own = HOSPITALS.index(name)
        draw = np.random.default_rng(own)
        shares = np.where(np.arange(CLASSES) == own, 0.8, 0.2 / (CLASSES - 1))
        self.y = draw.choice(CLASSES, PATIENTS, p=shares)
        # Every class has a middle that all hospitals share, and patients around it.
        middles = np.random.default_rng(99).normal(0.0, 0.8, (CLASSES, FEATURES))
        self.x = middles[self.y] + draw.normal(0.0, 1.0, (PATIENTS, FEATURES))

    def _scores(self, weights):
        weight = weights[: CLASSES * FEATURES].reshape(CLASSES, FEATURES)
        scores = self.x @ weight.T + weights[CLASSES * FEATURES :]
        return scores - scores.max(axis=1, keepdims=True)

    def loss_and_grad(self, weights):
        """The mean cross entropy and its gradient, all weights in one vector."""
        scores = self._scores(weights)
        chances = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        rows = np.arange(PATIENTS)
        loss = -np.log(chances[rows, self.y]).mean()
        chances[rows, self.y] -= 1.0
        slope = np.concatenate([(chances.T @ self.x).reshape(-1), chances.sum(axis=0)])
        return loss, slope / PATIENTS

    def accuracy(self, weights):
        return (self._scores(weights).argmax(axis=1) == self.y).mean()

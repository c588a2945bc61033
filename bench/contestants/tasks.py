"""The tasks that federated learning simulators measure themselves with, and the data of each.

The numbers are here without PyTorch, for `bench/simulators.py`; `Task.deal` and `Task.net` import it. All of
the contestants written in Python read the same files as fedstay does (`fedstay data fetch mnist`), and standardise
them as it does: by the mean and the deviation of the training images, one pair per colour.
"""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class Task:
    """What is trained, by whom, on what. `shards` are pieces of one class; without any, images are dealt evenly."""

    name: str
    data: str
    clients: int
    asked: int
    epochs: int
    batch: int
    step: float
    rounds: int
    eval_every: int
    shards: int = 0

    @property
    def looks(self):
        """The rounds after which the test images are evaluated; the last one is among them."""
        return {*range(self.eval_every, self.rounds + 1, self.eval_every), self.rounds}

    def deal(self, seed):
        """The clients' images and labels, as one tensor each with a row per client, and those of the test."""
        import torch

        read = {"mnist": mnist, "cifar10": cifar10}[self.data]
        (x, y), test = read(True), read(False)
        deviation, mean = torch.std_mean(x, (0, 2), correction=0, keepdim=True)
        draw = np.random.default_rng(seed)
        if self.shards:
            pieces = np.argsort(y.numpy(), kind="stable").reshape(self.shards * self.clients, -1)
            order = pieces[draw.permutation(len(pieces))].reshape(self.clients, -1)
        else:
            order = draw.permutation(len(y)).reshape(self.clients, -1)
        order = torch.from_numpy(order)
        # In place, because a copy of CIFAR-10 in floats has 0.6 GB.
        x = x.sub_(mean).div_(deviation)[order.flatten()]
        shape = (3, 32, 32) if self.name == "M" else (x[0].numel(),)
        x, seen = x.view(*order.shape, *shape), test[0].sub_(mean).div_(deviation)
        return (x, y[order]), (seen.view(-1, *shape), test[1])

    def net(self):
        """The model, with PyTorch's own first weights, which are fedstay's as well."""
        from torch import nn

        if self.name == "K":
            return nn.Linear(784, 10)
        if self.name == "L":
            return nn.Sequential(
                nn.Linear(3072, 200), nn.ReLU(), nn.Linear(200, 200), nn.ReLU(), nn.Linear(200, 10)
            )
        return nn.Sequential(
            nn.Conv2d(3, 6, 5), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(),
            nn.Linear(84, 10),
        )  # fmt: skip


TASKS = {
    task.name: task
    for task in (
        # FLUTE's: softmax regression.
        Task("K", "mnist", 1000, 10, 1, 10, 0.03, 100, 1_000_000),
        # pfl-research's: a dense net with two hidden layers.
        Task("L", "cifar10", 1000, 50, 1, 10, 0.1, 100, 10),
        # BlazeFL's: a convolutional net.
        Task("M", "cifar10", 100, 100, 5, 50, 0.1, 5, 1, shards=2),
    )
}


def folder(name):
    """Where `fedstay data fetch` puts a data set."""
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    found = Path(os.environ.get("FEDSTAY_DATA") or caches / "fedstay") / name
    if not found.is_dir():
        sys.exit(f"no {name} in {found}: run `fedstay data fetch {name}`")
    return found


def mnist(training):
    """Images of one plane in floats, and labels, from the original files."""
    import torch

    part = "train" if training else "t10k"
    x = np.fromfile(folder("mnist") / f"{part}-images-idx3-ubyte", "u1", offset=16)
    y = np.fromfile(folder("mnist") / f"{part}-labels-idx1-ubyte", "u1", offset=8)
    return torch.from_numpy(x).view(-1, 1, 784).float(), torch.from_numpy(y).long()


def cifar10(training):
    """Images of three planes in floats, and labels, from the binary batches."""
    import torch

    names = [f"data_batch_{k}.bin" for k in range(1, 6)] if training else ["test_batch.bin"]
    rows = [np.fromfile(folder("cifar10") / name, "u1").reshape(-1, 3073) for name in names]
    rows = torch.from_numpy(np.concatenate(rows))
    return rows[:, 1:].reshape(-1, 3, 1024).float(), rows[:, 0].long()

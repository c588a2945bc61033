"""The model and the data: plain PyTorch, as it was before fedstay."""

import os
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import nn

CLASSES = 10


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(3072, 32), nn.Softplus(), nn.Linear(32, CLASSES))


@cache
def cifar10():
    """Images and labels, from where `fedstay data fetch cifar10` put them."""
    caches = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    folder = Path(os.environ.get("FEDSTAY_DATA", caches / "fedstay")) / "cifar10"
    rows = [np.fromfile(folder / f"data_batch_{i}.bin", np.uint8).reshape(-1, 3073) for i in (1, 2)]
    rows = np.concatenate(rows)
    images = torch.from_numpy(rows[:, 1:].astype(np.float32) / 255).reshape(-1, 3, 32, 32)
    return (images - 0.47) / 0.25, torch.from_numpy(rows[:, 0].astype(np.int64))


def load_data(partition, agents, count):
    """Nine tenths of an agent's images are of its own class, the rest of the other agents'."""
    images, labels = cifar10()
    own = count * 9 // 10
    chosen = []
    for label in range(agents):
        share = own if label == partition else (count - own) // (agents - 1)
        where = torch.nonzero(labels == label).flatten()
        # Every agent takes other images of a class.
        start = partition * count
        chosen.append(where[start : start + share])
    chosen = torch.cat(chosen)
    return torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(images[chosen], labels[chosen]), batch_size=256
    )

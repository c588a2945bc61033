"""The model, a node's share of the data, training and testing: plain PyTorch."""

import os
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy, relu
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    """Two convolutions with pooling, then three dense layers."""

    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(3, 6, 5), nn.Conv2d(6, 16, 5)
        self.pool = nn.MaxPool2d(2)
        self.fc1, self.fc2, self.fc3 = nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 10)

    def forward(self, x):
        for convolution in (self.conv1, self.conv2):
            x = self.pool(relu(convolution(x)))
        return self.fc3(relu(self.fc2(relu(self.fc1(x.flatten(1))))))


@cache
def images(name, count):
    """The first images of one of CIFAR-10's files, where `fedstay data fetch cifar10` put it."""
    caches = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    folder = Path(os.environ.get("FEDSTAY_DATA", caches / "fedstay")) / "cifar10"
    rows = np.fromfile(folder / name, np.uint8).reshape(-1, 3073)[:count]
    pixels = torch.from_numpy(rows[:, 1:].astype(np.float32) / 255).reshape(-1, 3, 32, 32)
    return TensorDataset((pixels - 0.5) / 0.5, torch.from_numpy(rows[:, 0].astype(np.int64)))


def load_data(partition_id, num_partitions, batch_size):
    """A node's images, dealt like cards: four fifths to train on, the rest to test on."""
    dealt = TensorDataset(*images("data_batch_1.bin", 6000)[partition_id::num_partitions])
    training = TensorDataset(*dealt[: len(dealt) * 4 // 5])
    testing = TensorDataset(*dealt[len(dealt) * 4 // 5 :])
    return (
        DataLoader(training, batch_size=batch_size, shuffle=True),
        DataLoader(testing, batch_size=batch_size),
    )


def load_centralized_dataset():
    """What the server tests on."""
    return DataLoader(images("test_batch.bin", 1000), batch_size=128)


def train(net, trainloader, epochs, lr, device):
    """Trains in place; returns the mean loss on the way."""
    optimizer = torch.optim.SGD(net.to(device).parameters(), lr=lr, momentum=0.9)
    net.train()
    losses = []
    for _ in range(epochs):
        for x, y in trainloader:
            optimizer.zero_grad()
            loss = cross_entropy(net(x.to(device)), y.to(device))
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return sum(losses) / len(losses)


def test(net, testloader, device):
    """The mean loss over batches, and the share of right answers."""
    net.to(device).eval()
    loss, right = 0.0, 0
    with torch.no_grad():
        for x, y in testloader:
            scores = net(x.to(device)).cpu()
            loss += cross_entropy(scores, y).item()
            right += int((scores.argmax(1) == y).sum())
    return loss / len(testloader), right / len(testloader.dataset)

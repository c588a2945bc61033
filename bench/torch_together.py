"""PyTorch agents in one process: one after the other, in threads, and as one stack.

    python bench/torch_together.py                 20 agents, one round, three times each, in turns
    python bench/torch_together.py --agents 100 --epochs 5 --rounds 5 --ways threads     BlazeFL's whole task

The task is BlazeFL's: CIFAR-10 dealt evenly to 100 agents (500 images each), batches of 50, a convolutional net with
62 thousand weights, trained by SGD and averaged. Beside it a small dense net on the same number of made-up
rows. The answers are held against each other: threads must give the bits of one after the other, the stack
almost. Needs PyTorch, the wheel, and `fedstay data fetch cifar10`.
"""

import argparse
import time

import fedstay
import numpy as np
import torch
from torch import nn
from torch_table import Net, cifar10

ROWS, BATCH = 500, 50


def convolutional(count):
    """Agents with 500 images each; more than 100 agents would need more than there are."""
    images, labels = cifar10(*(f"data_batch_{number}.bin" for number in range(1, 6)))
    return Net(False), [(images[i::100], labels[i::100]) for i in range(count)]


def dense(count):
    """The same number of rows of 64 numbers, in ten classes that a net can tell apart."""
    draw = torch.Generator().manual_seed(0)
    centres = torch.randn(10, 64, generator=draw)
    labels = torch.randint(10, (count, ROWS), generator=draw)
    rows = centres[labels] + 2 * torch.randn(count, ROWS, 64, generator=draw)
    net = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    return net, list(zip(rows, labels, strict=True))


TASKS = {"convolutional, 62,006 weights": convolutional, "dense, 2,410 weights": dense}


def play(make, given, way):
    """One run, and its seconds: wall and processor."""
    torch.manual_seed(0)
    model, hands = make(given.agents)
    agents = [
        fedstay.TorchAgent(
            model,
            [hand],
            optimizer=lambda parameters: torch.optim.SGD(parameters, lr=0.05),
            epochs=given.epochs,
            batch_size=BATCH,
        )
        for hand in hands
    ]
    torch.set_num_threads(given.threads)
    wall, processor = time.perf_counter(), time.process_time()
    result = fedstay.simulate(
        agents, "fedavg", epsilon=0.0, behaviour="never", rounds=given.rounds, together=way
    )
    return result, time.perf_counter() - wall, time.process_time() - processor


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--agents", type=int, default=20)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--ways", nargs="+", default=["off", "threads", "stacked"])
    parser.add_argument("--tasks", nargs="+", default=["convolutional", "dense"])
    given = parser.parse_args()
    for name, make in TASKS.items():
        if name.split(",")[0] not in given.tasks:
            continue
        times, answers = {way: [] for way in given.ways}, {}
        for turn in range(given.times):
            for way in given.ways[turn % 2 :] + given.ways[: turn % 2]:
                answers[way], wall, processor = play(make, given, way)
                times[way].append((wall, processor))
        print(f"{name}: {given.agents} agents, {given.rounds} rounds of {given.epochs} epochs, "
              f"{given.threads} threads")  # fmt: skip
        for way, measured in times.items():
            wall, processor = np.median(measured, axis=0)
            told = answers[way].summary["agents"]
            accuracy = np.mean([agent["accuracy"] for agent in told])
            print(f"  {way:8} {wall:7.2f} s, {processor:7.2f} s of processor time, "
                  f"accuracy {100 * accuracy:.1f}%", flush=True)  # fmt: skip
        weights = {way: answer.weights for way, answer in answers.items()}
        if given.threads == 1 and {"off", "threads"} <= set(weights):
            assert weights["off"].tobytes() == weights["threads"].tobytes()
        for way in weights:
            first = weights[given.ways[0]]
            apart = np.linalg.norm(weights[way] - first) / np.linalg.norm(first)
            assert apart < 1e-3, (way, apart)


if __name__ == "__main__":
    main()

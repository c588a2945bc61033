"""A task of `tasks.py` in PyTorch, as a researcher who wants it fast writes it.

    python bench/contestants/torch_loop.py TASK ROUNDS SEED THREADS

One module and one optimiser serve all clients, images are dealt out beforehand. Prints one line of JSON: the
seconds of the rounds with their evaluations, and the last test accuracy.
"""

import dataclasses
import json
import sys
import time

import torch
import torch.nn.functional as F
from tasks import TASKS


def train(task, model, optimizer, x, y):
    """The local work of one client."""
    for _ in range(task.epochs):
        for batch in torch.randperm(len(x)).split(task.batch):
            optimizer.zero_grad(set_to_none=True)
            F.cross_entropy(model(x[batch]), y[batch]).backward()
            optimizer.step()


@torch.no_grad()
def accuracy(model, x, y):
    parts = zip(x.split(1000), y.split(1000))
    return sum((model(x).argmax(1) == y).sum().item() for x, y in parts) / len(y)


def main():
    name, rounds, seed, threads = sys.argv[1], *map(int, sys.argv[2:])
    task = dataclasses.replace(TASKS[name], rounds=rounds)
    torch.set_num_threads(threads)
    torch.manual_seed(seed)
    (xs, ys), test = task.deal(seed)
    model = task.net()
    optimizer = torch.optim.SGD(model.parameters(), lr=task.step)
    weights = list(model.parameters())
    received = [w.detach().clone() for w in weights]
    # PyTorch imports much at the first step, which is not the rounds' fault.
    train(task, model, optimizer, xs[0], ys[0])
    began = time.perf_counter()
    for round_ in range(1, rounds + 1):
        total = [torch.zeros_like(w) for w in received]
        for client in torch.randperm(task.clients)[: task.asked].tolist():
            with torch.no_grad():
                torch._foreach_copy_(weights, received)
            train(task, model, optimizer, xs[client], ys[client])
            with torch.no_grad():
                torch._foreach_add_(total, weights)
        received = torch._foreach_div(total, task.asked)
        if round_ in task.looks:
            with torch.no_grad():
                torch._foreach_copy_(weights, received)
            reached = accuracy(model, *test)
    print(json.dumps({"rounds": time.perf_counter() - began, "accuracy": reached}))


if __name__ == "__main__":
    main()

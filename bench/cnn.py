"""A convolutional net on CIFAR-10: the native simulator against a plain PyTorch loop and Flower's simulation.

The task is the one that BlazeFL measures itself with: 100 clients with two shards of 250 images each,
5 rounds of 5 epochs on batches of 50, plain SGD with a step of 0.1, all clients in every round, the mean
of their weights, and a LeNet-like net of 62,006 weights. (BlazeFL also crops and flips images; neither
contestant does here.)

    python bench/cnn.py [SEEDS [ROUNDS]] [--flower SEEDS] [--agents SEEDS]

PyTorch first chooses how it is fastest on this machine, with one or two threads and with either order
of an image's numbers, on the work of one client; then both do the whole task on all cores, in turns,
once for each seed. Times are of the day: training, averaging, and the test accuracy after every round;
for fedstay also the start of the program, reading the images and writing the run's folder. The test
accuracies after the last round must agree in the mean. Exits with 1 if a target is missed.

Flower's simulation (bench/contestants/flower.py) does it for the first seed unless told otherwise, where it
is installed, with two Ray actors of one thread each. Its time is of the whole command, like fedstay's; that of
its rounds alone is printed beside it. It deals as the PyTorch loop does and starts from the same weights. So do
`fedstay.TorchAgent`s in threads, for the first seed too, where the wheel is installed (`pip install .`); they also
compute every agent's loss and gradient at the weights it receives, which is what rules and departures need.
"""

import argparse
import copy
import importlib.util
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import common

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from safetensors_in_torch import MODELS, images
from simulators import TASKS, adopt, python

CLIENTS, EPOCHS, BATCH, STEP = 100, 5, 50, 0.1
PARSER = argparse.ArgumentParser(description=__doc__.split("\n")[0])
PARSER.add_argument("seeds", type=int, nargs="?", default=3)
PARSER.add_argument("rounds", type=int, nargs="?", default=5)
PARSER.add_argument("--flower", type=int, default=1, metavar="SEEDS", help="0 leaves Flower out")
PARSER.add_argument("--agents", type=int, default=1, metavar="SEEDS", help="0 leaves TorchAgent out")
GIVEN = PARSER.parse_args()
SEEDS, ROUNDS = GIVEN.seeds, GIVEN.rounds
FLOWER = min(GIVEN.flower, SEEDS) if importlib.util.find_spec("flwr") else 0
AGENTS = min(GIVEN.agents, SEEDS) if importlib.util.find_spec("fedstay") else 0

KEYS = (
    "data.kind=cifar10", f"agents={CLIENTS}", f"rounds={ROUNDS}", f"step_size={STEP}",
    "partition.kind=shards", "partition.k=2", "model.kind=cnn", "rule.kind=fedavg",
    "behaviour.kind=never", "epsilon=0.001", f"local.batch={BATCH}", "eval_every=1",
)
# Multiply-adds per image, forward: two convolutions, three linear layers. Backward, each again for
# its weights and for its inputs, but for the inputs of the first.
CONVOLUTIONS, LINEAR = (28 * 28 * 6 * 75, 10 * 10 * 16 * 150), 400 * 120 + 120 * 84 + 84 * 10
FLOPS = 2 * (2 * CONVOLUTIONS[0] + 3 * CONVOLUTIONS[1] + 3 * LINEAR)


def standardised():
    """The training and test images as both contestants see them."""
    x, y = images(*(f"data_batch_{k}.bin" for k in range(1, 6)))
    mean = x.astype("f8").mean((0, 2))
    deviation = np.sqrt((x.astype("f8") ** 2).mean((0, 2)) - mean**2)

    def ready(x, y):
        x = (x - mean[None, :, None].astype("f4")) / deviation[None, :, None].astype("f4")
        return torch.from_numpy(x.reshape(-1, 3, 32, 32)), torch.from_numpy(y)

    return ready(x, y), ready(*images("test_batch.bin"))


def shards(labels, seed):
    """Images sorted by class, cut into 200 pieces, two for each client."""
    draw = np.random.default_rng(seed)
    order = np.argsort(labels.numpy(), kind="stable").reshape(2 * CLIENTS, -1)
    pieces = draw.permutation(2 * CLIENTS).reshape(CLIENTS, 2)
    return [torch.from_numpy(order[pair].reshape(-1)) for pair in pieces]


def train(model, x, y):
    """The local work of one client."""
    optimizer = torch.optim.SGD(model.parameters(), lr=STEP)
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(x)).split(BATCH):
            optimizer.zero_grad(set_to_none=True)
            F.cross_entropy(model(x[batch]), y[batch]).backward()
            optimizer.step()


def loop(clients, test, seed, channels_last):
    """The whole task as a researcher writes it; returns seconds and the accuracy."""
    torch.manual_seed(seed)
    server = MODELS["cnn"][1]()
    if channels_last:
        server = server.to(memory_format=torch.channels_last)
    began = time.perf_counter()
    for _ in range(ROUNDS):
        total = [torch.zeros_like(parameter) for parameter in server.parameters()]
        for x, y in clients:
            client = copy.deepcopy(server)
            train(client, x, y)
            with torch.no_grad():
                for sum_, parameter in zip(total, client.parameters()):
                    sum_ += parameter
        with torch.no_grad():
            for parameter, sum_ in zip(server.parameters(), total):
                parameter.copy_(sum_ / len(clients))
            accuracy = right(server, test)
    return time.perf_counter() - began, accuracy


def right(server, test):
    """The share of the test images that a model puts into their class."""
    with torch.no_grad():
        parts = zip(*(part.split(1000) for part in test))
        return sum((server(x).argmax(1) == y).sum().item() for x, y in parts) / len(test[0])


def agents(clients, test, seed):
    """The whole task by `fedstay.simulate` with PyTorch agents in threads; returns seconds and the accuracy."""
    import fedstay

    torch.manual_seed(seed)
    server = MODELS["cnn"][1]()
    sgd = lambda parameters: torch.optim.SGD(parameters, lr=STEP)
    each = [
        fedstay.TorchAgent(server, [client], optimizer=sgd, epochs=EPOCHS, batch_size=BATCH)
        for client in clients
    ]
    began = time.perf_counter()
    result = fedstay.simulate(
        each, "fedavg", epsilon=0.0, behaviour="never", rounds=ROUNDS, together="threads"
    )
    seconds = time.perf_counter() - began
    server.load_state_dict(result.state_dict())
    return seconds, right(server, test)


def fastest(clients):
    """The number of threads and the order of numbers with which one client takes the least time."""
    best = None
    for threads, last in itertools.product((1, 2), (False, True)):
        torch.set_num_threads(threads)
        model, (x, y) = MODELS["cnn"][1](), clients[0]
        if last:
            model, x = (t.to(memory_format=torch.channels_last) for t in (model, x))
        seconds = []
        for _ in range(4):
            began = time.perf_counter()
            train(model, x, y)
            seconds.append(time.perf_counter() - began)
        name = f"{threads} thread{'s' * (threads > 1)}, {'channels last' if last else 'as read'}"
        print(f"  PyTorch, {name}: {min(seconds) * 1e3:.0f} ms per client")
        best = min(best or (min(seconds), threads, last), (min(seconds), threads, last))
    return best[1:]


def native(seed, local):
    """The task by the command line; returns seconds and the accuracy."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "run")
        command = [os.path.join(common.TARGET, "release", "fedstay"), "run", "--out", out]
        for key in (*KEYS, f"seed={seed}", local):
            command += ["--set", key]
        environment = {k: v for k, v in os.environ.items() if k != "RAYON_NUM_THREADS"}
        began = time.perf_counter()
        told = subprocess.run(command, capture_output=True, text=True, env=environment)
        seconds = time.perf_counter() - began
        if told.returncode:
            sys.exit(told.stderr)
        with open(os.path.join(out, "summary.json")) as file:
            return seconds, json.load(file)["population"]["accuracy"]


def main():
    # As many batches, each drawn by itself, where the command does not know epochs.
    fedstay = os.path.join(common.TARGET, "release", "fedstay")
    keys = subprocess.run([fedstay, "list", "keys"], capture_output=True, text=True, check=True)
    steps = EPOCHS * 50_000 // CLIENTS // BATCH
    local = f"local.epochs={EPOCHS}" if "local.epochs" in keys.stdout else f"local.steps={steps}"
    (x, y), test = standardised()
    split = [(x[rows], y[rows]) for rows in shards(y, 0)]
    threads, last = fastest(split)
    torch.set_num_threads(threads)
    if last:
        test = (test[0].to(memory_format=torch.channels_last), test[1])
    adopt()
    ours, theirs, flowers, torched = [], [], [], []
    for seed in range(SEEDS):
        ours.append(native(seed, local))
        clients = [(x[rows], y[rows]) for rows in shards(y, seed)]
        if last:
            clients = [(x.to(memory_format=torch.channels_last), y) for x, y in clients]
        theirs.append(loop(clients, test, seed, last))
        print(f"  seed {seed}: fedstay {ours[-1][0]:.1f} s, accuracy {ours[-1][1]:.3f}; "
              f"PyTorch {theirs[-1][0]:.1f} s, accuracy {theirs[-1][1]:.3f}", flush=True)
        if seed < FLOWER:
            flowers.append(python("flower", many=True)(TASKS["M"], ROUNDS, seed, False))
            print(f"    Flower {flowers[-1]['whole']:.1f} s, its rounds {flowers[-1]['rounds']:.1f} s, "
                  f"accuracy {flowers[-1]['accuracy']:.3f}", flush=True)
        if seed < AGENTS:
            torched.append(agents(clients, test, seed))
            print(f"    TorchAgent {torched[-1][0]:.1f} s, accuracy {torched[-1][1]:.3f}", flush=True)
    seconds = [statistics.median(run[0] for run in runs) for runs in (ours, theirs)]
    accuracy = [statistics.mean(run[1] for run in runs) for runs in (ours, theirs)]
    work = ROUNDS * CLIENTS * EPOCHS * len(y) / CLIENTS * FLOPS
    for name, seconds_, accuracy_ in zip(("fedstay", "PyTorch"), seconds, accuracy):
        print(f"{name}: {seconds_:.1f} s (median), test accuracy {accuracy_:.3f} (mean), "
              f"{work / seconds_ / 1e9:.0f} GFLOP/s of training")
    targets = common.Targets()
    targets.check("BlazeFL's task, times PyTorch's loop", seconds[1] / seconds[0], 3)
    targets.check("accuracy, PyTorch's plus", accuracy[0] - accuracy[1], -0.03)
    if flowers:
        whole, rounds = (statistics.median(run[what] for run in flowers) for what in ("whole", "rounds"))
        print(f"Flower: {whole:.1f} s, {whole / seconds[0]:.1f} times fedstay; "
              f"its rounds alone {rounds:.1f} s, {rounds / seconds[0]:.1f} times")
        targets.check("BlazeFL's task, times Flower's simulation", whole / seconds[0], 10)
        apart = [abs(run["accuracy"] - loop[1]) for run, loop in zip(flowers, theirs)]
        targets.check("0.05 against how far Flower's accuracy is from PyTorch's", 0.05 / max([*apart, 1e-9]), 1)
    if torched:
        whole = statistics.median(run[0] for run in torched)
        print(f"TorchAgent: {whole:.1f} s, {whole / seconds[0]:.1f} times fedstay, {seconds[1] / whole:.2f} "
              "PyTorch's loop over it")
        apart = [abs(run[1] - loop[1]) for run, loop in zip(torched, theirs)]
        targets.check("0.05 against how far TorchAgent's accuracy is from PyTorch's", 0.05 / max([*apart, 1e-9]), 1)
    targets.finish()


if __name__ == "__main__":
    main()

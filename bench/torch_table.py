"""PyTorch agents that may leave, by how they train and by what the server does.

    python bench/torch_table.py --out runs/torch-table --seeds 0 1 2 3 4

Five agents with 400 images of CIFAR-10 each, dealt by Dirichlet(0.3), train a small convolutional net for
one local epoch in a round, with plain SGD, with momentum, with Adam, and with Adam on a net with BatchNorm.
An agent leaves once its loss is at most its ε: 1.1 times what it reaches alone in four epochs. Every finished
run is kept in the folder, and the same command continues; the table is printed from what is there. Needs
PyTorch, the wheel, and `fedstay data fetch cifar10`.
"""

import argparse
import json
import os
from functools import cache
from pathlib import Path

import fedstay
import numpy as np
import torch
from torch import nn
from torch.nn import functional

AGENTS, IMAGES, UNSEEN, BATCH = 5, 400, 100, 32
#: How agents train: the optimiser, its rate, and whether the net normalises its batches.
ROWS = {
    "SGD 0.1": (torch.optim.SGD, {"lr": 0.1}, False),
    "momentum 0.9, 0.02": (torch.optim.SGD, {"lr": 0.02, "momentum": 0.9}, False),
    "Adam 0.001": (torch.optim.Adam, {"lr": 0.001}, False),
    "Adam 0.001, BatchNorm": (torch.optim.Adam, {"lr": 0.001}, True),
}
COLUMNS = ("nobody may leave", "averaging + preview", "averaging", "retain")


class Net(nn.Module):
    """Two convolutions with pooling, then three dense layers: 62 thousand weights."""

    def __init__(self, normalises: bool) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 6, 5), nn.Conv2d(6, 16, 5)
        self.norms = nn.ModuleList(
            [nn.BatchNorm2d(6), nn.BatchNorm2d(16)] if normalises else [nn.Identity()] * 2
        )
        self.dense = nn.Sequential(
            nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10)
        )

    def forward(self, x):
        for convolution, norm in zip((self.first, self.second), self.norms, strict=True):
            x = functional.max_pool2d(functional.relu(norm(convolution(x))), 2)
        return self.dense(x.flatten(1))


@cache
def cifar10(*names):
    """Images and labels, from where `fedstay data fetch cifar10` put them."""
    caches = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    folder = Path(os.environ.get("FEDSTAY_DATA", caches / "fedstay")) / "cifar10"
    rows = np.concatenate(
        [np.fromfile(folder / name, np.uint8).reshape(-1, 3073) for name in names]
    )
    images = torch.from_numpy(rows[:, 1:].astype(np.float32) / 255).reshape(-1, 3, 32, 32)
    return (images - 0.5) / 0.5, torch.from_numpy(rows[:, 0].astype(np.int64))


def deal(seed):
    """What every agent has, and unseen images with the same classes in the same shares."""
    draw = np.random.default_rng(seed)
    training, testing = cifar10("data_batch_1.bin", "data_batch_2.bin"), cifar10("test_batch.bin")
    free = [
        [list(draw.permutation(np.flatnonzero(labels == c))) for c in range(10)]
        for _, labels in (training, testing)
    ]
    hands = []
    for _ in range(AGENTS):
        shares = draw.dirichlet(np.full(10, 0.3))
        hand = []
        for (images, labels), places, count in zip(
            (training, testing), free, (IMAGES, UNSEEN), strict=True
        ):
            classes = draw.choice(10, count, p=shares)
            chosen = [places[c].pop() for c in classes]
            hand.append((images[chosen], labels[chosen]))
        hands.append(hand)
    return hands


def trainer(row, hand):
    """One epoch of this agent's local work, on whatever module it is handed."""
    optimiser, options, _ = ROWS[row]
    images, labels = hand[0]

    def train(model, epochs=1):
        steps = optimiser(model.parameters(), **options)
        for _ in range(epochs):
            for batch in torch.randperm(len(labels)).split(BATCH):
                steps.zero_grad()
                functional.cross_entropy(model(images[batch]), labels[batch]).backward()
                steps.step()

    return train


def federation(row, seed):
    """The agents, with their targets."""
    torch.manual_seed(seed)
    model = Net(ROWS[row][2])
    begin = {key: value.clone() for key, value in model.state_dict().items()}
    agents = []
    for hand in deal(seed):
        train = trainer(row, hand)
        agent = fedstay.TorchAgent(model, [hand[0]], train=train, test=[hand[1]])
        model.load_state_dict(begin)
        model.train()
        torch.manual_seed(1000 + seed)
        train(model, epochs=4)
        agent.epsilon = 1.1 * agent.measure()
        agents.append(agent)
    model.load_state_dict(begin)
    return agents


def play(row, column, seed, rounds):
    """One run; what the table needs of it."""
    lr = ROWS[row][1]["lr"]
    steps = -(-IMAGES // BATCH)
    options = {
        "nobody may leave": {"rule": "fedavg", "behaviour": "never"},
        "averaging + preview": {"rule": "fedavg", "policy": fedstay.Preview(margin=0.2)},
        "averaging": {"rule": "fedavg"},
        # As the guide says for rules that read directions as gradients.
        "retain": {"rule": "retain", "step_size": lr * steps},
    }[column]
    result = fedstay.simulate(
        federation(row, seed), options.pop("rule"), rounds=rounds, seed=seed, **options
    )
    told = result.summary["agents"]
    return {
        "left": len(result.left),
        "rounds": result.summary["rounds"],
        "stop": result.stop,
        "verdict": result.verdict,
        "content": result.content,
        "mean": float(np.mean([agent["accuracy"] for agent in told])),
        "worst": min(agent["accuracy"] for agent in told),
        "warnings": result.warnings,
    }


def table(done):
    """What is there so far, as Markdown."""
    print(
        "| agents train with | " + " | ".join(COLUMNS) + " | preview − nobody may leave | seeds |"
    )
    print("|---" * (len(COLUMNS) + 3) + "|")
    for row in ROWS:
        cells, counts = [], []
        for column in COLUMNS:
            runs = [run for (r, c, _), run in done.items() if (r, c) == (row, column)]
            counts.append(len(runs))
            if not runs:
                cells.append("–")
                continue
            left = "/".join(str(run["left"]) for run in runs)
            mean, worst = (100 * np.mean([run[key] for run in runs]) for key in ("mean", "worst"))
            cells.append(f"{left} left; {mean:.1f}%, worst {worst:.1f}%")
        free, held = (
            {seed: run["mean"] for (r, c, seed), run in done.items() if (r, c) == (row, column)}
            for column in COLUMNS[:2]
        )
        apart = [100 * (held[seed] - free[seed]) for seed in held if seed in free]
        points = f"{np.mean(apart):+.1f}" if apart else "–"
        if len(apart) > 1:
            points += f" ± {np.std(apart, ddof=1) / np.sqrt(len(apart)):.1f}"
        print(f"| {row} | " + " | ".join([*cells, points, "/".join(map(str, counts))]) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="where finished runs are kept")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(5)))
    parser.add_argument("--rounds", type=int, default=45)
    parser.add_argument("--rows", nargs="+", choices=list(ROWS), default=list(ROWS))
    given = parser.parse_args()
    torch.set_num_threads(1)
    given.out.mkdir(parents=True, exist_ok=True)
    done = {}
    for seed in given.seeds:
        for row in given.rows:
            for column in COLUMNS:
                name = f"{row}-{column}-{seed}-{given.rounds}".replace(" ", "_").replace(",", "")
                path = given.out / f"{name}.json"
                if not path.exists():
                    whole = json.dumps(play(row, column, seed, given.rounds))
                    path.with_suffix(".tmp").write_text(whole)
                    path.with_suffix(".tmp").rename(path)
                done[row, column, seed] = json.loads(path.read_text())
                print(f"{row}, {column}, seed {seed}: {done[row, column, seed]}", flush=True)
    table(done)


if __name__ == "__main__":
    main()

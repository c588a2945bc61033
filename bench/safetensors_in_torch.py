"""A trained `model.safetensors` in PyTorch: the same names and shapes, the same outputs.

Trains a perceptron and a convolutional net for a few rounds on CIFAR-10 with the command line, reads
each run's model into the equivalent `nn.Sequential` (strictly: not a name more or less) and compares PyTorch's loss and accuracy on the
10,000 test images, read here from their files, with the run's summary.

    python bench/safetensors_in_torch.py
"""

import json
import os
import struct
import subprocess
import sys
import tempfile

import common

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

KEYS = (
    "data.kind=cifar10", "data.per_agent=1000", "rounds=20", "step_size=0.1", "epsilon=0.1",
    "rule.kind=fedavg", "local.steps=5", "local.batch=64", "eval_every=20", "partition.q=0.9",
)
MODELS = {
    "mlp": (
        ("model.kind=mlp", "model.hidden=[32]", "model.activation=softplus"),
        lambda: nn.Sequential(nn.Linear(3072, 32), nn.Softplus(), nn.Linear(32, 10)),
    ),
    "cnn": (
        ("model.kind=cnn",),
        lambda: nn.Sequential(
            nn.Conv2d(3, 6, 5), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(),
            nn.Linear(84, 10),
        ),
    ),
}


def read_safetensors(path):
    """The format is small: a length, a JSON header, the bytes."""
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header, data = json.loads(file.read(length)), file.read()
    kinds = {"F32": "<f4", "F64": "<f8"}
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            values = np.frombuffer(data[begin:end], kinds[entry["dtype"]]).reshape(entry["shape"])
            tensors[name] = torch.from_numpy(values.astype("f4"))
    return tensors


def images(*names):
    """The canonical binary batches: a label and 3,072 bytes per image."""
    cache = os.environ.get("FEDSTAY_DATA") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "fedstay")
    for folder, _, files in os.walk(os.path.join(cache, "cifar10")):
        if all(name in files for name in names):
            raw = [np.fromfile(os.path.join(folder, name), "u1") for name in names]
            rows = np.concatenate(raw).reshape(-1, 3073)
            return rows[:, 1:].reshape(-1, 3, 1024).astype("f4"), rows[:, 0].astype("i8")
    sys.exit(f"no CIFAR-10 in {cache}: run `fedstay data fetch cifar10`")


def main():
    torch.set_num_threads(1)
    train, _ = images(*(f"data_batch_{k}.bin" for k in range(1, 6)))
    mean = train.astype("f8").mean((0, 2))
    deviation = np.sqrt((train.astype("f8") ** 2).mean((0, 2)) - mean**2)
    x, y = images("test_batch.bin")
    x = (x - mean[None, :, None].astype("f4")) / deviation[None, :, None].astype("f4")
    x, y = torch.from_numpy(x.reshape(-1, 3, 32, 32)), torch.from_numpy(y)
    for keys, make in MODELS.values():
        check(keys, make(), x, y)


def check(keys, model, x, y):
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "run")
        command = [os.path.join(common.TARGET, "release", "fedstay"), "run", "--out", out]
        for key in (*KEYS, *keys):
            command += ["--set", key]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        tensors = read_safetensors(os.path.join(out, "model.safetensors"))
        with open(os.path.join(out, "summary.json")) as file:
            summary = json.load(file)

    if isinstance(model[0], nn.Linear):
        # There is no nn.Flatten in front of linear layers: rows are flat.
        x = x.flatten(1)
    model.load_state_dict(tensors, strict=True)
    with torch.no_grad():
        logits = model(x)
        loss = F.cross_entropy(logits.double(), y).item()
        correct = (logits.argmax(1) == y).sum().item()
    ours = summary["population"]
    print(f"{', '.join(f'{name} {list(t.shape)}' for name, t in tensors.items())}")
    print(f"fedstay: loss {ours['loss']:.7f}, accuracy {ours['accuracy']:.4f}")
    print(f"PyTorch: loss {loss:.7f}, accuracy {correct / len(y):.4f}")
    assert abs(loss - ours["loss"]) <= 1e-5, "another loss"
    # Two logits may be equal to within rounding: one image in 10,000 may fall the other way.
    assert abs(correct - round(ours["accuracy"] * len(y))) <= 1, "another accuracy"
    print("ok     model.safetensors loads strictly and gives the same outputs")


if __name__ == "__main__":
    main()

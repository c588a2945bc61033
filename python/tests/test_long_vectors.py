"""Long vectors: the precisions that are read in place, mapped files, threads and forks."""

import multiprocessing
import os
import subprocess
import sys

import fedstay
import numpy as np
import pytest


def bfloat16(values):
    """The bits of float32 numbers, cut to bfloat16, and what is left of the numbers."""
    bits = (np.asarray(values, np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return bits, (bits.astype(np.uint32) << 16).view(np.float32)


def stepped(directions, rule="ada-gd"):
    server = fedstay.Server(np.zeros(int(np.prod(directions[0].shape))), rule, 0.1)
    losses = [0.1] * (len(directions) - 1) + [9.0]
    told = zip(directions, losses, strict=True)
    server.step([fedstay.Report(i, d, loss=f, epsilon=0.1) for i, (d, f) in enumerate(told)])
    return server.weights


@pytest.mark.parametrize("rule", ["fedavg", "ada-gd", "retain"])
def test_bfloat16_is_read_where_it_is(rule):
    bits, cut = bfloat16(np.random.default_rng(1).normal(size=(3, 70)))
    named = bits.view([("bfloat16", "u2")])
    assert np.shares_memory(fedstay.Report(0, named[0], loss=1.0, epsilon=0.1).direction, bits)
    expected = stepped(cut, rule)
    assert np.abs(expected).max() > 0
    assert stepped(named, rule).tobytes() == expected.tobytes()
    swapped = bits.astype(">u2").view([("bfloat16", ">u2")])
    assert stepped(swapped, rule).tobytes() == expected.tobytes()
    # Two bytes under another name, and plain integers, are what they were.
    assert stepped(bits, "fedavg").tobytes() != expected.tobytes()
    with pytest.raises(fedstay.Error, match="agent 0.*dtype"):
        stepped(bits.view([("half", "u2")]), rule)


def test_bfloat16_of_ml_dtypes_is_read_too():
    types = pytest.importorskip("ml_dtypes")
    bits, cut = bfloat16(np.random.default_rng(1).normal(size=(3, 70)))
    assert stepped(bits.view(types.bfloat16)).tobytes() == stepped(cut).tobytes()


def test_bfloat16_of_torch_is_read_too():
    torch = pytest.importorskip("torch")
    bits, cut = bfloat16(np.random.default_rng(1).normal(size=(3, 70)))
    tensors = [torch.from_numpy(row.copy()).to(torch.bfloat16) for row in cut]
    mixed = [tensors[0], tensors[1], bits[2].view([("bfloat16", "u2")])]
    assert stepped(mixed).tobytes() == stepped(cut).tobytes()


def test_a_mapped_file_is_read_where_it_is(tmp_path):
    rows = np.random.default_rng(2).normal(size=(4, 200_000)).astype(np.float32)
    rows.tofile(tmp_path / "gradients")
    mapped = np.memmap(tmp_path / "gradients", np.float32, "r", shape=rows.shape)
    assert np.shares_memory(fedstay.Report(0, mapped[1], loss=1.0, epsilon=0.1).direction, mapped)
    assert stepped(mapped).tobytes() == stepped(rows).tobytes()


THREADS = """
import sys, numpy as np, fedstay
rows = np.random.default_rng(3).normal(size=(4, 300_001)).astype(np.float32)
for rule in ("fedavg", "ada-gd", "retain"):
    server = fedstay.Server(np.zeros(rows.shape[1]), rule, 0.1)
    for _ in range(2):
        told = enumerate([0.1, 0.1, 0.2, 9.0])
        server.step([fedstay.Report(i, rows[i], loss=f, epsilon=0.1) for i, f in told])
    sys.stdout.buffer.write(server.weights.tobytes())
"""


def test_a_step_has_the_same_bits_for_any_number_of_threads():
    def bits(threads):
        env = {**os.environ, "RAYON_NUM_THREADS": str(threads)}
        command = [sys.executable, "-c", THREADS]
        return subprocess.run(command, env=env, check=True, capture_output=True).stdout

    one = bits(1)
    assert len(one) == 3 * 8 * 300_001
    assert bits(2) == one and bits(8) == one


def test_a_forked_child_steps_on_its_own():
    rows = np.random.default_rng(4).normal(size=(3, 200_000)).astype(np.float32)
    expected = stepped(rows).tobytes()
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply_async(stepped, (rows,)).get(timeout=60).tobytes() == expected


FORKED = """
import multiprocessing, numpy as np, fedstay

def stepped(rows):
    server = fedstay.Server(np.zeros(rows.shape[1]), "retain", 0.1)
    server.step([fedstay.Report(i, row, loss=2.0, epsilon=0.1) for i, row in enumerate(rows)])
    return server.weights.tobytes()

# Starts the threads of the process before any server does.
fedstay.run(set={"rounds": 2})
rows = (1 + np.random.default_rng(5).normal(size=(200, 300))).astype(np.float32)
with multiprocessing.get_context("fork").Pool(1) as pool:
    forked = pool.apply_async(stepped, (rows,)).get(timeout=60)
assert forked == stepped(rows) and np.frombuffer(forked).any()
"""


def test_a_forked_child_decides_about_many_on_its_own():
    subprocess.run([sys.executable, "-c", FORKED], check=True, timeout=120)

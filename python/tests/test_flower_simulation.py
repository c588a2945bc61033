"""The same app on Flower's simulation engine."""

import os

import fedstay
import numpy as np
import pytest
from federation import Federation
from loopback.bowls import START, STEP_SIZE, agents

pytestmark = pytest.mark.skipif(
    "FEDSTAY_NO_NAMESPACE" in os.environ, reason="Ray would bind to the machine's own address"
)


def test_the_simulation_engine_gives_the_same_bits(tmp_path):
    federation = Federation(tmp_path / "federation", secure=False, simulation=True)
    out = tmp_path / "out"
    try:
        options = "num-supernodes=3 client-resources-num-cpus=1"
        run = federation.start_run("--federation-config", options, out=out, rounds=4)
        assert federation.finish(run, out, 500) == "finished:completed", federation.log("superlink")
    finally:
        federation.close()
    # Agents are named after their partitions here: 0, 1, 2.
    simulated = fedstay.simulate(
        list(agents().values()), "fedavg", weights=START, step_size=STEP_SIZE, rounds=4, on="bowls"
    )
    kept = fedstay.read(out)
    assert kept.left == simulated.left == [(1, 3)]
    assert kept.lines == simulated.lines
    assert np.load(out / "weights.npy").tobytes() == simulated.weights.tobytes()

"""Kills servers at random moments: `python killed_server.py FOLDER KILLS SEED`.

Every server is a process of its own, with Flower's messages on a grid inside it, and dies by SIGKILL.
Then another continues in its folder, until one gets through; the folder must equal that of a server
that was left alone, byte for byte. They share nothing but the folder. Every second run shows agents
previews, which belong to what must survive.
"""

import os
import random
import signal
import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent / "loopback")]

import fedstay  # noqa: E402, F401 (before the fork, for its time)
from fedstay.flower import FedStay  # noqa: E402
from flwr.app import Array, ArrayRecord  # noqa: E402
from loopback.bowls import START, STEP_SIZE  # noqa: E402
from nodes import Nodes, bowl_app  # noqa: E402

ROUNDS = 60
POLICIES = (None, "preview")
SAME = (
    "rounds.jsonl",
    "summary.json",
    "config.toml",
    "report.html",
    "run.svg",
    "model.safetensors",
)


def serve(out, policy=None):
    """A server in a process of its own."""
    child = os.fork()
    if child:
        return child
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # The log.
        options = {"evaluate_every": 3, "wait": 0.01, "policy": policy}
        strategy = FedStay("fedavg", step_size=STEP_SIZE / 8, out=out, **options)
        arrays = ArrayRecord({"w": Array(START)})
        strategy.start(Nodes("abc", bowl_app()), arrays, num_rounds=ROUNDS, timeout=5)
    except BaseException as error:  # noqa: BLE001
        print(repr(error), flush=True)
        os._exit(1)
    os._exit(0)


def main(folder, kills, seed):
    draw = random.Random(seed)
    began = time.monotonic()
    for policy in POLICIES:
        assert os.waitpid(serve(folder / f"alone-{policy}", policy), 0)[1] == 0
    usual = (time.monotonic() - began) / len(POLICIES)
    assert b'"shown"' in (folder / "alone-preview" / "rounds.jsonl").read_bytes()
    killed, runs = 0, 0
    while killed < kills:
        out, policy = folder / f"killed-{runs}", POLICIES[runs % len(POLICIES)]
        while not (out / "summary.json").exists():
            child = serve(out, policy)
            if killed < kills:
                time.sleep(draw.uniform(0.0, 1.1 * usual))
                os.kill(child, signal.SIGKILL)  # Not reaped yet, so the number is still its own.
            _, status = os.waitpid(child, 0)
            if os.WIFSIGNALED(status):
                killed += 1
            else:
                assert os.WEXITSTATUS(status) == 0, f"{out} could not be resumed"
        for name in SAME:
            wanted = (folder / f"alone-{policy}" / name).read_bytes()
            assert (out / name).read_bytes() == wanted, f"{out}/{name}"
        runs += 1
    print(f"{killed} kills, {runs} runs resumed to the same bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))

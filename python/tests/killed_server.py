"""Kills servers at random moments: `python killed_server.py FOLDER KILLS SEED`.

Every server is a process of its own, with Flower's messages on a grid inside it, and dies by SIGKILL.
Then another continues in its folder, until one gets through; the folder must equal that of a server
that was left alone, byte for byte. They share nothing but the folder.
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
SAME = (
    "rounds.jsonl",
    "summary.json",
    "config.toml",
    "report.html",
    "run.svg",
    "model.safetensors",
)


def serve(out):
    """A server in a process of its own."""
    child = os.fork()
    if child:
        return child
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # The log.
        strategy = FedStay("fedavg", step_size=STEP_SIZE / 8, out=out, evaluate_every=3, wait=0.01)
        arrays = ArrayRecord({"w": Array(START)})
        strategy.start(Nodes("abc", bowl_app()), arrays, num_rounds=ROUNDS, timeout=5)
    except BaseException as error:  # noqa: BLE001
        print(repr(error), flush=True)
        os._exit(1)
    os._exit(0)


def main(folder, kills, seed):
    draw = random.Random(seed)
    began = time.monotonic()
    assert os.waitpid(serve(folder / "alone"), 0)[1] == 0
    usual = time.monotonic() - began
    wanted = {name: (folder / "alone" / name).read_bytes() for name in SAME}
    killed, runs = 0, 0
    while killed < kills:
        out = folder / f"killed-{runs}"
        while not (out / "summary.json").exists():
            child = serve(out)
            if killed < kills:
                time.sleep(draw.uniform(0.0, 1.1 * usual))
                os.kill(child, signal.SIGKILL)  # Not reaped yet, so the number is still its own.
            _, status = os.waitpid(child, 0)
            if os.WIFSIGNALED(status):
                killed += 1
            else:
                assert os.WEXITSTATUS(status) == 0, f"{out} could not be resumed"
        for name, bytes_ in wanted.items():
            assert (out / name).read_bytes() == bytes_, f"{out}/{name}"
        runs += 1
    print(f"{killed} kills, {runs} runs resumed to the same bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))

"""A task of `tasks.py` in Flower's simulation (PyPI `flwr[simulation]`), two Ray actors of one thread each.

    python bench/contestants/flower.py TASK ROUNDS SEED

Prints one line of JSON: the seconds of the rounds with their evaluations, and the last test accuracy. Ray starts
its actors in the first round, and each of them reads the images then: the rounds of the second half, whose mean
counts for all, do neither. What remains of the command is start-up.
"""

import dataclasses
import json
import os
import sys
import time

# Read when Flower and Ray are imported, here and in the actors. Nothing leaves the machine; and actors are as
# urgent as the other contestants, whereas Ray's own choice is to wait for everything else on the machine.
os.environ |= {
    "FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1", "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0", "RAY_worker_niceness": "0",
}  # fmt: skip
# Actors import `flower_client` from here.
os.environ["PYTHONPATH"] = os.path.dirname(os.path.abspath(__file__))

import torch
from flower_client import app
from flwr.app import ArrayRecord, ConfigRecord, MetricRecord
from flwr.serverapp import ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation
from tasks import TASKS
from torch_loop import accuracy


def main():
    name, rounds, seed = sys.argv[1], *map(int, sys.argv[2:])
    task = dataclasses.replace(TASKS[name], rounds=rounds)
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    test = task.deal(seed)[1]
    net = task.net()
    marks, reached = [], []

    def look(round_, arrays):
        """Called before the first round and after each."""
        if round_ in task.looks:
            net.load_state_dict(arrays.to_torch_state_dict())
            reached.append(accuracy(net, *test))
        marks.append(time.perf_counter())
        return MetricRecord()

    server = ServerApp()

    @server.main()
    def serve(grid, context):
        strategy = FedAvg(
            fraction_train=task.asked / task.clients,
            min_train_nodes=task.asked,
            min_available_nodes=task.clients,
            fraction_evaluate=0.0,
        )
        strategy.start(
            grid,
            ArrayRecord(net.state_dict()),
            num_rounds=rounds,
            train_config=ConfigRecord({"task": name, "seed": seed}),
            evaluate_fn=look,
        )

    run_simulation(
        server_app=server,
        client_app=app,
        num_supernodes=task.clients,
        backend_config={
            "init_args": {"num_cpus": 2, "include_dashboard": False},
            "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
        },
    )
    half = rounds // 2
    each = (marks[-1] - marks[half]) / (rounds - half)
    print(json.dumps({"rounds": each * rounds, "accuracy": reached[-1]}))


if __name__ == "__main__":
    main()

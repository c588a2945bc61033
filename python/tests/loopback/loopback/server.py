"""The server app."""

import json

import numpy as np
from fedstay.flower import FedStay
from flwr.app import Array, ArrayRecord
from flwr.serverapp import ServerApp

from .bowls import START, STEP_SIZE

app = ServerApp()


@app.main()
def main(grid, context):
    config = context.run_config
    rule = config["rule"]
    strategy = FedStay(
        json.loads(rule) if rule.startswith("{") else rule,
        step_size=STEP_SIZE,
        policy=config["policy"] or None,
        out=config["out"],
        min_available_nodes=int(config["nodes"]),
        max_silent=int(config["max-silent"]),
        evaluate_leavers=config["scenario"] == "plain",
        on="bowls",
    )
    result = strategy.start(
        grid,
        ArrayRecord({"w": Array(START)}),
        num_rounds=int(config["rounds"]),
        timeout=float(config["timeout"]),
    )
    np.save(config["out"] + "/weights.npy", result.arrays["w"].numpy())

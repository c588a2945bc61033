"""Flower's client, for `flower.py`: a module of its own, because what is in a script travels with every message."""

from functools import cache

import torch
from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from tasks import TASKS
from torch_loop import train

app = ClientApp()


@cache
def ready(name, seed):
    """The clients' images, the model and its optimiser: made once in each actor."""
    torch.set_num_threads(1)
    task = TASKS[name]
    data, _ = task.deal(seed)
    model = task.net()
    return task, data, model, torch.optim.SGD(model.parameters(), lr=task.step)


@app.train()
def fit(message, context):
    given = message.content["config"]
    task, (xs, ys), model, optimizer = ready(given["task"], given["seed"])
    client = context.node_config["partition-id"]
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    train(task, model, optimizer, xs[client], ys[client])
    told = {
        "arrays": ArrayRecord(model.state_dict()),
        "metrics": MetricRecord({"num-examples": len(ys[client])}),
    }
    return Message(content=RecordDict(told), reply_to=message)

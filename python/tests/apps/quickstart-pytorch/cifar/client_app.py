"""A node: trains what it receives on its own images, and tests it."""

import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from cifar.task import Net, load_data
from cifar.task import test as test_fn
from cifar.task import train as train_fn

app = ClientApp()


def received(message):
    """The model as the server sent it, and where it is computed."""
    model = Net()
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    return model, torch.device("cuda:0" if torch.cuda.is_available() else "cpu")


def own_data(context):
    """This node's loaders."""
    node, batch_size = context.node_config, context.run_config["batch-size"]
    return load_data(node["partition-id"], node["num-partitions"], batch_size)


@app.train()
def train(message: Message, context: Context):
    model, device = received(message)
    loader, _ = own_data(context)
    epochs, lr = context.run_config["local-epochs"], message.content["config"]["lr"]
    train_loss = train_fn(model, loader, epochs, lr, device)
    metrics = MetricRecord({"train_loss": train_loss, "num-examples": len(loader.dataset)})
    arrays = ArrayRecord(model.state_dict())
    return Message(RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=message)


@app.evaluate()
def evaluate(message: Message, context: Context):
    model, device = received(message)
    _, loader = own_data(context)
    eval_loss, eval_acc = test_fn(model, loader, device)
    metrics = {"eval_loss": eval_loss, "eval_acc": eval_acc, "num-examples": len(loader.dataset)}
    return Message(RecordDict({"metrics": MetricRecord(metrics)}), reply_to=message)

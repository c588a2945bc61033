"""The agents: decide, then report the gradient or say goodbye."""

from fedstay.flower import decide_and_report, evaluate_and_report
from flwr.clientapp import ClientApp

from .task import load_data, net

app = ClientApp()


def mine(context):
    config = context.run_config
    return load_data(context.node_config["partition-id"], config["agents"], config["images"])


@app.train()
def train(message, context):
    return decide_and_report(net(), mine(context), message, context)


@app.evaluate()
def evaluate(message, context):
    return evaluate_and_report(net(), mine(context), message, context)

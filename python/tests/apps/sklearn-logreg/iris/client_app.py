"""A node: fits what it receives to its own flowers, and tests it."""

import warnings

from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from sklearn.metrics import log_loss

from iris.task import LABELS, get_params, load_data, make_model, set_params

app = ClientApp()


@app.train()
def train(message: Message, context: Context):
    model = make_model(context.run_config["local-epochs"])
    set_params(model, message.content["arrays"].to_numpy_ndarrays())
    node = context.node_config
    x, y, _, _ = load_data(node["partition-id"], node["num-partitions"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # A few passes do not converge, and need not.
        model.fit(x, y)
    train_logloss = log_loss(y, model.predict_proba(x), labels=LABELS)
    metrics = MetricRecord({"train_logloss": train_logloss, "num-examples": len(y)})
    arrays = ArrayRecord(get_params(model))
    return Message(RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=message)


@app.evaluate()
def evaluate(message: Message, context: Context):
    model = make_model(context.run_config["local-epochs"])
    set_params(model, message.content["arrays"].to_numpy_ndarrays())
    node = context.node_config
    _, _, x, y = load_data(node["partition-id"], node["num-partitions"])
    test_logloss = log_loss(y, model.predict_proba(x), labels=LABELS)
    told = {"test_logloss": test_logloss, "accuracy": model.score(x, y), "num-examples": len(y)}
    return Message(RecordDict({"metrics": MetricRecord(told)}), reply_to=message)

"""Opacus itself, not only its names: of an app that trains with it nothing exact leaves the site.

Opacus needs PyTorch: scripts/test-examples runs this.
"""

import numpy as np
import pytest
from fedstay.flower import (
    FedStay,
    TorchAgent,
    agent_mod,
    agent_name,
    arrays_of,
    decide_and_report,
    evaluate_and_report,
)
from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from nodes import Nodes

torch = pytest.importorskip("torch")
opacus = pytest.importorskip("opacus")

LOADERS = {}
for number, name in enumerate("abc"):
    draw = torch.Generator().manual_seed(number)
    inputs = torch.randn(40, 6, generator=draw) + number
    rows = torch.utils.data.TensorDataset(inputs, (inputs.sum(1) > 6 * number).long())
    LOADERS[name] = torch.utils.data.DataLoader(rows, batch_size=20)


def net():
    torch.manual_seed(7)
    return torch.nn.Sequential(torch.nn.Linear(6, 2))


def received(message):
    model = net()
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    return model


def look(message, context):
    """Loss and gradient at what was received, without fedstay's help."""
    model = received(message)
    inputs, labels = LOADERS[agent_name(context)].dataset.tensors
    loss = torch.nn.functional.cross_entropy(model(inputs), labels)
    loss.backward()
    return loss.item(), {key: p.grad.numpy() for key, p in model.named_parameters()}


def train_privately(model, loader):
    """As Opacus' own tutorial has it; gives what such functions give, a loss among it."""
    engine = opacus.PrivacyEngine(accountant="rdp")
    private, optimizer, batches = engine.make_private(
        module=model.train(),
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=loader,
        noise_multiplier=1.0,
        max_grad_norm=1.0,
    )
    for inputs, labels in batches:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(private(inputs), labels).backward()
        optimizer.step()
    return engine.get_epsilon(delta=1e-3)


def around_a_train_function():
    app = ClientApp(mods=[agent_mod(look, epsilon=1e-6, tells=["spent"])])

    @app.train()
    def _(message, context):
        model = received(message)
        loss = look(message, context)[0]
        spent = train_privately(model, LOADERS[agent_name(context)])
        metrics = MetricRecord({"train_loss": loss, "spent": spent, "num-examples": 40})
        content = {"arrays": ArrayRecord(model.state_dict()), "metrics": metrics}
        return Message(RecordDict(content), reply_to=message)

    @app.evaluate()
    def _(message, context):
        metrics = MetricRecord({"eval_loss": look(message, context)[0], "num-examples": 40})
        return Message(RecordDict({"metrics": metrics}), reply_to=message)

    return app


def as_a_whole():
    app = ClientApp()

    @app.train()
    def _(message, context):
        loader = LOADERS[agent_name(context)]

        def train(model):
            loss = look(message, context)[0]
            return {"train_loss": loss, "spent": train_privately(model, loader)}

        return decide_and_report(
            net(),
            list(loader),
            message,
            context,
            epsilon=1e-6,
            train=train,
            reach=0.2,
            tells=["spent"],
        )

    @app.evaluate()
    def _(message, context):
        return evaluate_and_report(net(), list(LOADERS[agent_name(context)]), message, context)

    return app


class Gate(Nodes):
    """Keeps what leaves."""

    def __init__(self, app):
        super().__init__("abc", app)
        self.left = []

    def answer(self, message, context):
        reply = super().answer(message, context)
        assert not reply.has_error(), reply.error.reason
        self.left.append((message, context, reply.content))
        return reply


@pytest.mark.parametrize("app", [around_a_train_function, as_a_whole])
def test_of_an_app_that_trains_with_opacus_nothing_exact_leaves(app):
    grid, strategy = Gate(app()), FedStay("fedavg", wait=0.0, tries=1)
    strategy.start(grid, arrays_of(net()), num_rounds=2, timeout=60)
    assert strategy.result.faults == [] and strategy.result.left == []
    kinds = {message.metadata.message_type for message, *_ in grid.left}
    assert kinds == {"train", "evaluate"}
    for message, context, content in grid.left:
        loss, slopes = look(message, context)
        records = [*content.config_records.values(), *content.metric_records.values()]
        numbers = [v for record in records for v in record.values() if isinstance(v, float)]
        assert not np.isclose(numbers, loss, rtol=1e-4).any(), numbers
        arrays = [a.numpy() for r in content.array_records.values() for a in r.values()]
        for array in arrays:
            assert not any(
                array.shape == slope.shape and np.allclose(array, slope, atol=1e-5)
                for slope in slopes.values()
            )
        if message.metadata.message_type == "train":
            # What Opacus left is what is sent, and what the app says to be private.
            assert set(content.array_records) == {"arrays"}
            assert content["metrics"]["spent"] > 0.0 and "train_loss" not in content["metrics"]
            step = content["arrays"]["0.bias"].numpy() - message.content["arrays"]["0.bias"].numpy()
            assert np.abs(step).max() > 1e-4
        else:
            assert set(content["metrics"]) <= {"num-examples"}


def test_a_module_and_an_optimizer_of_opacus_are_found_by_what_they_are():
    """Where the optimizer is Opacus' and the train loop is fedstay's."""
    app = ClientApp()

    def private(parameters):
        plain = torch.optim.SGD(parameters, lr=0.1)
        return opacus.optimizers.DPOptimizer(
            plain, noise_multiplier=1.0, max_grad_norm=1.0, expected_batch_size=20
        )

    def agent(context):
        module = opacus.GradSampleModule(net())
        return TorchAgent(
            module, list(LOADERS[agent_name(context)]), optimizer=private, epsilon=1e-6
        )

    @app.train()
    def _(message, context):
        return decide_and_report(agent(context), None, message, context)

    @app.evaluate()
    def _(message, context):
        return evaluate_and_report(agent(context), None, message, context)

    grid, strategy = Gate(app), FedStay("fedavg", wait=0.0, tries=1)
    strategy.start(grid, arrays_of(opacus.GradSampleModule(net())), num_rounds=2, timeout=60)
    assert strategy.result.faults == []
    for message, _, content in grid.left:
        assert "gradient" not in content.array_records
        assert message.metadata.message_type == "train" or not content["metrics"]
        said = content["fedstay"]
        assert said.get("at-least") is True or said.get("withholds") is True

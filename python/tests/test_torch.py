"""PyTorch modules as agents, in this process and behind Flower; where PyTorch is installed."""

import fedstay
import numpy as np
import pytest
from fedstay.flower import FedStay, agent_mod, arrays_of, decide_and_report, evaluate_and_report
from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from nodes import Nodes

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

OPTIMISERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.02, momentum=0.9),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01),
}


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def net(normalises=True, dtype=torch.float32):
    torch.manual_seed(0)
    norm = nn.BatchNorm1d(8) if normalises else nn.Identity()
    return nn.Sequential(nn.Linear(4, 8), norm, nn.ReLU(), nn.Linear(8, 3)).to(dtype)


def batches(number, dtype=torch.float32, size=20):
    draw = torch.Generator().manual_seed(number)
    x = torch.randn(60, 4, generator=draw) + 0.3 * number
    y = (x.sum(1) > 1).long() + (x[:, 0] > 0.5).long()
    return [(a.to(dtype), b) for a, b in zip(x.split(size), y.split(size), strict=True)]


def people(model, optimizer=OPTIMISERS["adam"], **more):
    return {
        f"agent {i}": fedstay.TorchAgent(model, batches(i), optimizer=optimizer, **more)
        for i in range(3)
    }


def test_loss_and_gradient_are_pytorchs():
    model = net()
    agent = fedstay.TorchAgent(model, batches(0))
    start = agent.weights()
    value, slope = agent.loss_and_grad(start)
    model.eval()
    x, y = (torch.cat(part) for part in zip(*batches(0), strict=True))
    loss = nn.functional.cross_entropy(model(x), y)
    wanted = torch.cat([g.flatten() for g in torch.autograd.grad(loss, model.parameters())])
    assert abs(value - loss.item()) < 1e-6 and np.allclose(slope, wanted.numpy(), atol=1e-6)
    assert agent.samples == 60 and agent.loss(start) == value
    assert agent.accuracy(start) == int((model(x).argmax(1) == y).sum()) / 60
    # Only parameters are weights.
    assert len(start) == sum(p.numel() for p in model.parameters())
    assert set(agent.buffers()) == {"1.running_mean", "1.running_var", "1.num_batches_tracked"}


@pytest.mark.parametrize("optimizer", OPTIMISERS)
def test_previews_keep_everybody_however_they_train(optimizer):
    common = {"rounds": 20, "epsilon": 0.0}
    free = fedstay.simulate(
        people(net(), OPTIMISERS[optimizer]), "fedavg", behaviour="never", **common
    )
    # Everybody is content half way.
    common["epsilon"] = free.lines[9]["loss"]
    lost = fedstay.simulate(people(net(), OPTIMISERS[optimizer]), "fedavg", **common)
    held = fedstay.simulate(
        people(net(), OPTIMISERS[optimizer]), "fedavg", policy=fedstay.Preview(margin=0.2), **common
    )
    assert lost.left and held.left == []
    ends = [np.mean([a["loss"] for a in run.summary["agents"]]) for run in (free, held)]
    assert ends[1] < 1.5 * ends[0] + 0.05, ends


def test_it_repeats_bit_for_bit_and_resumes_to_the_same_bytes(tmp_path):
    common = {"rounds": 6, "epsilon": 0.2, "policy": fedstay.Preview(), "rule": "fedavg", "seed": 5}
    loader = [torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(*map(torch.cat, zip(*batches(i), strict=True))),
        batch_size=16, shuffle=True) for i in range(3)]  # fmt: skip

    def crowd():
        return [fedstay.TorchAgent(net(), data, optimizer=OPTIMISERS["adam"]) for data in loader]

    whole = fedstay.simulate(crowd(), out=tmp_path / "whole", **common)
    torch.manual_seed(99)
    assert fedstay.simulate(crowd(), **common).weights.tobytes() == whole.weights.tobytes()

    def stop(info):
        if info.round == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fedstay.simulate(crowd(), out=tmp_path / "cut", callbacks=[stop], **common)
    again = fedstay.simulate(crowd(), out=tmp_path / "cut", resume=True, **common)
    assert again.lines == whole.lines and again.weights.tobytes() == whole.weights.tobytes()
    for name in ("rounds.jsonl", "summary.json", "model.safetensors"):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    # What was delivered is a state dict, buffers and counters included.
    model = net()
    model.load_state_dict(again.state_dict())
    model.load_state_dict(fedstay.read(tmp_path / "cut").state_dict())
    assert int(model[1].num_batches_tracked) > 0
    assert "<table>" in again._repr_html_() and "<svg" in again._repr_html_()


def test_steps_and_epochs():
    counted = []

    class Counting(torch.optim.SGD):
        def step(self, *more):
            counted.append(1)
            super().step(*more)

    for options, wanted in (({"epochs": 2}, 6), ({"steps": 7}, 7), ({"steps": 2}, 2)):
        counted.clear()
        agent = fedstay.TorchAgent(
            net(), batches(0), optimizer=lambda p: Counting(p, lr=0.1), **options
        )
        agent.work(agent.weights(), seed=1)
        assert len(counted) == wanted
    with pytest.raises(fedstay.Error, match="not by both"):
        fedstay.TorchAgent(net(), [], optimizer=OPTIMISERS["sgd"], train=print)


def flower(app, model, rounds=4, **options):
    grid = Nodes("012", app)
    strategy = FedStay(**{"epsilon": 0.05, "wait": 0.01, "tries": 1, **options})
    result = strategy.start(grid, arrays_of(model), num_rounds=rounds, timeout=5)
    return strategy, result


def mine(context):
    return batches(int(context.node_config["agent"]))


def reported(dtype=torch.float32, optimizer=OPTIMISERS["adam"]):
    app = ClientApp()

    @app.train()
    def train(message, context):
        number = int(context.node_config["agent"])
        agent = fedstay.TorchAgent(net(dtype=dtype), batches(number, dtype), optimizer=optimizer)
        return decide_and_report(agent, None, message, context)

    @app.evaluate()
    def evaluate(message, context):
        number = int(context.node_config["agent"])
        return evaluate_and_report(net(dtype=dtype), batches(number, dtype), message, context)

    return app


def test_a_flower_app_and_its_mod_report_the_same():
    """The one trains in `TorchAgent`, the other in a train function as Flower's users have it."""
    app = ClientApp(mods=[agent_mod(agent=lambda c: fedstay.TorchAgent(net(), mine(c)))])

    @app.train()
    def train(message, context):
        model = net()
        model.load_state_dict(message.content["arrays"].to_torch_state_dict())
        model.train()
        optimiser = OPTIMISERS["adam"](model.parameters())
        for x, y in mine(context):
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimiser.step()
        arrays = ArrayRecord(model.state_dict())
        metrics = MetricRecord({"num-examples": 60})
        return Message(RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=message)

    one, first = flower(app, net(), evaluate_at_end=False)
    other, second = flower(reported(), net(), evaluate_at_end=False)
    assert one.result.lines == other.result.lines
    for key, array in first.arrays.items():
        assert array.numpy().tobytes() == second.arrays[key].numpy().tobytes(), key
    keys = one.reader.layout.keys
    assert "1.running_mean" not in keys and "1.weight" in keys
    # And both are what the agents do in one process.
    here = fedstay.simulate(
        [fedstay.TorchAgent(net(), batches(i), optimizer=OPTIMISERS["adam"]) for i in range(3)],
        "fedavg", policy=fedstay.Preview(), rounds=4, epsilon=0.05,
    )  # fmt: skip
    assert np.allclose(here.weights, one.result.weights, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precisions_work(dtype):
    # Adam's own ε is zero in float16.
    strategy, result = flower(reported(dtype, OPTIMISERS["sgd"]), net(dtype=dtype), rounds=3)
    assert strategy.result.faults == [] and len(strategy.result.lines) == 3
    losses = [np.mean(line["loss"]) for line in strategy.result.lines]
    assert losses[-1] < losses[0]
    model = net(dtype=dtype)
    model.load_state_dict(result.arrays.to_torch_state_dict())
    assert next(model.parameters()).dtype == dtype


def test_gradient_reports_move_the_buffers_too():
    app = ClientApp()

    @app.train()
    def train(message, context):
        return decide_and_report(net(), mine(context), message, context)

    strategy, result = flower(app, net(), step_size=0.2, rounds=10, evaluate_at_end=False)
    moved = result.arrays["1.running_mean"].numpy()
    assert np.abs(moved).max() > 0.1 and np.isfinite(strategy.result.weights).all()


def test_tied_weights_are_one_parameter():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.first = nn.Linear(4, 4, bias=False)
            self.second = nn.Linear(4, 4, bias=False)
            self.second.weight = self.first.weight

        def forward(self, x):
            return self.second(torch.relu(self.first(x)))

    app = ClientApp()

    @app.train()
    def train(message, context):
        agent = fedstay.TorchAgent(Tied(), mine(context), optimizer=OPTIMISERS["adam"])
        return decide_and_report(agent, None, message, context)

    strategy, result = flower(app, Tied(), evaluate_at_end=False)
    assert len(strategy.result.weights) == 16 and strategy.result.faults == []
    first, second = (result.arrays[f"{name}.weight"].numpy() for name in ("first", "second"))
    assert first.tobytes() == second.tobytes()
    assert set(strategy.result.state_dict()) == {"first.weight", "second.weight"}

"""PyTorch modules under rules that ask for more, and as judges; where PyTorch is installed."""

import fedstay
import numpy as np
import pytest
from fedstay.flower import FedStay, agent_name, arrays_of, decide_and_report
from flwr.clientapp import ClientApp
from nodes import Nodes

torch = pytest.importorskip("torch")
from test_torch import OPTIMISERS, batches, net  # noqa: E402
from torch import nn  # noqa: E402

NAMES = "abc"
LEARNING_RATE = 0.1


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def people(**more):
    made = {
        "optimizer": OPTIMISERS["sgd"],
        "steps": 4,
        "epsilon": 1e-9,
        "behaviour": "never",
        **more,
    }
    model = net(normalises=False)
    return {
        name: fedstay.TorchAgent(model, batches(number), **made)
        for number, name in enumerate(NAMES)
    }


def whole(number):
    x, y = (torch.cat(part) for part in zip(*batches(number), strict=True))
    return [(x, y)]


def test_corrected_steps_are_those_of_a_loop_by_hand():
    agent = people()["b"]
    start = agent.weights()
    by = np.random.default_rng(0).normal(size=len(start)).astype(np.float32) / 10
    end, reach = agent.corrected(start, by, seed=3)
    assert reach == pytest.approx(4 * LEARNING_RATE)
    assert (
        agent.corrected(start, 0 * by, seed=3)[0].tobytes() == agent.work(start, seed=3).tobytes()
    )
    model = net(normalises=False)
    parameters = list(model.parameters())
    for batch in (batches(1) * 2)[:4]:
        loss = nn.functional.cross_entropy(model(batch[0]), batch[1])
        slopes, at = torch.autograd.grad(loss, parameters), 0
        for parameter, slope in zip(parameters, slopes, strict=True):
            part = torch.from_numpy(by[at : at + slope.numel()]).reshape(slope.shape)
            parameter.data -= LEARNING_RATE * (slope + part)
            at += slope.numel()
    by_hand = torch.cat([p.detach().flatten() for p in parameters]).numpy()
    assert np.allclose(end, by_hand, atol=1e-6)


def test_scaffold_with_one_step_on_all_rows_is_averaging_and_with_several_is_not():
    def far(steps):
        model = net(normalises=False)
        agents = [
            fedstay.TorchAgent(
                model, whole(n), optimizer=OPTIMISERS["sgd"], steps=steps, epsilon=0.0
            )
            for n in range(3)
        ]
        start, ends = agents[0].weights(), []
        for rule in ("scaffold", "fedavg"):
            more = {"rounds": 20, "behaviour": "never", "weights": start}
            ends.append(fedstay.simulate(agents, rule, **more).weights)
        return np.abs(ends[0] - ends[1]).max()

    assert far(1) < 1e-5 and far(8) > 1e-3


def test_who_cannot_correct_is_named_with_what_to_do():
    for more, why in (
        ({"optimizer": OPTIMISERS["adam"]}, "with Adam a step is not a multiple of the gradient"),
        ({"optimizer": OPTIMISERS["momentum"]}, "with SGD a step is not"),
        ({"optimizer": None, "train": lambda model: None}, "trains by a function of its own"),
    ):
        with pytest.raises(fedstay.Error, match=f"agent a cannot do that: .*{why}"):
            fedstay.simulate(people(**more), "scaffold", rounds=2)
    with pytest.raises(fedstay.Error, match="agent a cannot do that: give it `groups=`"):
        fedstay.simulate(people(), "fairfed", rounds=2)
    with pytest.raises(fedstay.Error, match="one agent after the other"):
        fedstay.simulate(people(), "scaffold", rounds=2, together="threads")

    class Own(fedstay.TorchAgent):
        def corrected(self, weights, correction, *, seed):
            return weights - 0.1 * correction, 0.1

    own = Own(net(normalises=False), batches(0), train=lambda model: None, epsilon=0.0)
    assert fedstay.simulate([own], "scaffold", rounds=2).summary["rounds"] == 2


def test_a_scaffold_run_that_was_cut_off_resumes_to_the_same_bytes(tmp_path):
    whole_run = fedstay.simulate(people(), "scaffold", rounds=6, out=tmp_path / "whole")

    def cut(info):
        if info.round == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fedstay.simulate(people(), "scaffold", rounds=6, out=tmp_path / "cut", callbacks=[cut])
    again = fedstay.simulate(people(), "scaffold", rounds=6, out=tmp_path / "cut", resume=True)
    assert again.weights.tobytes() == whole_run.weights.tobytes()
    for name in ("rounds.jsonl", "summary.json"):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def second(batch):
    return batch[0][:, 1] > 0


def test_groups_are_counted():
    agent = fedstay.TorchAgent(net(), batches(0), groups=second, positive=1)
    rates = agent.rates(agent.weights())
    x, y = whole(0)[0]
    agent.model.eval()
    hit = agent.model(x).argmax(1) == y
    for group in (0, 1):
        own = (y == 1) & ((x[:, 1] > 0) == bool(group))
        assert (rates.right[group], rates.of[group]) == (int((hit & own).sum()), int(own.sum()))
    assert (rates.correct, rates.rows) == (int(hit.sum()), 60)
    every = fedstay.TorchAgent(agent.model, batches(0), groups=second).count()
    assert sum(every.of) == 60 and sum(every.right) == every.correct


def on_flower(rule, agents, **more):
    app = ClientApp()

    @app.train()
    def train(message, context):
        return decide_and_report(agents[agent_name(context)], None, message, context)

    strategy = FedStay(rule, evaluate_at_end=False, **more)
    start = arrays_of(net(normalises=False))
    strategy.start(Nodes(NAMES, app), start, num_rounds=5, timeout=1.0)
    return strategy.result


def test_scaffold_and_fairfed_on_flower_are_those_of_simulate():
    start = people()["a"].weights()
    for rule, more in (("scaffold", {}), ("fairfed", {"groups": second})):
        own = fedstay.simulate(people(**more), rule, rounds=5, weights=start, together="off")
        there = on_flower(rule, people(**more))
        assert not there.faults
        assert np.abs(there.weights - own.weights).max() < 1e-7
    gradients = {"optimizer": None}
    own = fedstay.simulate(people(**gradients), "scaffold", rounds=5, weights=start, step_size=0.1)
    there = on_flower("scaffold", people(**gradients), step_size=0.1)
    assert np.abs(there.weights - own.weights).max() < 1e-7


def test_an_agent_with_other_rows_is_a_judge():
    start = people()["a"].weights()
    judge = fedstay.TorchAgent(net(normalises=False), batches(7))
    worth = fedstay.Worth(["loo", "help"], judge=judge)
    own = fedstay.simulate(people(), "fedavg", rounds=5, weights=start, worth=worth, together="off")
    told = [agent["worth"]["loo"] for agent in own.summary["agents"]]
    by_function = fedstay.Worth(["loo"], judge=lambda w: judge.loss(w))
    again = fedstay.simulate(people(), "fedavg", rounds=5, weights=start, worth=by_function)
    assert told == [agent["worth"]["loo"] for agent in again.summary["agents"]]
    there = on_flower("fedavg", people(), worth=worth)
    flower = [agent["worth"]["loo"] for agent in there.summary["agents"]]
    assert np.allclose(flower, told, atol=1e-6) and any(told)

"""What agents are worth, for agents in Python and behind Flower: the scores of the native simulator."""

import json

import fedstay
import numpy as np
import pytest
from fedstay import _core
from fedstay.flower import FedStay
from flwr.app import MetricRecord
from loopback.bowls import START as BOWL_START
from loopback.bowls import STEP_SIZE, agents
from nodes import Nodes, bowl_app, start

METHODS = [name for name, _ in _core.worth_methods()]


class Ramp:
    """An agent of the paper's Observation 3, `max(⟨a, w⟩ + b, 0)`."""

    def __init__(self, slope, offset):
        self.slope, self.offset = np.array(slope), offset

    def loss_and_grad(self, weights):
        value = self.slope[0] * weights[0] + self.slope[1] * weights[1] + self.offset
        return max(value, 0.0), (self.slope if value > 0.0 else 0.0 * self.slope)


RAMPS = [Ramp([0.0, 1.0], 0.0), Ramp([1.0, -1.0], 1.0)]


def mean_loss(weights):
    return sum(ramp.loss_and_grad(weights)[0] for ramp in RAMPS) / len(RAMPS)


def ramps(**more):
    shown = fedstay.run(set={"problem.kind": "observation-3", "rounds": 1}).header["agents"]
    start = {"weights": [2.0, 1.0], "step_size": 0.1, "epsilon": shown[0]["epsilon"]}
    return fedstay.simulate(RAMPS, "fedavg", **{**start, "rounds": 80, **more})


def test_scores_are_those_of_the_simulator_on_the_same_problem():
    native = fedstay.run(
        set={
            "problem.kind": "observation-3",
            "rule.kind": "fedavg",
            "step_size": 0.1,
            "rounds": 80,
            "worth.methods": METHODS,
        }
    )
    own = ramps(worth=fedstay.Worth(METHODS, judge=mean_loss))
    assert own.weights.tolist() == native.weights.tolist() and own.left == native.left != []
    assert own.summary["worth"] == native.summary["worth"]
    for mine, theirs in zip(own.summary["agents"], native.summary["agents"], strict=True):
        assert mine["worth"] == theirs["worth"]
        assert set(mine["worth"]) >= {"given", "got", "loo", "shapley", "gtg", "cgsv", "fedce"}
    assert [line["worth"] for line in own.lines] == [line["worth"] for line in native.lines]


def test_help_sums_to_the_fall_of_every_loss():
    class Bowl:
        epsilon = 1e-9

        def __init__(self, stretch, centre):
            self.stretch, self.centre = np.array(stretch), np.array(centre)

        def loss_and_grad(self, weights):
            away = weights - self.centre
            return 0.5 * float(away @ (self.stretch * away)), self.stretch * away

    bowls = [
        Bowl([1.0, 2.0], [1.0, 0.0]),
        Bowl([0.5, 1.0], [0.0, 3.0]),
        Bowl([2.0, 1.0], [1.0, 1.0]),
    ]
    run = fedstay.simulate(
        bowls, "fedavg", weights=[4.0, -2.0], step_size=0.1, rounds=30, worth=["help"]
    )
    # What the last step did, nobody has judged.
    fall = np.array(run.lines[0]["loss"]) - np.array(run.lines[-1]["loss"])
    helped = np.array(run.summary["worth"]["help"]).sum(axis=1)
    assert np.abs(helped - fall).max() < 1e-10
    for agent in run.summary["agents"]:
        assert abs(agent["worth"]["unexplained"]) < 1e-10
    assert run.summary["worth"]["steps"] == [29, 29, 29]


def test_they_change_no_step_and_without_them_nothing_is_written():
    plain, scored = ramps(), ramps(worth=["help", "reputation"])
    assert plain.weights.tobytes() == scored.weights.tobytes()
    assert "worth" not in plain.summary and "worth" not in plain.lines[0]


def test_a_judge_may_be_an_agent_or_a_function_and_must_be_there():
    class Judge:
        def loss_and_grad(self, weights):
            return mean_loss(weights), None

    class Teller:
        def loss(self, weights):
            return mean_loss(weights)

    told = [ramps(worth=fedstay.Worth(["loo"], judge=j)) for j in (mean_loss, Judge(), Teller())]
    scores = [[agent["worth"]["loo"] for agent in run.summary["agents"]] for run in told]
    assert scores[0] == scores[1] == scores[2]
    with pytest.raises(fedstay.Error, match="loo, gtg ask how good models are on rows that nobody"):
        ramps(worth=["gtg", "help", "loo"])
    with pytest.raises(
        fedstay.Error, match="`shap` is not a way to say what agents are worth: help"
    ):
        ramps(worth=["shap"])
    with pytest.raises(fedstay.Error, match="`judge` is a int"):
        ramps(worth=fedstay.Worth(["loo"], judge=3))

    def broken(weights):
        raise ZeroDivisionError("no rows")

    with pytest.raises(ZeroDivisionError, match="no rows"):
        ramps(worth=fedstay.Worth(["loo"], judge=broken))


def test_a_run_that_was_cut_off_resumes_to_the_same_bytes(tmp_path):
    worth = fedstay.Worth(METHODS, judge=mean_loss)
    ramps(worth=worth, out=tmp_path / "whole")

    def cut(weights, left=[40]):  # noqa: B006
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return mean_loss(weights)

    with pytest.raises(KeyboardInterrupt):
        ramps(worth=fedstay.Worth(METHODS, judge=cut), out=tmp_path / "cut")
    assert not (tmp_path / "cut/summary.json").exists()
    with pytest.raises(fedstay.Error, match="begun with other settings"):
        ramps(worth=fedstay.Worth(["loo"], judge=mean_loss), out=tmp_path / "cut", resume=True)
    ramps(worth=worth, out=tmp_path / "cut", resume=True)
    for name in ("config.toml", "rounds.jsonl", "summary.json"):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    text = (tmp_path / "whole/config.toml").read_text()
    assert "[worth]" in text and '"reputation"' in text
    assert fedstay.read(tmp_path / "whole").summary["agents"][0]["worth"]["given"] is not None


def bowls_loss(weights):
    told = [agent.loss_and_grad(np.asarray(weights))[0] for agent in agents().values()]
    return float(sum(told)) / len(told)


def test_scores_on_flower_are_those_of_simulate(tmp_path):
    worth = fedstay.Worth(METHODS, judge=bowls_loss)
    own = fedstay.simulate(
        agents(), "fedavg", weights=BOWL_START, step_size=STEP_SIZE, rounds=4, worth=worth
    )

    def arrays_loss(arrays):
        return bowls_loss(arrays["w"].numpy())

    def strategy(**more):
        return FedStay("fedavg", step_size=STEP_SIZE, **more)

    def scores(result):
        return [line["worth"] for line in result.lines], [
            agent["worth"] for agent in result.summary["agents"]
        ]

    judged = fedstay.Worth(METHODS, judge=arrays_loss)
    there = start(strategy(worth=judged, out=tmp_path / "run"), Nodes("abc", bowl_app()))
    assert scores(there) == scores(own)
    assert json.loads((tmp_path / "run/summary.json").read_text())["worth"] == own.summary["worth"]

    # Without a judge, what the server evaluates anyway.
    def evaluate(round, arrays):
        return MetricRecord({"loss": arrays_loss(arrays)})

    central = start(strategy(worth=METHODS), Nodes("abc", bowl_app()), evaluate_fn=evaluate)
    assert scores(central) == scores(own)
    with pytest.raises(fedstay.Error, match="loo, shapley, gtg, core ask how good .* evaluate_fn"):
        start(strategy(worth=METHODS), Nodes("abc", bowl_app()))
    silent = {"evaluate_fn": lambda round, arrays: MetricRecord({"accuracy": 1.0})}
    with pytest.raises(fedstay.Error, match="gives neither `eval_loss` nor `loss`"):
        start(strategy(worth=["loo"]), Nodes("abc", bowl_app()), **silent)
    free = start(strategy(worth=["help", "cgsv"]), Nodes("abc", bowl_app()))
    assert set(free.summary["agents"][0]["worth"]) == {"given", "got", "own", "unexplained", "cgsv"}

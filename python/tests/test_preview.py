"""Previews: every agent may receive weights of its own, from Python and behind Flower."""

import fedstay
import numpy as np
import pytest
from fedstay import callbacks
from fedstay.flower import FedStay, agent_mod, agent_name
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from loopback.bowls import START, STEP_SIZE, agents
from nodes import Nodes, bowl_app, start

PREVIEW = fedstay.Preview(delta=0.05)


class Ramp:
    """max(⟨a, w⟩ + b, 0), computed as the core's problem computes it."""

    def __init__(self, slope, offset):
        self.slope, self.offset = np.array(slope), offset

    def loss_and_grad(self, w):
        value = self.slope[0] * w[0] + self.slope[1] * w[1] + self.offset
        return max(value, 0.0), (1.0 if value > 0.0 else 0.0) * self.slope


@pytest.mark.parametrize("by", ["auto", "cut", "rewind", "stale", "noise"])
@pytest.mark.parametrize("rule", ["fedavg", "level"])
def test_python_agents_are_the_cores_bit_for_bit(rule, by):
    policy = {"kind": "preview", "delta": 0.05, "by": by, "margin": 0.1, "pace": 0.2}
    keys = {"problem.kind": "observation-3", "rule": {"kind": rule, "delta": 0.02}, "rounds": 40}
    native = fedstay.run(set={**keys, "policy": policy})
    ours = fedstay.simulate(
        [Ramp([0.0, 1.0], 0.0), Ramp([1.0, -1.0], 1.0)],
        {"kind": rule, "delta": 0.02},
        weights=[2.0, 1.0],
        step_size=0.1,
        rounds=40,
        epsilon=0.12,
        policy=policy,
    )
    assert any(line.get("shown") for line in native.lines) or native.stop != "round-limit"
    # The native engine also measures, which Python agents are not asked for in every round.
    beside = ("assessment", "content", "contradiction")
    lines = [[{k: v for k, v in line.items() if k not in beside} for line in r.lines]
             for r in (native, ours)]  # fmt: skip
    assert lines[0] == lines[1]
    assert native.left == ours.left and native.weights.tolist() == ours.weights.tolist()


def plain(**options):
    common = {"weights": START, "step_size": STEP_SIZE, "rounds": 8}
    return fedstay.simulate(agents(), "fedavg", **{**common, **options})


def test_stay_runs_under_its_own_previews_unless_another_policy_is_named():
    common = {"weights": START, "step_size": STEP_SIZE, "rounds": 8}
    held = fedstay.simulate(agents(), fedstay.Stay(), **common)
    assert held.left == [] and held.header["previews"] is True
    named = fedstay.simulate(
        agents(), "stay", policy=fedstay.Preview(relative=True, pace=0.0), **common
    )
    assert named.weights.tolist() == held.weights.tolist()
    alone = fedstay.simulate(agents(), fedstay.Stay(), policy="none", **common)
    assert not alone.header.get("previews")


def test_averaging_loses_an_agent_that_previews_keep():
    assert plain().left == [("b", 3)]
    held = plain(policy=PREVIEW)
    assert held.left == [] and held.header["previews"] is True
    # Its own steps are not held back by it: it ends where nobody-ever-leaves ends.
    free = plain(behaviour="never")
    assert np.allclose(held.weights, free.weights, rtol=0, atol=0.2)
    shown = [line["shown"] for line in held.lines if line.get("shown")]
    assert shown and {one["agent"] for line in shown for one in line} == {1}


def test_a_server_by_hand_is_the_simulation():
    whole = plain(policy=PREVIEW)
    people = list(agents().values())
    server = fedstay.Server(START, "fedavg", STEP_SIZE, policy=PREVIEW, rounds=8)
    for _ in range(8):
        reports = []
        for number, agent in enumerate(people):
            loss, slope = agent.loss_and_grad(server.weights_for(number))
            assert loss > agent.epsilon
            told = {"loss": loss, "epsilon": agent.epsilon, "samples": agent.samples}
            reports.append(fedstay.Report(number, slope, gradient=slope, **told))
        decision = server.step(reports)
        server = fedstay.Server.from_state(server.state())
    assert server.weights.tobytes() == whole.weights.tobytes()
    assert [agent for agent, _, _ in decision.shown] == [1]


def test_nodes_are_sent_what_agents_in_this_process_are():
    for names in ("abc", "cab"):
        result = start(
            FedStay("fedavg", step_size=STEP_SIZE, policy=PREVIEW),
            Nodes(names, bowl_app()),
            rounds=8,
        )
        assert result.lines == plain(policy=PREVIEW).lines
        assert result.weights.tobytes() == plain(policy=PREVIEW).weights.tobytes()


def test_previews_are_the_default_on_flower():
    assert start(FedStay(step_size=STEP_SIZE), Nodes("abc", bowl_app()), rounds=8).left == []
    assert FedStay("fedavg").policy is None


def test_it_works_in_a_loop_that_is_not_ours():
    grid = Nodes("abc", bowl_app())
    strategy = FedStay("fedavg", step_size=STEP_SIZE, policy={**PREVIEW.to_dict(), "over": 8})
    arrays = ArrayRecord({"w": Array(START)})
    for round in range(1, 9):
        messages = list(strategy.configure_train(round, arrays, ConfigRecord(), grid))
        arrays, metrics = strategy.aggregate_train(round, grid.send_and_receive(messages))
    assert metrics["reported"] == 3
    assert arrays["w"].numpy().tobytes() == plain(policy=PREVIEW).weights.tobytes()


def test_a_node_that_comes_back_under_another_number_does_not_see_the_model_itself():
    grid = Nodes("abc", bowl_app())

    def move(info):
        if info.round == 5:
            del grid.contexts[102]
            grid.join("b")

    strategy = FedStay("fedavg", step_size=STEP_SIZE, policy=PREVIEW, callbacks=[move])
    result = start(strategy, grid, rounds=8)
    assert result.left == [] and result.faults == []
    assert [line["agents"] for line in result.lines] == [[0, 1, 2]] * 8
    asked = [round for kind, round, node in grid.asked if node == 104 and kind == "train"]
    assert asked == [6, 6, 7, 8]
    assert result.weights.tobytes() == plain(policy=PREVIEW).weights.tobytes()


def look(message, context):
    return agents()[agent_name(context)].loss_and_grad(message.content["arrays"]["w"].numpy())


@pytest.mark.parametrize(
    "given, exact",
    [
        ({"loss": lambda m, c: look(m, c)[0], "gradient": lambda m, c: {"w": look(m, c)[1]}}, True),
        ({"loss": lambda m, c: (look(m, c)[0], [look(m, c)[1]])}, True),
        ({"loss": lambda m, c: look(m, c)[0]}, False),
    ],
    ids=["two functions", "one function", "a loss alone"],
)
def test_a_mod_reports_the_gradient_at_what_was_received(given, exact, tmp_path):
    """Local training by five steps; with the gradient previews are made by cut, else by rewind."""
    app = ClientApp(mods=[agent_mod(**given)])

    @app.train()
    def train(message, context):
        weights = message.content["arrays"]["w"].numpy().copy()
        for _ in range(5):
            weights -= 0.05 * agents()[agent_name(context)].loss_and_grad(weights)[1]
        arrays = ArrayRecord({"w": Array(weights)})
        metrics = MetricRecord({"num-examples": 7, "train_loss": 0.5})
        return Message(RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=message)

    grid = Nodes("abc", app)
    for context in grid.contexts.values():
        context.node_config["epsilon"] = agents()[agent_name(context)].epsilon
    strategy = FedStay(evaluate_at_end=False, out=tmp_path / "run")
    result = start(strategy, grid, rounds=8)
    assert result.left == []
    shown = [one for line in result.lines for one in line.get("shown", [])]
    # A rewind is more careful: it also holds agents that are far away.
    held = {one["agent"] for one in shown}
    assert held == {1} if exact else 1 in held
    assert strategy.kept.rounds["train"][8]["a"] == {"num-examples": 7.0, "train_loss": 0.5}
    kept = (tmp_path / "run" / "client-metrics.jsonl").read_text().splitlines()
    assert len(kept) == 8 and '"train_loss": 0.5' in kept[0]


def test_a_gradient_has_an_array_for_every_array_of_the_model(caplog):
    app = ClientApp(mods=[agent_mod(lambda m, c: (look(m, c)[0], []), epsilon=0.01)])

    @app.train()
    def train(message, context):
        raise AssertionError("the mod has refused before")

    with caplog.at_level("WARNING", "flwr"), pytest.raises(fedstay.Error):
        start(FedStay(tries=1, wait=0.0), Nodes("abc", app), rounds=1)
    assert "the gradient has 0 arrays and the model 1" in caplog.text


def test_a_step_size_is_chosen_by_somebody(caplog):
    with pytest.raises(fedstay.Error, match="`step_size` is missing"):
        fedstay.simulate(agents(), "fedavg", weights=START)
    with caplog.at_level("WARNING", "flwr"):
        start(FedStay(), Nodes("abc", bowl_app()), rounds=2)
    assert caplog.text.count("was not given a `step_size`") == 1


def test_a_policy_needs_an_engine_that_can_send_personal_weights():
    class Shared:
        def agents(self):
            return [fedstay.engine.Member(0, 0.1)]

    with pytest.raises(fedstay.Error, match="a model of its own"):
        fedstay._core.drive(Shared(), [0.0], "fedavg", step_size=1.0, rounds=1, policy="preview")


def test_a_callback_ends_a_run_with_a_summary(tmp_path):
    seen = []

    def third(info):
        seen.append(str(info))
        return info.round == 3

    result = plain(policy=PREVIEW, callbacks=[third], out=tmp_path / "stopped")
    assert (result.stop, result.summary["rounds"]) == ("early-stop", 3)
    assert seen[0].startswith("round 1 of 8; loss ") and len(seen) == 3
    assert fedstay.read(tmp_path / "stopped").stop == "early-stop"
    flat = callbacks.Patience(rounds=2, by=10.0)
    assert plain(callbacks=[flat]).summary["rounds"] == 3
    # An exception of a callback comes through, and the run can be resumed.
    broken = {"out": tmp_path / "broken", "policy": PREVIEW}
    with pytest.raises(ZeroDivisionError):
        plain(callbacks=[lambda info: [1 / (info.round - 3)].clear()], **broken)
    again = plain(resume=True, **broken)
    assert again.lines == plain(policy=PREVIEW).lines


def test_a_rule_that_reads_directions_as_gradients_says_when_they_are_none():
    class Overdone:
        epsilon = 1e-6

        def loss_and_grad(self, weights):
            # Reported a hundred times too long, as Adam's moves divided by a step size are.
            return 0.5 * float(weights @ weights), 100.0 * weights

    class Honest(Overdone):
        def loss_and_grad(self, weights):
            return 0.5 * float(weights @ weights), weights

    common = {"weights": np.ones(3), "rounds": 12}
    crooked = fedstay.simulate([Overdone()], "ada-gd", step_size=1e-4, **common)
    assert any("0.01 times what the agents' reports promised" in w for w in crooked.warnings)
    honest = fedstay.simulate([Honest()], "ada-gd", step_size=0.01, **common)
    assert not any("promised" in warning for warning in honest.warnings)
    # Averaging does not care.
    blind = fedstay.simulate([Overdone()], "fedavg", step_size=1e-4, **common)
    assert not any("promised" in warning for warning in blind.warnings)

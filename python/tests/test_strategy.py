"""The strategy's patience and suspicion, with Flower's own messages on a grid inside this process.

What real processes do is in test_flower.py, what hostile agents do in test_hostile.py; here are the
many ways in which agents come and go.
"""

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import fedstay
import numpy as np
import pytest
from fedstay.flower import FedStay, agent_mod, agent_name, decide_and_report
from fedstay.flower._roll import Roll
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from loopback.bowls import START, STEP_SIZE, agents
from nodes import Nodes, bowl_app, simulated, start


def test_the_order_of_nodes_and_replies_changes_nothing():
    for names in itertools.permutations("abc"):
        result = start(FedStay("fedavg", step_size=STEP_SIZE), Nodes(names, bowl_app()))
        assert result.lines == simulated().lines
        assert result.weights.tobytes() == simulated().weights.tobytes()


def test_who_left_is_not_asked_again_and_not_asked_at_the_end():
    grid = Nodes("abc", bowl_app())
    result = start(FedStay("fedavg", step_size=STEP_SIZE), grid)
    assert result.left == [("b", 3)]
    asked = [(kind, round) for kind, round, node in grid.asked if node == 102]
    assert asked == [("train", 1), ("train", 2), ("train", 3)]
    # So nobody knows what the departure did to it: the verdict says what is known.
    assert result.verdict == "harmful" and "last told: b" in result.summary["warnings"][0]
    assert result.summary["agents"][1]["loss_of_round"] == 2


def test_the_verdict_is_unknown_where_only_leavers_could_tell():
    grid = Nodes("b", bowl_app())
    alone = {"step_size": STEP_SIZE, "min_available_nodes": 1}
    strategy = FedStay("fedavg", evaluate_leavers=False, **alone)
    result = start(strategy, grid, rounds=9)
    assert (result.stop, result.verdict) == ("everyone-left", "unknown")
    grid = Nodes("b", bowl_app())
    strategy = FedStay("fedavg", evaluate_leavers=True, **alone)
    assert start(strategy, grid, rounds=9).verdict == "benign"


def test_silence_is_a_fault_then_set_aside_then_welcome_back():
    grid = Nodes("abc", bowl_app(epsilon=0.001))

    def change(reply, name, round):
        if name == "a" and round == 2:
            grid.dead.add(102)
        if name == "a" and round == 5:
            # The node comes back under another number, as one without authentication does.
            del grid.contexts[102]
            grid.join("b")
        return reply

    grid.app = bowl_app(change, epsilon=0.001)
    strategy = FedStay("fedavg", step_size=STEP_SIZE, max_silent=2, retry_every=50)
    result = start(strategy, grid, rounds=7)
    assert [(round, agent) for round, agent, _ in result.faults] == [(2, "b"), (3, "b")]
    assert "no answer within" in result.faults[0][2] and "set aside" in result.faults[1][2]
    assert result.left == []
    reported = [1 in line["agents"] for line in result.lines]
    assert reported == [True, False, False, False, False, True, True]


def test_a_silent_agent_is_not_gone_and_is_held_by_its_last_report():
    grid = Nodes("abc", bowl_app(epsilon=0.001))

    def change(reply, name, round):
        if name == "a" and round == 2:
            grid.dead.add(103)  # From now on everybody's last report is kept.
        if name == "a" and round == 4:
            grid.dead.add(102)
        return reply

    grid.app = bowl_app(change, epsilon=0.001)
    result = start(FedStay("retain", step_size=STEP_SIZE), grid, rounds=5)
    assert [line.get("by_cut", []) for line in result.lines] == [[], [], [], [1], [1]]
    assert result.left == []


def test_a_hanging_node_is_tried_again_ever_more_seldom():
    grid = Nodes("ab", bowl_app(epsilon=-1.0))
    grid.dead.add(102)
    strategy = FedStay(
        "fedavg", step_size=STEP_SIZE, agents=["a", "b"], max_silent=1, retry_every=3
    )
    strategy.roll.members["b"].node = 102
    result = start(strategy, grid, rounds=24, timeout=0.05)
    tried = [round for kind, round, node in grid.asked if node == 102 and kind == "train"]
    # After three rounds, then six, then twelve.
    assert tried == [1, 4, 10, 22]
    assert [round for round, *_ in result.faults] == tried


def test_the_waits_for_a_silent_node_double_up_to_a_bound_and_begin_again():
    roll = Roll(None, max_silent=1, retry_every=5)
    roll.members["a"] = member = roll.member(id=0, name="a", node=7)

    def asked(rounds):
        due = [
            round for round in rounds if roll.to_ask(round, [7]) and not roll.failed(member, round)
        ]
        return [later - before for before, later in itertools.pairwise(due)]

    assert roll.failed(member, 1)
    assert asked(range(2, 500)) == [10, 20, 40, *[80] * 5]
    # Kept in a checkpoint; and over once it has answered.
    again = Roll(None, max_silent=1, retry_every=5)
    again.recall(json.loads(json.dumps(roll.memory())))
    assert again.members["a"] == member and member.wait == 80
    assert roll.answered(member) and roll.failed(member, 500)
    assert asked(range(501, 530)) == [10]
    # One that an earlier fedstay has set aside.
    member.aside, member.wait = 600, 0
    assert [roll.is_due(member, round) for round in (604, 605, 606)] == [False, True, True]


def test_names_cannot_be_taken():
    def forge(reply, name, round):
        if name == "c" and round >= 2:
            reply.content["fedstay"]["agent"] = "a"
        return reply

    result = start(
        FedStay("fedavg", step_size=STEP_SIZE),
        Nodes("abc", bowl_app(forge, epsilon=0.001)),
        rounds=3,
    )
    assert [(agent, why) for _, agent, why in result.faults] == [
        ("c", "its node 103 answered as agent a; refused"),
    ] * 2
    # Two strangers under one name: nobody knows which is right.
    grid = Nodes("aab", bowl_app(epsilon=0.001))
    result = start(FedStay("fedavg", step_size=STEP_SIZE), grid, rounds=1)
    assert [agent["name"] for agent in result.header["agents"]] == ["b"]
    # A stranger under the name of an agent that is there.
    grid = Nodes("ab", bowl_app(epsilon=0.001))
    grid.app = bowl_app(
        lambda r, n, round: (round == 1 and n == "a" and grid.join("b"), r)[1], epsilon=0.001
    )
    result = start(FedStay("fedavg", step_size=STEP_SIZE), grid, rounds=3)
    assert [line["agents"] for line in result.lines] == [[0, 1]] * 3
    assert [(round, node) for round, node, _ in result.faults] == [(2, 103), (3, 103)]
    assert "agent b is node 102, but node 103 answered" in result.faults[0][2]


def test_only_the_expected_may_come():
    grid = Nodes("abc", bowl_app(epsilon=0.001))
    result = start(FedStay("fedavg", step_size=STEP_SIZE, agents=["c", "a"]), grid, rounds=2)
    assert [agent["name"] for agent in result.header["agents"]] == ["c", "a"]
    bound = FedStay("fedavg", step_size=STEP_SIZE, agents={"a": 103, "c": 101})
    grid = Nodes("abc", bowl_app(epsilon=0.001))
    with pytest.raises(fedstay.Error, match="0 of at least 1"):
        bound.tries, bound.wait = 1, 0.01
        start(bound, grid, rounds=2)
    assert {node for _, _, node in grid.asked} == {101, 103}


def test_too_few_wait_or_stop_and_never_average_nothing():
    grid = Nodes("abc", bowl_app(epsilon=0.001))
    grid.dead |= {101, 102, 103}
    strategy = FedStay("fedavg", step_size=STEP_SIZE, on_few="stop")
    result = start(strategy, grid, timeout=0.05)
    assert result.stop == "too-few" and result.weights.tolist() == START.tolist()
    assert result.verdict == "empty" and not result.summary["everybody_content"]
    assert "nobody took part" in result.warnings[0]
    # Waiting: two of three answer late; an agent that answered before is not asked twice.
    grid = Nodes("abc", bowl_app(epsilon=0.001))
    grid.dead |= {102, 103}
    strategy = FedStay("fedavg", step_size=STEP_SIZE, min_agents=3, wait=0.01)
    strategy.roll.settings()
    revive = iter([lambda: grid.dead.discard(102), lambda: grid.dead.discard(103)])
    listed = grid.get_node_ids
    calls = itertools.count()

    def get_node_ids():
        if next(calls) >= 2:
            next(revive, lambda: None)()
        return listed()

    grid.get_node_ids = get_node_ids
    result = start(strategy, grid, rounds=1, timeout=0.05)
    assert result.lines[0]["agents"] == [0, 1, 2] and result.faults == []
    trained = [node for kind, _, node in grid.asked if kind == "train"]
    assert trained.count(101) == 1


def test_when_everybody_fails_it_is_told_why():
    def broken(reply, name, round):
        raise FileNotFoundError("data_batch_1.bin")

    strategy = FedStay("fedavg", step_size=STEP_SIZE, wait=0.01, tries=1)
    nodes = Nodes("abc", bowl_app(broken))
    with pytest.raises(fedstay.Error, match="0 of at least 1 .*node 10.*data_batch_1.bin"):
        start(strategy, nodes)


def test_a_departure_that_leaves_too_few_is_on_record():
    strategy = FedStay("fedavg", step_size=STEP_SIZE, min_agents=3)
    result = start(strategy, Nodes("abc", bowl_app()), rounds=9)
    assert (result.stop, result.left) == ("too-few", [("b", 3)])
    assert result.summary["rounds"] == 3


def test_one_who_joins_late_is_in_the_header(tmp_path):
    grid = Nodes("ab", bowl_app(epsilon=0.001))
    grid.app = bowl_app(
        lambda r, n, round: (round == 2 and n == "a" and grid.join("c"), r)[1], epsilon=0.001
    )
    out = tmp_path / "late"
    result = start(FedStay("fedavg", step_size=STEP_SIZE, out=out), grid, rounds=4)
    assert [line["agents"] for line in result.lines] == [[0, 1], [0, 1], [0, 1, 2], [0, 1, 2]]
    assert fedstay.read(out).header == result.header
    assert [agent["name"] for agent in result.header["agents"]] == ["a", "b", "c"]


def test_replies_that_are_not_ours_are_refused():
    def plain(reply, name, round):
        if name == "b" and round == 2:
            del reply.content["fedstay"]
        if name == "b" and round == 3:
            reply.content["fedstay"]["loss"] = "low"
        if name == "b" and round == 4:
            reply.content["fedstay"]["reach"] = float("inf")
        if name == "b" and round == 5:
            del reply.content["arrays"]
        return reply

    app = bowl_app(plain, epsilon=0.001)
    result = start(
        FedStay("fedavg", step_size=STEP_SIZE, max_silent=9), Nodes("abc", app), rounds=6
    )
    words = ["no `fedstay` record", "loss is 'low'", "reach is inf", "no arrays"]
    assert [round for round, _, _ in result.faults] == [2, 3, 4, 5]
    for (_, agent, why), word in zip(result.faults, words, strict=True):
        assert agent == "b" and word in why, why


def test_evaluations_become_assessments():
    strategy = FedStay("fedavg", step_size=STEP_SIZE, evaluate_every=2, evaluate_leavers=True)
    result = start(strategy, Nodes("abc", bowl_app()))
    assert [line["round"] for line in result.lines if "assessment" in line] == [1, 2, 4]
    first = result.lines[0]
    assert first["assessment"]["loss"] == first["loss"]


def test_trained_weights_are_as_good_as_directions():
    """An app as Flower's users have it: it trains and returns its model; the mod does the rest."""

    def loss(message, context):
        weights = message.content["arrays"]["w"].numpy()
        return agents()[agent_name(context)].loss_and_grad(weights)[0]

    app = ClientApp(mods=[agent_mod(loss)])

    @app.train()
    def train(message, context):
        weights = message.content["arrays"]["w"].numpy()
        slope = agents()[agent_name(context)].loss_and_grad(weights)[1]
        trained = ArrayRecord({"w": Array(weights - STEP_SIZE * slope)})
        metrics = MetricRecord({"num-examples": 3})
        return Message(RecordDict({"arrays": trained, "metrics": metrics}), reply_to=message)

    grid = Nodes("abc", app)
    for context in grid.contexts.values():
        context.node_config["epsilon"] = agents()[agent_name(context)].epsilon
    result = start(FedStay("fedavg", step_size=STEP_SIZE, evaluate_at_end=False), grid)
    assert result.left == simulated().left
    assert np.allclose(result.weights, simulated().weights, rtol=0, atol=1e-14)


def test_it_works_in_a_loop_that_is_not_ours():
    grid, strategy = Nodes("abc", bowl_app()), FedStay("fedavg", step_size=STEP_SIZE)
    arrays = ArrayRecord({"w": Array(START)})
    for round in range(1, 5):
        messages = list(strategy.configure_train(round, arrays, ConfigRecord(), grid))
        arrays, metrics = strategy.aggregate_train(round, grid.send_and_receive(messages))
    assert arrays["w"].numpy().tobytes() == simulated().weights.tobytes()
    assert metrics["reported"] == 2


def test_bad_parameters_are_refused_before_the_first_round():
    for bad in ({"on_few": "hope"}, {"min_agents": 0}, {"rule": "fedagv"}, {"step_size": -1.0}):
        with pytest.raises(fedstay.Error):
            FedStay(**{"step_size": STEP_SIZE, **bad})


def test_integers_pass_through_and_singles_stay_singles():
    class Net:
        samples = 4

        def loss_and_grad(self, weights):
            assert weights.dtype == np.float32
            return float(weights @ weights), 2 * weights

    app = ClientApp()

    @app.train()
    def train(message, context):
        assert message.content["arrays"]["steps"].numpy() == 7
        return decide_and_report(Net(), None, message, context)

    arrays = ArrayRecord({"w": Array(np.ones((2, 3), np.float32)), "steps": Array(np.array(7))})
    strategy = FedStay("fedavg", step_size=0.1, epsilon=0.01, evaluate_at_end=False)
    flower = strategy.start(Nodes("ab", app), arrays, num_rounds=2, timeout=1)
    assert flower.arrays["steps"].numpy() == 7
    assert flower.arrays["w"].numpy().dtype == np.float32 and flower.arrays["w"].shape == (2, 3)


def test_a_resumed_server_waits_for_the_nodes_to_come_back(tmp_path):
    def begin():
        return FedStay(
            "fedavg", step_size=STEP_SIZE, out=tmp_path / "run", min_available_nodes=3, wait=0.01
        )

    first = Nodes("abc", bowl_app())
    arrays = ArrayRecord({"w": Array(START)})

    def stop(round, arrays):
        if round == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        begin().start(first, arrays, num_rounds=4, timeout=1, evaluate_fn=stop)
    # All nodes are new, as without authentication, and come one by one.
    late = Nodes("", bowl_app())
    late.numbers = itertools.count(201)
    late.join("c")
    names, listed = iter("ba"), late.get_node_ids

    def get_node_ids():
        for name in itertools.islice(names, 1):
            late.join(name)
        return listed()

    late.get_node_ids = get_node_ids
    result = start(begin(), late, timeout=1)
    assert result.lines == simulated().lines
    assert result.weights.tobytes() == simulated().weights.tobytes()


def test_a_run_that_was_cut_off_after_its_last_round_knows_its_agents(tmp_path):
    def begin():
        return FedStay("fedavg", step_size=STEP_SIZE, out=tmp_path / "run")

    def stop(round, arrays):
        if round == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        start(begin(), Nodes("abc", bowl_app()), evaluate_fn=stop)
    result = start(begin(), Nodes("abc", bowl_app()))
    assert result.left == [("b", 3)] and "1 of 3 left" in repr(result)
    assert [agent["name"] for agent in result.header["agents"]] == ["a", "b", "c"]


def test_a_server_that_is_killed_at_random_moments_goes_on_to_the_same_bytes(tmp_path):
    """By SIGKILL, many times; with a grid inside its process, so that it takes seconds. The same on
    real processes of Flower is in test_flower.py."""
    kills = os.environ.get("FEDSTAY_SERVER_KILLS", "20")
    command = [sys.executable, str(Path(__file__).parent / "killed_server.py")]
    done = subprocess.run(
        [*command, str(tmp_path), kills, "1"], capture_output=True, text=True, timeout=3600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    print(done.stdout)

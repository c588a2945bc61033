"""Who may speak for whom: names, the nodes that answer under them, and goodbyes said by others."""

import json

import fedstay
import numpy as np
import pytest
from fedstay.flower import FedStay, agent_name, decide_and_report, goodbye
from fedstay.flower._contract import Contract
from flwr.app import Array, ArrayRecord, Context, RecordDict
from flwr.clientapp import ClientApp
from loopback.bowls import STEP_SIZE, agents
from nodes import Nodes, bowl_app, start

#: Who may take part, as a strategy can be told.
UNBOUND = {"anybody": None, "a list of names": ["a", "b", "c"]}
BOUND = {"a": 101, "b": 102, "c": 103}


def app_with_impostor():
    """Nodes answer honestly, except one whose config says `impostor`: that one says goodbye."""
    app = ClientApp()

    @app.train()
    def _(message, context):
        if context.node_config.get("impostor"):
            return goodbye(message, context, epsilon=0.1)
        agent = agents()[agent_name(context)]
        return decide_and_report(agent, None, message, context, epsilon=0.001)

    return app


def play(expected, *, back, rounds=8, policy=None):
    """Agent b's node goes away after round 1, another one takes its name in round 2, and b's own is
    back in round `back`."""
    grid = Nodes("abc", app_with_impostor())
    away = {}

    def between(round, _):
        if round == 1:
            away[102] = grid.contexts.pop(102)
            grid.contexts[666] = Context(1, 666, {"agent": "b", "impostor": True}, RecordDict(), {})
        if round == back - 1:
            grid.contexts.update(away)

    settings = {"agents": expected, "policy": policy, "evaluate_at_end": False}
    strategy = FedStay("fedavg", step_size=STEP_SIZE, **settings)
    return start(strategy, grid, rounds=rounds, evaluate_fn=between), grid


@pytest.mark.parametrize("expected", UNBOUND.values(), ids=UNBOUND)
def test_a_goodbye_in_a_new_nodes_first_answer_is_not_believed(expected):
    result, _ = play(expected, back=3)
    assert result.left == []
    # Once its name is taken back, the impostor is on record as the node that it is.
    faults = [(2, "b"), *[(round, 666) for round in range(3, 9)]]
    assert [(round, agent) for round, agent, _ in result.faults] == faults
    assert "says goodbye in the first answer of node 666" in result.faults[0][2]
    # Its own node has the name again as soon as it is back, and the impostor has not.
    assert [1 in line["agents"] for line in result.lines] == [True, False] + [True] * 6


@pytest.mark.parametrize("policy", [None, "preview"])
@pytest.mark.parametrize("expected", UNBOUND.values(), ids=UNBOUND)
def test_a_goodbye_that_another_node_said_is_undone_when_the_first_node_is_back(expected, policy):
    result, grid = play(expected, back=6, policy=policy)
    assert result.left == [("b", 3)]
    assert [line["round"] for line in result.lines if line.get("returned")] == [6]
    assert [1 in line["agents"] for line in result.lines] == [True, *[False] * 4, True, True, True]
    assert result.summary["agents"][1]["left"] is None
    # A goodbye that b's own node said is final.
    result = start(FedStay("fedavg", step_size=STEP_SIZE), Nodes("abc", bowl_app()), rounds=6)
    assert result.left == [("b", 3)] and not any(line.get("returned") for line in result.lines)


def test_a_name_that_is_bound_to_its_node_cannot_be_taken():
    result, grid = play(BOUND, back=4)
    assert result.left == [] and 666 not in {node for _, _, node in grid.asked}
    assert {why for _, _, why in result.faults} == {"not connected"}
    assert [1 in line["agents"] for line in result.lines][3:] == [True] * 5


@pytest.mark.parametrize("expected", [*UNBOUND.values(), BOUND], ids=[*UNBOUND, "bound"])
def test_it_warns_once_unless_names_are_bound_to_nodes(expected, caplog):
    with caplog.at_level("WARNING", "flwr"):
        grid = Nodes("abc", bowl_app(epsilon=0.001))
        start(FedStay("fedavg", step_size=STEP_SIZE, agents=expected), grid, rounds=3)
    assert caplog.text.count("names are not bound to nodes") == (0 if expected is BOUND else 1)


def test_one_that_is_content_from_the_start_leaves_with_its_second_answer():
    app = bowl_app()
    for expected, when in ((None, 2), (BOUND, 1)):
        grid = Nodes("abc", app)
        for context in grid.contexts.values():
            context.node_config["epsilon"] = 0.001
        grid.app = ClientApp()

        @grid.app.train()
        def _(message, context):
            name = agent_name(context)
            epsilon = 1e3 if name == "b" else 0.001
            return decide_and_report(agents()[name], None, message, context, epsilon=epsilon)

        strategy = FedStay("fedavg", step_size=STEP_SIZE, agents=expected, evaluate_at_end=False)
        assert start(strategy, grid, rounds=3).left == [("b", when)]


def test_a_federation_that_is_content_from_the_start_ends():
    grid = Nodes("abc", bowl_app(epsilon=1e3))
    strategy = FedStay("fedavg", step_size=STEP_SIZE, wait=0.01, evaluate_at_end=False)
    result = start(strategy, grid, rounds=9)
    assert sorted(left.agent for left in result.left) == ["a", "b", "c"]
    assert result.summary["rounds"] == 1


def test_an_answer_from_another_node_than_the_one_asked_is_refused():
    def change(reply, name, round):
        if name == "b" and round == 2:
            reply.metadata.__dict__["_src_node_id"] = 999
        return reply

    grid = Nodes("abc", bowl_app(change, epsilon=0.001))
    result = start(FedStay("fedavg", step_size=STEP_SIZE), grid, rounds=3)
    assert [(round, agent) for round, agent, _ in result.faults] == [(2, "b")]
    assert "came from node 999, not from node 102" in result.faults[0][2]


def test_a_checkpoint_without_agents_says_so():
    strategy = FedStay("fedavg", step_size=STEP_SIZE)
    grid = Nodes("a", None)
    contract = Contract(strategy, FedStay, strategy.mail, grid, None, None)
    engine = strategy._gather_with(contract, grid, timeout=1.0, rounds=1)
    with pytest.raises(fedstay.Error, match="does not say who takes part.*start it again"):
        engine.restore("null")
    # And what JSON cannot represent is not written in the first place.
    strategy.roll.admit({101: "a"}, [101])
    strategy.roll.members["a"].epsilon = float("nan")
    with pytest.raises(ValueError, match="JSON"):
        engine.save()


def test_a_precision_is_kept_only_with_a_report_that_is_used():
    def change(reply, name, round):
        if name == "b" and round == 2:
            reply.content["fedstay"]["epsilon"] = 77.0
            reply.content["arrays"] = ArrayRecord({"w": Array(np.zeros(3))})
        return reply

    strategy = FedStay("fedavg", step_size=STEP_SIZE)
    result = start(strategy, Nodes("abc", bowl_app(change, epsilon=0.001)), rounds=2)
    assert len(result.faults) == 1
    assert [agent["epsilon"] for agent in result.header["agents"]] == [0.001] * 3
    assert json.loads(json.dumps(strategy.roll.memory(), allow_nan=False))

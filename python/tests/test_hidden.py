"""While a policy hides the server's own model, nothing that is sent to an agent is that model: not to be
evaluated, not to agents that join, and not to those that come back."""

import contextlib

import fedstay
import numpy as np
import pytest
from fedstay.flower import FedStay, agent_name, decide_and_report, goodbye
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, RecordDict
from loopback.bowls import START, STEP_SIZE, Bowl, agents
from nodes import Nodes, bowl_app, start

PREVIEW = fedstay.Preview(delta=0.05)


class Watched(Nodes):
    """Notes what every node is sent."""

    def __init__(self, names, app):
        super().__init__(names, app)
        self.sent = []

    def push_messages(self, messages):
        messages = list(messages)
        for message in messages:
            round = int(message.content["config"]["server-round"])
            weights = message.content["arrays"]["w"].numpy()
            kind, node = message.metadata.message_type, message.metadata.dst_node_id
            self.sent.append((kind, round, node, weights))
        return super().push_messages(messages)

    def to(self, node, kind="train"):
        return {round: weights for k, round, n, weights in self.sent if (k, n) == (kind, node)}


def strategy(**more):
    return FedStay("fedavg", step_size=STEP_SIZE, policy=PREVIEW, **more)


def loss_of(name, weights):
    return agents()[name].loss_and_grad(weights)[0]


def test_agents_evaluate_what_they_were_shown_and_the_model_itself_at_delivery(caplog):
    grid, made = Watched("abc", bowl_app()), strategy(evaluate_every=1)
    result = start(made, grid, rounds=8)
    assert result.left == []
    shown, evaluated = grid.to(102), grid.to(102, "evaluate")
    for round in range(1, 9):
        assert np.array_equal(evaluated[round], shown[round])
        assert loss_of("b", evaluated[round]) > agents()["b"].epsilon
    # At the end it is given the model, with which it is content.
    assert np.array_equal(evaluated[9], result.weights)
    assert loss_of("b", evaluated[9]) < agents()["b"].epsilon
    # What it evaluated is kept; the record has only what is true of the model itself.
    told = made.kept.rounds["evaluate"]
    assert told[8]["b"]["eval_loss"] == loss_of("b", shown[8])
    held = [bool(line.get("shown")) for line in result.lines]
    assert any(held) and ["assessment" in line for line in result.lines] == [not h for h in held]


def test_agents_that_left_are_not_shown_what_is_hidden():
    made = strategy(evaluate_every=1, evaluate_leavers=True)
    # Content with what everybody begins with, it cannot be held.
    app = bowl_app(lambda reply, name, round: reply)
    grid = Watched("abc", app)
    contexts = {c.node_config["agent"]: c for c in grid.contexts.values()}
    contexts["c"].node_config["epsilon"] = 1e9

    def answer(message, context, usual=grid.answer):
        if context.node_config["agent"] == "c" and message.metadata.message_type == "train":
            return decide_and_report(agents()["c"], None, message, context, epsilon=1e9)
        return usual(message, context)

    grid.answer = answer
    result = start(made, grid, rounds=8)
    assert [who for who, _ in result.left] == ["c"]
    evaluated = grid.to(103, "evaluate")
    assert not {round for round in evaluated if 3 < round < 9}
    assert 9 in evaluated, "at delivery everybody of an experiment is asked"


def joins(name, before):
    """A grid on which somebody joins after some rounds, and a callback that sees to it."""

    def app_for():
        people = {**agents(), "d": Bowl(2, 2.2), "e": Bowl(2, 2.2)}
        from flwr.clientapp import ClientApp

        app = ClientApp()

        @app.train()
        def train(message, context):
            agent = people[agent_name(context)]
            return decide_and_report(agent, None, message, context, epsilon=agent.epsilon)

        return app

    grid = Watched("abc", app_for())
    nodes = []

    def move(info):
        if info.round == before:
            nodes.append(grid.join(name))

    return grid, move, nodes


def test_a_newcomer_is_shown_the_first_model_in_every_exchange_and_does_not_leave_with_another():
    """Agent d wants what b wants: content with the model of round 5, and not with the first."""
    grid, move, nodes = joins("d", 5)
    made = strategy(callbacks=[move], evaluate_at_end=False)
    result = start(made, grid, rounds=12)
    assert result.left == []
    assert loss_of("b", result.weights) < 2.2
    came = grid.to(nodes[0])
    assert np.array_equal(came[6], START) and min(came) == 6
    own = [weights for k, r, node, weights in grid.sent if (r, node) == (6, nodes[0])]
    assert len(own) == 1, "what it says of the first model counts at once"
    assert result.lines[5]["agents"] == [0, 1, 2, 3]
    # From then on it has previews of its own.
    for round in range(7, 13):
        assert loss_of("b", came[round]) > 2.2


def test_a_member_under_a_new_name_is_a_newcomer():
    """b, which is held, comes again as e: what it is told as e is no more than e is told."""
    grid, move, nodes = joins("e", 5)
    result = start(strategy(callbacks=[move], evaluate_at_end=False), grid, rounds=8)
    assert result.left == []
    for weights in grid.to(nodes[0]).values():
        assert loss_of("b", weights) > 2.2


def test_an_agent_whose_goodbye_was_said_by_another_is_not_shown_the_model_when_it_is_back():
    """While b's node is away another one takes its name and says goodbye; b is back in round 6."""
    grid, away = Watched("abc", bowl_app()), {}

    def answer(message, context, usual=grid.answer):
        if context.node_id == 666:
            return goodbye(message, context, epsilon=2.2)
        return usual(message, context)

    def move(info):
        if info.round == 1:
            away[102] = grid.contexts.pop(102)
            grid.contexts[666] = Context(1, 666, {"agent": "b"}, RecordDict(), {})
        if info.round == 5:
            grid.contexts.update(away)

    grid.answer = answer
    result = start(strategy(callbacks=[move], evaluate_at_end=False), grid, rounds=12)
    assert result.left == [("b", 3)] and result.summary["agents"][1]["left"] is None
    came = grid.to(102)
    assert np.array_equal(came[6], START) and sorted(came) == [1, *range(6, 13)]
    for node in (102, 666):
        assert all(loss_of("b", weights) > 2.2 for weights in grid.to(node).values())
    assert loss_of("b", result.weights) < 2.2


def test_an_agent_that_was_expected_and_silent_is_a_newcomer():
    """Its node is bound to its name, and it never answered before."""
    grid = Watched("abc", bowl_app())
    grid.dead.add(102)

    def wakes(info):
        if info.round == 5:
            grid.dead.clear()

    made = strategy(agents={"a": 101, "b": 102, "c": 103}, callbacks=[wakes], max_silent=9)
    result = start(made, grid, rounds=8)
    assert result.left == []
    came = grid.to(102)
    assert all(np.array_equal(came[round], START) for round in range(1, 7))
    assert all(loss_of("b", came[round]) > 2.2 for round in (7, 8))
    assert result.lines[5]["agents"] == [0, 1, 2]


def test_a_resumed_run_shows_newcomers_the_first_model(tmp_path):
    grid, move, _ = joins("d", 5)

    def broken(info):
        move(info)
        assert info.round < 5

    with pytest.raises(AssertionError):
        start(strategy(callbacks=[broken], out=tmp_path / "run"), grid, rounds=8)
    again = strategy(out=tmp_path / "run", evaluate_at_end=False)
    # An app whose first weights are random starts with others.
    again.start(grid, ArrayRecord({"w": Array(START + 1.0)}), num_rounds=8, timeout=0.3)
    assert again.result.left == []
    came = grid.to(104)
    assert np.array_equal(came[min(came)], START) and min(came) > 1


def test_a_run_that_ends_with_too_few_and_may_go_on_delivers_nothing(tmp_path):
    """Once it is given up for want of answers, the next start continues it: nothing is over yet."""
    grid = Watched("abc", bowl_app())

    def falls_silent(info):
        if info.round == 5:
            grid.dead.add(103)

    settings = {"out": tmp_path / "run", "min_agents": 3, "tries": 1, "wait": 0.0, "max_silent": 99}
    with contextlib.suppress(fedstay.Error):
        start(strategy(callbacks=[falls_silent], **settings), grid, rounds=8)
    for kind in ("train", "evaluate"):
        assert all(loss_of("b", weights) > 2.2 for weights in grid.to(102, kind).values())
    grid.dead.clear()
    result = start(strategy(**settings), grid, rounds=8)
    assert result.left == [] and result.stop == "round-limit"
    assert loss_of("b", grid.to(102, "evaluate")[9]) < 2.2


def test_in_a_loop_of_ones_own_nobody_is_sent_the_hidden_model():
    grid, move, nodes = joins("d", None)
    made = FedStay("fedavg", step_size=STEP_SIZE, policy={**PREVIEW.to_dict(), "over": 12})
    arrays = ArrayRecord({"w": Array(START)})
    for round in range(1, 13):
        if round == 6:
            nodes.append(grid.join("d"))
        train = list(made.configure_train(round, arrays, ConfigRecord(), grid))
        arrays, _ = made.aggregate_train(round, grid.send_and_receive(train))
        grid.push_messages(made.configure_evaluate(round, arrays, ConfigRecord(), grid))
    assert loss_of("b", arrays["w"].numpy()) < 2.2
    assert np.array_equal(grid.to(nodes[0])[6], START)
    for kind in ("train", "evaluate"):
        for node in (102, nodes[0]):
            sent = grid.to(node, kind)
            assert len(sent) >= 6 and all(loss_of("b", w) > 2.2 for w in sent.values())
    assert not made.roll.members["d"].left and not made.roll.members["b"].left


def test_a_loop_and_start_keep_a_newcomer_alike():
    """To the bit: the core reads the newcomer's first report at the first weights in both."""
    grid, move, _ = joins("d", 5)
    whole = start(strategy(callbacks=[move], evaluate_at_end=False), grid, rounds=12)
    people = [*agents().values(), Bowl(2, 2.2)]
    server = fedstay.Server(START, "fedavg", STEP_SIZE, policy=PREVIEW, rounds=12)
    for round in range(1, 13):
        reports = []
        for number, agent in enumerate(people[: 3 if round < 6 else 4]):
            loss, slope = agent.loss_and_grad(server.weights_for(number))
            assert loss > agent.epsilon
            told = {"loss": loss, "epsilon": agent.epsilon, "samples": agent.samples}
            reports.append(fedstay.Report(number, slope, gradient=slope, **told))
        server.step(reports, newcomers=True)
        server = fedstay.Server.from_state(server.state())
    assert server.weights.tobytes() == whole.weights.tobytes()
    assert np.array_equal(server.weights_for(None), START)

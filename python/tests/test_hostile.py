"""Whatever an agent sends, it can only lose its own place in this round.

One agent of three is hostile. The run is also cut off in the middle and resumed, so that a message
which spoils the checkpoint, or ends the server again after each restart, is found.
"""

import json
import os
import random

import fedstay
import numpy as np
import pytest
from fedstay.flower import FedStay, agent_name, decide_and_report
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from hostile import EVALUATE, TRAIN
from loopback.bowls import START, STEP_SIZE, agents
from nodes import Nodes

ROUNDS = 5
#: How many hostile replies the fuzzer sends; more on request.
FUZZED = int(os.environ.get("FEDSTAY_FUZZ", "300"))


def app_with(train=lambda reply, round: reply, evaluate=lambda reply, round: reply):
    """Agents a and c are honest; what b answers goes through `train` and `evaluate`."""
    app = ClientApp()

    def spoiled(reply, message, context, change):
        if agent_name(context) != "b":
            return reply
        reply.asked = message
        return change(reply, int(message.content["config"]["server-round"]))

    @app.train()
    def _(message, context):
        agent = agents()[agent_name(context)]
        reply = decide_and_report(agent, None, message, context, epsilon=0.001)
        return spoiled(reply, message, context, train)

    @app.evaluate()
    def _(message, context):
        weights = message.content["arrays"]["w"].numpy()
        loss = agents()[agent_name(context)].loss_and_grad(weights)[0]
        metrics = MetricRecord({"eval_loss": loss, "eval_acc": 0.5})
        reply = Message(RecordDict({"metrics": metrics}), reply_to=message)
        return spoiled(reply, message, context, evaluate)

    return app


def strictly(text):
    """JSON without NaN and infinities."""

    def refuse(word):
        raise AssertionError(f"{word} was written")

    return json.loads(text, parse_constant=refuse)


def survive(app, rule, folder, **options):
    """Runs, cuts the run off after two rounds, and resumes it to its end. Honest agents must not notice."""

    def begin():
        options_ = {"max_silent": 99, "evaluate_every": 1, "wait": 0.01, **options}
        return FedStay(rule, step_size=STEP_SIZE, out=folder, **options_)

    def stop(round, arrays):
        if round == 2:
            raise KeyboardInterrupt

    grid, arrays = Nodes("abc", app), ArrayRecord({"w": Array(START)})
    with pytest.raises(KeyboardInterrupt):
        begin().start(grid, arrays, num_rounds=ROUNDS, timeout=1, evaluate_fn=stop)
    for line in (folder / "checkpoint").read_text().splitlines():
        strictly(line)
    strategy = begin()
    strategy.start(grid, arrays, num_rounds=ROUNDS, timeout=1)
    result = strategy.result
    assert np.isfinite(result.weights).all()
    numbers = {agent.get("name", agent["id"]): agent["id"] for agent in result.header["agents"]}
    honest = {numbers["a"], numbers["c"]}
    for line in result.lines:
        assert honest <= set(line["agents"]), line
        assert not honest & {agent for agent, _ in line.get("faults", [])}, line
    assert not {"a", "c"} & {left.agent for left in result.left}
    for name in ("rounds.jsonl", "summary.json", "checkpoint"):
        text = (folder / name).read_text()
        for part in [text] if name == "summary.json" else text.splitlines():
            strictly(part)
        assert "\x1b" not in (folder / name).read_text()
        assert (folder / name).stat().st_size < 100_000
    told = {agent["id"]: agent for agent in result.summary["agents"]}
    assert all(np.isfinite(told[agent]["loss"]) for agent in honest)
    assert repr(result) and result.columns
    return result


def test_the_table_is_long_enough():
    assert len(TRAIN) + len(EVALUATE) >= 63


@pytest.mark.parametrize("what", TRAIN)
def test_a_hostile_report_costs_its_agent_the_round_and_nobody_the_run(what, tmp_path):
    change, word = TRAIN[what]
    app = app_with(train=lambda reply, round: change(reply) if round in (2, 3, 4) else reply)
    result = survive(app, "fedavg", tmp_path / "run")
    faults = {round: why for round, agent, why in result.faults if agent == "b"}
    if word is None:
        assert faults == {}
        return
    assert sorted(faults) == [2, 3, 4], faults
    for why in faults.values():
        assert word in why and len(why) < 400, why
    # As if b had been silent in these rounds; in the last it is welcome again.
    assert [1 in line["agents"] for line in result.lines] == [True, False, False, False, True]


@pytest.mark.parametrize("rule", ["ada-gd", "retain", "mw-fed", "minibatch-sgd", "q-fedavg"])
@pytest.mark.parametrize("since", [1, 2])
def test_all_of_it_under_every_kind_of_rule(rule, since, tmp_path):
    """The whole table in one run each: another hostile reply in every round."""
    changes = [change for change, _ in TRAIN.values()]
    strategy = FedStay(rule, step_size=STEP_SIZE, max_silent=999, evaluate_at_end=False, wait=0.01)
    turn = iter(changes)

    def train(reply, round):
        return next(turn)(reply) if round >= since else reply

    grid, arrays = Nodes("abc", app_with(train)), ArrayRecord({"w": Array(START)})
    strategy.start(grid, arrays, num_rounds=len(changes) - 1, timeout=1)
    assert np.isfinite(strategy.result.weights).all()


@pytest.mark.parametrize("what", EVALUATE)
def test_a_hostile_evaluation_is_ignored_with_a_line_in_the_log(what, tmp_path, caplog):
    with caplog.at_level("WARNING", "flwr"):
        result = survive(
            app_with(evaluate=lambda reply, round: EVALUATE[what](reply)),
            "fedavg",
            tmp_path / "run",
        )
    assert "agent b: " in caplog.text and "; ignored" in caplog.text
    told = {agent["id"]: agent for agent in result.summary["agents"]}
    assert told[0]["accuracy"] == told[2]["accuracy"] == 0.5
    assert told[1]["accuracy"] is None


@pytest.mark.parametrize("rule", ["fedavg", "mw-fed"])
def test_what_the_rule_cannot_step_with_is_dropped_as_a_fault(rule, tmp_path):
    """An agent that keeps its loss where the rule must know who is content."""

    def train(reply, round):
        record = dict(reply.content["fedstay"])
        del record["loss"], record["epsilon"]
        reply.content["fedstay"] = ConfigRecord({**record, "tau": 1.0})
        return reply

    app = app_with(lambda reply, round: train(reply, round) if round in (2, 3, 4) else reply)
    result = survive(app, rule, tmp_path / "run")
    faults = [(round, agent) for round, agent, _ in result.faults]
    assert faults == ([(2, "b"), (3, "b"), (4, "b")] if rule == "mw-fed" else [])
    assert all("needs its exact loss" in why for _, _, why in result.faults)


def test_an_overflow_is_dropped_in_loops_other_than_start_too():
    def train(reply, round):
        record = dict(reply.content["fedstay"])
        del record["loss"], record["epsilon"]
        reply.content["fedstay"] = ConfigRecord({**record, "tau": 1.0})
        return reply

    grid, strategy = Nodes("abc", app_with(train)), FedStay("mw-fed", step_size=STEP_SIZE)
    arrays = ArrayRecord({"w": Array(START)})
    for round in range(1, 4):
        messages = list(strategy.configure_train(round, arrays, ConfigRecord(), grid))
        arrays, metrics = strategy.aggregate_train(round, grid.send_and_receive(messages))
        assert metrics["reported"] == 2
    assert np.isfinite(arrays["w"].numpy()).all()


def replaying(since, without_nonce=False):
    """What b said before round `since` it says again for ever, word for word, or but for its nonce."""
    old = []

    def train(reply, round):
        if round < since:
            old[:] = [dict(reply.content)]
            return reply
        content = RecordDict(old[0])
        if without_nonce:
            words = {k: v for k, v in content["fedstay"].items() if k != "nonce"}
            content["fedstay"] = ConfigRecord(words)
        return Message(content, reply_to=reply.asked)

    return app_with(train)


@pytest.mark.parametrize("rule", ["fedavg", "retain", None])
def test_an_old_report_that_is_sent_again_is_a_fault(rule):
    """Also where a policy shows b a model of its own, and where b is asked twice in a round."""
    strategy = FedStay(rule, step_size=STEP_SIZE, max_silent=99, evaluate_at_end=False, wait=0.01)
    grid = Nodes("abc", replaying(3))
    strategy.start(grid, ArrayRecord({"w": Array(START)}), num_rounds=ROUNDS, timeout=1)
    rounds = [line["round"] for line in strategy.result.lines]
    assert [(r, who) for r, who, _ in strategy.result.faults] == [(r, "b") for r in rounds[2:]]
    assert all("an old answer that was sent again" in why for *_, why in strategy.result.faults)
    assert [1 in line["agents"] for line in strategy.result.lines] == [r < 3 for r in rounds]


def test_a_replay_without_its_nonce_is_a_fault(tmp_path):
    """Taking the nonce out is no way around it, and not after a restart of the server either."""
    result = survive(replaying(2, without_nonce=True), "fedavg", tmp_path / "run")
    assert [(round, agent) for round, agent, _ in result.faults] == [(r, "b") for r in (2, 3, 4, 5)]
    assert all("it repeats no nonce" in why for *_, why in result.faults)


def test_a_client_that_knows_of_no_nonces_is_believed(tmp_path):
    """Clients of fedstay 0.1 never repeat one."""

    def train(reply, round):
        words = {k: v for k, v in reply.content["fedstay"].items() if k != "nonce"}
        reply.content["fedstay"] = ConfigRecord(words)
        return reply

    assert survive(app_with(train), "fedavg", tmp_path / "run").faults == []


def test_an_old_report_is_a_fault_in_loops_other_than_start_too():
    grid, strategy = Nodes("abc", replaying(2)), FedStay("fedavg", step_size=STEP_SIZE)
    arrays, reported = ArrayRecord({"w": Array(START)}), []
    for round in range(1, 4):
        messages = list(strategy.configure_train(round, arrays, ConfigRecord(), grid))
        arrays, metrics = strategy.aggregate_train(round, grid.send_and_receive(messages))
        reported.append(metrics["reported"])
    assert reported == [3, 2, 2]


def test_two_answers_to_one_question_are_refused():
    class Twice(Nodes):
        def pull_messages(self, ids):
            came = super().pull_messages(ids)
            return came + [reply for reply in came if reply.metadata.src_node_id == 102]

    strategy = FedStay("fedavg", step_size=STEP_SIZE, evaluate_at_end=False, max_silent=9)
    grid = Twice("abc", app_with())
    strategy.start(grid, ArrayRecord({"w": Array(START)}), num_rounds=3, timeout=1)
    assert [line["agents"] for line in strategy.result.lines] == [[0, 1]] * 3


def test_where_everybody_moves_far_nobody_is_garbage():
    """The bound is relative: unscaled data give long gradients to all."""

    class Steep:
        samples = 1

        def __init__(self, centre):
            self.centre = centre

        def loss_and_grad(self, weights):
            away = weights - self.centre
            return 0.5e9 * float(away @ away), 1e9 * away

    steep = {"a": Steep(1.0), "b": Steep(2.0), "c": Steep(3.0)}
    app = ClientApp()

    @app.train()
    def _(message, context):
        agent = steep[agent_name(context)]
        return decide_and_report(agent, None, message, context, epsilon=0.001)

    strategy = FedStay("fedavg", step_size=1e-3, evaluate_at_end=False)
    strategy.start(Nodes("abc", app), ArrayRecord({"w": Array(START)}), num_rounds=1, timeout=1)
    assert strategy.result.faults == []


# -- fuzzed ---------------------------------------------------------------------------------------

VALUES = [0, 1, -1, 0.5, 1e-320, 1e30, -1e30, 1e100, 1e101, 1e308, float("nan"), float("inf"),
          float("-inf"), True, False, "", "b", "a", "x" * 200, "9" * 5000, "\x1b[2J", b"b", [], [1.0],
          ["b"], [True], 10**18, 10**400]  # fmt: skip
WORDS = ["agent", "kind", "loss", "epsilon", "samples", "reach", "tau", "standard_error", "leaves",
         "gradient", "arrays", "other"]  # fmt: skip


def fuzzed(reply, draw):
    """An honest reply with one to four things changed."""
    for _ in range(draw.randint(1, 4)):
        what = draw.random()
        record = dict(reply.content.config_records.get("fedstay", {}))
        if what < 0.5:
            record[draw.choice(WORDS)] = draw.choice(VALUES)
        elif what < 0.6:
            record.pop(draw.choice(WORDS), None)
        elif what < 0.65:
            record["kind"] = draw.choice(["weights", "direction"])
        else:
            spoil_arrays(reply, draw)
        try:
            reply.content["fedstay"] = ConfigRecord(record)
        except TypeError:
            continue  # Flower itself cannot send such a thing.
    if draw.random() < 0.05:
        reply.metadata.__dict__["_src_node_id"] = draw.choice([1, 101, 999])
    return reply


def spoil_arrays(reply, draw):
    name = draw.choice(["arrays", "arrays", "arrays", "gradient", "other"])
    scale = draw.choice(
        [0.0, 1.0, 1e-300, 1e6, 1e30, 1e99, 1e150, 1e308, float("nan"), float("inf")]
    )
    shape = draw.choice([(24,), (24,), (24,), (7,), (4, 6), (), (0,)])
    dtype = draw.choice(["float64", "float64", "float32", "float16", "int64", "complex128", "bool"])
    with np.errstate(all="ignore"):
        values = np.full(shape, scale)
        dtype = "float64" if not np.isfinite(scale) and dtype == "int64" else dtype
        array = Array(values.astype(dtype))
    if draw.random() < 0.2:
        data = bytearray(array.data)
        for _ in range(draw.randint(1, 20)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        data = bytes(data[: draw.choice([len(data), len(data), draw.randrange(len(data))])])
        array = Array(dtype=dtype, shape=shape, stype="numpy.ndarray", data=data)
    key = draw.choice(["w", "w", "w", "w", "v"])
    reply.content[name] = ArrayRecord({key: array})


def fuzzed_evaluation(reply, draw):
    metrics = {"eval_loss": 0.5}
    for _ in range(draw.randint(1, 3)):
        value = draw.choice(VALUES)
        if isinstance(value, (int, float)) and not isinstance(value, bool) or value == [1.0]:
            metrics[draw.choice(["eval_loss", "eval_acc", "other"])] = value
    return Message(RecordDict({"metrics": MetricRecord(metrics)}), reply_to=reply.asked)


@pytest.mark.parametrize("seed", range(max(FUZZED // (3 * ROUNDS), 1)))
def test_fuzzed_replies_never_end_a_run(seed):
    """Three hostile agents beside two honest ones, so up to three hostile replies in each round."""
    draw = random.Random(seed)
    rule = draw.choice(["fedavg", "minibatch-sgd", "ada-gd", "retain", "mw-fed", "q-fedavg", "afl",
                        "fedmgda-plus", "fedfv", "pcgrad", "maxfl"])  # fmt: skip
    names = ["a", "c", "b1", "b2", "b3"]
    bound = {name: 101 + i for i, name in enumerate(names)} if draw.random() < 0.5 else None
    # A stranger may contest a name that nobody has yet, unless names are bound to nodes.
    since = 1 if bound else 2
    app, sent = ClientApp(), []

    @app.train()
    def _(message, context):
        name = agent_name(context)
        reply = decide_and_report(agents()[name[0]], None, message, context, epsilon=0.001)
        if name[0] != "b" or int(message.content["config"]["server-round"]) < since:
            return reply
        sent.append(name)
        return fuzzed(reply, draw)

    @app.evaluate()
    def _(message, context):
        name = agent_name(context)
        loss = agents()[name[0]].loss_and_grad(message.content["arrays"]["w"].numpy())[0]
        metrics = MetricRecord({"eval_loss": loss})
        reply = Message(RecordDict({"metrics": metrics}), reply_to=message)
        reply.asked = message
        return fuzzed_evaluation(reply, draw) if name[0] == "b" else reply

    strategy = FedStay(rule, step_size=STEP_SIZE, agents=bound, max_silent=99, wait=0.01,
                       evaluate_every=draw.choice([0, 1]))  # fmt: skip
    arrays = ArrayRecord({"w": Array(START)})
    strategy.start(Nodes(names, app), arrays, num_rounds=ROUNDS, timeout=1)
    result = strategy.result
    assert np.isfinite(result.weights).all() and sent
    reported = {agent["name"]: agent["id"] for agent in result.header["agents"] if "name" in agent}
    for line in result.lines:
        assert {reported["a"], reported["c"]} <= set(line["agents"]), (rule, line)
    strictly(json.dumps(result.summary))


def test_the_honest_are_as_well_off_as_without_the_hostile():
    """What is refused leaves no trace: the result is that of a federation without it."""
    change, _ = TRAIN["garbage 1e30"]
    grid = Nodes("abc", app_with(train=lambda reply, round: change(reply)))
    strategy = FedStay("fedavg", step_size=STEP_SIZE, max_silent=9, evaluate_at_end=False)
    strategy.start(grid, ArrayRecord({"w": Array(START)}), num_rounds=ROUNDS, timeout=1)
    two = {name: agent for name, agent in agents().items() if name != "b"}
    alone = fedstay.simulate(
        two, "fedavg", weights=START, step_size=STEP_SIZE, rounds=ROUNDS, behaviour="never"
    )
    assert strategy.result.weights.tobytes() == alone.weights.tobytes()

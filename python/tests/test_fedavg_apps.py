"""Apps that were written for Flower's FedAvg: the same average, the same arguments, the same methods to
override; and where that cannot be, a sentence that says what to do."""

import inspect

import fedstay
import numpy as np
import pytest
from fedstay.callbacks import Patience
from fedstay.flower import FedStay, agent_mod, agent_name
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp.strategy import FedAvg
from nodes import Nodes

#: How many rows the agents have, and another weight of theirs.
ROWS = {"a": 1200, "b": 20, "c": 7, "d": 20}
TRUST = {"a": 0.25, "b": 1.5, "c": 0.125, "d": 3.0}
START = np.linspace(-1.0, 1.0, 12)
#: A target loss that nobody comes near.
NOBODY = -1e3


def centre(name):
    return np.random.default_rng(ord(name)).normal(size=12)


def loss_at(name, weights):
    return float(0.5 * np.sum((weights - centre(name)) ** 2))


def app_for_fedavg(mods=(), arrays="arrays", config="config", heard=None, buffers=False):
    """An app as Flower's users have it: two local steps with the learning rate that it is sent."""
    app = ClientApp(mods=list(mods))

    @app.train()
    def train(message, context):
        name, sent = agent_name(context), message.content[arrays]
        weights, lr = sent["w"].numpy(), message.content[config].get("lr", 0.1)
        if heard is not None:
            heard.append((int(message.content[config]["server-round"]), name, lr))
        for _ in range(2):
            weights = weights - lr * (weights - centre(name))
        trained = {"w": Array(weights)}
        if buffers:
            trained["running_mean"] = Array(np.full(3, float(ord(name))))
        metrics = {"num-examples": ROWS[name], "trust": TRUST[name], "train_loss": float(ord(name))}
        content = {arrays: ArrayRecord(trained), "metrics": MetricRecord(metrics)}
        return Message(RecordDict(content), reply_to=message)

    @app.evaluate()
    def evaluate(message, context):
        name = agent_name(context)
        loss = loss_at(name, message.content[arrays]["w"].numpy())
        metrics = {"num-examples": ROWS[name], "eval_loss": loss, "trust": TRUST[name]}
        return Message(RecordDict({"metrics": MetricRecord(metrics)}), reply_to=message)

    return app


def look(message, context):
    arrays = next(iter(message.content.array_records.values()))
    return loss_at(agent_name(context), arrays["w"].numpy())


def nodes(**options):
    mods = options.pop("mods", [agent_mod(look, epsilon=NOBODY)])
    return Nodes("abcd", app_for_fedavg(mods, **options))


def plain(**options):
    """The grid without fedstay's mod, for FedAvg itself."""
    return nodes(mods=[], **options)


@pytest.mark.parametrize("method, others", [("__init__", {}), ("start", {"timeout": 300})])
def test_every_argument_of_fedavg_is_taken_with_the_same_default(method, others):
    """So `FedStay` can stand where `FedAvg` stood; whatever a later Flower adds is noticed here. One default is
    another on purpose: an agent has five minutes and not an hour, because it is waited for."""
    theirs, ours = (
        inspect.signature(getattr(kind, method)).parameters for kind in (FedAvg, FedStay)
    )
    differ = {
        name: ours[name].default if name in ours else "not taken"
        for name in theirs
        if name not in ours or ours[name].default != theirs[name].default
    }
    assert len(theirs) > 5 and differ == others


def ran(strategy, grid, rounds=5, **more):
    first = {"w": Array(START)}
    if more.pop("buffers", False):
        first["running_mean"] = Array(np.zeros(3))
    more.setdefault("timeout", 5)
    return strategy.start(grid, ArrayRecord(first), num_rounds=rounds, **more)


def test_without_a_rule_it_averages_as_fedavg_does():
    """By `num-examples`, to rounding, where nobody is near leaving."""
    theirs = ran(FedAvg(), plain())
    ours = ran(FedStay(), nodes())
    assert np.allclose(ours.arrays["w"].numpy(), theirs.arrays["w"].numpy(), rtol=1e-12, atol=1e-13)
    # And it matters: the agents are unequal.
    equal = ran(FedStay("fedavg", policy="preview"), nodes())
    assert np.abs(equal.arrays["w"].numpy() - theirs.arrays["w"].numpy()).max() > 0.1
    # What clients send is averaged by it as well.
    for round in range(1, 6):
        assert ours.train_metrics_clientapp[round]["train_loss"] == pytest.approx(
            theirs.train_metrics_clientapp[round]["train_loss"], rel=1e-12
        )
    last = theirs.evaluate_metrics_clientapp[5]["eval_loss"]
    assert ours.evaluate_metrics_clientapp[6]["eval_loss"] == pytest.approx(last, rel=1e-12)


def test_buffers_are_weighed_as_fedavg_weighs_them():
    theirs = ran(FedAvg(), plain(buffers=True), buffers=True)
    ours = ran(FedStay(), nodes(buffers=True), buffers=True)
    wanted = theirs.arrays["running_mean"].numpy()
    assert np.allclose(ours.arrays["running_mean"].numpy(), wanted, rtol=1e-12)


def test_a_rule_that_is_named_does_what_it_does_everywhere():
    equal = ran(FedStay("fedavg"), nodes())
    asked = ran(FedStay(fedstay.FedAvg(weigh="samples")), nodes())
    alike = ran(FedStay(fedstay.FedAvg(weigh="uniform")), nodes())
    asked_by_dict = ran(FedStay({"kind": "fedavg", "weigh": "samples"}), nodes())
    bits = [r.arrays["w"].numpy().tobytes() for r in (equal, alike, asked, asked_by_dict)]
    assert bits[0] == bits[1] != bits[2] == bits[3]


def test_reports_are_weighed_by_another_key():
    theirs = ran(FedAvg(weighted_by_key="trust"), plain())
    ours = ran(FedStay(weighted_by_key="trust"), nodes())
    assert np.allclose(ours.arrays["w"].numpy(), theirs.arrays["w"].numpy(), rtol=1e-6, atol=1e-6)
    assert ours.train_metrics_clientapp[5]["train_loss"] == pytest.approx(
        theirs.train_metrics_clientapp[5]["train_loss"], rel=1e-12
    )
    # Who does not send it is named, with what there is instead.
    strategy = FedStay(weighted_by_key="truth", on_few="stop")
    ran(strategy, nodes(), rounds=1)
    why = strategy.result.faults[0][2]
    assert "no number `truth`" in why and "`trust`" in why and "weighted_by_key" in why


def test_one_cannot_count_itself_to_be_everybody():
    def boast(message, context, call_next):
        reply = call_next(message, context)
        if agent_name(context) == "a" and "fedstay" in reply.content:
            reply.content["fedstay"]["samples"] = 10**15
        return reply

    strategy = FedStay()
    ran(strategy, nodes(mods=[boast, agent_mod(look, epsilon=NOBODY, private=False)]), rounds=1)
    assert [(who, "counts 1e+15 samples" in why) for _, who, why in strategy.result.faults] == [
        ("a", True)
    ]


def test_other_keys_of_the_records():
    keys = {"arrays": "model", "config": "settings"}
    given = {"arrayrecord_key": "model", "configrecord_key": "settings"}
    theirs = ran(FedAvg(**given), plain(**keys), train_config=ConfigRecord({"lr": 0.05}))
    ours = ran(FedStay(**given), nodes(**keys), train_config=ConfigRecord({"lr": 0.05}))
    assert np.allclose(ours.arrays["w"].numpy(), theirs.arrays["w"].numpy(), rtol=1e-12, atol=1e-13)


def test_metrics_are_aggregated_by_functions_of_the_apps_own():
    def worst(key):
        def aggregate(records, weighted_by):
            assert weighted_by == "num-examples" and len(records) == 4
            told = [next(iter(r.metric_records.values())) for r in records]
            return MetricRecord({"worst": max(metrics[key] for metrics in told)})

        return aggregate

    given = {
        "train_metrics_aggr_fn": worst("train_loss"),
        "evaluate_metrics_aggr_fn": worst("eval_loss"),
    }
    theirs, ours = ran(FedAvg(**given), plain()), ran(FedStay(**given), nodes())
    assert ours.train_metrics_clientapp[5]["worst"] == theirs.train_metrics_clientapp[5]["worst"]
    assert ours.evaluate_metrics_clientapp[6]["worst"] == pytest.approx(
        theirs.evaluate_metrics_clientapp[5]["worst"], rel=1e-12
    )


def asked_in(grid, kind):
    rounds = {}
    for asked, round, node in grid.asked:
        if asked == kind:
            rounds.setdefault(round, set()).add(node)
    return rounds


def test_at_least_so_many_train_and_evaluate():
    grid = nodes()
    ran(FedStay(fraction_train=0.25, fraction_evaluate=0.25), grid, rounds=4)
    assert {len(nodes) for nodes in asked_in(grid, "train").values()} == {2}
    assert {len(nodes) for nodes in asked_in(grid, "evaluate").values()} == {2}
    grid = nodes()
    least = {"min_train_nodes": 3, "min_evaluate_nodes": 1}
    ran(FedStay(fraction_train=0.25, fraction_evaluate=0.25, **least), grid, rounds=4)
    assert {len(nodes) for nodes in asked_in(grid, "train").values()} == {3}
    assert {len(nodes) for nodes in asked_in(grid, "evaluate").values()} == {1}
    grid = nodes()
    ran(FedStay(fraction_evaluate=0.0), grid, rounds=2)
    assert asked_in(grid, "evaluate") == {}


def test_it_waits_for_two_nodes_as_fedavg_does():
    grid = nodes()
    late = {node: grid.contexts.pop(node) for node in (102, 103, 104)}
    listed, calls = grid.get_node_ids, iter(range(99))

    def get_node_ids():
        if next(calls) == 2:
            grid.contexts.update(late)
        return listed()

    grid.get_node_ids = get_node_ids
    ran(FedStay(wait=0.01), grid, rounds=1)
    assert asked_in(grid, "train")[1] == {101, 102, 103, 104}


@pytest.mark.parametrize(
    "bad, word",
    [
        ({"fraction_train": 0.0}, "fraction_train"),
        ({"min_train_nodes": 0}, "min_train_nodes"),
        ({"min_available_nodes": 0}, "min_available_nodes"),
        ({"min_evaluate_nodes": -1}, "min_evaluate_nodes"),
    ],
)
def test_arguments_that_cannot_be_are_refused_by_name(bad, word):
    with pytest.raises(fedstay.Error, match=word):
        FedStay(**bad)


# -- subclasses, as Flower's advanced examples have them ------------------------------------------


class Scheduled:
    """Halves the learning rate in every second round, in the config itself."""

    def configure_train(self, server_round, arrays, config, grid):
        if server_round > 1 and server_round % 2 == 1:
            config["lr"] *= 0.5
        return super().configure_train(server_round, arrays, config, grid)


class ScheduledFedAvg(Scheduled, FedAvg):
    pass


class ScheduledFedStay(Scheduled, FedStay):
    pass


def test_a_learning_rate_schedule_in_configure_train_reaches_the_clients():
    heard = []
    theirs = ran(ScheduledFedAvg(), plain(), train_config=ConfigRecord({"lr": 0.2}))
    ours = ran(ScheduledFedStay(), nodes(heard=heard), train_config=ConfigRecord({"lr": 0.2}))
    assert {(round, lr) for round, _, lr in heard} == {
        (1, 0.2), (2, 0.2), (3, 0.1), (4, 0.1), (5, 0.05)
    }  # fmt: skip
    assert np.allclose(ours.arrays["w"].numpy(), theirs.arrays["w"].numpy(), rtol=1e-12, atol=1e-13)


def test_a_schedule_steps_once_in_a_round_however_often_agents_are_asked():
    heard = []
    grid = nodes(heard=heard)
    grid.dead |= {103}
    listed, calls = grid.get_node_ids, iter(range(999))

    def get_node_ids():
        # The dead node comes back late in every round.
        (grid.dead.discard if next(calls) % 3 == 2 else grid.dead.add)(103)
        return listed()

    grid.get_node_ids = get_node_ids
    strategy = ScheduledFedStay(min_agents=4, wait=0.01, max_silent=99)
    ran(strategy, grid, rounds=5, timeout=0.1, train_config=ConfigRecord({"lr": 0.2}))
    assert {(round, lr) for round, _, lr in heard} == {
        (1, 0.2), (2, 0.2), (3, 0.1), (4, 0.1), (5, 0.05)
    }  # fmt: skip


def test_a_schedule_goes_on_where_it_was_after_a_restart(tmp_path):
    def begin():
        return ScheduledFedStay(out=tmp_path / "run")

    def stop(round, arrays):
        if round == 3:
            raise KeyboardInterrupt

    config = {"lr": 0.2}
    with pytest.raises(KeyboardInterrupt):
        ran(begin(), nodes(), train_config=ConfigRecord(config), evaluate_fn=stop)
    resumed = ran(begin(), nodes(), train_config=ConfigRecord(config))
    whole = ran(ScheduledFedStay(), nodes(), train_config=ConfigRecord(config))
    assert resumed.arrays["w"].numpy().tobytes() == whole.arrays["w"].numpy().tobytes()


class Watching(FedStay):
    """Looks at every model and adds a metric, as an app that saves checkpoints does."""

    def __init__(self, **options):
        super().__init__(**options)
        self.seen, self.evaluated = {}, []

    def aggregate_train(self, server_round, replies):
        arrays, metrics = super().aggregate_train(server_round, replies)
        self.seen[server_round] = arrays["w"].numpy(), len(replies)
        metrics["norm"] = float(np.linalg.norm(arrays["w"].numpy()))
        return arrays, metrics

    def configure_evaluate(self, server_round, arrays, config, grid):
        config["note"] = "hello"
        return super().configure_evaluate(server_round, arrays, config, grid)

    def aggregate_evaluate(self, server_round, replies):
        metrics = super().aggregate_evaluate(server_round, replies)
        self.evaluated.append((server_round, len(replies)))
        metrics["twice"] = 2 * metrics["eval_loss"]
        return metrics


def test_overrides_of_the_aggregates_are_called_with_what_came_of_the_round():
    models = {}

    def central(round, arrays):
        models[round] = arrays["w"].numpy()

    strategy = Watching()
    result = ran(strategy, nodes(), evaluate_fn=central)
    assert sorted(strategy.seen) == [1, 2, 3, 4, 5]
    for round, (weights, replies) in strategy.seen.items():
        assert replies == 4 and np.array_equal(weights, models[round])
        said = result.train_metrics_clientapp[round]
        assert said["norm"] == np.linalg.norm(weights) and said["reported"] == 4
    assert strategy.evaluated == [(6, 4)]
    told = result.evaluate_metrics_clientapp[6]
    assert told["twice"] == 2 * told["eval_loss"]


def test_a_round_without_a_step_is_not_aggregated():
    grid = nodes()

    def dark(message, context, call_next):
        if int(message.content["config"]["server-round"]) == 3:
            grid.dead |= {101, 102, 103, 104}
            raise RuntimeError("the lights are out")
        return call_next(message, context)

    grid.app = app_for_fedavg([dark, agent_mod(look, epsilon=NOBODY, private=False)])
    strategy = Watching(wait=0.001, tries=1)
    ran(strategy, grid, timeout=0.1)
    assert strategy.result.stop == "too-few" and sorted(strategy.seen) == [1, 2]


def refused(body, **options):
    """What a subclass with these methods is told, when it is made or while it runs."""
    strategy = type("Mine", (FedStay,), body)
    with pytest.raises(fedstay.Error) as told:
        ran(strategy(**options), nodes(), rounds=3)
    assert "Mine." in str(told.value), told.value
    return str(told.value)


def test_a_start_of_its_own_is_refused_when_the_strategy_is_made():
    class OwnLoop(FedStay):
        """As Flower's advanced example for PyTorch has it."""

        def start(self, grid, initial_arrays, num_rounds=3, **more):
            arrays = initial_arrays
            for round in range(1, num_rounds + 1):
                messages = self.configure_train(round, arrays, ConfigRecord(), grid)
                arrays, _ = self.aggregate_train(round, grid.send_and_receive(messages))

    with pytest.raises(fedstay.Error, match=r"OwnLoop\.start .*super\(\)\.start"):
        OwnLoop(out="never")


def test_a_start_that_calls_ours_keeps_record_and_result(tmp_path):
    class Logged(FedStay):
        def start(self, grid, initial_arrays, num_rounds=3, **more):
            self.began = num_rounds
            result = super().start(grid, initial_arrays, num_rounds, **more)
            self.ended = True
            return result

    strategy = Logged(out=tmp_path / "run")
    ran(strategy, nodes(), rounds=2)
    assert (strategy.began, strategy.ended) == (2, True)
    assert strategy.result.summary["rounds"] == 2
    assert (tmp_path / "run" / "summary.json").exists()


def test_overrides_that_would_be_lost_are_refused_by_name():
    def average(self, server_round, replies):
        return ArrayRecord({"w": Array(START)}), MetricRecord()

    assert "aggregate(round)" in refused({"aggregate_train": average})

    def own_messages(self, server_round, arrays, config, grid):
        content = RecordDict({"arrays": arrays, "config": config})
        return [Message(content, node, "train") for node in grid.get_node_ids()]

    assert "super().configure_train" in refused({"configure_train": own_messages})
    assert "super().configure_evaluate" in refused({"configure_evaluate": own_messages})


def test_overrides_that_change_what_is_promised_are_refused_by_name():
    def other_weights(self, server_round, arrays, config, grid):
        for message in FedStay.configure_train(self, server_round, arrays, config, grid):
            message.content["arrays"] = ArrayRecord({"w": Array(START * 2)})
            yield message

    assert "other `arrays`" in refused({"configure_train": other_weights})

    def in_place(self, server_round, arrays, config, grid):
        messages = FedStay.configure_train(self, server_round, arrays, config, grid)
        messages[0].content["arrays"]["w"] = Array(START * 2)
        return messages

    assert "other `arrays`" in refused({"configure_train": in_place})

    def other_nodes(self, server_round, arrays, config, grid):
        first, *rest = FedStay.configure_train(self, server_round, arrays, config, grid)
        return [first, first, *rest]

    assert "asks it twice" in refused({"configure_train": other_nodes})

    def other_numbers(self, server_round, arrays, config, grid):
        for message in FedStay.configure_train(self, server_round, arrays, config, grid):
            message.content["config"]["step-size"] = 7.0
            yield message

    assert "`step-size` = 7.0" in refused({"configure_train": other_numbers})

    def other_nonce(self, server_round, arrays, config, grid):
        for message in FedStay.configure_train(self, server_round, arrays, config, grid):
            message.content["config"]["nonce"] = "mine"
            yield message

    assert "`nonce` = mine" in refused({"configure_train": other_nonce})

    def changed(self, server_round, replies):
        arrays, metrics = FedStay.aggregate_train(self, server_round, replies)
        return ArrayRecord({"w": Array(arrays["w"].numpy() * 0.5)}), metrics

    assert "other arrays" in refused({"aggregate_train": changed})

    def changed_in_place(self, server_round, replies):
        arrays, metrics = FedStay.aggregate_train(self, server_round, replies)
        arrays["w"] = Array(arrays["w"].numpy() * 0.5)
        return arrays, metrics

    assert "other arrays" in refused({"aggregate_train": changed_in_place})

    def fewer(self, server_round, replies):
        return FedStay.aggregate_train(self, server_round, list(replies)[1:])

    assert "other replies" in refused({"aggregate_train": fewer})


def test_a_method_that_one_strategy_was_given_is_an_override_too():
    """Without a class of its own: what it does is called, and held to the same."""
    strategy, seen = FedStay(), []
    usual = strategy.aggregate_train

    def watching(server_round, replies):
        seen.append(server_round)
        return usual(server_round, replies)

    strategy.aggregate_train = watching
    ran(strategy, nodes(), rounds=2)
    assert seen == [1, 2]

    def shows_the_model(server_round, arrays, config, grid):
        for message in FedStay.configure_train(strategy, server_round, arrays, config, grid):
            message.content["arrays"] = ArrayRecord({"w": Array(START * 2)})
            yield message

    strategy = FedStay()
    strategy.configure_train = shows_the_model
    with pytest.raises(fedstay.Error, match="other `arrays`"):
        ran(strategy, nodes(), rounds=1)


def test_an_override_may_leave_somebody_out():
    class Fewer(FedStay):
        def configure_train(self, server_round, arrays, config, grid):
            made = super().configure_train(server_round, arrays, config, grid)
            return [m for m in made if m.metadata.dst_node_id != 104]

    strategy, grid = Fewer(), nodes()
    ran(strategy, grid, rounds=3)
    assert strategy.result.faults == [] and strategy.result.header["agents"][-1]["name"] == "c"
    assert asked_in(grid, "train") == {round: {101, 102, 103} for round in (1, 2, 3)}


@pytest.mark.parametrize(
    "given", [{"out": "never"}, {"callbacks": [Patience(rounds=3)]}, {"worth": ["help"]}]
)
def test_a_loop_of_ones_own_is_told_what_it_would_lose(given, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    strategy = FedStay("fedavg", **given)
    arrays = ArrayRecord({"w": Array(START)})
    with pytest.raises(fedstay.Error, match=f"`{next(iter(given))}`.*start"):
        strategy.configure_train(1, arrays, ConfigRecord(), nodes())

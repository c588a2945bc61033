"""What a mod or an optimiser of the app makes private leaves the site as they left it, and nothing exact
leaves beside it: Flower's own LocalDpMod in either order, mods of the app's, Opacus by its names."""

import functools
import math
import sys
import types

import fedstay
import numpy as np
import pytest
from fedstay.flower import (
    FedStay,
    TorchAgent,
    _agent,
    _evaluate,
    agent_mod,
    agent_name,
    decide_and_report,
    evaluate_and_report,
    report,
)
from fedstay.flower._private import Loss, inner_mods, privatiser
from fedstay.remote.agent import seed
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.clientapp.mod import LocalDpMod, arrays_size_mod, message_size_mod
from loopback.bowls import START, agents
from nodes import Nodes, start

NOISY = {"loss_clip": 40.0, "loss_noise": 0.01}


def local_dp():
    return LocalDpMod(clipping_norm=5.0, sensitivity=0.001, epsilon=1.0, delta=1e-5)


def agent_of(context):
    return agents()[agent_name(context)]


def look(message, context):
    loss, slope = agent_of(context).loss_and_grad(message.content["arrays"]["w"].numpy())
    return loss, [slope]


def trained(message, context):
    """Five local steps, and a number of its own."""
    weights = message.content["arrays"]["w"].numpy().copy()
    for _ in range(5):
        weights -= 0.05 * agent_of(context).loss_and_grad(weights)[1]
    metrics = MetricRecord({"num-examples": 7})
    return Message(
        RecordDict({"arrays": ArrayRecord({"w": Array(weights)}), "metrics": metrics}),
        reply_to=message,
    )


def own_numbers(message, context):
    """An app's own evaluate function, which knows nothing of privacy; one of its numbers is of its rows."""
    loss = look(message, context)[0]
    metrics = {"eval_loss": loss, "eval_acc": 0.5, "num-examples": 7, "public": 0.125}
    return Message(RecordDict({"more": MetricRecord(metrics)}), reply_to=message)


def evaluated(message, context):
    return evaluate_and_report(agent_of(context), None, message, context)


class Gate(Nodes):
    """Keeps what comes in and what leaves."""

    def __init__(self, mods, train=trained, names="abc", evaluate=evaluated, train_mods=()):
        app = ClientApp(mods=mods)
        app.train(mods=list(train_mods))(train)
        app.evaluate()(evaluate)
        super().__init__(names, app)
        self.left = []
        for context in self.contexts.values():
            context.node_config["epsilon"] = agent_of(context).epsilon

    def answer(self, message, context):
        reply = super().answer(message, context)
        self.left.append((context, message, reply))
        return reply

    def reports(self):
        """What the reports have."""
        told = (reply.content for *_, reply in self.left if not reply.has_error())
        return [content for content in told if "arrays" in content]

    def evaluations(self):
        """The numbers in everybody's evaluation of what is delivered."""
        asked = [one for one in self.left if one[1].metadata.message_type == "evaluate"]
        assert len(asked) >= 2
        told = [reply.content for *_, reply in asked if not reply.has_error()]
        return [{k: v for r in c.metric_records.values() for k, v in r.items()} for c in told]

    def exact(self):
        """How many replies have the exact loss or the exact gradient of what was received."""
        found = 0
        for context, message, reply in self.left:
            if reply.has_error():
                continue
            loss, (slope,) = look(message, context)
            own = trained(message, context).content["arrays"]["w"].numpy()
            numbers = [
                value
                for kind in (reply.content.config_records, reply.content.metric_records)
                for record in kind.values()
                for value in record.values()
                if isinstance(value, float)
            ]
            arrays = [a.numpy() for r in reply.content.array_records.values() for a in r.values()]
            # The loss after training is no less exact.
            after = float(agent_of(context).loss_and_grad(own)[0])
            found += loss in numbers or after in numbers
            found += any(np.allclose(array, slope, atol=1e-6) for array in arrays)
            found += any(np.array_equal(array, own) for array in arrays)
        return found


def run(grid, strategy=None, rounds=4):
    """Everything is as it usually is: all agents also evaluate what is delivered."""
    made = strategy or FedStay("fedavg", wait=0.0, tries=1)
    return start(made, grid, rounds=rounds)


def test_without_anything_private_the_exact_numbers_are_sent():
    """The converse: what the tests below look for is there to be found."""
    grid = Gate([agent_mod(look)])
    run(grid)
    assert len(grid.evaluations()) == 2  # b has left.
    assert grid.exact() == 3 * len(grid.reports()) + 2


@pytest.mark.parametrize("evaluate", [evaluated, own_numbers])
@pytest.mark.parametrize("mods", [[local_dp()], []], ids=["found", "said"])
def test_an_evaluation_gives_away_no_more_than_a_report(mods, evaluate, caplog):
    """What makes training private is not around the evaluation, and is remembered: Flower's mod, or one that
    nobody can see."""
    outer = agent_mod(look, private=None if mods else True)
    grid = Gate([outer], evaluate=evaluate, train_mods=mods)
    with caplog.at_level("INFO", "flwr"):
        result = run(grid, FedStay("fedavg", evaluate_every=2))
    # Without a mod the weights are the train function's own: nobody said who makes them private.
    assert grid.exact() == (0 if mods else len(grid.reports()))
    rows = {"num-examples": 7} if evaluate is own_numbers else {}
    assert all(told == rows for told in grid.evaluations())
    assert "of its evaluation leaves " + ("num-examples" if rows else "nothing") in caplog.text
    assert "agent a is private and withholds its evaluation" in caplog.text
    # Nobody knows how good it is for them, and nobody claims to.
    assert (result.verdict, result.content) == ("unknown", 0)


def test_where_mods_are_around_the_train_function_alone_an_evaluation_remembers_them():
    grid = Gate([], train_mods=[agent_mod(look), local_dp()])
    assert run(grid).verdict == "unknown"
    assert grid.exact() == 0 and grid.evaluations() == [{}] * 2


def test_flowers_mod_around_everything_lets_no_evaluation_through():
    """It wants arrays in every reply; fedstay's part says nothing beside that error."""
    grid = Gate([agent_mod(look), local_dp()], evaluate=own_numbers)
    assert run(grid).verdict == "unknown"
    assert grid.exact() == 0 and grid.evaluations() == []


def test_a_private_evaluation_can_have_noise_of_its_own():
    def evaluate(message, context):
        return evaluate_and_report(agent_of(context), None, message, context, **NOISY)

    grid = Gate([agent_mod(look, **NOISY)], evaluate=evaluate, train_mods=[local_dp()])
    result = run(grid)
    assert grid.exact() == 0
    stayed = [agent for agent in result.summary["agents"] if agent.get("left") is None]
    ends = {agent["name"]: agent["loss"] for agent in stayed}
    true = {name: agent.loss_and_grad(result.weights)[0] for name, agent in agents().items()}
    errors = [abs(ends[name] - true[name]) for name in ends]
    assert max(errors) < 2.0 and min(errors) > 0.0
    assert all(set(told) == {"eval_loss"} for told in grid.evaluations())


def test_numbers_that_are_private_already_are_told_where_they_are_named():
    def telling(message, context):
        reply = trained(message, context)
        loss = look(message, context)[0]
        more = {"num-examples": 7, "train_loss": loss, "public": 0.125}
        reply.content["metrics"] = MetricRecord(more)
        return reply

    for tells in ((), ("public",)):
        grid = Gate(
            [agent_mod(look, tells=tells)], telling, evaluate=own_numbers, train_mods=[local_dp()]
        )
        run(grid)
        assert grid.exact() == 0
        trains = [content["metrics"] for content in grid.reports()]
        for told in [*trains, *grid.evaluations()]:
            assert set(told) == {"num-examples", *tells}


def test_rows_that_may_be_told_about_are_told_about():
    def evaluate(message, context):
        return evaluate_and_report(agent_of(context), None, message, context, private=False)

    grid = Gate([agent_mod(look)], evaluate=evaluate, train_mods=[local_dp()])
    run(grid)
    assert grid.exact() == len(grid.evaluations()) == 2


def test_beside_local_differential_privacy_nothing_exact_leaves_the_site(caplog):
    grid = Gate([agent_mod(look), local_dp()])
    with caplog.at_level("INFO", "flwr"):
        result = run(grid)
    assert "agent a is private (LocalDpMod): no gradient and no exact loss leave" in caplog.text
    assert grid.exact() == 0
    replies = grid.reports()
    assert len(replies) > 6 and all(set(r.array_records) == {"arrays"} for r in replies)
    # What it says instead of its loss is that it stays.
    for context, _, reply in grid.left:
        said = {} if reply.has_error() else reply.content["fedstay"]
        if "loss" in said:
            assert said["at-least"] and said["loss"] == math.nextafter(
                agent_of(context).epsilon, math.inf
            )
    # The server learns from what it was sent, records no loss, and claims none.
    assert np.linalg.norm(result.weights - START) > 0.1
    line = result.lines[0]
    assert line["loss"] == [math.nextafter(a.epsilon, math.inf) for a in agents().values()]
    assert line["at_least"] == [0, 1, 2]
    assert {agent["id"]: agent.get("content") for agent in result.summary["agents"]}


def test_in_the_other_order_it_is_refused_with_what_to_type(caplog):
    for mod in (agent_mod(look), agent_mod(lambda m, c: look(m, c)[0])):
        grid = Gate([local_dp(), mod])
        with caplog.at_level("WARNING", "flwr"), pytest.raises(fedstay.Error) as refused:
            run(grid)
        assert "let `agent_mod` be the first mod" in str(refused.value) + caplog.text
        assert "LocalDpMod" in str(refused.value) + caplog.text
        assert grid.exact() == 0 and all(reply.has_error() for *_, reply in grid.left)


@pytest.mark.parametrize("mod", [local_dp(), arrays_size_mod])
def test_around_a_train_function_that_reports_by_itself(mod):
    def train(message, context):
        agent = agent_of(context)
        return decide_and_report(agent, None, message, context, epsilon=agent.epsilon)

    grid = Gate([mod], train)
    if mod is arrays_size_mod:
        assert run(grid).faults == []
        return
    with pytest.raises(fedstay.Error, match="comes before fedstay"):
        run(grid)
    assert grid.exact() == 0


def test_with_a_noisy_loss_previews_work_by_rewind():
    grid = Gate([agent_mod(look, **NOISY), local_dp()])
    result = run(grid, FedStay(), rounds=10)
    assert grid.exact() == 0 and result.left == []
    assert any(line.get("shown") for line in result.lines)
    reports = [one for one in grid.left if not one[2].has_error()]
    errors = [
        abs(reply.content["fedstay"]["loss"] - look(message, context)[0])
        for context, message, reply in reports
    ]
    assert 0.0 < np.mean(errors) < 1.0
    assert all(r.content["fedstay"]["standard_error"] == 0.2 for *_, r in reports)


def test_the_noise_of_a_loss_cannot_be_drawn_again():
    np.random.seed(1)
    first = Loss(2.0, 0.5).told(1.0, 0.1, "threshold")
    np.random.seed(1)
    again = Loss(2.0, 0.5).told(1.0, 0.1, "threshold")
    assert first["loss"] != again["loss"] and first["standard_error"] == 0.5
    far = [Loss(2.0, 1e-6).told(loss, 0.1, "threshold")["loss"] for loss in (-5.0, 99.0)]
    assert np.allclose(far, [0.0, 2.0], atol=1e-4)


def test_a_policy_that_needs_losses_says_what_a_private_agent_can_do():
    grid = Gate([agent_mod(look), local_dp()])
    with pytest.raises(fedstay.Error) as refused:
        run(grid, FedStay(wait=0.0, tries=1))
    told = str(refused.value)
    assert "it is private and withholds its loss, which preview needs" in told
    assert "`loss_clip=` and `loss_noise=`" in told and 'FedStay("fedavg")' in told


def rounding(message, context, call_next):
    """A mod that changes what is sent, for whatever reason."""
    reply = call_next(message, context)
    if "arrays" not in reply.content:
        return reply
    weights = reply.content["arrays"]["w"].numpy()
    reply.content["arrays"] = ArrayRecord({"w": Array(np.round(weights, 2))})
    return reply


def counting(message, context, call_next):
    """A mod that only looks."""
    assert message.content["arrays"]
    return call_next(message, context)


@pytest.mark.parametrize(
    "mods, options, private",
    [
        ([rounding], {}, True),
        ([counting, rounding], {}, True),
        ([counting, arrays_size_mod, message_size_mod], {}, False),
        # It says that its mod has another purpose.
        ([rounding], {"private": False}, False),
        ([], {"private": True}, True),
        ([], NOISY, True),
    ],
)
def test_any_mod_that_changes_what_was_trained_counts_as_private(mods, options, private):
    grid = Gate([agent_mod(look, **options), *mods])
    run(grid)
    sent = grid.reports()
    assert sent and all(("gradient" in content) is not private for content in sent)
    # Where no mod makes anything private, trained weights are the train function's own.
    assert (grid.exact() == 0) is (private and bool(mods))


def test_a_mod_of_the_apps_own_before_ours_has_to_be_explained():
    with pytest.raises(fedstay.Error, match="the mod `counting` comes before `agent_mod`"):
        run(Gate([counting, agent_mod(look)]))
    assert run(Gate([counting, agent_mod(look, private=False)])).faults == []
    assert run(Gate([message_size_mod, agent_mod(look)])).faults == []


def test_settings_that_contradict_each_other_are_refused():
    with pytest.raises(fedstay.Error, match="`private=False`, but LocalDpMod is among"):
        run(Gate([agent_mod(look, private=False), local_dp()]))
    with pytest.raises(fedstay.Error, match="leave one of them out"):
        run(Gate([agent_mod(look, private=False, **NOISY)]))
    with pytest.raises(fedstay.Error, match="belong together"):
        agent_mod(look, loss_clip=1.0)
    with pytest.raises(fedstay.Error, match="`loss_noise` is 0"):
        agent_mod(look, loss_clip=1.0, loss_noise=0.0)
    with pytest.raises(fedstay.Error, match="must be above ε"):
        run(Gate([agent_mod(look, private=True, loss_clip=0.01, loss_noise=1.0)]))
    # Staying says that its loss is above its ε, unless it decides in another way.
    with pytest.raises(fedstay.Error, match="as `never` decides"):
        run(Gate([agent_mod(look, private=True, behaviour="never")]))


def test_a_rule_that_asks_for_counts_is_told_why_it_gets_none():
    grid = Gate([agent_mod(look, private=True)])
    with pytest.raises(fedstay.Error, match="it is private, and the rule asks for exact counts"):
        run(grid, FedStay("fairfed", step_size=0.1, wait=0.0, tries=1))
    assert grid.exact() == 0


def test_a_gradient_is_never_called_private():
    def train(message, context):
        agent = agent_of(context)
        return decide_and_report(agent, None, message, context, epsilon=0.01, private=True)

    def by_hand(message, context):
        arrays = message.content["arrays"]
        return report(
            message, context, loss=1.0, direction=arrays, epsilon=0.01, private=Loss(), exact=True
        )

    for function in (train, by_hand):
        grid = Gate([], function)
        with pytest.raises(fedstay.Error, match="is private"):
            run(grid)
        assert grid.exact() == 0


@pytest.fixture
def opacus(monkeypatch):
    """Opacus by its names: classes of these modules are all that is looked for."""
    package = types.ModuleType("opacus")
    for name in ("PrivacyEngine", "DPOptimizer", "GradSampleModule"):
        made = type(name, (), {"__module__": f"opacus.{name.lower()}", "step": lambda self: None})
        setattr(package, name, made)
    monkeypatch.setitem(sys.modules, "opacus", package)
    return package


def helper(message, context):
    return PrivacyEngine and trained(message, context)  # noqa: F821


def through_a_helper(message, context):
    return helper(message, context)


def imports_inside(message, context):
    import opacus  # noqa: F401

    return trained(message, context)


def test_a_train_function_that_uses_opacus_is_private(opacus, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "PrivacyEngine", opacus.PrivacyEngine, raising=False)
    optimizer = opacus.DPOptimizer()

    def closes_over(message, context):
        optimizer.step()
        return trained(message, context)

    for train in (helper, through_a_helper, imports_inside, closes_over):
        grid = Gate([agent_mod(look)], train)
        run(grid)
        sent = grid.reports()
        assert sent and not any("gradient" in content for content in sent), train
    # A name that is not taken for certain can be explained.
    grid = Gate([agent_mod(look, private=False)], imports_inside)
    run(grid)
    assert grid.exact() > 0


def test_what_privatises_is_found_by_its_names(opacus):
    assert privatiser(opacus.GradSampleModule()) == "opacus.GradSampleModule"
    optimizer = opacus.DPOptimizer()
    assert privatiser(lambda parameters: optimizer) == "opacus.DPOptimizer"
    assert privatiser(functools.partial(print, optimizer)) == "opacus.DPOptimizer"

    class Mine(LocalDpMod):
        pass

    assert privatiser(Mine(1, 1, 1, 1e-5)) == "LocalDpMod"
    assert privatiser(trained, look, agents) is None


def test_flowers_chain_of_mods_can_be_looked_into():
    """If Flower makes its chains in another way, this fails before anything leaks."""
    seen = []

    def asks(message, context, call_next):
        seen.append(inner_mods(call_next))
        return call_next(message, context)

    dp, ours = local_dp(), agent_mod(look)
    grid = Gate([asks, counting, dp, ours])
    arrays = ArrayRecord({"w": Array(START)})
    grid.push_messages(FedStay("fedavg").configure_train(1, arrays, ConfigRecord(), grid))
    assert seen == [([counting, dp, ours], trained)] * 3


class Module(TorchAgent):
    """What `decide_and_report` asks of a PyTorch agent, without PyTorch."""

    def __init__(self, bowl, optimizer):
        self.bowl, self._optimizer, self._train, self._loss = bowl, optimizer, None, None
        self.epsilon, self.behaviour, self.drawn = bowl.epsilon, None, []
        self.model = types.SimpleNamespace(parameters=list)

    samples, no_rates, no_corrections = 7, None, None

    def measure(self, gradient=False):
        return self.bowl.loss_and_grad(self.weights)[0]

    classifies = False

    def practise(self, seed):
        """As most train functions do, it returns the exact loss at what it was sent."""
        self.drawn.append(seed)
        loss, slope = self.bowl.loss_and_grad(self.weights)
        self.weights = self.weights - 0.1 * slope
        return {"train_loss": loss, "privacy_spent": 0.5}


@pytest.mark.parametrize("private", [True, False])
def test_of_a_module_that_is_trained_by_opacus_nothing_exact_leaves_and_nothing_can_be_drawn_again(
    private, opacus, monkeypatch
):
    def take_up(agent, arrays):
        agent.weights = arrays["w"].numpy()

    def gradient_of(agent):
        return ArrayRecord({"w": Array(agent.bowl.loss_and_grad(agent.weights)[1])})

    for module in (_agent, _evaluate):
        monkeypatch.setattr(module, "take_up", take_up)
    monkeypatch.setattr(_agent, "gradient_of", gradient_of)
    monkeypatch.setattr(_agent, "names_of", lambda model: {"parameters": ["w"]})
    made = {}
    monkeypatch.setattr(_agent, "arrays_of", lambda model: ArrayRecord({"w": Array(START)}))

    def train(message, context):
        optimizer = opacus.DPOptimizer() if private else (lambda parameters: None)
        name = agent_name(context)
        made.setdefault(name, Module(agent_of(context), lambda parameters: optimizer))
        tells = ["privacy_spent"]
        return decide_and_report(made[name], None, message, context, tells=tells)

    def evaluate(message, context):
        # Another object, of which nobody can see how it is trained.
        module = Module(agent_of(context), lambda parameters: None)
        return evaluate_and_report(module, None, message, context)

    grid = Gate([], train, evaluate=evaluate)
    run(grid, rounds=2)
    assert all((told == {}) is private for told in grid.evaluations())
    sent = grid.reports()
    assert sent and all(("gradient" in content) is not private for content in sent)
    assert all(content["metrics"]["privacy_spent"] == 0.5 for content in sent)
    assert (grid.exact() == 0) is private
    known = [seed("a", round) for round in (1, 2)]
    assert (made["a"].drawn == known) is not private

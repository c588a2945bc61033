"""Rules written in Python: wherever a rule is taken, with errors that name them."""

import json
import threading

import fedstay
import numpy as np
import pytest
from fedstay import _core
from fedstay.flower import FedStay
from flwr.app import Array, ArrayRecord, ConfigRecord
from loopback.bowls import START, STEP_SIZE, agents
from nodes import Nodes, bowl_app, simulated, start


class PlainMean:
    """FedAvg, component by component in the order of the core's sums."""

    def aggregate(self, round):
        step = np.zeros(round.weights.size)
        for row in round.displacements:
            step += row
        return step / len(round.reports)


class TrimmedMean:
    name = "trimmed-mean"

    def __init__(self, cut=1):
        self.cut = cut

    def aggregate(self, round):
        kept = np.sort(round.displacements, axis=0)[self.cut : len(round.reports) - self.cut]
        return kept.mean(axis=0)


class Fading:
    """Moves less every round, and remembers in a list how many there were."""

    def __init__(self):
        self.rounds = []

    def aggregate(self, round):
        self.rounds.append(round.number)
        if len(round.reports) == 1:
            raise LookupError("nobody to compare with")
        return round.displacements.mean(axis=0) / len(self.rounds)


class Saved(Fading):
    def save(self):
        return json.dumps(self.rounds)

    def restore(self, text):
        self.rounds = json.loads(text)


class Returns:
    """Returns whatever it is told to."""

    def __init__(self, value):
        self.value = value

    def aggregate(self, round):
        return self.value


def reports(dtype=np.float64, **more):
    directions = np.random.default_rng(5).normal(size=(3, 24)).astype(dtype)
    return [
        fedstay.Report(agent, row, loss=9.0 + agent, epsilon=0.1, **more)
        for agent, row in enumerate(directions)
    ]


def simulate(rule, **options):
    return fedstay.simulate(agents(), rule, weights=START, step_size=STEP_SIZE, rounds=4, **options)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("more", [{}, {"reach": 0.3}])
def test_a_mean_is_fedavg_in_a_server(dtype, more):
    own, listed = (fedstay.Server(START, rule, 0.1) for rule in (PlainMean(), "fedavg"))
    for _ in range(3):
        told, expected = own.step(reports(dtype, **more)), listed.step(reports(dtype, **more))
        assert (told.d, told.nd, told.case) == (expected.d, expected.nd, expected.case)
    assert own.weights.tobytes() == listed.weights.tobytes() != START.tobytes()
    assert (own.rule, own.needs_exact_losses, own.loads) == ("PlainMean", True, None)


def test_a_mean_is_fedavg_in_a_simulation_and_behind_flower():
    own, listed = simulate(PlainMean()), simulated()
    assert own.weights.tobytes() == listed.weights.tobytes()
    assert own.lines == listed.lines and len(own.left) == 1
    assert own.header["rule"] == own.summary["rule"] == "PlainMean"
    assert "PlainMean on python" in repr(own)
    flower = start(FedStay(PlainMean(), step_size=STEP_SIZE), Nodes("abc", bowl_app()))
    assert flower.weights.tobytes() == listed.weights.tobytes()


def test_a_trimmed_mean_has_its_own_name_and_ignores_the_wildest():
    wild = [*reports(), fedstay.Report(7, np.full(24, 1e9), loss=9.0, epsilon=0.1)]
    server = fedstay.Server(START, TrimmedMean(), 0.1)
    server.step(wild)
    assert server.rule == "trimmed-mean" and np.abs(server.displacement).max() < 1.0
    result = simulate(TrimmedMean(), policy="guard")
    assert result.header["rule"] == "trimmed-mean+guard"
    assert result.summary["rule"] == "trimmed-mean"


def test_what_a_rule_sees():
    seen = []

    class Curious:
        epsilon = 0.5

        def aggregate(self, round):
            seen.append(round)
            return np.ones((2, 1))

    server = fedstay.Server([3.0, 4.0], Curious(), 0.1)
    for _ in range(2):
        server.step(
            [
                fedstay.Report(4, np.ones(2, np.float32), loss=2.0, samples=8, gradient=[5, 6]),
                fedstay.Report(1, [1.0, 2.0], loss=3.0, epsilon=0.2, reach=0.7),
            ],
            goodbyes=[9],
        )
    first, second = seen
    assert (first.number, first.step_size, first.initial_step_size, first.last_step) == (
        (1, 0.1, 0.1, 0.0)
    )
    assert (second.number, second.last_step) == (2, np.sqrt(2.0))
    assert first.weights.tolist() == [3.0, 4.0] and second.weights.tolist() == [4.0, 5.0]
    assert first.goodbyes == [9] and repr(first) == "Round(1, 2 reports)"
    one, four = first.reports
    assert (one.agent, one.loss, one.epsilon, one.reach, one.samples) == (1, 3.0, 0.2, 0.7, 1)
    assert (four.agent, four.loss, four.epsilon, four.reach, four.samples) == (4, 2.0, 0.5, 0.1, 8)
    assert four.direction.dtype == np.float32 and four.gradient.tolist() == [5.0, 6.0]
    assert one.gradient.tolist() == one.direction.tolist() == [1.0, 2.0]
    assert first.displacements.tolist() == [[-0.7, -1.4], [-0.1, -0.1]]


def test_a_rule_says_who_is_about_to_leave_and_stops():
    step = fedstay.Step(np.zeros(24), about_to_leave=[2])
    decision = fedstay.Server(START, Returns(step), 0.1).step(reports())
    assert (decision.d, decision.nd, decision.stop) == ([2], [0, 1], None)
    result = simulate(Returns(fedstay.Step(None, stop="settled")))
    assert result.summary["stop"] == "settled" and len(result.lines) == 1
    assert result.weights.tobytes() == START.tobytes()


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.zeros(3), "3 components where the weights have 24"),
        (np.full(24, np.nan), r"step\[0\] is NaN"),
        ([*range(23), np.inf], r"step\[23\] is inf"),
        (None, "returned None"),
        (["a"] * 24, "must be numbers.*dtype"),
        ([[1.0], [1.0, 2.0]], "inhomogeneous"),
        (fedstay.Step(None), "returned None"),
        (fedstay.Step(np.zeros(24), stop="settled"), "with `stop`, `step` is None"),
        (fedstay.Step(None, stop="bored"), 'must be "settled" or "stalled"'),
        (fedstay.Step(None, stop=3), "stop"),
        (fedstay.Step(np.zeros(24), about_to_leave=[8]), "agent 8.*did not report"),
    ],
)
def test_what_cannot_be_a_step_names_the_rule(value, words):
    server = fedstay.Server(START, Returns(value), 0.1)
    for _ in range(2):
        with pytest.raises(fedstay.RuleError, match=f"the rule Returns: .*{words}") as caught:
            server.step(reports())
        assert caught.value.agent is None and isinstance(caught.value, fedstay.Error)
    assert server.round == 0 and server.weights.tobytes() == START.tobytes()
    with pytest.raises(fedstay.RuleError, match=words):
        simulate(Returns(value))


def test_what_cannot_be_a_rule_is_refused_at_once():
    class Half(PlainMean):
        def save(self):
            return ""

    class Locked(PlainMean):
        def __init__(self):
            self.lock = threading.Lock()

    class Nameless(PlainMean):
        name = ""

    class Numbered(PlainMean):
        name = 3

    class Impostor(PlainMean):
        name = "fedavg"

    for rule, words in (
        (PlainMean, r"`PlainMean` is a class; give an object of it: PlainMean\(\)"),
        (Half(), "Half has only one of `save` and `restore`"),
        (Locked(), "Locked cannot be copied.*__deepcopy__"),
        (Nameless(), "Nameless: its `name` must be one line"),
        (Numbered(), "Numbered: its `name` must be a text"),
        (Impostor(), 'Impostor: its `name` is "fedavg"'),
    ):
        for refuse in (
            lambda rule=rule: fedstay.Server(START, rule, 0.1),
            lambda rule=rule: simulate(rule),
            lambda rule=rule: FedStay(rule, step_size=0.1),
        ):
            with pytest.raises(fedstay.RuleError, match=words):
                refuse()
    for refuse in (
        lambda: fedstay.run(set={"rule": PlainMean()}),
        lambda: fedstay.run({"rule": PlainMean()}),
        lambda: _core.complete_rule(PlainMean()),
    ):
        with pytest.raises(fedstay.Error, match="PlainMean|custom|Custom"):
            refuse()


def test_exceptions_come_out_as_they_are_and_leave_no_trace():
    mine = Fading()
    server, spared = (fedstay.Server(START, mine, 0.1) for _ in range(2))
    for each in (server, spared):
        each.step(reports())
    with pytest.raises(LookupError, match="nobody to compare with"):
        server.step(reports()[:1])
    for each in (server, spared):
        each.step(reports())
    # The round that failed is not among those it counts, although it keeps them in a list.
    assert server.weights.tobytes() == spared.weights.tobytes()
    assert mine.rounds == [], "the object that was given is only a description"


def test_exceptions_come_out_of_runs_too(tmp_path):
    class Fails(PlainMean):
        def __init__(self, when):
            self.when = when

        def aggregate(self, round):
            if self.when == "aggregate":
                raise ZeroDivisionError("in aggregate")
            return super().aggregate(round)

        def save(self):
            if self.when == "save":
                raise ZeroDivisionError("in save")
            return ""

        def restore(self, text):
            raise ZeroDivisionError("in restore")

    for when in ("aggregate", "save"):
        with pytest.raises(ZeroDivisionError, match=f"in {when}"):
            simulate(Fails(when), out=tmp_path / when)
    with pytest.raises(ZeroDivisionError, match="in aggregate"):
        start(FedStay(Fails("aggregate"), step_size=STEP_SIZE), Nodes("abc", bowl_app()))
    server = fedstay.Server(START, Fails("restore"), 0.1)
    with pytest.raises(ZeroDivisionError, match="in restore"):
        fedstay.Server.from_state(server.state(), Fails("restore"))
    with pytest.raises(ZeroDivisionError, match="in save"):
        fedstay.Server(START, Fails("save"), 0.1).state()


def test_a_rule_that_is_to_blame_costs_no_agent_its_report():
    strategy = FedStay(Returns(np.zeros(3)), step_size=STEP_SIZE)
    grid = Nodes("abc", bowl_app())
    arrays = ArrayRecord({"w": Array(START)})
    messages = list(strategy.configure_train(1, arrays, ConfigRecord(), grid))
    with pytest.raises(fedstay.RuleError, match="the rule Returns"):
        strategy.aggregate_train(1, grid.send_and_receive(messages))


def test_a_servers_state_is_taken_up_with_the_rule():
    server = fedstay.Server(START, Saved(), 0.1)
    server.step(reports())
    again = fedstay.Server.from_state(server.state(), Saved())
    for each in (server, again):
        each.step(reports())
    assert again.weights.tobytes() == server.weights.tobytes() and again.rule == "Saved"
    with pytest.raises(fedstay.Error, match=r"from_state\(state, rule\)"):
        fedstay.Server.from_state(server.state())
    with pytest.raises(fedstay.RuleError, match="Fading has no `save` and `restore`"):
        fedstay.Server.from_state(server.state(), Fading())
    with pytest.raises(fedstay.RuleError, match="Fading has no `save` and `restore`"):
        fedstay.Server(START, Fading(), 0.1).state()


class Interrupted(Exception):
    pass


def interrupted(at):
    """Agents of which one fails in that round."""
    made, rounds = agents(), iter(range(1, 100))

    class Fragile(type(made["a"])):
        def loss_and_grad(self, weights):
            if next(rounds) == at:
                raise Interrupted
            return super().loss_and_grad(weights)

    made["a"].__class__ = Fragile
    return made


@pytest.mark.parametrize(("rule", "resumable"), [(Saved, True), (Fading, False)])
def test_a_run_is_kept_and_resumed_if_its_rule_can_be_saved(tmp_path, rule, resumable):
    options = {"weights": START, "step_size": STEP_SIZE, "rounds": 4}
    whole = fedstay.simulate(agents(), rule(), out=tmp_path / "whole", **options)
    assert fedstay.read(tmp_path / "whole").lines == whole.lines
    assert f'name = "{rule.__name__}"' in (tmp_path / "whole" / "config.toml").read_text()
    cut = tmp_path / "cut"
    with pytest.raises(Interrupted):
        fedstay.simulate(interrupted(at=3), rule(), out=cut, **options)
    if not resumable:
        with pytest.raises(fedstay.RuleError, match="Fading has no `save`.*cannot be resumed"):
            fedstay.simulate(agents(), rule(), out=cut, resume=True, **options)
        return
    resumed = fedstay.simulate(agents(), rule(), out=cut, resume=True, **options)
    assert resumed.weights.tobytes() == whole.weights.tobytes()
    for file in ("rounds.jsonl", "summary.json", "model.safetensors"):
        assert (cut / file).read_bytes() == (tmp_path / "whole" / file).read_bytes(), file
    other = tmp_path / "other"
    with pytest.raises(Interrupted):
        fedstay.simulate(interrupted(at=3), PlainMean(), out=other, **options)
    with pytest.raises(fedstay.Error, match="other settings"):
        fedstay.simulate(agents(), rule(), out=other, resume=True, **options)

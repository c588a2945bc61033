"""Rules that ask more of agents than a loss and a gradient: scaffold and fairfed, in Python and on Flower."""

import fedstay
import numpy as np
import pytest
from fedstay.flower import FedStay, agent_mod, agent_name, decide_and_report
from flwr.app import Array, ArrayRecord, Message, RecordDict
from flwr.clientapp import ClientApp
from nodes import Nodes
from test_worth import RAMPS

STEP = 0.05
START = {"weights": [1.0, -0.5], "step_size": STEP, "epsilon": 1e-9, "behaviour": "never"}


class Bowl:
    """A quadratic agent that takes several local steps, corrected or not."""

    samples = 1

    def __init__(self, stretch, centre, steps):
        self.stretch, self.centre, self.steps = np.array(stretch), np.array(centre), steps

    def loss_and_grad(self, weights):
        away = weights - self.centre
        return 0.5 * float(away @ (self.stretch * away)), self.stretch * away

    def corrected(self, weights, correction, *, seed):
        at = weights.copy()
        for _ in range(self.steps):
            at = at - STEP * (self.loss_and_grad(at)[1] + correction)
        return at, STEP * self.steps

    def work(self, weights, *, seed):
        return self.corrected(weights, 0.0, seed=seed)[0]


def bowls(steps):
    return {
        "a": Bowl([2.0, 1.0], [1.0, 0.0], steps),
        "b": Bowl([0.3, 1.0], [-2.0, 0.0], steps),
        "c": Bowl([1.0, 0.2], [0.0, 2.0], steps),
    }


class Plain:
    """The same agent with nothing but a gradient."""

    def __init__(self, bowl):
        self.bowl = bowl

    def loss_and_grad(self, weights):
        return self.bowl.loss_and_grad(weights)


def test_scaffold_with_one_local_step_is_averaging():
    one = bowls(1)
    mean = fedstay.simulate(one, "fedavg", rounds=40, **START)
    for agents in (one, {name: Plain(bowl) for name, bowl in one.items()}):
        run = fedstay.simulate(agents, "scaffold", rounds=40, **START)
        assert np.abs(run.weights - mean.weights).max() < 1e-12
    several = bowls(5)
    far = [fedstay.simulate(several, rule, rounds=40, **START) for rule in ("scaffold", "fedavg")]
    assert np.abs(far[0].weights - far[1].weights).max() > 1e-3


def test_scaffold_is_the_native_one_on_a_problem():
    """Agents whose gradient is their one step, who leave, and whose variates are kept or dropped."""
    for leavers in ("keep", "drop"):
        rule = fedstay.Scaffold(leavers=leavers)
        native = fedstay.run(
            set={"problem.kind": "observation-3", "rule": rule, "step_size": 0.1, "rounds": 80}
        )
        epsilon = native.header["agents"][0]["epsilon"]
        more = {"weights": [2.0, 1.0], "step_size": 0.1, "epsilon": epsilon, "rounds": 80}
        own = fedstay.simulate(RAMPS, rule, **more)
        assert own.left == native.left != []
        assert own.weights.tobytes() == native.weights.tobytes()


def test_scaffold_with_several_steps_is_the_cores_bit_for_bit():
    agents, steps = list(bowls(6).values()), 6
    run = fedstay.simulate(agents, "scaffold", rounds=25, **START)
    server = fedstay.Server(START["weights"], "scaffold", STEP)
    for _ in range(25):
        reports, sent = [], server.weights
        for index, bowl in enumerate(agents):
            by = server.correction(index)
            trained, reach = bowl.corrected(sent, np.zeros(2) if by is None else by, seed=0)
            loss, gradient = bowl.loss_and_grad(sent)
            direction = (sent - trained) / reach
            reports.append(
                fedstay.Report(
                    index, direction, loss=loss, epsilon=1e-9, gradient=gradient, reach=reach
                )
            )
        server.step(reports)
    assert run.weights.tobytes() == server.weights.tobytes()

    # The authors' Algorithm 1 with option II: agents keep their variates and send changes.
    x, c, own = np.array(START["weights"]), np.zeros(2), np.zeros((3, 2))
    for _ in range(25):
        ends = np.array([bowl.corrected(x, c - own[m], seed=0)[0] for m, bowl in enumerate(agents)])
        new = own - c + (x - ends) / (steps * STEP)
        x, c, own = ends.mean(axis=0), c + (new - own).mean(axis=0), new
    assert np.abs(run.weights - x).max() < 1e-12


def test_scaffold_ends_where_the_mean_loss_is_least_and_averaging_does_not():
    agents = bowls(6)
    pull = sum(bowl.stretch * bowl.centre for bowl in agents.values())
    best = pull / sum(bowl.stretch for bowl in agents.values())
    ends = {
        rule: fedstay.simulate(agents, rule, rounds=500, **START).weights
        for rule in ("scaffold", "fedavg")
    }
    assert np.abs(ends["scaffold"] - best).max() < 1e-9
    assert np.abs(ends["fedavg"] - best).max() > 0.01


def test_an_agent_whose_steps_cannot_be_corrected_is_named():
    class Closed(Plain):
        def work(self, weights, *, seed):
            return self.bowl.work(weights, seed=seed)

    agents = bowls(3)
    agents["b"] = Closed(agents["b"])
    with pytest.raises(
        fedstay.Error, match="scaffold corrects .* agent b cannot .* `corrected"
    ) as e:
        fedstay.simulate(agents, "scaffold", rounds=5, **START)
    assert e.value.agent == 1
    with pytest.raises(fedstay.Error, match="sum of its step sizes"):
        agents["b"].corrected = lambda weights, correction, seed: (weights, 0.0)
        fedstay.simulate(agents, "scaffold", rounds=5, **START)
    with pytest.raises(fedstay.Error, match="fairfed asks .* agent a cannot do that: .*rates"):
        fedstay.simulate(agents, "fairfed", rounds=5, **START)
    agents["a"].rates = agents["b"].rates = agents["c"].rates = lambda weights: (1, 2)
    with pytest.raises(fedstay.Error, match="agent a: its `rates.weights.` gave a tuple"):
        fedstay.simulate(agents, "fairfed", rounds=5, **START)


class Stop(Exception):
    """Cuts a run off."""


@pytest.mark.parametrize("rule", ["scaffold", "fairfed"])
def test_runs_resume_to_the_same_bytes_also_where_reports_are_repeated(rule, tmp_path):
    def agents():
        made = rated(3)
        made["b"].behaviour, made["b"].epsilon = "shirking", 1.9
        return made

    def cut(info):
        if info.round == 14:
            raise Stop

    more = {**START, "behaviour": "threshold", "rounds": 30}
    whole = fedstay.simulate(agents(), rule, out=tmp_path / "whole", **more)
    with pytest.raises(Stop):
        fedstay.simulate(agents(), rule, out=tmp_path / "cut", callbacks=[cut], **more)
    again = fedstay.simulate(agents(), rule, out=tmp_path / "cut", resume=True, **more)
    assert again.weights.tobytes() == whole.weights.tobytes()
    for name in ("rounds.jsonl", "summary.json"):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


class Rated(Bowl):
    """A bowl with groups: how well they are served depends on the weights."""

    def rates(self, weights):
        far = np.abs(weights - self.centre) * 7
        right = (int(far[0]) % 5, int(far[1]) % 4)
        return fedstay.Rates(right=right, of=(5, 4), correct=sum(right), rows=12)


def rated(steps=1, samples=(10, 20, 30)):
    made = {name: Rated(b.stretch, b.centre, steps) for name, b in bowls(steps).items()}
    for bowl, count in zip(made.values(), samples, strict=True):
        bowl.samples = count
    return made


def test_fairfed_without_a_beta_is_averaging_by_samples_and_else_the_authors_weights():
    plain = {name: Quiet(bowl) for name, bowl in rated().items()}
    by_samples = fedstay.simulate(plain, fedstay.FedAvg(weigh="samples"), rounds=12, **START)
    none = fedstay.simulate(plain, fedstay.FairFed(beta=0.0), rounds=12, **START)
    assert np.abs(none.weights - by_samples.weights).max() < 1e-12
    run = fedstay.simulate(plain, fedstay.FairFed(beta=0.5), rounds=12, **START)
    assert np.abs(run.weights - by_samples.weights).max() > 1e-4

    # Few lines of NumPy: a_m ← a_m − β(Δ_m − mean Δ), ω_m ∝ max(n_m/Σn + a_m, 0).
    x, a = np.array(START["weights"]), np.zeros(3)
    n = np.array([bowl.samples for bowl in plain.values()])
    for _ in range(12):
        told = [bowl.rates(x) for bowl in plain.values()]
        right = sum(np.array(t.right) for t in told) / sum(np.array(t.of) for t in told)
        gap = np.array([abs((right[0] - right[1]) - t.difference) for t in told])
        a = a - 0.5 * (gap - gap.mean())
        omega = np.maximum(n / n.sum() + a, 0.0)
        slopes = np.array([bowl.loss_and_grad(x)[1] for bowl in plain.values()])
        x = x - STEP * (omega / omega.sum()) @ slopes
    assert np.abs(run.weights - x).max() < 1e-12


class Quiet(Plain):
    """A rated bowl that reports its gradient."""

    def __init__(self, bowl):
        super().__init__(bowl)
        self.samples, self.rates = bowl.samples, bowl.rates


# -- on Flower -------------------------------------------------------------------------------------


def app_of(agents):
    app = ClientApp()

    @app.train()
    def train(message, context):
        agent = agents[agent_name(context)]
        return decide_and_report(agent, None, message, context, behaviour="never")

    return app


def on_flower(agents, rule, rounds=8, app=None, **more):
    strategy = FedStay(rule, step_size=STEP, epsilon=1e-9, evaluate_at_end=False, **more)
    grid = Nodes("abc", app_of(agents) if app is None else app)
    arrays = ArrayRecord({"w": Array(np.array(START["weights"]))})
    strategy.start(grid, arrays, num_rounds=rounds, timeout=0.3)
    return strategy.result


@pytest.mark.parametrize("agents", [bowls(5), {n: Plain(b) for n, b in bowls(1).items()}])
def test_scaffold_on_flower_is_that_of_simulate(agents, tmp_path):
    own = fedstay.simulate(agents, "scaffold", rounds=8, **START)
    there = on_flower(agents, "scaffold", out=tmp_path / "run")
    assert there.weights.tobytes() == own.weights.tobytes()
    assert [line["loss"] for line in there.lines] == [line["loss"] for line in own.lines]


def test_fairfed_on_flower_is_that_of_simulate():
    agents = {name: Quiet(bowl) for name, bowl in rated().items()}
    own = fedstay.simulate(agents, fedstay.FairFed(beta=0.5), rounds=8, **START)
    there = on_flower(agents, fedstay.FairFed(beta=0.5))
    assert there.weights.tobytes() == own.weights.tobytes()


def test_loops_other_than_start_send_corrections_too():
    agents = bowls(4)
    strategy = FedStay("scaffold", step_size=STEP, epsilon=1e-9)
    grid = Nodes("abc", app_of(agents))
    arrays = ArrayRecord({"w": Array(np.array(START["weights"]))})
    for round in range(1, 9):
        messages = strategy.configure_train(round, arrays, {}, grid)
        arrays, _ = strategy.aggregate_train(round, grid.send_and_receive(messages))
    own = fedstay.simulate(agents, "scaffold", rounds=8, **START)
    assert arrays["w"].numpy().tobytes() == own.weights.tobytes()


def trained(bowl, message, corrects):
    """A train function of one's own."""
    weights = message.content["arrays"]["w"].numpy()
    by = message.content.get("correction") if corrects else None
    end = bowl.corrected(weights, 0.0 if by is None else by["w"].numpy(), seed=0)[0]
    return Message(RecordDict({"arrays": ArrayRecord({"w": Array(end)})}), reply_to=message)


def own_app(agents, adds, **mod):
    def look(message, context):
        bowl = agents[agent_name(context)]
        loss, slope = bowl.loss_and_grad(message.content["arrays"]["w"].numpy())
        return loss, {"w": slope}

    app = ClientApp(mods=[agent_mod(look, behaviour="never", **mod)])

    @app.train()
    def train(message, context):
        return trained(agents[agent_name(context)], message, adds)

    return app


def test_a_train_function_of_ones_own_may_correct_and_must_say_so():
    agents = bowls(5)
    own = fedstay.simulate(agents, "scaffold", rounds=8, **START)
    app = own_app(agents, True, corrects=True, reach=5 * STEP)
    there = on_flower(agents, "scaffold", app=app)
    assert np.abs(there.weights - own.weights).max() < 1e-12
    for mod, why in (
        ({"reach": 5 * STEP}, "does not say that it did"),
        ({"corrects": True}, "the sum of its local step sizes"),
    ):
        few = {"on_few": "stop", "tries": 1}
        result = on_flower(agents, "scaffold", app=own_app(agents, False, **mod), **few)
        assert result.stop == "too-few" and why in result.faults[0][2]


def test_agents_on_flower_that_cannot_do_it_are_faults_that_say_what_to_add():
    class Closed(Plain):
        def work(self, weights, *, seed):
            return self.bowl.work(weights, seed=seed)

    for rule, agents, why in (
        ("scaffold", {n: Closed(b) for n, b in bowls(5).items()}, "give it `corrected"),
        ("fairfed", {n: Plain(b) for n, b in bowls(5).items()}, "give it `rates"),
    ):
        mixed = {**agents, "a": Quiet(rated()["a"])}
        result = on_flower(mixed, rule, rounds=2)
        assert {who for _, who, _ in result.faults} == {1, 2}
        assert all(why in told for _, _, told in result.faults)


@pytest.mark.parametrize(
    ("rates", "why"),
    [
        (None, "report does not tell"),
        ([1, 2], "not six counts"),
        (["1", "2", "3", "4", "5", "6"], "not a number"),
        ([-1, 2, 3, 4, 5, 6], "not counts"),
        ([9, 2, 3, 4, 5, 12], "counts of which none exceeds"),
        ([1.0e99, 2.0, 3.0, 4.0, 5.0, 12.0], "not counts"),
    ],
)
def test_hostile_counts_cost_their_agent_the_round(rates, why):
    agents = {name: Quiet(bowl) for name, bowl in rated().items()}
    plain = app_of(agents)

    class Forging:
        def __call__(self, message, context):
            reply = plain(message, context)
            if agent_name(context) == "b":
                said = reply.content["fedstay"]
                del said["rates"]
                if rates is not None:
                    said["rates"] = rates
            return reply

    result = on_flower(agents, "fairfed", rounds=1, app=Forging())
    [(_, who, told)] = result.faults
    # It never told its target, so it is only known by its number.
    assert who == 1 and why in told
    assert result.lines[0]["agents"] == [0, 2]

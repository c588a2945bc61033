"""How a run ended is said in full: the verdict, how many are content, and what to warn about."""

import json

import fedstay
import pytest
from fedstay.engine import Assessed, Gathered, Member
from fedstay.flower import FedStay, agent_name, decide_and_report, evaluate_and_report
from flwr.clientapp import ClientApp
from loopback.bowls import START, STEP_SIZE, agents
from nodes import Nodes, bowl_app, start


def result(verdict, losses, *, warnings=(), **more):
    """A result by hand: agents that are content at 0.5."""
    known = [{"id": i, "epsilon": 0.5, "loss": loss} for i, loss in enumerate(losses)]
    header = {"rule": "fedavg", "on": "bowls", "agents": [{"id": a["id"]} for a in known]}
    summary = {"verdict": verdict, "stop": "settled", "rounds": 7, "agents": known,
               "warnings": list(warnings), **more}  # fmt: skip
    return fedstay.Result(json.dumps(header), [], json.dumps(summary), None)


def test_the_words_carry_the_verdict_who_is_content_and_warnings():
    shown = repr(result("retained", [0.4, 0.6, 0.5]))
    assert shown == (
        "Result(fedavg on bowls: retained, 0 of 3 left, 2 of 3 content, settled after 7 rounds)"
    )
    warned = result("retained", [0.9], warnings=["losses hardly moved"])
    assert repr(warned).endswith(
        "0 of 1 content, settled after 7 rounds; 1 warning, see .warnings)"
    )
    assert warned.warnings == ["losses hardly moved"]
    # Where the summary has a count, it is used; an agent that was not asked is not called content.
    assert result("unsatisfied", [0.4], content=0).content == 0
    unasked = result("unknown", [0.4, 0.4])
    unasked.summary["agents"][1]["loss_of_round"] = 3
    assert unasked.content == 1


@pytest.mark.parametrize(
    "made, good",
    [
        (result("retained", [0.4, 0.4]), True),
        (result("retained", [0.4, 0.9]), True),
        (result("benign", [0.4]), True),
        (result("retained", [0.9, 0.9]), False),
        (result("unsatisfied", [0.9], content=0), False),
        (result("harmful", [0.4]), False),
        (result("unknown", [0.4]), False),
        (result("retained", [0.4], warnings=["losses hardly moved"]), False),
    ],
    ids=repr,
)
def test_only_a_good_end_is_logged_as_one(made, good, caplog):
    with caplog.at_level("INFO", "flwr"):
        FedStay._log_result(made)
    levels = {record.levelname for record in caplog.records}
    assert levels == ({"INFO"} if good else {"WARNING"})
    assert repr(made) in caplog.text
    assert all(warning in caplog.text for warning in made.warnings)


def test_an_untrained_model_is_not_reported_as_a_success(caplog):
    """Nobody left, nobody is content: the run of one round that trained next to nothing."""
    with caplog.at_level("INFO", "flwr"):
        start(FedStay("fedavg", step_size=1e-9), Nodes("abc", bowl_app(epsilon=0.001)), rounds=1)
    (last,) = [record for record in caplog.records if "Result(" in record.getMessage()]
    assert last.levelname == "WARNING" and "0 of 3 content" in last.getMessage()


def test_a_run_that_ends_well_is_logged_as_one(caplog):
    app = ClientApp()

    @app.train()
    def _(message, context):
        agent = agents()[agent_name(context)]
        return decide_and_report(agent, None, message, context, epsilon=2.5, behaviour="never")

    @app.evaluate()
    def _(message, context):
        return evaluate_and_report(agents()[agent_name(context)], None, message, context)

    with caplog.at_level("INFO", "flwr"):
        start(FedStay("fedavg", step_size=STEP_SIZE), Nodes("abc", app), rounds=9)
    (last,) = [record for record in caplog.records if "Result(" in record.getMessage()]
    assert "retained, 0 of 3 left, 3 of 3 content" in last.getMessage()
    assert last.levelname == "INFO"


def test_python_agents_are_summed_up_the_same_way():
    made = fedstay.simulate(agents(), "fedavg", weights=START, step_size=1e-9, rounds=1)
    assert made.content == 0 and "0 of 3 content" in repr(made) and not made.is_good


@pytest.mark.parametrize("asked", [0.5, 0.0], ids=["some asked", "nobody asked"])
def test_agents_that_nobody_asked_are_unknown_and_not_content(asked, caplog):
    """Nobody is content with the model of two rounds, and only some are asked about it."""
    strategy = FedStay("fedavg", step_size=1e-3, fraction_evaluate=asked, min_evaluate_nodes=1)
    with caplog.at_level("INFO", "flwr"):
        made = start(strategy, Nodes("abc", bowl_app(epsilon=0.001)), rounds=2)
    assert (made.verdict, made.content, made.left) == ("unknown", 0, [])
    known = "0 of 1 asked content, 2 not asked" if asked else "none of 3 asked about the model"
    assert known in repr(made)
    assert "retained" not in repr(made) and not made.is_good
    everybody = FedStay("fedavg", step_size=1e-3)
    everybody = start(everybody, Nodes("abc", bowl_app(epsilon=0.001)), rounds=2)
    assert (everybody.verdict, everybody.content) == ("unsatisfied", 0)


def test_a_federation_in_which_nobody_trained_is_empty_and_names_who_never_took_part():
    """All are content with the start, so there is no round of training and nothing to praise."""
    made = start(
        FedStay("fedavg", step_size=STEP_SIZE), Nodes("abc", bowl_app(epsilon=1e3)), rounds=3
    )
    assert (made.verdict, made.summary["empty"]) == ("empty", "nobody-trained")
    assert made.summary["content_at_start"] == [0, 1, 2] and not made.is_good
    assert "3 of 3 left (a, b, c)" in repr(made)


def test_names_stand_in_the_summary_and_its_warnings():
    wide = {"NSW": agents()["a"], "St Mary": agents()["b"]}
    wide["NSW"].epsilon = 1e3
    made = fedstay.simulate(wide, "fedavg", weights=START, step_size=STEP_SIZE, rounds=2)
    assert [agent["name"] for agent in made.summary["agents"]] == ["NSW", "St Mary"]
    assert any("before the first step: NSW;" in warning for warning in made.warnings)
    assert "1 of 2 left (NSW)" in repr(made)
    assert "NSW" in made.plot().svg


def test_an_engine_may_say_how_good_a_constant_model_is():
    """Where nobody can say, a model is not called empty for that reason."""

    class Halving:
        """One agent, whose loss is what the weight is and whose direction is the weight."""

        def agents(self):
            return [Member(0, 0.01)]

        def gather(self, *, round, weights, step_size, exact):
            report = fedstay.Report(0, weights, loss=float(weights[0]), epsilon=0.01)
            return Gathered([report], [])

        def assess(self, weights):
            return [Assessed(0, float(weights[0]))]

    class Told(Halving):
        def constant(self):
            return 0.25, None

    def played(engine):
        outcome = fedstay._core.drive(engine, [1.0], "fedavg", step_size=0.5, rounds=2)
        return json.loads(outcome.summary)

    assert "constant" not in played(Halving()) and played(Halving())["verdict"] == "unsatisfied"
    told = played(Told())
    assert told["constant"] == {"loss": 0.25, "accuracy": None}
    assert (told["verdict"], told["empty"]) == ("empty", "constant")

"""What answers and silence mean, with sites in this process."""

from __future__ import annotations

import copy

import fedstay
import numpy as np
import pytest
from bowls import CENTRES, START, STEP_SIZE, Bowl, bowls
from fedstay.flare import FedStay
from fedstay.remote.folder import reopened
from inside import Inside, engine_of, run
from nvflare.app_common.abstract.fl_model import FLModel

WEIGHTS = {"a": [START[:2]], "b": START[2:]}
KEEP = fedstay.AdaGd(delta=0.1)


def controller(rule=KEEP, **more):
    settings = {"step_size": STEP_SIZE, "rounds": 4, "weights": WEIGHTS, "wait": 0.0}
    return FedStay(rule, **{**settings, **more})


def expected(rule=KEEP, rounds=4, **more):
    return fedstay.simulate(
        bowls(), rule, weights=START, step_size=STEP_SIZE, rounds=rounds, on="flare", **more
    )


@pytest.mark.parametrize("rule", ["fedavg", "ada-gd", "retain", "keep-best"])
def test_equal_to_a_simulation(rule):
    policy = "keep-best" if rule == "keep-best" else None
    rule = "fedavg" if policy else rule
    made = controller(rule, rounds=9, policy=policy, evaluate_leavers=True)
    found, wanted = run(made, Inside(bowls())), expected(rule, 9, policy=policy)
    assert found.lines == wanted.lines
    assert np.array_equal(found.weights, wanted.weights)
    assert found.summary["verdict"] == wanted.summary["verdict"]


def test_previews_are_those_of_a_simulation_or_refused_by_name():
    made = controller("fedavg", rounds=9, policy="preview", evaluate_leavers=True)
    courier = Inside(bowls())
    try:
        wanted = expected("fedavg", 9, policy="preview")
    except fedstay.Error as refused:
        # A core whose Python engines cannot send personal weights: here as there.
        with pytest.raises(fedstay.Error) as refused_here:
            run(made, courier)
        assert str(refused_here.value) == str(refused) and "preview" in str(refused)
        assert courier.sent == []
        return
    found = run(made, courier)
    assert found.lines == wanted.lines
    assert np.array_equal(found.weights, wanted.weights)


def test_a_goodbye_counts_at_once_and_is_final():
    agents = bowls()
    agents["site-1"].epsilon = 1e9  # content from the start
    courier = Inside(agents)
    found = run(controller(), courier)
    assert found.left == [("site-1", 1)]
    asked = [name for task, name, _ in courier.sent if task == "train"]
    assert asked.count("site-1") == 1 and asked.count("site-2") == 4
    assert found.faults == []


def test_too_few_reports_are_waited_for_or_end_the_run():
    missing = {"rounds": 0}

    def one_is_late(name, received, answer):
        missing["rounds"] += name == "site-2"
        return None if name == "site-2" and missing["rounds"] == 2 else answer

    courier = Inside(bowls(), one_is_late)
    found = run(controller(min_agents=3), courier)
    # It was asked again in the same round, the others were not.
    assert found.lines == expected().lines
    rounds = [
        (name, m.meta["fedstay"]["round"]) for task, name, m in courier.sent if task == "train"
    ]
    assert rounds.count(("site-2", 2)) == 2 and rounds.count(("site-1", 2)) == 1

    missing["rounds"] = 0
    ended = run(controller(min_agents=3, on_few="stop"), Inside(bowls(), one_is_late))
    assert ended.stop == "too-few" and ended.left == []
    assert ended.faults == [(2, "site-2", "no answer within 1 s")]

    def never(name, received, answer):
        return None if name == "site-2" else answer

    with pytest.raises(
        fedstay.Error, match="2 of at least 3 agents reported in round 1, after 2 more"
    ):
        run(controller(min_agents=3, tries=2), Inside(bowls(), never))


def test_one_broken_site_cannot_keep_a_run_from_its_verdict(tmp_path):
    """Everybody else leaves rightly; the last one says NaN for ever."""
    agents = {name: copy.deepcopy(agent) for name, agent in bowls().items()}
    for name in ("site-1", "site-3"):
        agents[name].epsilon = 0.9 * agents[name].loss_and_grad(np.array(START))[0]

    def nan(name, received, answer):
        if name == "site-2" and answer.params is not None:
            answer = copy.deepcopy(answer)
            answer.params = {key: np.full_like(v, np.nan) for key, v in answer.params.items()}
        return answer

    made = controller("fedavg", rounds=60, tries=2, max_silent=99)
    found = run(made, Inside(agents, nan), out=tmp_path / "run")
    assert {departure.agent for departure in found.left} == {"site-1", "site-3"}
    assert found.stop == "too-few" and found.verdict is not None
    assert "after 2 more tries" in found.warnings[-1] and "not a finite" in found.warnings[-1]
    # It never told a target loss, so that the record has its number only.
    assert found.faults[-1][:2] == (found.lines[-1]["round"], 1)
    # The same job would continue it.
    assert (tmp_path / "run" / "summary.json").exists()
    assert reopened(tmp_path / "run") and not (tmp_path / "run" / "summary.json").exists()


def test_two_of_three_are_enough_if_two_are_asked_for():
    found = run(
        controller(min_agents=2, max_silent=9),
        Inside(bowls(), lambda name, _, answer: None if name == "site-3" else answer),
    )
    assert [line["agents"] for line in found.lines] == [[0, 1]] * 4
    assert [who for _, who, _ in found.faults] == [2] * 4, "it never told a name with a target loss"
    assert found.left == []


def test_set_aside_and_back():
    courier = Inside(bowls())
    made = controller(rounds=8, max_silent=1, retry_every=3)
    engine = engine_of(made, courier)
    weights = np.array(START)

    def ask(round):
        return engine.gather(round=round, weights=weights, step_size=STEP_SIZE, exact=True)

    assert [report.agent for report in ask(1).reports] == [0, 1, 2]
    courier.away = {"site-2"}
    assert ask(2).faults == [(1, "not connected; set aside after 1 silent rounds")]
    assert ask(3).faults == []
    courier.away = set()
    assert [report.agent for report in ask(4).reports] == [0, 1, 2]
    assert "round 4: agent site-2 is back" in courier.logged


def test_personal_weights_go_to_their_site_alone():
    courier = Inside(bowls())
    engine = engine_of(controller(), courier)
    shared, own = np.array(START), np.array([9.0, 8.0, 7.0])
    gathered = engine.gather(
        round=1, weights=shared, step_size=STEP_SIZE, exact=True, personal={1: own}
    )
    sent = {name: message for _, name, message in courier.sent}
    assert sent["site-1"] is sent["site-3"], "what is the same is one message"
    flat = [np.concatenate([p.reshape(-1) for p in m.params.values()]) for m in sent.values()]
    assert [list(vector) for vector in flat] == [list(shared), list(own), list(shared)]
    away = own - np.array(CENTRES["site-2"])
    assert np.array_equal(gathered.reports[1].direction, away)


def test_trained_weights_are_read_against_what_the_site_was_sent():
    own = np.array([9.0, 8.0, 7.0])

    def train(name, received, answer):
        site = courier.sites[name]
        trained = {key: array - 0.25 for key, array in received.params.items()}
        slope = {key: np.full_like(array, 3.0) for key, array in received.params.items()}
        given = {"gradient": slope} if name == "site-2" else {}
        return site.report(received, loss=5.0, weights=trained, reach=0.5, **given)

    courier = Inside(bowls(), train)
    engine = engine_of(controller(), courier)
    gathered = engine.gather(
        round=1, weights=np.array(START), step_size=STEP_SIZE, exact=True, personal={1: own}
    )
    for report in gathered.reports:
        assert np.allclose(report.direction, 0.5) and report.reach == 0.5
    assert np.array_equal(gathered.reports[1].gradient, [3.0] * 3)
    assert not np.array_equal(gathered.reports[0].gradient, [3.0] * 3)


class Trains(Bowl):
    """Takes three steps of its own, from wherever it is."""

    def work(self, weights, *, seed):
        for _ in range(3):
            weights = weights - 0.1 * self.loss_and_grad(weights)[1]
        return weights


def test_an_agent_that_trains_reports_its_work_and_its_gradient():
    courier = Inside({name: Trains(name) for name in CENTRES})
    engine = engine_of(controller("fedavg"), courier)
    start = np.array(START)
    gathered = engine.gather(round=1, weights=start, step_size=STEP_SIZE, exact=True)
    for report, agent in zip(gathered.reports, courier.agents.values(), strict=True):
        assert np.array_equal(report.gradient, agent.loss_and_grad(start)[1])
        assert np.array_equal(report.direction, (start - agent.work(start, seed=0)) / STEP_SIZE)
        assert not np.array_equal(report.direction, report.gradient)


def words(**said):
    """Words alone, and the nonce that the answer would have had."""

    def changed(answer):
        nonce = answer.meta["fedstay"]["nonce"]
        return FLModel(metrics={"x": 1.0}, meta={"fedstay": {"nonce": nonce, **said}})

    return changed


def change(**said):
    def changed(answer):
        answer.meta["fedstay"].update(said)
        return answer

    return changed


def arrays(**changed):
    def replaced(answer):
        answer.params = {**answer.params, **changed}
        answer.params = {key: value for key, value in answer.params.items() if value is not None}
        return answer

    return replaced


HOSTILE = {
    "nothing of ours": (lambda answer: FLModel(metrics={"loss": 1.0}), "has no `fedstay`"),
    "words instead of a record": (
        lambda answer: FLModel(metrics={"a": 1}, meta={"fedstay": "x"}),
        "has no `fedstay`",
    ),
    "a report without arrays": (
        words(kind="direction", loss=1.0),
        "neither a goodbye nor a report",
    ),
    "a goodbye with a strange target": (words(leaves=True, epsilon="low"), "not a number"),
    "a goodbye that is not one": (words(leaves="yes"), "neither a goodbye nor a report"),
    "NaN for a loss": (change(loss=float("nan")), "its loss is nan"),
    "a truth for a loss": (change(loss=True), "its loss is True"),
    "an infinite target": (change(epsilon=float("inf")), "its epsilon is inf"),
    "a negative reach": (change(reach=-1.0), "its reach is -1"),
    "a reach beyond all": (change(reach=1e9), "at most 300"),
    "the nonce of another round": (change(nonce="0"), "another round's message"),
    "a goodbye of another round": (words(leaves=True, nonce="0"), "another round's message"),
    "no nonce, where there was one before": (change(nonce=None), "it repeats no nonce"),
    "a goodbye without a nonce": (words(leaves=True, nonce=None), "it repeats no nonce"),
    "another kind": (change(kind="rumour\n\x1b[2J"), "of kind 'rumour\\n"),
    "a missing array": (arrays(b=None), "lacks the array `b`"),
    "one array more": (arrays(c=np.ones(1)), "arrays that the model does not have"),
    "another shape": (arrays(b=np.ones(2)), "has shape (2,)"),
    "integers": (arrays(b=np.ones(1, dtype=int)), "not of floats"),
    "objects": (arrays(b=["x"]), "is a list, not a NumPy array"),
    "NaN in an array": (arrays(b=np.array([np.nan])), "not a finite number"),
    "garbage": (arrays(b=np.array([1e30])), "taken for garbage"),
    "beyond all range": (arrays(b=np.array([1e150])), "out of all range"),
    "a loss unlike the others'": (change(loss=1e12), "taken for garbage"),
    "a gradient that got lost": (change(gradient=True), "did not arrive"),
    "a gradient nobody announced": (arrays(**{"gradient/b": np.ones(1)}), "did not arrive"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_nonsense_is_a_fault_of_whoever_sends_it(name):
    does, why = HOSTILE[name]

    def mischief(site, received, answer):
        if site == "site-2" and received.meta["fedstay"]["round"] == 2:
            return does(copy.deepcopy(answer))
        return answer

    found = run(controller(), Inside(bowls(), mischief))
    assert found.left == []
    assert [(round, who) for round, who, _ in found.faults] == [(2, "site-2")]
    told = found.faults[0][2]
    assert why in told, told
    assert told.isprintable() and len(told) < 400
    assert [line["agents"] for line in found.lines] == [[0, 1, 2], [0, 2], [0, 1, 2], [0, 1, 2]]


def test_an_old_report_that_is_sent_again_is_a_fault():
    old = []

    def repeats(name, received, answer):
        if name != "site-2":
            return answer
        if received.meta["fedstay"]["round"] < 3:
            old[:] = [copy.deepcopy(answer)]
        return copy.deepcopy(old[0])

    found = run(controller(max_silent=9, evaluate_at_end=False), Inside(bowls(), repeats))
    assert [(round, who) for round, who, _ in found.faults] == [(3, "site-2"), (4, "site-2")]
    assert all("an old answer that was sent again" in why for *_, why in found.faults)


def test_a_fault_says_why_and_is_asked_again():
    def fails(name, received, answer):
        if name == "site-2" and received.meta["fedstay"]["round"] == 2:
            return courier.sites[name].fault(received, ValueError("no\ndata"))
        return answer

    courier = Inside(bowls(), fails)
    found = run(controller(), courier)
    assert found.faults == [(2, "site-2", "it says: ValueError: no\\ndata")]
    assert found.left == []


def test_an_evaluation_that_is_none_is_ignored():
    def wrong(name, received, answer):
        if received.meta["fedstay"]["task"] == "evaluate" and name == "site-2":
            return FLModel(metrics={"loss": 0.1}, meta={"fedstay": {"kind": "rumour"}})
        return answer

    found = run(controller(), Inside(bowls(), wrong))
    told = {agent["id"]: agent.get("loss_of_round") for agent in found.summary["agents"]}
    assert told == {0: None, 1: 4, 2: None}

"""While a policy hides the server's own model, no site is sent it: not to evaluate, and not if it joins."""

from __future__ import annotations

import numpy as np
import pytest
from bowls import START, STEP_SIZE, bowls
from fedstay.flare import FedStay
from inside import Inside, run

PREVIEW = {"kind": "preview", "delta": 0.05}


def controller(**more):
    settings = {"step_size": STEP_SIZE, "rounds": 9, "weights": {"w": START}, "wait": 0.0}
    return FedStay("fedavg", policy=PREVIEW, **{**settings, **more})


def sent(courier, name, kind="train"):
    """What a site was sent, by round; the last evaluation is that of the end."""
    found = [m for task, n, m in courier.sent if n == name and m.meta["fedstay"]["task"] == kind]
    return [(m.meta["fedstay"]["round"], m.params["w"]) for m in found]


def loss_of(name, weights):
    return bowls()[name].loss_and_grad(weights)[0]


#: Content with where averaging goes, and not with where it begins.
HELD = "site-2"


def people():
    made = bowls()
    made[HELD].epsilon = 6.0
    return made


def test_without_previews_it_leaves():
    made = FedStay("fedavg", step_size=STEP_SIZE, rounds=9, weights={"w": START})
    assert HELD in [who for who, _ in run(made, Inside(people())).left]


def test_sites_evaluate_what_they_were_shown_and_the_model_itself_at_delivery():
    courier = Inside(people())
    result = run(controller(evaluate_every=1), courier)
    assert result.left == []
    shown, evaluated = sent(courier, HELD), sent(courier, HELD, "evaluate")
    assert len(evaluated) == 10
    for (round, own), (asked, looked) in zip(shown, evaluated, strict=False):
        assert round == asked and np.array_equal(own, looked)
        assert loss_of(HELD, looked) > 6.0
    assert np.array_equal(evaluated[-1][1], result.weights)
    assert loss_of(HELD, result.weights) < 6.0
    held = [bool(line.get("shown")) for line in result.lines]
    assert any(held) and ["assessment" in line for line in result.lines] == [not h for h in held]
    assert any("each at what it is shown" in line for line in courier.logged)


@pytest.mark.parametrize("how", ["connects late", "answers late"])
def test_a_site_that_was_not_heard_yet_is_shown_the_first_model(how):
    def late(name, received, answer):
        round = received.meta["fedstay"]["round"]
        if how == "connects late":
            courier.away = {HELD} if round < 5 else set()
        elif name == HELD and round < 6:
            return None
        return answer

    courier = Inside(people(), late)
    courier.away = {HELD} if how == "connects late" else set()
    result = run(controller(max_silent=9), courier)
    assert result.left == []
    train = sent(courier, HELD)
    first = [weights for round, weights in train if round <= 6]
    assert all(np.array_equal(weights, START) for weights in first)
    assert len(first) == (1 if how == "connects late" else 6)
    assert all(loss_of(HELD, weights) > 6.0 for _, weights in train)
    assert loss_of(HELD, result.weights) < 6.0


def test_sites_that_left_are_not_shown_what_is_hidden():
    agents = people()
    gone = next(name for name in agents if name != HELD)
    agents[gone].epsilon = 1e9
    courier = Inside(agents)
    result = run(controller(evaluate_every=1, evaluate_leavers=True), courier)
    assert [who for who, _ in result.left] == [gone]
    held = [line["round"] for line in result.lines if line.get("shown")]
    asked = [round for round, _ in sent(courier, gone, "evaluate")]
    assert held and not set(asked) & set(held[:-1])


def test_a_run_that_ends_with_too_few_and_may_go_on_delivers_nothing():
    def falls_silent(name, received, answer):
        late = received.meta["fedstay"]["round"] > 5
        return None if late and name == "site-3" else answer

    courier = Inside(people(), falls_silent)
    result = run(controller(min_agents=3, tries=1, max_silent=9), courier)
    assert result.stop == "too-few" and result.left == []
    for kind in ("train", "evaluate"):
        assert all(loss_of(HELD, weights) > 6.0 for _, weights in sent(courier, HELD, kind))

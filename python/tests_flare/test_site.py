"""A site's side: what it decides, what it says, and what it does not."""

from __future__ import annotations

import fedstay
import numpy as np
import pytest
from bowls import Bowl
from fedstay.flare import FedStay, Site
from fedstay.flare._roll import Roll
from fedstay.remote.door import number
from inside import over_the_wire
from nvflare.app_common.abstract.fl_model import FLModel, ParamsType


def message(round=1, **more):
    said = {"task": "train", "round": round, "step_size": 0.1, **more}
    params = {"w": np.array([3.0, 0.1, -0.2]), "steps": np.array(7)}
    return FLModel(params=params, current_round=round - 1, meta={"fedstay": said})


def test_a_goodbye_says_its_target_and_nothing_else():
    site = Site(epsilon=100.0)
    answer = over_the_wire(site.answer(message(), Bowl("site-1")))
    assert answer.params is None
    assert answer.meta["fedstay"] == {"leaves": True, "epsilon": 100.0}
    assert answer.metrics == {"left": 1.0}


def test_every_answer_repeats_the_nonce_of_its_message():
    for epsilon in (100.0, 0.1):
        answer = over_the_wire(Site(epsilon=epsilon).answer(message(nonce="n1"), Bowl("site-1")))
        assert answer.meta["fedstay"]["nonce"] == "n1"
    assert "nonce" not in Site(epsilon=0.1).answer(message(), Bowl("site-1")).meta["fedstay"]


def test_a_report_has_the_loss_and_the_gradient_at_the_received_weights():
    answer = over_the_wire(Site(epsilon=0.1).answer(message(), Bowl("site-1")))
    loss, slope = Bowl("site-1").loss_and_grad(np.array([3.0, 0.1, -0.2]))
    assert answer.meta["fedstay"]["loss"] == loss
    assert answer.params_type == ParamsType.DIFF
    assert np.array_equal(answer.params["w"], slope)


def test_the_own_target_comes_before_the_servers():
    assert Site(epsilon=0.1).goodbye(message(epsilon=5.0)).meta["fedstay"]["epsilon"] == 0.1
    assert Site().goodbye(message(epsilon=5.0)).meta["fedstay"]["epsilon"] == 5.0
    with pytest.raises(fedstay.Error, match="has no `epsilon`"):
        Site().goodbye(message())


def test_an_agent_that_left_stays_away_and_a_lost_goodbye_is_said_again():
    site = Site(epsilon=1.0)
    assert not site.leaves(message(1), 2.0)
    assert site.leaves(message(2), 0.5)
    assert site.leaves(message(2), 0.5), "the same round, asked again"
    assert site.leaves(message(3), 9.0), "it has left, whatever its loss is now"
    assert not site.leaves(message(1), 2.0), "another run begins"


def test_a_round_that_is_asked_again_is_decided_from_what_was_before(tmp_path):
    # Leaves, unsatisfied, after a round without progress.
    settings = {"epsilon": 1.0, "behaviour": {"kind": "utility", "patience": 1}}
    once = Site(**settings, memory=tmp_path / "memory.json")
    assert [once.leaves(message(1), 2.0), once.leaves(message(1), 2.0)] == [False, False]
    # The job is submitted again: another process, the same file.
    again = Site(**settings, memory=tmp_path / "memory.json")
    assert not again.leaves(message(1), 2.0)
    assert again.leaves(message(2), 2.0)
    forgets = Site(**settings)
    assert not forgets.leaves(message(2), 2.0), "or the memory made no difference"


def test_what_a_report_must_have():
    site = Site(epsilon=0.1)
    with pytest.raises(fedstay.Error, match="a `gradient`, or the `weights`"):
        site.report(message(), loss=1.0)
    with pytest.raises(fedstay.Error, match="does not have"):
        site.report(message(), loss=1.0, gradient={"v": np.ones(3)})
    with pytest.raises(fedstay.Error, match="is fedstay.flare.FedStay the job's controller"):
        site.leaves(FLModel(params={"w": np.ones(1)}), 1.0)
    answer = site.report(message(), loss=1.0, gradient={})
    assert np.array_equal(answer.params["w"], np.zeros(3)), "what is not trained has no slope"
    assert "steps" not in answer.params


def test_behaviours_that_need_a_simulation_are_refused():
    # A mixed population is dealt by a simulation.
    names = [name for name, *_ in fedstay._core.listed("behaviours") if name != "mixed"]
    refused = []
    for name in names:
        if fedstay._core.Behaviour(name).comes_back or fedstay._core.Behaviour(name).repeats:
            with pytest.raises(fedstay.Error, match="is for simulations"):
                Site(epsilon=0.1, behaviour=name).leaves(message(), 1.0)
            refused.append(name)
    assert refused


WRONG = {
    "on_few": ("perhaps", 'must be "wait" or "stop"'),
    "dtype": ("int8", 'must be "float64" or "float32"'),
    "rounds": (0, "1 or more"),
    "min_agents": (0, "1 or more"),
    "max_ratio": (0.5, "finite number, 1 or more"),
    "timeout": (float("inf"), "finite number of seconds"),
    "out": ("runs/a", "must be an absolute path"),
    "agents": (["a", "a"], "names a site twice"),
    "step_size": (-1.0, "step"),
    "policy": ("nonsense", "nonsense"),
    "rule": ({"kind": "mw-fed", "variant": "load"}, "load"),
    "weights": ({}, "no model to start from"),
    "worth": (["help", "shap"], "`shap` is not a way to say what agents are worth: help, loo"),
    "judge": (
        lambda weights: 0.0,
        "`judge` is a function or a class, and FLARE writes a job as JSON",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_settings_are_refused_when_the_job_is_made(name):
    value, why = WRONG[name]
    settings = {"step_size": 0.1, "rounds": 3, "weights": {"w": [1.0]}}
    with pytest.raises(fedstay.Error, match=why):
        FedStay(**{**settings, name: value})


def test_sites_are_numbered_in_the_order_of_their_names():
    roll = Roll()
    roll.welcome(["site-10", "b", "site-2", "site-1"])
    assert [m.name for m in roll.everybody()] == ["b", "site-1", "site-2", "site-10"]
    roll.welcome(["a", "site-1"])
    assert roll.members["a"].id == 4


def test_an_endless_integer_is_refused_and_not_printed():
    with pytest.raises(fedstay.Error, match="its loss is an integer beyond"):
        number({"loss": 10**400}, "loss")

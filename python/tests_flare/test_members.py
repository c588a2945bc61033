"""What agents are worth, and rules that ask them for more: scaffold and fairfed, on FLARE."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import fedstay
import numpy as np
import pytest
from bowls import CENTRES, START, STEP_SIZE, Bowl, Judge, Walker, bowls
from fedstay import _core
from fedstay.flare import FedStay, Site
from inside import Inside, engine_of, over_the_wire, run
from jobs import export, simulate
from nvflare.app_common.abstract.fl_model import FLModel

WEIGHTS = {"a": [START[:2]], "b": START[2:]}
METHODS = [name for name, _ in _core.worth_methods()]
FAIR = fedstay.FairFed(beta=0.5)


def controller(rule="scaffold", rounds=7, **more) -> FedStay:
    settings = {"step_size": STEP_SIZE, "weights": WEIGHTS, "wait": 0.0, "evaluate_leavers": True}
    return FedStay(rule, rounds=rounds, **{**settings, "timeout": 300, **more})


def here(rule="scaffold", kind=Walker, rounds=7, dtype="float64", **more) -> fedstay.Result:
    start = {"weights": np.array(START, dtype=dtype), "step_size": STEP_SIZE, "on": "flare"}
    return fedstay.simulate(bowls(kind), rule, rounds=rounds, **start, **more)


def assert_same(found: fedstay.Result, wanted: fedstay.Result) -> None:
    assert found.lines == wanted.lines
    assert found.weights.tobytes() == wanted.weights.tobytes()
    assert found.left == wanted.left and found.faults == []
    for name in ("verdict", "worth"):
        assert found.summary.get(name) == wanted.summary.get(name)
    scores = [[agent.get("worth") for agent in r.summary["agents"]] for r in (found, wanted)]
    assert scores[0] == scores[1]


# -- sites in this process ---------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("kind", [Walker, Bowl])
@pytest.mark.parametrize("leavers", ["keep", "drop"])
def test_scaffold_is_that_of_simulate(kind, leavers, dtype):
    """Sites that take several corrected steps, and sites whose one step is their gradient."""
    rule = fedstay.Scaffold(leavers=leavers)
    wanted = here(rule, kind, 12, dtype)
    assert 0 < len(wanted.left) < 3, "somebody should leave, and somebody be corrected after that"
    courier = Inside(bowls(kind))
    assert_same(run(controller(rule, 12, dtype=dtype), courier), wanted)
    plain = here("fedavg", kind, 12, dtype)
    assert kind is Bowl or np.abs(plain.weights - wanted.weights).max() > 1e-3
    # A correction is one site's own; who was not heard yet has none, and nobody needs one to evaluate.
    sent = [
        (task, m.meta["fedstay"]["round"], m.meta["fedstay"].get("correction"))
        for task, _, m in courier.sent
    ]
    assert all((by is not None) == (task == "train" and round > 1) for task, round, by in sent)
    second = [by["b"] for task, round, by in sent if task == "train" and round == 2]
    assert len({array.tobytes() for array in second}) == 3
    assert {array.dtype for array in second} == {np.dtype(dtype)}


def test_scaffold_under_previews_is_that_of_simulate():
    wanted = here(rounds=9, policy="preview")
    assert any(line.get("shown") for line in wanted.lines)
    assert_same(run(controller(rounds=9, policy="preview"), Inside(bowls(Walker))), wanted)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_fairfed_is_that_of_simulate(dtype):
    wanted = here(FAIR, rounds=9, dtype=dtype)
    plain = here(fedstay.FedAvg(weigh="samples"), rounds=9, dtype=dtype)
    assert np.abs(plain.weights - wanted.weights).max() > 1e-4
    assert_same(run(controller(FAIR, 9, dtype=dtype), Inside(bowls(Walker))), wanted)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("rule", ["fedavg", "scaffold"])
def test_worth_is_that_of_simulate(rule, dtype):
    worth = fedstay.Worth(METHODS, judge=Judge())
    wanted = here(rule, worth=worth, dtype=dtype)
    assert wanted.summary["worth"]["help"] and wanted.lines[2]["worth"]["given"]
    made = controller(rule, worth=worth, dtype=dtype)
    assert_same(run(made, Inside(bowls(Walker))), wanted)


def test_a_judge_may_be_called_with_the_arrays():
    class Called(Judge):
        loss = None

        def __call__(self, arrays):
            assert list(arrays) == ["a", "b"] and arrays["a"].shape == (1, 2)
            flat = np.concatenate([array.reshape(-1) for array in arrays.values()])
            return Judge.loss(self, flat)

    made = controller("fedavg", worth=["loo"], judge=Called())
    wanted = here("fedavg", worth=fedstay.Worth(["loo"], judge=Judge()))
    assert_same(run(made, Inside(bowls(Walker))), wanted)


def test_a_judge_is_asked_for_when_the_job_is_made():
    with pytest.raises(fedstay.Error, match="loo, gtg ask how good models are .* give `judge=`"):
        controller(worth=["loo", "help", "gtg"])
    with pytest.raises(fedstay.Error, match="`judge` is a int"):
        controller(worth=["loo"], judge=3)
    assert controller(worth="help").worth == ["help"]


def test_runs_resume_to_the_same_bytes(tmp_path):
    for rule in ("scaffold", FAIR):
        worth = {"worth": METHODS, "judge": Judge()}
        whole, cut = tmp_path / f"{rule}-whole", tmp_path / f"{rule}-cut"
        often = {"seconds_between_checkpoints": 0.0}
        run(controller(rule, **worth), Inside(bowls(Walker)), out=whole, **often)

        def stop(name, received, answer):
            if received.meta["fedstay"]["round"] == 4:
                raise KeyboardInterrupt
            return answer

        with pytest.raises(KeyboardInterrupt):
            run(controller(rule, **worth), Inside(bowls(Walker), stop), out=cut, **often)
        assert not (cut / "summary.json").exists()
        run(controller(rule, **worth), Inside(bowls(Walker)), out=cut, resume=True, **often)
        for name in ("config.toml", "rounds.jsonl", "summary.json"):
            assert (cut / name).read_bytes() == (whole / name).read_bytes(), name


def test_sites_that_cannot_do_it_are_faults_that_say_what_to_add():
    class Closed(Bowl):
        def work(self, weights, *, seed):
            return weights

    for rule, why in (("scaffold", "give it `corrected"), ("fairfed", "give it `rates")):
        mixed = {**bowls(Closed), "site-1": Walker("site-1")}
        found = run(controller(rule, 2), Inside(mixed))
        assert {who for _, who, _ in found.faults} == {1, 2}
        assert all(why in told for _, _, told in found.faults)
        assert [line["agents"] for line in found.lines] == [[0], [0]]


def own_loop(site, model, walker, *, adds=True, **more):
    """A loop of one's own, as docs/flare.md has it."""
    weights = np.concatenate([array.reshape(-1) for array in model.params.values()])
    loss, slope = walker.loss_and_grad(weights)

    def by_name(vector):
        return {"a": vector[:2].reshape(1, 2), "b": vector[2:]}

    by = site.correction(model)
    add = np.concatenate([array.reshape(-1) for array in by.values()]) if adds else 0.0
    trained, _ = walker.corrected(weights, add, seed=0)
    if site.leaves(model, loss):
        return site.goodbye(model)
    return site.report(model, loss=loss, gradient=by_name(slope), weights=by_name(trained), **more)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"corrects": True, "reach": 0.28}, None),
        ({"reach": 0.28, "adds": False}, "does not say that it did"),
        ({"corrects": True}, "the sum of its local step sizes"),
    ],
)
def test_a_loop_of_ones_own_may_correct_and_must_say_so(more, why):
    def loop(name, received, answer):
        if received.meta["fedstay"]["task"] == "evaluate":
            return answer
        return own_loop(Site(epsilon=walkers[name].epsilon), received, walkers[name], **more)

    walkers = bowls(Walker)
    if why is None:
        found = run(controller(), Inside(walkers, loop))
        wanted = here()
        assert found.left == wanted.left
        assert np.abs(found.weights - wanted.weights).max() < 1e-12
    else:
        found = run(controller(on_few="stop"), Inside(walkers, loop))
        assert found.stop == "too-few" and why in found.faults[0][2]


def test_what_a_site_is_told_to_add():
    def message(**said):
        told = {"task": "train", "round": 2, "step_size": 0.1, "epsilon": 0.1, **said}
        params = {"w": np.array([3.0, 0.1]), "steps": np.array(7)}
        return over_the_wire(FLModel(params=params, current_round=1, meta={"fedstay": told}))

    assert Site.correction(message()) is None, "the rule corrects nothing"
    assert Site.correction(message(corrects=True))["w"].tolist() == [0.0, 0.0], (
        "it is not heard yet"
    )
    by = {"w": np.array([0.5, -1.0])}
    model = message(corrects=True, correction=by)
    assert {name: array.tolist() for name, array in Site.correction(model).items()} == {
        "w": [0.5, -1.0]
    }
    # A gradient alone is one step; the site corrects it, and the gradient goes beside it.
    report = Site().report(model, loss=1.0, gradient={"w": np.array([2.0, 2.0])})
    assert {name: array.tolist() for name, array in report.params.items()} == {
        "w": [2.5, 1.0],
        "gradient/w": [2.0, 2.0],
    }
    assert report.meta["fedstay"]["corrects"] is True


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
def test_hostile_counts_cost_their_site_the_round(rates, why):
    def forged(name, received, answer):
        answer = copy.deepcopy(answer)
        if name == "site-2" and "rates" in answer.meta["fedstay"]:
            answer.meta["fedstay"]["rates"] = rates
        return answer

    found = run(controller(FAIR, 1), Inside(bowls(Walker), forged))
    [(_, who, told)] = found.faults
    assert who == 1 and why in told
    assert found.lines[0]["agents"] == [0, 2]


def test_corrections_and_weights_of_ones_own_go_together():
    courier = Inside(bowls(Walker))
    engine = engine_of(controller(), courier)
    shared, own, by = np.array(START), np.array([9.0, 8.0, 7.0]), np.array([0.5, 0.0, -0.5])
    asked = {"round": 2, "weights": shared, "step_size": STEP_SIZE, "exact": True}
    gathered = engine.gather(**asked, personal={1: own}, corrections={1: by, 2: by})
    for report, name, sent in zip(gathered.reports, CENTRES, (shared, own, shared), strict=True):
        add = 0.0 * by if name == "site-1" else by
        trained, reach = Walker(name).corrected(sent, add, seed=0)
        assert np.array_equal(report.direction, (sent - trained) / reach)
        assert np.array_equal(report.gradient, Walker(name).loss_and_grad(sent)[1])


# -- jobs in FLARE's simulator -----------------------------------------------------------------------


def scored(out: Path) -> FedStay:
    worth = fedstay.Worth(METHODS, judge=Judge(stretch=1.5))
    return controller(out=str(out), worth=worth)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """One job with three workflows; one judge is an object in the job, the other a component of it."""
    folder = tmp_path_factory.mktemp("members")
    jobs = [
        scored(folder / "scaffold"),
        controller(FAIR, 5, out=str(folder / "fairfed"), worth=["help", "reputation"]),
        controller(
            "fedavg", 4, out=str(folder / "fedavg"), dtype="float32", worth=["loo"], judge="judge"
        ),
    ]
    job = export(folder / "job", jobs, "client_asks.py", {"judge": Judge(stretch=2.0)})
    (folder / "log").write_text(simulate(job, folder / "workspace"))
    return folder


def test_a_job_under_scaffold_with_every_score_is_a_simulation_bit_for_bit(whole):
    wanted = here(worth=fedstay.Worth(METHODS, judge=Judge(stretch=1.5)))
    assert wanted.left, "somebody should leave here"
    assert_same(fedstay.read(whole / "scaffold"), wanted)
    text = (whole / "scaffold" / "config.toml").read_text()
    assert "[worth]" in text and '"reputation"' in text


def test_a_job_under_fairfed_is_a_simulation_bit_for_bit(whole):
    wanted = here(FAIR, rounds=5, worth=["help", "reputation"])
    assert_same(fedstay.read(whole / "fairfed"), wanted)


def test_a_judge_that_is_a_component_of_the_job(whole):
    worth = fedstay.Worth(["loo"], judge=Judge(stretch=2.0))
    assert_same(
        fedstay.read(whole / "fedavg"), here("fedavg", rounds=4, dtype="float32", worth=worth)
    )


def test_a_killed_server_resumes_to_the_same_bytes(whole, tmp_path):
    out = tmp_path / "run"
    rounds = out / "rounds.jsonl"

    def far_enough() -> bool:
        return rounds.exists() and len(rounds.read_text().splitlines()) > 3

    job = export(tmp_path / "job", [scored(out)], "client_asks.py")
    simulate(job, tmp_path / "killed", kill_when=far_enough)
    assert not (out / "summary.json").exists(), "the run was over before it was killed"
    text = simulate(job, tmp_path / "resumed")
    assert f"continuing the run in {out}" in text
    for name in ("config.toml", "rounds.jsonl"):
        assert (out / name).read_bytes() == (whole / "scaffold" / name).read_bytes(), name
    summaries = [
        json.loads((folder / "summary.json").read_text()) for folder in (out, whole / "scaffold")
    ]
    assert summaries[0] == summaries[1]

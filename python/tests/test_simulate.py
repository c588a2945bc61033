"""Python agents and the native simulator, and what they leave behind."""

import json
import os
import subprocess
import sys
from pathlib import Path

import fedstay
import numpy as np
import pytest
from fedstay import _core

REPOSITORY = Path(__file__).parents[2]


class Bowl:
    def __init__(self, centre, **more):
        self.centre = np.array(centre)
        self.__dict__.update(more)

    def loss_and_grad(self, weights):
        away = weights - self.centre.astype(weights.dtype)
        return 0.5 * away @ away, away


class Mortal(Bowl):
    """Answers five times, and then the process ends."""

    left = 5

    def loss_and_grad(self, weights):
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        return super().loss_and_grad(weights)


AGENTS = {"near": Bowl([1.0, 0.0]), "far": Bowl([0.0, 4.0])}
START = {"weights": [3.0, 0.0], "step_size": 0.1, "epsilon": 1.0}


def test_averaging_loses_whom_the_others_keep():
    lost = fedstay.simulate(AGENTS, "fedavg", **START)
    assert lost.verdict == "harmful" and {who for who, _ in lost.left} == {"near", "far"}
    for rule in (fedstay.AdaGd(delta=0.1), fedstay.Retain()):
        kept = fedstay.simulate(AGENTS, rule, **START)
        # No model satisfies both: they want to be farther apart than that.
        assert (kept.verdict, kept.left) == ("unsatisfied", [])
    guarded = fedstay.simulate(AGENTS, "fedavg", policy="guard", **START)
    assert guarded.left == []


class Rated(Bowl):
    """A bowl that says more about weights than their loss."""

    rated = "f1"

    def measures(self, weights):
        return {self.rated: 1.0 / (1.0 + self.loss_and_grad(weights)[0])}


def test_what_agents_measure_is_in_the_summary_under_their_names(tmp_path):
    agents = {name: Rated(bowl.centre) for name, bowl in AGENTS.items()}
    run = fedstay.simulate(agents, "fedavg", out=tmp_path / "run", **START)
    assert [of["name"] for of in run.measures] == ["accuracy", "f1"]
    scores = [agent["f1"] for agent in run.summary["agents"]]
    assert scores == [1.0 / (1.0 + agent["loss"]) for agent in run.summary["agents"]]
    assert run.summary["f1"]["min"] == min(scores) and run.summary["accuracy"] is None
    assert "<th>f1</th>" in run._repr_html_()
    assert "F1: mean" in (tmp_path / "run" / "report.html").read_text()
    plain = fedstay.simulate(AGENTS, "fedavg", **START)
    assert "measures" not in plain.summary and plain.weights.tolist() == run.weights.tolist()


@pytest.mark.parametrize("name", ["loss", "epsilon", "rounds", "F1", "a.b", ""])
def test_a_measure_cannot_have_a_name_that_files_use(name):
    agents = [Rated([1.0], rated=name)]
    with pytest.raises(fedstay.Error, match="cannot be the name of a measure"):
        fedstay.simulate(agents, "fedavg", weights=[0.0], step_size=0.1, rounds=2, epsilon=0.1)


def test_with_one_agent_averaging_is_gradient_descent():
    one = [Bowl([1.0, 2.0], epsilon=1e-3)]
    run = fedstay.simulate(one, "fedavg", weights=[0.0, 0.0], step_size=0.5, rounds=3)
    by_hand = np.zeros(2)
    for line in run.lines:
        assert line["weights"] == by_hand.tolist()
        by_hand = by_hand - 0.5 * (by_hand - np.array([1.0, 2.0]))
    assert run.weights.tolist() == by_hand.tolist()


def test_nothing_that_is_said_numbers_an_agent_with_a_name(tmp_path):
    told = []
    agents = dict(zip(("St Mary", "NSW"), AGENTS.values(), strict=True))
    hears = {"callbacks": [lambda info: told.append(str(info))], "out": tmp_path / "run"}
    result = fedstay.simulate(agents, "fedavg", **hears, **START)
    assert {who for who, _ in result.left} == set(agents) and "St Mary" in repr(result)
    files = [(tmp_path / "run" / name).read_text() for name in ("report.html", "run.svg")]
    for text in (repr(result), result._repr_html_(), *files):
        assert "NSW" in text and "agent 0" not in text and "agent 1" not in text
    assert any("(NSW)" in line for line in told) and not any("agent 1" in line for line in told)


@pytest.mark.parametrize("gradient", [[np.nan, 0.0], ["a", "b"], [1.0]])
def test_an_error_calls_an_agent_by_its_name(gradient):
    wrong = Bowl([0.0, 4.0])
    wrong.loss_and_grad = lambda weights: (5.0, np.array(gradient))
    for agents, called in (
        ({"St Mary": AGENTS["near"], "NSW": wrong}, "NSW"),
        ([wrong], "agent 0"),
    ):
        with pytest.raises(fedstay.Error, match=f"^{called}: its direction") as caught:
            fedstay.simulate(agents, "fedavg", **START)
        assert caught.value.agent == len(agents) - 1


def test_behaviours_by_name_by_dict_and_of_one_agent():
    stays = fedstay.simulate(AGENTS, "fedavg", behaviour="never", rounds=40, **START)
    assert stays.left == [] and stays.header["rule"] == "fedavg+never"
    stays = fedstay.simulate(AGENTS, "fedavg", behaviour={"kind": "never"}, rounds=40, **START)
    assert stays.left == []
    mixed = {"near": Bowl([1.0, 0.0], behaviour="never"), "far": AGENTS["far"]}
    left = fedstay.simulate(mixed, "fedavg", **START).left
    assert "near" not in {who for who, _ in left}


#: Behaviours that know what only an experiment knows, or send something else than what they computed.
SIMULATED = {"opt-out", "contagious", "competitor", "free-riding", "amplifying", "withholding"}
BEHAVIOURS = {name for name, _, _ in _core.listed("behaviours")}


@pytest.mark.parametrize("kind", sorted(SIMULATED))
def test_a_behaviour_for_experiments_is_refused_by_name(kind):
    assert kind in BEHAVIOURS
    with pytest.raises(fedstay.Error, match=f"`{kind}` is for experiments"):
        fedstay.simulate(AGENTS, "fedavg", behaviour={"kind": kind}, rounds=2, **START)


@pytest.mark.parametrize("kind", sorted(BEHAVIOURS - SIMULATED))
def test_every_behaviour_runs_and_resumes(kind, tmp_path):
    behaviour = {"kind": kind}
    if kind == "mixed":
        behaviour["of"] = [{"kind": "lying", "agents": [1]}, {"kind": "never", "share": 1.0}]

    class Dies(Bowl):
        rounds = 5

        def loss_and_grad(self, weights):
            Dies.rounds -= 1
            if Dies.rounds == 0:
                raise KeyboardInterrupt
            return super().loss_and_grad(weights)

    options = {"behaviour": behaviour, "rounds": 20, **START}
    whole = fedstay.simulate(AGENTS, "fedavg", **options)
    assert len(whole.lines) > 1
    mortal = {**AGENTS, "near": Dies([1.0, 0.0])}
    for again in (False, True):
        try:
            cut = fedstay.simulate(mortal, "fedavg", out=tmp_path / "cut", resume=again, **options)
        except KeyboardInterrupt:
            assert not again
    assert cut.lines == whole.lines and cut.weights.tobytes() == whole.weights.tobytes()


def test_agents_see_the_precision_of_the_start():
    seen = set()

    class Looks(Bowl):
        def loss_and_grad(self, weights):
            seen.add(weights.dtype)
            return super().loss_and_grad(weights)

    start = {**START, "weights": np.array([3.0, 0.0], np.float32)}
    fedstay.simulate([Looks([1.0, 0.0])], "fedavg", rounds=2, **start)
    assert seen == {np.dtype(np.float32)}


def test_an_agent_s_own_exception_comes_through():
    class Breaks(Bowl):
        def loss_and_grad(self, weights):
            raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        fedstay.simulate([Breaks([0.0, 0.0])], "fedavg", **START)
    with pytest.raises(fedstay.Error, match="agent 0.*epsilon"):
        fedstay.simulate([Bowl([0.0, 0.0])], "fedavg", weights=[1.0, 1.0], step_size=0.1)
    with pytest.raises(fedstay.Error, match="empty"):
        fedstay.simulate([], "fedavg", **START)


def test_tables_pictures_and_folders(tmp_path):
    out = tmp_path / "run"
    result = fedstay.simulate(AGENTS, fedstay.AdaGd(delta=0.1), out=out, **START)
    assert result.columns["round"][-1] == result.summary["rounds"] == len(result.lines)
    frame = result.rounds
    assert list(frame["loss.near"])[0] == result.columns["loss.near"][0] == 2.0
    assert result.plot(tmp_path / "run.png").svg.startswith("<svg")
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")
    assert result.plot()._repr_svg_() == (out / "run.svg").read_text()
    back = fedstay.read(out)
    assert back.lines == result.lines and back.summary == result.summary
    names = {path.name for path in out.iterdir()}
    native = tmp_path / "native"
    fedstay.run(set={"problem.kind": "observation-3"}, out=native)
    assert names == {path.name for path in native.iterdir()}
    with pytest.raises(fedstay.Error, match="over"):
        fedstay.simulate(AGENTS, fedstay.AdaGd(delta=0.1), out=out, **START)


def test_a_run_that_was_cut_off_goes_on_to_the_same_bytes(tmp_path):
    arguments = {"rounds": 12, **START}
    rule = fedstay.AdaGd(delta=0.1)
    whole = fedstay.simulate(AGENTS, rule, out=tmp_path / "whole", **arguments)
    with pytest.raises(KeyboardInterrupt):
        cut = {"near": Mortal([1.0, 0.0]), "far": AGENTS["far"]}
        fedstay.simulate(cut, rule, out=tmp_path / "cut", **arguments)
    with pytest.raises(fedstay.Error, match="resume=True"):
        fedstay.simulate(AGENTS, rule, out=tmp_path / "cut", **arguments)
    with pytest.raises(fedstay.Error, match="other settings"):
        fedstay.simulate(AGENTS, "fedavg", out=tmp_path / "cut", resume=True, **arguments)
    resumed = fedstay.simulate(AGENTS, rule, out=tmp_path / "cut", resume=True, **arguments)
    assert resumed.lines == whole.lines
    for path in sorted((tmp_path / "whole").iterdir()):
        assert path.read_bytes() == (tmp_path / "cut" / path.name).read_bytes(), path.name


def test_a_folder_that_is_being_written_is_refused_to_everybody_else(tmp_path):
    arguments = {"rounds": 6, **START}
    out = tmp_path / "live"
    refused = []

    class Intrudes(Bowl):
        def loss_and_grad(self, weights):
            for resume in (False, True):
                with pytest.raises(fedstay.Error, match="being written by another process") as why:
                    fedstay.simulate(AGENTS, "ada-gd", out=out, resume=resume, **arguments)
                refused.append(str(why.value))
            return super().loss_and_grad(weights)

    alone = fedstay.simulate(AGENTS, "ada-gd", out=tmp_path / "alone", **arguments)
    live = {**AGENTS, "near": Intrudes([1.0, 0.0])}
    assert fedstay.simulate(live, "ada-gd", out=out, **arguments).lines == alone.lines
    # Asked in every round, and once about the delivered model.
    assert len(refused) == 2 * (len(alone.lines) + 1) and str(os.getpid()) in refused[0]
    assert {path.name for path in out.iterdir()} == {p.name for p in alone.folder.iterdir()}
    for path in alone.folder.iterdir():
        assert path.read_bytes() == (out / path.name).read_bytes(), path.name


@pytest.mark.parametrize("file", ["checkpoint", "rounds.jsonl", "config.toml"])
def test_a_folder_that_was_changed_is_not_continued(file, tmp_path):
    arguments = {"rounds": 12, **START}
    out = tmp_path / "cut"
    with pytest.raises(KeyboardInterrupt):
        fedstay.simulate({**AGENTS, "near": Mortal([1.0, 0.0])}, "ada-gd", out=out, **arguments)
    right = (out / file).read_bytes()
    header = right.index(b"\n") + 1 if file == "rounds.jsonl" else 0
    for place in range(header, len(right), max(1, len(right) // 40)):
        damaged = bytearray(right)
        damaged[place] ^= 1 << place % 7
        (out / file).write_bytes(damaged)
        if file == "rounds.jsonl" and place >= header + marked(out):
            continue  # after the checkpoint: computed again, whatever it is
        with pytest.raises(fedstay.Error, match=file):
            fedstay.simulate(AGENTS, "ada-gd", out=out, resume=True, **arguments)
        assert (out / file).read_bytes() == damaged
    (out / file).write_bytes(right)
    resumed = fedstay.simulate(AGENTS, "ada-gd", out=out, resume=True, **arguments)
    assert resumed.lines == fedstay.simulate(AGENTS, "ada-gd", **arguments).lines


def marked(folder):
    """How many bytes of rounds.jsonl, after its header, the checkpoint vouches for."""
    body = (folder / "checkpoint").read_text().splitlines()[1]
    return json.loads(body)["rounds"]["bytes"]


def test_experiments_of_the_repository_run():
    path = REPOSITORY / "experiments" / "default.toml"
    result = fedstay.run(path, set={"rounds": 3, "rule": fedstay.Retain(delta=0.02)})
    assert result.header["rule"] == "retain" and len(result.lines) <= 3
    one = fedstay.run(path, set={"rounds": 3}, threads=1)
    two = fedstay.run(path, set={"rounds": 3}, threads=2)
    assert one.weights.tobytes() == two.weights.tobytes() and one.lines == two.lines


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("agents", 10**12, "`agents` is 1000000000000"),
        ("data.classes", [], "data.classes"),
        ("model.hidden", [2**32, 2**32], "at most 67108864"),
        ("seed", 2**63, "from 0 to 9223372036854775807"),
        ("step_size", float("nan"), "step_size"),
    ],
)
def test_absurd_settings_are_refused_by_name(tmp_path, key, value, says):
    with pytest.raises(fedstay.Error, match=says):
        fedstay.run(set={key: value})
    study = tmp_path / "study.toml"
    study.write_text("rounds = 2\n[grid]\nseed = [0, 1]\n")
    if key != "seed":
        with pytest.raises(fedstay.Error, match=says):
            fedstay.sweep(study, set={key: value}, store=tmp_path / "a.db")


def test_a_million_threads_are_refused_before_one_is_started(tmp_path):
    with pytest.raises(fedstay.Error, match="from 1 to 512"):
        fedstay.run(set={"rounds": 2}, threads=1_000_000)
    study = tmp_path / "study.toml"
    study.write_text("rounds = 2\n[grid]\nseed = [0, 1]\n")
    with pytest.raises(fedstay.Error, match="from 1 to 512"):
        fedstay.sweep(study, store=tmp_path / "a.db", threads=1_000_000)


@pytest.mark.parametrize("hidden", [("pandas",), ("pandas", "polars")])
def test_tables_without_pandas_and_without_both(hidden):
    program = f"""
import importlib.util, json
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name in {hidden!r} else find(name, *more)
import fedstay
keys = {{"problem.kind": "observation-3", "rule.kind": "ada-gd", "rounds": 3}}
rounds = fedstay.run(set=keys).rounds
print(type(rounds).__module__.split(".")[0], len(rounds["round"]))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    expected = "polars" if hidden == ("pandas",) else "builtins"
    assert done.stdout.split() == [expected, "3"]


def test_the_folder_says_its_settings(tmp_path):
    fedstay.simulate(AGENTS, "pcgrad", out=tmp_path / "run", rounds=2, **START)
    import tomllib

    config = tomllib.loads((tmp_path / "run" / "config.toml").read_text())
    assert config["rule"]["kind"] == "pcgrad" and config["epsilon"] == [1.0, 1.0]
    first = json.loads((tmp_path / "run" / "rounds.jsonl").read_text().splitlines()[0])
    assert [agent["name"] for agent in first["agents"]] == ["near", "far"]

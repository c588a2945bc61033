"""The wheel against the core's lists, and what a caller can get wrong."""

import dataclasses
import json
import threading
import time
import tomllib
from pathlib import Path

import fedstay
import numpy as np
import pytest
from fedstay import _core, policies, rules


def two(dtype=np.float64):
    return [
        fedstay.Report(0, np.array([1.0, 0.0], dtype), loss=0.2, epsilon=0.1),
        fedstay.Report(1, np.array([1.0, 1.0], dtype), loss=3.0, epsilon=0.1),
    ]


def accepts(kind, name, example):
    value = json.loads(example) if example[0] in "0123456789[tf-" else example.strip('"')
    try:
        _core.complete_rule({"kind": kind, name: value})
    except fedstay.Error as error:
        return "belongs to" not in str(error)
    return True


def test_every_rule_of_the_core_has_a_class():
    assert sorted(rules.classes()) == sorted(name for name, _, _ in _core.listed("rules"))
    for rule in rules.classes().values():
        assert rule.__name__ in fedstay.__all__ and rule.__doc__


@pytest.mark.parametrize("kind", [name for name, _, _ in _core.listed("rules")])
def test_a_class_has_its_rules_parameters_and_defaults(kind):
    made = rules.classes()[kind]()
    assert json.loads(_core.complete_rule(made)) == made.to_dict()
    assert json.loads(_core.complete_rule(kind)) == made.to_dict()
    parameters = {name.removeprefix("rule."): example for name, example, _ in _core.keys()
                  if name.startswith("rule.") and name != "rule.kind"}  # fmt: skip
    taken = {name for name, example in parameters.items() if accepts(kind, name, example)}
    assert taken == {field.name for field in dataclasses.fields(made)} - {"epsilon"}
    for name in taken:
        assert f"{name}:" in made.__doc__, f"{kind}.{name} is not documented"
    with pytest.raises(TypeError):
        rules.classes()[kind](1.0)


def test_a_slack_and_the_rule_that_nobody_names_are_the_same_in_python_and_in_a_file(tmp_path):
    def filled_in(name, **said):
        fedstay.run({"data.kind": "digits", "rounds": 1, **said}, out=tmp_path / name)
        return tomllib.loads((tmp_path / name / "config.toml").read_text())

    assert filled_in("none")["rule"]["kind"] == "retain"
    for made in [fedstay.AdaGd(), fedstay.Retain(), fedstay.Level()]:
        assert filled_in(made.kind, **{"rule.kind": made.kind})["rule"]["delta"] == made.delta
    for made in [fedstay.Guard(), fedstay.Preview()]:
        assert filled_in(made.kind, **{"policy.kind": made.kind})["policy"]["delta"] == made.delta


# These reports have no counts of groups, without which fairfed has nothing to weigh by.
WITHOUT_GROUPS = [name for name, _, _ in _core.listed("rules") if name != "fairfed"]


def test_a_rule_that_needs_more_than_a_report_has_says_so():
    server = fedstay.Server([0.5, -0.5], "fairfed", 0.1)
    with pytest.raises(fedstay.Error, match="agent 0 does not tell how well its groups are served"):
        server.step(two())
    assert server.weights.tolist() == [0.5, -0.5]
    rates = fedstay.Rates(right=(1, 1), of=(2, 2), correct=3, rows=5)
    told = [
        fedstay.Report(agent, [1.0, 0.0], loss=2.0, epsilon=0.1, rates=rates) for agent in (0, 1)
    ]
    server.step(told)
    assert server.weights.round(6).tolist() == [0.4, -0.5] and told[0].rates == rates
    impossible = fedstay.Rates(right=(3, 1), of=(2, 2), correct=3, rows=5)
    with pytest.raises(fedstay.Error, match="counts of which none exceeds"):
        server.step([fedstay.Report(0, [1.0, 0.0], loss=2.0, epsilon=0.1, rates=impossible)])


@pytest.mark.parametrize("kind", WITHOUT_GROUPS)
def test_every_rule_steps(kind):
    server = fedstay.Server([0.5, -0.5], kind, 0.1)
    decision = server.step(two())
    assert np.isfinite(server.weights).all() and sorted(decision.d + decision.nd) == [0, 1]
    again = fedstay.Server.from_state(server.state())
    again.step(two())
    server.step(two())
    assert again.weights.tobytes() == server.weights.tobytes()


def test_arrays_are_read_where_they_are():
    for dtype in (np.float32, np.float64):
        direction = np.ones((3, 4), dtype)
        report = fedstay.Report(0, direction, loss=1.0, epsilon=0.1)
        assert np.shares_memory(report.direction, direction)
        assert report.direction.dtype == dtype
    assert fedstay.Report(0, [1, 2], loss=1.0, epsilon=0.1).direction.dtype == np.float64
    strided = np.ones((4, 4), np.float32)[:, ::2]
    assert fedstay.Report(0, strided, loss=1.0, epsilon=0.1).direction.shape == (8,)


def test_single_precision_is_widened_and_not_copied_into_the_sum():
    server = fedstay.Server(np.zeros(2), "fedavg", 0.5)
    server.step([fedstay.Report(0, np.array([0.1, 0.2], np.float32), loss=1.0, epsilon=0.1)])
    assert server.weights.tolist() == [-0.5 * float(np.float32(x)) for x in (0.1, 0.2)]


@pytest.mark.parametrize(
    ("make", "agent", "words"),
    [
        (lambda: fedstay.Report(7, [1.0, np.nan], loss=1.0, epsilon=0.1), 7, r"agent 7.*direction\[1\]"),
        (lambda: fedstay.Report(7, [1.0], loss=1.0, epsilon=0.1), 7, "agent 7.*1 components"),
        (lambda: fedstay.Report(7, [1.0, 1.0], loss=np.inf, epsilon=0.1), 7, "agent 7.*loss"),
        (lambda: fedstay.Report(7, ["a", "b"], loss=1.0, epsilon=0.1), 7, "agent 7.*dtype"),
        (lambda: fedstay.Report(7, [1.0, 1.0], loss=1.0), 7, "agent 7 has no `epsilon`"),
        (lambda: fedstay.Report(7, [1.0, 1.0], loss=1.0, tau=0.1), 7, "agent 7.*either"),
        (lambda: fedstay.Report(0, [1.0, 1.0], loss=1.0, epsilon=0.1), 0, "agent 0 reported twice"),
    ],
)  # fmt: skip
def test_errors_name_the_agent_and_leave_the_server_as_it_was(make, agent, words):
    server = fedstay.Server([0.0, 0.0], fedstay.AdaGd(), 0.1)
    before = server.state()
    with pytest.raises(fedstay.Error, match=words) as caught:
        server.step([*two(), make()])
    assert caught.value.agent == agent
    assert server.state() == before


def test_errors_without_an_agent_say_what_to_type():
    for bad in (
        lambda: fedstay.Server([0.0], "fedavg", 0.0),
        lambda: fedstay.Server([np.nan], "fedavg", 0.1),
        lambda: fedstay.Server.from_state(b"{}"),
        lambda: fedstay.run("there/is/no.toml"),
        lambda: fedstay.run(set={"rule.detla": 1}),
    ):
        with pytest.raises(fedstay.Error) as caught:
            bad()
        assert caught.value.agent is None


def server(rule="fedavg", policy=None):
    return fedstay.Server([0.0], rule, 0.1, policy=policy)


@pytest.mark.parametrize(
    ("section", "make", "given", "words"),
    [
        ("rule", server, "adagd", "there is no rule `adagd`; did you mean `ada-gd`?"),
        ("rule", server, "xyz", "there are `fedavg`"),
        ("rule", server, {"kind": "ada-gd", "detla": 1.0}, "did you mean `rule.delta`?"),
        ("rule", server, {"kind": "ada-gd", "delta": "big"}, '`rule.delta` is "big", but must be'),
        ("rule", server, {"kind": "fedavg", "on_settled": "halve"}, "belongs to `ada-gd`"),
        ("rule", server, fedstay.AdaGd(on_settled="wait"), "rule.on_settled"),
        ("rule", server, fedstay.AdaGd(delta=float("inf")), "`rule.delta` is inf"),
        ("policy", lambda value: server(policy=value), "gaurd", "did you mean `guard`?"),
        ("policy", lambda value: server(policy=value), {"kind": "guard", "until": "content"}, "belongs to"),
        ("behaviour", fedstay.Behaviour, "sulks", "there is no behaviour `sulks`"),
        ("behaviour", fedstay.Behaviour, {"kind": "foresight", "steps": -3}, "from 0 to 10000"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_the_words_of_the_command_line(section, make, given, words):
    with pytest.raises(fedstay.Error) as caught:
        make(given)
    assert words in str(caught.value) and caught.value.agent is None
    # The keys of an experiment are checked by what the command line checks them by.
    with pytest.raises(fedstay.Error) as on_the_command_line:
        fedstay.run(set={section: {"kind": given} if isinstance(given, str) else given})
    if given != fedstay.AdaGd(delta=float("inf")):  # which JSON cannot say
        assert str(caught.value) == str(on_the_command_line.value)


def test_what_the_command_line_says_is_in_its_snapshots():
    snapshots = Path(__file__).parents[2] / "crates/fedstay-cli/tests/snapshots"
    said = " ".join((snapshots / "snapshots__errors.snap").read_text().split())
    for given in ("adagd", {"kind": "fedavg", "on_settled": "halve"}):
        with pytest.raises(fedstay.Error) as caught:
            server(given)
        assert str(caught.value) in said


def test_a_rule_that_is_not_one_is_refused_by_what_it_is():
    itself = {"kind": "ada-gd"}
    itself["delta"] = itself
    for given, words in [
        (3, r'`rule` is 3, but must be a name such as "ada-gd"'),
        (None, "`rule` is None, but must be a name"),
        (fedstay.AdaGd, r"`AdaGd` is a class; give an object of it: AdaGd\(\)"),
        ({"kind": "ada-gd", "delta": object()}, r"`rule.delta` is <object .*but must be a text"),
        (itself, "nested more than"),
    ]:
        with pytest.raises(fedstay.Error, match=words):
            server(given)
    # NumPy's numbers are numbers.
    assert server({"kind": "ada-gd", "delta": np.float32(0.5)}).rule == "ada-gd"


def test_a_round_in_which_all_who_were_asked_leave_is_no_end_while_others_are_still_in():
    server = fedstay.Server([1.0], "fedavg", 0.1)
    assert server.step([], goodbyes=[0], absent=1).stop is None
    assert server.step([], goodbyes=[1]).stop == "everyone-left"


def test_other_threads_run_during_a_step():
    size, turns, done = 2_000_000, [], threading.Event()

    def watch():
        while not done.is_set():
            turns.append(time.perf_counter())
            time.sleep(0.0005)

    rng = np.random.default_rng(0)
    reports = [
        fedstay.Report(i, rng.normal(size=size).astype(np.float32), loss=0.1, epsilon=0.1)
        for i in range(8)
    ]
    reports.append(fedstay.Report(9, rng.normal(size=size), loss=9e3, epsilon=0.1))
    server = fedstay.Server(np.zeros(size), fedstay.AdaGd(), 1e-3)
    thread = threading.Thread(target=watch)
    thread.start()
    time.sleep(0.01)
    start = time.perf_counter()
    server.step(reports)
    end = time.perf_counter()
    done.set()
    thread.join()
    during = [turn for turn in turns if start < turn < end]
    # With the lock held it could have had only the turn before and the one after.
    assert len(during) > 5, (len(during), end - start)


def test_privacy_mode_decides_the_same():
    open_, private = (fedstay.Server([0.0, 0.0], fedstay.AdaGd(delta=0.05), 0.1) for _ in range(2))
    taus = [
        fedstay.Report(i, g, tau=fedstay.tau(loss=f, epsilon=0.1, delta=0.05, norm=np.hypot(*g)))
        for i, (f, g) in enumerate([(0.2, [1.0, 0.0]), (3.0, [1.0, 1.0])])
    ]
    assert open_.step(two()).d == private.step(taus).d == [0]
    assert open_.weights.tobytes() == private.weights.tobytes()


def test_every_policy_of_the_core_has_a_class_with_its_parameters_and_defaults():
    listed = [name for name, _, _ in _core.listed("policies") if name != "none"]
    assert sorted(policies.classes()) == sorted(listed)
    for kind, policy in policies.classes().items():
        assert policy.__name__ in fedstay.__all__ and policy.__doc__
        made = policy()
        assert json.loads(_core.complete_policy(made)) == made.to_dict()
        assert json.loads(_core.complete_policy(kind)) == made.to_dict()
        taken = set()
        for name, example, _ in _core.keys():
            short = name.removeprefix("policy.")
            if name == f"policy.{short}" and short != "kind":
                try:
                    _core.complete_policy({"kind": kind, short: json.loads(example)})
                    taken.add(short)
                except fedstay.Error as error:
                    assert "belongs to" in str(error)
        assert taken == {field.name for field in dataclasses.fields(made)}
        for name in taken:
            assert f"{name}:" in policy.__doc__, f"{kind}.{name} is not documented"
    native = fedstay.run(
        set={"problem.kind": "observation-3", "policy": fedstay.Preview(), "rounds": 9}
    )
    assert native.header["rule"].endswith("+preview")


def test_a_list_is_what_the_core_lists():
    for what in ("rules", "optimisers", "policies", "behaviours", "schedules"):
        assert all(name and about for name, about, _ in _core.listed(what))
    for name, _, _ in _core.listed("policies"):
        fedstay.Server([0.0], "fedavg", 0.1, policy=name)


def test_agents_that_bring_no_precision_have_the_rules():
    rule = fedstay.AdaGd(epsilon=0.1, delta=0.05)
    assert rule.to_dict() == fedstay.AdaGd(delta=0.05).to_dict()
    told = two()
    silent = [fedstay.Report(r.agent, r.direction, loss=r.loss) for r in told]
    assert silent[0].epsilon is None and repr(silent[0]) == "Report(agent=0, loss=0.2)"
    server, other = (fedstay.Server([0.0, 0.0], rule, 0.1) for _ in range(2))
    assert server.step(silent).d == other.step(told).d == [0]
    again = fedstay.Server.from_state(server.state())
    again.step(silent)
    other.step(told)
    assert again.weights.tobytes() == other.weights.tobytes()
    with pytest.raises(fedstay.Error, match="agent 0 has no `epsilon`.*the rule one") as caught:
        fedstay.Server([0.0, 0.0], fedstay.AdaGd(), 0.1).step(silent)
    assert caught.value.agent == 0
    with pytest.raises(fedstay.Error, match="agent 0 has no `epsilon`"):
        silent[0].check(2)


def test_a_rules_precision_reaches_the_simulators():
    class Bowl:
        def loss_and_grad(self, weights):
            return 0.5 * weights @ weights, weights

    rule = fedstay.FedAvg(epsilon=1.0)
    result = fedstay.simulate([Bowl()], rule, weights=[3.0], step_size=0.1)
    assert result.header["agents"][0]["epsilon"] == 1.0 and len(result.left) == 1
    own = fedstay.simulate([Bowl()], rule, weights=[3.0], step_size=0.1, epsilon=0.5)
    assert own.header["agents"][0]["epsilon"] == 0.5
    for more, expected in (({}, 0.7), ({"epsilon": 0.5}, 0.5)):
        given = {"rounds": 2, "rule": fedstay.Retain(epsilon=0.7), **more}
        for ordered in (given, dict(reversed(given.items()))):
            native = fedstay.run(set=ordered)
            assert {agent["epsilon"] for agent in native.header["agents"]} == {expected}


def test_a_decision_says_whose_report_was_not_taken_at_its_word():
    server = fedstay.Server(np.zeros(4), fedstay.Retain(delta=0.02), 0.5)

    def step(*told):
        return server.step(
            [
                fedstay.Report(agent, np.eye(4)[agent], loss=loss, epsilon=epsilon)
                for agent, (loss, epsilon) in enumerate(told)
            ]
        )

    usual = (1.0, 0.05)
    first = step(usual, usual, usual, (1e6, 0.05))
    best = server.weights.copy()
    assert (first.doubted, first.reverted) == ([(3, "capped")], False)
    second = step((1.0, 0.9), usual, usual, usual)
    assert (0, "moved") in second.doubted
    worse = step(*[(1000.0, 0.05)] * 4)
    assert worse.reverted
    # Nobody has told of better weights than those of the second round.
    np.testing.assert_array_equal(server.weights, best)

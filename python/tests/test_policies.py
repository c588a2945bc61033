"""Several policies in a list: in this process, behind Flower, in experiments, and what is refused."""

import tomllib

import fedstay
import pytest
from fedstay import policies
from fedstay.flower import FedStay
from fedstay.settings import flat
from loopback.bowls import START, STEP_SIZE, agents
from nodes import Nodes, bowl_app, start

LIST = [fedstay.Guard(delta=0.05), "keep-best"]


def plain(policy, **options):
    common = {"weights": START, "step_size": STEP_SIZE, "rounds": 8}
    return fedstay.simulate(agents(), "fedavg", policy=policy, **{**common, **options})


def test_agents_nodes_and_a_resumed_run_play_the_same(tmp_path):
    whole = plain(LIST)
    assert plain(None).left == [("b", 3)] and whole.left == []
    assert whole.header["rule"] == "fedavg+guard+keep-best"
    assert whole.summary["policy"] == "guard+keep-best"
    assert whole.summary["guarded"] > 0.0
    alone = plain(LIST[0])
    assert [line["loss"] for line in whole.lines] == [line["loss"] for line in alone.lines]
    flown = start(
        FedStay("fedavg", step_size=STEP_SIZE, policy=LIST), Nodes("abc", bowl_app()), rounds=8
    )
    assert flown.lines == whole.lines and flown.weights.tobytes() == whole.weights.tobytes()
    cut = plain(LIST, out=tmp_path / "run", callbacks=[lambda line: line.round == 3])
    assert cut.summary["rounds"] == 3
    kept = tomllib.loads((tmp_path / "run" / "config.toml").read_text())
    assert kept["policy"] == [{"kind": "guard", "delta": 0.05}, {"kind": "keep-best"}]


def test_a_list_means_in_an_experiment_what_it_means_here():
    keys = {"problem.kind": "observation-3", "rule.kind": "fedavg", "rounds": 9}
    run = fedstay.run(set={**keys, "policy": LIST})
    assert run.header["rule"] == "fedavg+guard+keep-best"
    written = '[{ "kind" = "guard", "delta" = 0.05 }, "keep-best"]'
    assert flat({"policy": LIST}) == [("policy", written)]
    parts = [{"kind": "threshold", "share": 1.0}]
    assert flat({"behaviour": {"of": parts}}) == [
        ("behaviour.of", '[{ "kind" = "threshold", "share" = 1.0 }]')
    ]


@pytest.mark.parametrize(
    ("policy", "why"),
    [
        (["guard", "preview"], "`preview` cannot come after `guard`"),
        ([fedstay.KeepBest(), fedstay.Guard()], "write `guard` first"),
        (["guard", "guard"], "leave one of them out"),
        (["gaurd"], "there is no policy `gaurd`; did you mean `guard`"),
        ([{"kind": "guard", "margin": 0.1}], "`policy.margin` belongs to"),
        ([fedstay.Guard], "must be a text"),
        ([3], "`policy` is a section"),
        (3, "`policy` is 3, but must be a name"),
    ],
)
def test_what_does_not_go_together_is_refused_by_name(policy, why):
    with pytest.raises(fedstay.Error, match=why.replace("(", r"\(")):
        fedstay.Server(START, "fedavg", STEP_SIZE, policy=policy)
    with pytest.raises(fedstay.Error):
        FedStay("fedavg", step_size=STEP_SIZE, policy=policy)


def test_what_others_ask_of_policies():
    assert policies.called(LIST) == "guard+keep-best" and policies.called(None) is None
    assert policies.shows(["preview", "keep-best"]) and policies.shows(fedstay.Preview())
    assert not policies.shows(LIST) and not policies.shows(None)

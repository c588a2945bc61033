"""The strategy on real processes: one SuperLink, three SuperNodes, TLS, node authentication.

The tests share one federation and come in this order: the last of them kills a node.
"""

import os
import random
import signal
import time

import fedstay
import numpy as np
import pytest
from federation import Federation, wait_until
from loopback.bowls import START, STEP_SIZE, agents

ROUNDS = 4
#: How often a server app is killed at a random moment; more on request.
KILLS = int(os.environ.get("FEDSTAY_KILLS", "2"))
#: What must come out the same to the byte, whatever happened meanwhile.
SAME = ("rounds.jsonl", "summary.json", "config.toml", "report.html", "run.svg", "model.safetensors",
        "weights.npy")  # fmt: skip


@pytest.fixture(scope="module")
def federation(tmp_path_factory):
    made = Federation(tmp_path_factory.mktemp("federation"))
    try:
        for number, name in enumerate("abc"):
            made.node = made.supernode(name, made.key(name), number)
            made.nodes = {**getattr(made, "nodes", {}), name: made.node}
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def simulated():
    return fedstay.simulate(
        agents(), "fedavg", weights=START, step_size=STEP_SIZE, rounds=ROUNDS, on="bowls"
    )


def rounds_in(out):
    path = out / "rounds.jsonl"
    return max(path.read_text().count("\n") - 1, 0) if path.exists() else 0


def test_a_run_is_the_simulation_bit_for_bit(federation, simulated, tmp_path):
    out = tmp_path / "plain"
    run = federation.start_run(out=out, rounds=ROUNDS, timeout=300.0)
    assert federation.finish(run, out, 900) == "finished:completed", federation.log("superlink")
    kept = fedstay.read(out)
    assert kept.left == simulated.left == [("b", 3)]
    assert kept.lines == simulated.lines
    assert kept.header["agents"] == simulated.header["agents"]
    assert np.load(out / "weights.npy").tobytes() == simulated.weights.tobytes()
    # Except how they behave, which the server does not know here.
    known = [{k: v for k, v in a.items() if k != "behaviour"} for a in simulated.summary["agents"]]
    assert kept.summary["agents"] == known
    # Agent b was asked three times to train, and never after it had said goodbye.
    log = federation.log("supernode-b-1")
    assert log.count("Receiving: train message") == 3
    for name in ("checkpoint", *SAME):
        assert (out / name).stat().st_size > 0
    federation.undisturbed = out


def test_nodes_are_sent_previews_of_their_own(federation, tmp_path):
    """Four rounds, with the server app killed once, after it has sent somebody a preview."""
    out = tmp_path / "preview"
    options = {"out": out, "rounds": ROUNDS, "timeout": 300.0, "policy": "preview"}
    federation.start_run(**options)
    wait_until(lambda: rounds_in(out) >= 3, 300, "the third round")
    assert federation.kill_server_app()
    wait_until(lambda: not federation.ours("flwr-serverapp"), 60, "its death")
    run = federation.start_run(**options)
    assert federation.finish(run, out, 900) == "finished:completed", federation.log("superlink")
    kept = fedstay.read(out)
    here = fedstay.simulate(
        agents(),
        "fedavg",
        weights=START,
        step_size=STEP_SIZE,
        rounds=ROUNDS,
        policy="preview",
        on="bowls",
    )
    assert kept.left == [] and any(line.get("shown") for line in kept.lines)
    assert kept.lines == here.lines
    assert np.load(out / "weights.npy").tobytes() == here.weights.tobytes()


def test_a_server_app_killed_at_random_moments_goes_on_to_the_same_bytes(federation, tmp_path):
    """SIGKILL at any moment of the app's life: while it starts, between rounds, inside one, at the
    end. A run is killed until it gets through, at most eight times."""
    draw = random.Random(int(os.environ.get("FEDSTAY_SEED", "1")))
    killed, runs, at = 0, 0, []
    while killed < KILLS:
        out, here = tmp_path / f"killed-{runs}", 0
        while not (out / "summary.json").exists():
            run = federation.start_run(out=out, rounds=ROUNDS, timeout=300.0)
            # Only once it has started its task: a process killed before that is started again by
            # Flower, and two apps would be at one folder, of which the lock refuses one.
            federation.wait_for_task(run)
            # A run takes some forty seconds; moments near its start and in its middle.
            if killed < KILLS and here < 8:
                time.sleep(draw.uniform(0.0, draw.choice([2.0, 12.0, 40.0])))
                if not (out / "summary.json").exists() and federation.kill_server_app():
                    killed, here = killed + 1, here + 1
                    at.append(rounds_in(out))
                    wait_until(lambda: not federation.ours("flwr-serverapp"), 60, "its death")
                    continue
            ended = federation.finish(run, out, 900)
            assert ended == "finished:completed", federation.log("superlink")
        for name in SAME:
            # The app itself writes the weights, after the run is over.
            if name != "weights.npy" or (out / name).exists():
                there, wanted = (out / name), (federation.undisturbed / name)
                assert there.read_bytes() == wanted.read_bytes(), f"{out.name}/{name}"
        runs += 1
        print(f"{killed} kills in {runs} runs, after so many rounds: {at}", flush=True)


def test_nonsense_is_refused_by_name_and_the_round_goes_on(federation, tmp_path):
    out = tmp_path / "nonsense"
    config = {"rounds": 6, "scenario": "nonsense", "max-silent": 9}
    run = federation.start_run(out=out, **config)
    assert federation.finish(run, out, 500) == "finished:completed", federation.log("superlink")
    kept = fedstay.read(out)
    assert kept.left == []
    faults = {round: (agent, why) for round, agent, why in kept.faults}
    assert sorted(faults) == [2, 3, 4, 5] and {agent for agent, _ in faults.values()} == {"b"}
    assert "direction[5] is NaN" in faults[2][1]
    assert "shape (7,) where the model has (24,)" in faults[3][1]
    assert "answered as agent a" in faults[4][1]
    assert "crashes on purpose" in faults[5][1]
    # The others reported in every round, and b again once it behaved.
    assert [line["agents"] for line in kept.lines] == [[0, 1, 2], *[[0, 2]] * 4, [0, 1, 2]]


def test_strangers_are_refused(federation):
    unregistered = federation.supernode("d", federation.key("d", register=False), 3)
    assert unregistered.wait(60) != 0
    assert "Exit Code: 305" in federation.log("supernode-d-3")
    # The public half of one key was registered; the node has the private half of another.
    right, wrong = federation.key("e"), federation.key("f", register=False)
    wrong.rename(right)
    assert federation.supernode("e", right, 4).wait(60) != 0
    assert "Exit Code: 305" in federation.log("supernode-e-4")
    # No key at all.
    assert federation.supernode("g", None, 5).wait(60) != 0


def test_a_killed_node_is_a_fault_and_not_a_departure(federation, tmp_path):
    out = tmp_path / "node"
    config = {"rounds": 4, "scenario": "crash", "timeout": 12.0}
    run = federation.start_run(out=out, **config)
    wait_until(lambda: rounds_in(out) >= 1, 300, "the first round")
    os.killpg(federation.nodes["b"].pid, signal.SIGKILL)
    assert federation.finish(run, out, 500) == "finished:completed", federation.log("superlink")
    kept = fedstay.read(out)
    assert kept.left == [] and kept.stop == "round-limit"
    assert {agent for _, agent, _ in kept.faults} == {"b"}
    assert "set aside after 2 silent rounds" in kept.faults[-1][2]
    assert kept.lines[-1]["agents"] == [0, 2]
    # Its last known loss is marked as such.
    assert [a["id"] for a in kept.summary["agents"] if "loss_of_round" in a] == [1]

"""Nodes that never answer, or answer with nonsense for ever: the run goes on, or ends with a verdict."""

import subprocess
import time
from pathlib import Path

import fedstay
import numpy as np
import pytest
from fedstay.flower import FedStay
from flwr.app import Array, ArrayRecord, Error, Message
from hostile import filled, send
from loopback.bowls import START, STEP_SIZE
from nodes import Nodes, bowl_app, start

COMMAND = Path(__file__).parents[2] / "target" / "debug" / "fedstay"


def nan_from(*names):
    """An app in which these agents report NaN for ever, and nobody else ever reports any."""
    nan = send(filled(float("nan")))
    return lambda reply, name, round: nan(reply) if name in names else reply


def small(**options):
    return FedStay("fedavg", step_size=STEP_SIZE, **options)


def test_one_broken_node_cannot_keep_a_run_from_its_verdict(tmp_path):
    """Everybody else leaves rightly; the last one says NaN for ever."""
    out = tmp_path / "run"
    strategy = small(out=out, wait=0.001, tries=3)
    result = start(strategy, Nodes("abc", bowl_app(nan_from("c"), epsilon=2.5)), rounds=40)
    assert {departure.agent for departure in result.left} == {"a", "b"}
    assert result.stop == "too-few" and result.verdict is not None
    assert np.isfinite(result.weights).all()
    # The record of the last round says whose fault it was, and the summary why the run ended.
    last = result.lines[-1]["round"]
    assert any(round == last and "direction[0] is NaN" in why for round, _, why in result.faults)
    assert "after 3 more tries" in result.warnings[-1] and "NaN" in result.warnings[-1]
    # The folder is that of a run that is over.
    for name in ("summary.json", "model.safetensors", "report.html", "rounds.jsonl"):
        assert (out / name).stat().st_size > 0
    assert fedstay.read(out).summary == result.summary


@pytest.mark.skipif(not COMMAND.exists(), reason="needs target/debug/fedstay")
def test_fedstay_ls_sees_a_finished_run_where_a_node_was_broken(tmp_path):
    strategy = small(out=tmp_path / "runs" / "nan", wait=0.001, tries=2)
    start(strategy, Nodes("abc", bowl_app(nan_from("c"), epsilon=2.5)), rounds=40)
    done = subprocess.run([COMMAND, "ls", tmp_path / "runs"], capture_output=True, text=True)
    assert done.returncode == 0 and "2 of 2" in done.stdout, done.stdout + done.stderr
    assert "not over" not in done.stdout


def test_departures_of_the_last_round_are_on_record():
    """Those that leave while a broken node is waited for have left."""
    grid = Nodes("abc", bowl_app(nan_from("c"), epsilon=2.5))
    result = start(small(wait=0.001, tries=2), grid, rounds=40)
    goodbyes = [agent for line in result.lines for agent in line["left"]]
    assert sorted(goodbyes) == sorted(set(goodbyes)) and len(goodbyes) == 2


def test_a_run_that_was_given_up_is_continued_by_the_next_start(tmp_path):
    def begin():
        return small(out=tmp_path / "run", wait=0.001, tries=1, min_agents=2)

    grid = Nodes("abc", bowl_app(epsilon=0.001))

    def go_dark(reply, name, round):
        if round == 3:
            grid.dead |= {102, 103}
        return reply

    grid.app = bowl_app(go_dark, epsilon=0.001)
    first = start(begin(), grid, rounds=6, timeout=0.05)
    assert (first.stop, first.summary["rounds"]) == ("too-few", 3)
    second = start(begin(), Nodes("abc", bowl_app(epsilon=0.001)), rounds=6)
    assert second.folder == first.folder
    assert (second.stop, [line["round"] for line in second.lines]) == (
        "round-limit",
        [*range(1, 7)],
    )
    assert second.lines[:3] == first.lines
    # A run that cannot have enough any more is over, and the next one is kept beside it.
    over = small(out=tmp_path / "over", min_agents=3)
    assert start(over, Nodes("abc", bowl_app()), rounds=9).stop == "too-few"
    again = small(out=tmp_path / "over", min_agents=3)
    start(again, Nodes("abc", bowl_app()), rounds=1)
    assert again.folder != tmp_path / "over"


def test_a_node_that_never_answered_is_set_aside_and_named():
    grid = Nodes("abc", bowl_app(epsilon=0.001))
    grid.dead.add(103)
    strategy = small(max_silent=2, retry_every=4)
    since = time.monotonic()
    result = start(strategy, grid, rounds=9, timeout=0.3)
    waited = time.monotonic() - since
    asked = [round for kind, round, node in grid.asked if node == 103 and kind == "train"]
    # Twice until it is set aside, then every fourth round.
    assert asked == [1, 2, 6]
    assert waited < 9 * 0.3
    assert [(round, node) for round, node, _ in result.faults] == [(1, 103), (2, 103), (6, 103)]
    why = [why for _, _, why in result.faults]
    assert all("node 103" in told and "no answer within 0.3 s" in told for told in why)
    assert "set aside after 2 silent rounds" in why[1]
    # It is nobody: neither in the header nor in the summary.
    assert [agent["name"] for agent in result.header["agents"]] == ["a", "b"]
    assert [agent["id"] for agent in result.summary["agents"]] == [0, 1]


def test_a_node_that_was_set_aside_before_it_told_its_name_is_welcome():
    grid = Nodes("abc", bowl_app(epsilon=0.001))
    grid.dead.add(103)

    def awake(reply, name, round):
        if round == 4:
            grid.dead.discard(103)
        return reply

    grid.app = bowl_app(awake, epsilon=0.001)
    result = start(small(max_silent=1, retry_every=3), grid, rounds=8, timeout=0.1)
    assert [2 in line["agents"] for line in result.lines] == [round >= 4 for round in range(1, 9)]
    assert [round for round, _, _ in result.faults] == [1]


def test_which_nodes_were_set_aside_survives_a_restart(tmp_path):
    def begin():
        return small(out=tmp_path / "run", max_silent=1, retry_every=50)

    def stop(round, arrays):
        if round == 3:
            raise KeyboardInterrupt

    grid = Nodes("abc", bowl_app(epsilon=0.001))
    grid.dead.add(103)
    with pytest.raises(KeyboardInterrupt):
        start(begin(), grid, rounds=6, timeout=0.1, evaluate_fn=stop)
    grid.asked.clear()
    start(begin(), grid, rounds=6, timeout=0.1)
    assert 103 not in [node for kind, _, node in grid.asked if kind == "train"]


class Slow(Nodes):
    """A grid whose node `late` answers only after some seconds."""

    def __init__(self, names, app, late, seconds):
        super().__init__(names, app)
        self.late, self.seconds, self.since = late, seconds, {}

    def push_messages(self, messages):
        sent = super().push_messages(messages)
        for id, message in zip(sent, messages, strict=True):
            if message.metadata.dst_node_id == self.late:
                self.since[id] = time.monotonic()
        return sent

    def pull_messages(self, ids):
        now = time.monotonic()
        return super().pull_messages(
            [id for id in ids if now >= self.since.get(id, 0.0) + self.seconds]
        )


def test_with_grace_a_round_goes_on_once_enough_have_reported():
    grid = Slow("abc", bowl_app(epsilon=0.001), late=103, seconds=30.0)
    since = time.monotonic()
    strategy = small(min_agents=2, grace=0.2, max_silent=9, evaluate_at_end=False)
    result = start(strategy, grid, rounds=3, timeout=20.0)
    assert time.monotonic() - since < 15.0
    assert [line["agents"] for line in result.lines] == [[0, 1]] * 3
    assert "no answer 0.2 s after 2 others" in result.faults[0][2]
    # Without enough reports it waits for all of the time that agents have.
    grid = Slow("abc", bowl_app(epsilon=0.001), late=103, seconds=0.6)
    strategy = small(min_agents=3, grace=0.1, evaluate_at_end=False)
    result = start(strategy, grid, rounds=2, timeout=20.0)
    assert [line["agents"] for line in result.lines] == [[0, 1, 2]] * 2 and result.faults == []


@pytest.mark.parametrize("bad", [{"grace": -1.0}, {"grace": float("inf")}, {"wait": float("nan")}])
def test_seconds_that_cannot_be_waited_are_refused(bad):
    with pytest.raises(fedstay.Error, match=next(iter(bad))):
        small(**bad)


def test_where_nobody_ever_answered_it_is_said_why_and_nothing_is_summed_up(tmp_path):
    strategy = small(out=tmp_path / "run", wait=0.001, tries=1)
    nodes = Nodes("abc", bowl_app(nan_from("a", "b", "c"), epsilon=0.001))
    with pytest.raises(fedstay.Error, match="0 of at least 1 .* after 1 more tries.*NaN"):
        strategy.start(nodes, ArrayRecord({"w": Array(START)}), num_rounds=3, timeout=0.1)
    assert not (tmp_path / "run" / "summary.json").exists()


def test_a_node_whose_app_fails_is_named_and_still_asked():
    """It costs no time, and may be mended at any moment."""
    grid = Nodes("abc", bowl_app(epsilon=0.001))
    healthy = grid.answer

    def answer(message, context):
        if context.node_id == 103:
            return Message(Error(5, "trace\nFileNotFoundError: patients.csv"), reply_to=message)
        return healthy(message, context)

    grid.answer = answer
    result = start(small(max_silent=1), grid, rounds=4)
    assert [(round, node) for round, node, _ in result.faults] == [(n, 103) for n in range(1, 5)]
    assert "patients.csv" in result.faults[0][2]

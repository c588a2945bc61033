"""Sweeps on a local Ray cluster of two workers: the same store as on one machine."""

import os
import signal
import sqlite3
import threading
from pathlib import Path

import fedstay
import fedstay.ray
import pytest

pytestmark = pytest.mark.skipif(
    "FEDSTAY_NO_NAMESPACE" in os.environ, reason="Ray would bind to the machine's own address"
)

STUDY = """
rounds = 1200
step_size = 0.3
[data]
per_agent = 100
[model]
kind = "mlp"
hidden = [32]
[grid]
rule.kind = ["fedavg", "ada-gd"]
epsilon = [0.2, 0.5, 0.9]
seed = "0..3"
"""


@pytest.fixture(scope="module", autouse=True)
def cluster():
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


def contents(store):
    """Everything that is a result of a sweep."""
    with sqlite3.connect(store) as database:
        runs = database.execute("SELECT * FROM runs ORDER BY key").fetchall()
        return runs, database.execute("SELECT * FROM series ORDER BY key").fetchall()


def ours(process):
    """Whether this process started another, itself or through Ray."""
    while process > 1:
        if process == os.getpid():
            return True
        status = Path(f"/proc/{process}/status").read_text()
        process = int(status.split("PPid:")[1].split()[0])
    return False


def at_work():
    """Our processes that compute a family now: Ray names them after the function they run."""
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                name = (process / "cmdline").read_bytes()
                if b"ray::fedstay_family" in name and ours(int(process.name)):
                    yield int(process.name)
            except OSError:  # gone meanwhile
                continue


class Killer(threading.Thread):
    """Ends the first two workers that are seen at a family, at once: families take a second or less."""

    def __init__(self):
        super().__init__(daemon=True)
        self.killed = []
        self.done = threading.Event()

    def run(self):
        while len(self.killed) < 2 and not self.done.wait(0.005):
            for process in at_work():
                if process not in self.killed:
                    os.kill(process, signal.SIGKILL)
                    self.killed.append(process)
                    break


def test_the_store_is_the_local_one_though_workers_are_killed(tmp_path):
    file = tmp_path / "study.toml"
    file.write_text(STUDY)
    local = fedstay.sweep(file, store=tmp_path / "local.db")
    assert (local.planned, local.computed) == (18, 18)

    killer = Killer()
    killer.start()
    try:
        swept = fedstay.ray.sweep(file, store=tmp_path / "ray.db")
    finally:
        killer.done.set()
        killer.join()
    assert len(killer.killed) == 2, "the workers were done before they could be killed"
    assert swept.computed == 18
    assert contents(swept.store) == contents(local.store)
    assert swept.columns == local.columns

    # What is there is not computed again, more seeds are.
    again = fedstay.ray.sweep(file, store=tmp_path / "ray.db")
    assert again.computed == 0
    more = fedstay.ray.sweep(file, store=tmp_path / "ray.db", set={"seed": "0..4"})
    assert (more.planned, more.computed) == (24, 6)
    assert len(more.runs) == 24


def test_a_family_that_cannot_be_computed_is_told_and_the_rest_is_kept(tmp_path):
    file = tmp_path / "study.toml"
    file.write_text(
        'rounds = 2\n[rule]\nkind = "fedavg"\n[model]\nhidden = [4]\n[grid]\n'
        "data.per_agent = [5, 6, 99999]\n"
    )
    # One after the other: the one that fails is the most expensive, and yet the last of them.
    with pytest.raises(fedstay.Error, match="a worker says: .*99999"):
        fedstay.ray.sweep(file, store=tmp_path / "a.db", threads=2)
    assert len(contents(tmp_path / "a.db")[0]) == 2
    with pytest.raises(fedstay.Error, match="give 1 or more"):
        fedstay.ray.sweep(file, store=tmp_path / "b.db", threads=0)
    with pytest.raises(fedstay.Error, match="no machine of the cluster has 999 CPUs"):
        fedstay.ray.sweep(file, store=tmp_path / "c.db", threads=999)


def test_a_file_that_is_no_sweep_is_told(tmp_path):
    file = tmp_path / "one.toml"
    file.write_text("rounds = 3\n")
    with pytest.raises(fedstay.Error, match="there is no \\[grid\\]"):
        fedstay.ray.sweep(file)
    with pytest.raises(fedstay.Error, match="nowhere.toml"):
        fedstay.sweep(tmp_path / "nowhere.toml")

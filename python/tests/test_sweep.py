"""Sweeps on this machine, from Python."""

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import fedstay
import pytest

STUDY = """
rounds = 20
step_size = 0.1
behaviour.kind = "never"
[data]
per_agent = 60
[model]
kind = "mlp"
hidden = [16]
[grid]
seed = [0, 1]
epsilon = [0.1, 0.2]
rule.kind = ["fedavg", "mw-fed"]
"""

#: The first seed's runs are done in a moment, the second's never.
ENDLESS = """
[[when]]
match = { seed = 1 }
set = { rounds = 100000000 }
"""


def there(store):
    try:
        with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as database:
            return database.execute("SELECT count(*) FROM runs").fetchone()[0]
    except sqlite3.Error:
        return 0


#: Interrupts itself once the first seed is done, then calls again: that must not wait for itself.
CALL = """
import os, pathlib, signal, sys, threading, time
import fedstay
from test_sweep import there

file, store = sys.argv[1:]

def interrupt(wanted):
    time.sleep(1.0)  # the sweep is on its way by then
    while there(store) < wanted:
        time.sleep(0.05)
    os.kill(os.getpid(), signal.SIGINT)

for _ in range(2):
    threading.Thread(target=interrupt, args=(4,), daemon=True).start()
    before = time.monotonic()
    try:
        fedstay.sweep(file, store=store, threads=2)
    except KeyboardInterrupt:
        print(f"interrupted after {time.monotonic() - before:.1f}", flush=True)
"""


def test_ctrl_c_stops_at_once_and_what_was_finished_is_kept(tmp_path):
    file, store = tmp_path / "study.toml", tmp_path / "study.db"
    file.write_text(STUDY + ENDLESS)
    process = subprocess.Popen(
        [sys.executable, "-c", CALL, str(file), str(store)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        # Four seconds on a free machine; that claims were given back is looked up below.
        said, _ = process.communicate(timeout=120)
    finally:
        process.kill()
        process.wait()
    assert said.count("interrupted after") == 2, said
    assert there(store) == 4
    with sqlite3.connect(store) as database:
        assert database.execute("SELECT count(*) FROM claims").fetchone() == (0,)
        assert database.execute("SELECT total(runs) FROM work").fetchone() == (4,)


def test_results_are_columns_and_frames(tmp_path):
    file = tmp_path / "study.toml"
    file.write_text(STUDY)
    study = fedstay.sweep(file, store=tmp_path / "a.db", threads=1)
    assert (study.planned, study.computed) == (8, 8)
    assert repr(study) == f"Sweep(study.toml: 8 of 8 runs in {tmp_path / 'a.db'})"
    assert study.columns["rounds"] == [20] * 8
    assert list(study.runs["left"]) == [0] * 8
    assert set(study.series["key"]) == set(study.columns["key"])
    with pytest.raises(fedstay.Error, match="set `epsilon` itself"):
        fedstay.sweep(file, set={"rule": fedstay.FedAvg(epsilon=0.1)})
    # Opened again without computing anything.
    again = fedstay.Sweep(file, store=tmp_path / "a.db")
    assert again.columns == study.columns

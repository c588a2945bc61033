"""Sweeps on this machine, from Python."""

import signal
import sqlite3
import subprocess
import sys
import time

import fedstay

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
rule.kind = ["fedavg", "minibatch-sgd", "ada-gd"]
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


def test_ctrl_c_stops_at_once_and_what_was_finished_is_kept(tmp_path):
    file, store = tmp_path / "study.toml", tmp_path / "study.db"
    file.write_text(STUDY + ENDLESS)
    call = f"import fedstay; fedstay.sweep({str(file)!r}, store={str(store)!r}, threads=2)"
    process = subprocess.Popen([sys.executable, "-c", call], stderr=subprocess.PIPE, text=True)
    give_up = time.monotonic() + 60
    while there(store) < 3 and time.monotonic() < give_up:
        time.sleep(0.1)
    kept = there(store)
    assert kept == 3, "nothing was finished in a minute"
    before = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert "KeyboardInterrupt" in said
    assert time.monotonic() - before < 10
    assert there(store) >= kept


def test_results_are_columns_and_frames(tmp_path):
    file = tmp_path / "study.toml"
    file.write_text(STUDY)
    study = fedstay.sweep(file, store=tmp_path / "a.db", threads=1)
    assert (study.planned, study.computed) == (6, 6)
    assert repr(study) == f"Sweep(study.toml: 6 of 6 runs in {tmp_path / 'a.db'})"
    assert study.columns["rounds"] == [20] * 6
    assert list(study.runs["left"]) == [0] * 6
    assert set(study.series["key"]) == set(study.columns["key"])
    # Looked at again without computing anything.
    again = fedstay.Sweep(file, store=tmp_path / "a.db")
    assert again.columns == study.columns

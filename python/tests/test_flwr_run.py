"""The guide's app by `flwr run` as Flower is set up by default: what the app depends on is installed by
Flower itself (`uv sync`), from a package index.

scripts/test-python runs this where an index answers, outside the network namespace of the other tests.
"""

import contextlib
import importlib.util
import os
import re
import signal
import subprocess
from pathlib import Path

import fedstay
import pytest
from conversions import GUIDE, convert
from federation import BIN, Federation, started_in, wait_until

pytestmark = [
    pytest.mark.skipif(
        "FEDSTAY_INDEX" not in os.environ,
        reason="Flower's installation needs a package index; scripts/test-python says if there is one",
    ),
    # By default SuperNodes have what is installed beside them.
    pytest.mark.skipif(
        importlib.util.find_spec("sklearn") is None, reason="SuperNodes need scikit-learn"
    ),
]
WHEELS = sorted((Path(__file__).parents[2] / "target" / "wheels").glob("fedstay-*.whl"))


@pytest.fixture(scope="module")
def federation(tmp_path_factory):
    made = Federation(tmp_path_factory.mktemp("federation"), secure=False, installs=True)
    try:
        for number in range(3):
            config = f"partition-id={number} num-partitions=3"
            made.supernode(f"node-{number}", None, number, config)
        yield made
    finally:
        made.close()


def run(federation, app):
    federation.app = app
    begun = federation.start_run(**{"num-server-rounds": 2})
    kept = federation.folder / "runs" / begun

    def over():
        return (kept / "summary.json").exists() or federation.status(begun).startswith("finished")

    # Not how Flower says that it ended: a server app tells that in one attempt, which a machine with too
    # much to do can miss.
    wait_until(over, 900, f"run {begun}\n{federation.log('superlink')[-3000:]}", every=5.0)
    # The server app's own log, which the SuperLink keeps.
    log = federation.flwr("log", begun, "dep", "--show")
    assert "App dependencies installed successfully via uv sync" in log
    assert (kept / "summary.json").exists(), log[-6000:]
    result = fedstay.read(kept)
    assert len(result.header["agents"]) == 3 and result.faults == [] and len(result.lines) == 2
    return log


def test_the_guides_app_runs_with_fedstay_beside_flower(federation, tmp_path):
    app = convert("sklearn-logreg", tmp_path / "app")
    listed = re.search(r"^dependencies = .*", (app / "pyproject.toml").read_text(), re.MULTILINE)
    assert listed is not None and "fedstay" not in listed[0]
    run(federation, app)


def test_the_guides_app_runs_with_fedstay_as_a_wheel_that_it_names(federation, tmp_path):
    assert WHEELS, "scripts/test-python makes a wheel in target/wheels"
    app = convert("sklearn-logreg", tmp_path / "app")
    shown = re.search(
        r"<!-- python/tests/test_flwr_run.py adds this -->\n```toml\n(.*?)```",
        GUIDE.read_text(),
        re.DOTALL,
    )
    named = re.sub(r'"/wheels/.*?\.whl"', f'"{WHEELS[-1]}"', shown[1])
    settings = app / "pyproject.toml"
    text = settings.read_text().replace('"scikit-learn"]', '"scikit-learn", "fedstay[flower]"]')
    assert "fedstay[flower]" in text and str(WHEELS[-1]) in named
    settings.write_text(f"{text}\n{named}")
    assert re.search(r"Installed: \[.*fedstay==", run(federation, app))


def test_the_guides_app_runs_by_flwr_run_and_nothing_else(tmp_path):
    """As a reader types it first: Flower starts a SuperLink with its simulation engine and installs what the
    app depends on. Ray would bind to the machine's address, so there is no network but 127.0.0.1: what is
    installed comes from uv's cache, which the tests above have filled."""
    if subprocess.run(["unshare", "-rn", "true"]).returncode:
        pytest.skip("no network namespace of our own")
    app, home = convert("sklearn-logreg", tmp_path / "app"), tmp_path / "home"
    home.mkdir()
    quiet = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1", "UV_OFFLINE": "1"}
    path = f"{BIN}:{os.environ['PATH']}"
    typed = "ip link set lo up && exec flwr run . --stream --run-config num-server-rounds=2"
    try:
        done = subprocess.run(
            ["unshare", "-rn", "bash", "-c", typed], cwd=app, capture_output=True, text=True, timeout=900,
            env={**os.environ, **quiet, "FLWR_HOME": str(home), "PATH": path},
        )  # fmt: skip
    finally:
        # The SuperLink that it has started would wait for the next run.
        for pid in started_in(home):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    assert "Result(fedavg+samples+preview on flower" in done.stdout, done.stdout + done.stderr
    assert "round-limit after 2 rounds" in done.stdout

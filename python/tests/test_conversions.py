"""Apps as Flower's quickstarts are built, converted by the guide alone, on real SuperNodes.

Where scikit-learn and PyTorch are installed: scripts/test-examples has them.
"""

import importlib.util
import os
import re
from pathlib import Path

import fedstay
import numpy as np
import pytest
from conversions import GUIDE, changed_lines, convert, documented
from federation import Federation

NUMBERS = {8: "eight", 12: "twelve"}
CACHES = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
CIFAR = Path(os.environ.get("FEDSTAY_DATA", CACHES / "fedstay")) / "cifar10"


@pytest.mark.parametrize("app, most", [("quickstart-pytorch", 8), ("sklearn-logreg", 12)])
def test_the_guide_counts_its_lines(app, most, tmp_path):
    convert(app, tmp_path / app)
    assert changed_lines(documented()[app]) == most
    heading = re.search(rf"^## .*{NUMBERS[most]} lines.*", GUIDE.read_text(), re.MULTILINE)
    assert heading is not None


@pytest.fixture(scope="module")
def federation(tmp_path_factory):
    made = Federation(tmp_path_factory.mktemp("federation"), secure=False)
    try:
        for number in range(3):
            config = f"partition-id={number} num-partitions=3"
            made.supernode(f"node-{number}", None, number, config)
        yield made
    finally:
        made.close()


def run(federation, app, **config):
    """Runs an app to its end; the logs are in the message if that fails."""
    federation.app = app
    begun = federation.start_run(**config)
    status = federation.finish(begun, federation.folder / "nowhere", 600)
    assert status == "finished:completed", federation.log("superlink")[-6000:]
    return begun


def read(federation, begun):
    """The converted app's run, from the folder that the guide gives it."""
    result = fedstay.read(federation.folder / "runs" / begun)
    assert len(result.header["agents"]) == 3 and result.faults == []
    return result


@pytest.mark.skipif(importlib.util.find_spec("sklearn") is None, reason="needs scikit-learn")
def test_sklearn_logreg(federation, tmp_path):
    result = read(federation, run(federation, convert("sklearn-logreg", tmp_path / "app")))
    assert result.left == [] and len(result.lines) == 5
    losses = np.array([line["loss"] for line in result.lines])
    assert (losses[0] == pytest.approx(np.log(3))) and (losses.min(axis=0) > 0.8).all()
    # Everybody is shown a model that is not good enough until the end, and then gets a better one.
    assert {shown["agent"] for line in result.lines for shown in line.get("shown", [])} == {0, 1, 2}
    # On flowers that nobody trained on.
    assert result.content >= 2
    assert np.mean([agent["accuracy"] for agent in result.summary["agents"]]) > 0.5
    assert (federation.folder / "logreg_model.pkl").exists()


@pytest.mark.skipif(
    importlib.util.find_spec("torch") is None or not CIFAR.is_dir(),
    reason="needs PyTorch and `fedstay data fetch cifar10`",
)
def test_quickstart_pytorch(federation, tmp_path):
    app = convert("quickstart-pytorch", tmp_path / "app")
    result = read(federation, run(federation, app, **{"num-server-rounds": 4}))
    assert result.left == [] and len(result.lines) == 4
    means = [np.mean(line["loss"]) for line in result.lines]
    assert means[-1] < means[0] - 0.05
    state = result.state_dict()
    assert set(state) > {"conv1.weight", "fc3.bias"}
    assert (federation.folder / "final_model.pt").exists()

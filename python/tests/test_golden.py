"""What scripts/golden counts as a difference."""

import json
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "bench" / "golden"))
from differences import Differences  # noqa: E402

RUN = {"version": "1", "loss": [0.1, 0.0], "left": 2, "verdict": "harmful", "state": '{"eta": 0.5}'}


def found(tmp_path, new, name="summary.json", **options):
    result = Differences(**options)
    for side, run in (("old", RUN), ("new", new)):
        (tmp_path / side).mkdir(parents=True)
        (tmp_path / side / name).write_text(json.dumps(run))
    result.folders(tmp_path / "old", tmp_path / "new")
    return result


@pytest.mark.parametrize(
    "change",
    [
        {"loss": [0.1 + 2**-56, 0.0]},
        {"loss": [0.1, -0.0]},
        {"loss": [0.1]},
        {"loss": None},
        {"left": 2.0},
        {"verdict": "benign"},
        {"state": '{"eta": 0.25}'},
    ],
)
def test_a_changed_value_is_a_difference(tmp_path, change):
    assert len(found(tmp_path, {**RUN, **change}).found) == 1


def test_order_versions_and_new_keys_are_not_differences(tmp_path):
    new = {**dict(reversed(RUN.items())), "version": "2", "worth": 1.0}
    result = found(tmp_path, {**new, "state": '{ "eta": 0.5, "more": 1 }'})
    assert result.found == [] and result.compared == 5
    assert set(result.new) == {"summary.json: worth", "summary.json: more"}


def test_what_is_gone_is_a_difference_and_so_is_what_may_not_be_new(tmp_path):
    gone = {key: value for key, value in RUN.items() if key != "left"}
    assert found(tmp_path / "a", gone).found == ["summary.json: left: 2 → missing"]
    assert len(found(tmp_path / "b", {**RUN, "worth": 1}, may_be_new=("cost",)).found) == 1
    assert found(tmp_path / "c", {**RUN, "left": 3}, may_differ=("*:left",)).found == []
    (tmp_path / "c" / "new" / "summary.json").unlink()
    result = Differences()
    result.folders(tmp_path / "c" / "old", tmp_path / "c" / "new")
    assert result.found == ["summary.json: missing"]

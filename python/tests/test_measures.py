"""Measures on held-back rows are scikit-learn's, of the same rows and weights.

Where scikit-learn is not installed, `agreement.rs` of the simulator holds the measures against numbers from it.
"""

import math

import fedstay
import numpy as np
import pytest

metrics = pytest.importorskip("sklearn.metrics")
SHARE = 0.2


def table(path, number):
    """Three owners with rows of two features, and the features, targets and owners of every row."""
    random = np.random.default_rng(5)
    owners = random.choice(["a", "b", "c"], 400, p=[0.2, 0.3, 0.5])
    features = random.normal(size=(400, 2)).astype(np.float32).round(3)
    signal = features @ [1.0, -0.5] + random.normal(size=400)
    targets = (10 + 4 * signal).round(2) if number else (signal > 0.7).astype(int)
    lines = [
        f"{o},{x},{y},{t}" for o, (x, y), t in zip(owners, features.tolist(), targets, strict=True)
    ]
    path.write_text("\n".join(["owner,x,y,target", *lines]) + "\n")
    return owners, features.astype(float), targets


def held_back(owners, targets, number):
    """Which rows are held back: of every owner and class, an even share in the order of the file."""
    seen, rows = {}, []
    for owner, target in zip(owners, targets, strict=True):
        key = (owner, 0 if number else target)
        seen[key] = seen.get(key, 0) + 1
        rows.append(math.floor(seen[key] * SHARE) > math.floor((seen[key] - 1) * SHARE))
    return np.array(rows)


@pytest.mark.parametrize("number", [False, True])
def test_measures_on_held_back_rows_are_those_of_scikit_learn(tmp_path, number):
    path = tmp_path / "table.csv"
    owners, features, targets = table(path, number)
    tested = held_back(owners, targets, number)
    data = {"kind": "csv", "path": str(path), "owner": "owner", "label": "target"}
    names = ["auroc", "average-precision", "brier", "log-loss", "accuracy", "balanced"]
    settings = {"model": {"kind": "logistic-regression"}, "data": data, "measure": names}
    if number:
        data["task"], names = "number", ["rmse", "mae", "r2"]
        settings |= {"model": {"kind": "linear-regression"}, "measure": names}
    result = fedstay.run({"rounds": 30, "epsilon": 0.0, "rule": {"kind": "fedavg"}, **settings})

    mean, deviation = features[~tested].mean(axis=0), features[~tested].std(axis=0)
    *slope, intercept = result.weights
    output = (features - mean) / deviation @ slope + intercept
    for agent in result.summary["agents"]:
        own = tested & (owners == agent["name"])
        found, true, said = agent["held_back"], targets[own], output[own]
        assert found["rows"] == own.sum()
        if number:
            unit = targets[~tested].std()
            said = said * unit + targets[~tested].mean()
            expected = {
                "rmse": metrics.mean_squared_error(true, said) ** 0.5,
                "mae": metrics.mean_absolute_error(true, said),
                "r2": metrics.r2_score(true, said),
            }
        else:
            probability = 1 / (1 + np.exp(-said))
            expected = {
                "auroc": metrics.roc_auc_score(true, said),
                "average-precision": metrics.average_precision_score(true, said),
                "brier": metrics.brier_score_loss(true, probability),
                "log-loss": metrics.log_loss(true, probability),
                "accuracy": metrics.accuracy_score(true, said > 0),
                "balanced": metrics.balanced_accuracy_score(true, said > 0),
            }
        assert list(found["measures"]) == names
        for name, value in expected.items():
            # The model speaks in single precision.
            assert found["measures"][name]["value"] == pytest.approx(value, abs=2e-6), name

"""Baselines against scikit-learn: the same models of the same rows."""

import fedstay
import numpy as np
import pytest

OWNERS = {"north": 400, "south": 260, "east": 300}


def table(path, number, seed=0, decoys=8):
    """Writes owners' rows of features on different scales; owners differ in what they hold."""
    rng = np.random.default_rng(seed)
    lines = []
    for place, (owner, rows) in enumerate(OWNERS.items()):
        x = rng.normal(size=(rows, 3 + decoys)) + 0.4 * place
        score = x[:, 0] - 0.7 * x[:, 1] + 0.3 * place * x[:, 2]
        y = (
            30 + 4 * score + rng.normal(size=rows)
            if number
            else rng.random(rows) < 1 / (1 + np.exp(-score))
        )
        x = x * 10.0 ** (np.arange(x.shape[1]) % 5 - 2) + 5
        lines += [[owner, *row, float(target)] for row, target in zip(x, y, strict=True)]
    names = ["owner", *(f"x{column}" for column in range(3 + decoys)), "y"]
    text = "\n".join(",".join(map(str, line)) for line in [names, *lines])
    path.write_text(text + "\n")
    return lines


def split(lines, number, share=0.25):
    """The rows as `kind = "csv"` splits them: of each owner and class the rows are held back evenly."""
    seen, test = {}, []
    for line in lines:
        kind = (line[0], None if number else line[-1])
        count = seen[kind] = seen.get(kind, 0) + 1
        test.append(int(count * share) > int((count - 1) * share))
    owners = np.array([line[0] for line in lines])
    x, y = np.array([line[1:-1] for line in lines]), np.array([line[-1] for line in lines])
    test = np.array(test)
    x = (x - x[~test].mean(axis=0)) / x[~test].std(axis=0)
    return owners, x, y, test


def baselines(tmp_path, number):
    path = tmp_path / "table.csv"
    lines = table(path, number)
    keys = {"data.kind": "csv", "data.path": str(path), "data.owner": "owner", "data.label": "y"}
    keys |= {"data.test_share": 0.25, "model.kind": "logistic-regression", "measure": ["auroc"]}
    if number:
        keys |= {"data.task": "number", "model.kind": "linear-regression", "measure": ["rmse"]}
    made = fedstay.baselines({}, set=keys)
    return {
        name: {agent["name"]: agent for agent in agents} for name, agents in made.items()
    }, lines


@pytest.mark.parametrize("number", [False, True])
def test_alone_and_pooled_are_what_scikit_learn_makes(tmp_path, number):
    pytest.importorskip("sklearn")
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.metrics import roc_auc_score

    made, lines = baselines(tmp_path, number)
    owners, x, y, test = split(lines, number)
    unit = y[~test].std() if number else 1.0

    def theirs(rows, owner):
        model = Ridge() if number else LogisticRegression(max_iter=1000)
        model.fit(x[rows], y[rows])
        held_back = test & (owners == owner)
        if number:
            return float(np.sqrt(np.mean((model.predict(x[held_back]) - y[held_back]) ** 2)))
        return roc_auc_score(y[held_back], model.decision_function(x[held_back]))

    name = "rmse" if number else "auroc"
    for owner in OWNERS:
        assert np.sum(test & (owners == owner)) >= 50
        for baseline, rows in {"alone": ~test & (owners == owner), "pooled": ~test}.items():
            agent = made[baseline][owner]
            assert agent["ridge"] == 1.0
            ours = agent["held_back"]["measures"][name]["value"]
            assert abs(ours - theirs(rows, owner)) <= 0.01 * unit, (baseline, owner)


def test_everybody_has_every_baseline_on_rows_that_are_held_back(tmp_path):
    made, _ = baselines(tmp_path, number=False)
    assert sorted(made) == ["alone", "constant", "pooled"]
    for agents in made.values():
        assert sorted(agents) == sorted(OWNERS)
    for owner in OWNERS:
        names = ("constant", "alone", "pooled")
        constant, alone, pooled = (made[name][owner]["held_back"] for name in names)
        assert constant["measures"]["auroc"]["value"] == 0.5
        assert max(alone["loss"], pooled["loss"]) < constant["loss"]


def test_a_problem_has_no_baselines():
    with pytest.raises(fedstay.Error, match="need data"):
        fedstay.baselines({"problem.kind": "observation-3"})

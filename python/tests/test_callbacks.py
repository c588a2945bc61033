"""What is told of every round, to packages that are stood in for here, and to a terminal."""

import io
import sys
import types

import fedstay
import pytest
from fedstay.callbacks import MLflow, Progress, RoundInfo, TensorBoard, WandB


class Bowl:
    epsilon = 0.01

    def loss_and_grad(self, weights):
        return float(weights @ weights), 2 * weights


def play(callback, rounds=3):
    return fedstay.simulate(
        [Bowl()], "fedavg", weights=[1.0], step_size=0.1, rounds=rounds, callbacks=[callback]
    )


def stand_in(monkeypatch, name, **members):
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        monkeypatch.setitem(sys.modules, ".".join(parts[:end]), types.ModuleType(parts[end - 1]))
    module = sys.modules[name]
    for key, value in members.items():
        setattr(module, key, value)
    return module


WANTED = {
    (round, name) for round in (1, 2, 3) for name in ("mean_loss", "worst_loss", "left", "near")
}


def test_tensorboard(monkeypatch, tmp_path):
    told = {}

    class Writer:
        def __init__(self, folder):
            told["folder"] = folder

        def add_scalar(self, name, value, round):
            told[round, name] = value

        def flush(self):
            told["flushed"] = told.get("flushed", 0) + 1

    stand_in(monkeypatch, "torch.utils.tensorboard", SummaryWriter=Writer)
    run = play(TensorBoard(tmp_path))
    assert told["folder"] == str(tmp_path) and told["flushed"] == 3
    assert WANTED <= set(told)
    assert [told[round, "mean_loss"] for round in (1, 2, 3)] == [
        line["loss"][0] for line in run.lines
    ]


@pytest.mark.parametrize("active", [True, False])
def test_wandb(monkeypatch, active):
    told, begun = {}, []

    class Run:
        def log(self, numbers, step):
            told.update({(step, name): value for name, value in numbers.items()})

    def init(**options):
        begun.append(options)
        return Run()

    stand_in(monkeypatch, "wandb", run=Run() if active else None, init=init)
    play(WandB(project="bowls"))
    assert WANTED <= set(told) and begun == ([] if active else [{"project": "bowls"}])


@pytest.mark.parametrize("active", [True, False])
def test_mlflow(monkeypatch, active):
    told, begun = {}, []
    stand_in(
        monkeypatch,
        "mlflow",
        active_run=lambda: object() if active else None,
        start_run=lambda **options: begun.append(options),
        log_metrics=lambda numbers, step: told.update({(step, n): v for n, v in numbers.items()}),
    )
    play(MLflow(run_name="bowls"))
    assert WANTED <= set(told) and begun == ([] if active else [{"run_name": "bowls"}])


@pytest.mark.parametrize(
    "callback, module, says",
    [
        (lambda: TensorBoard("x"), "torch.utils.tensorboard", "pip install torch tensorboard"),
        (WandB, "wandb", "pip install wandb"),
        (MLflow, "mlflow", "pip install mlflow"),
    ],
)
def test_a_package_that_is_missing_is_named(monkeypatch, callback, module, says):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(fedstay.Error, match=says):
        callback()


def test_progress_is_one_line_on_a_terminal_and_nothing_elsewhere(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    for screen in (Terminal(), io.StringIO()):
        monkeypatch.setattr(sys, "stderr", screen)
        play(Progress())
        shown = screen.getvalue()
        if screen.isatty():
            assert "round 1 of 3" in shown and "s left" in shown and "\n" not in shown
            assert shown.endswith("\r\033[K")
        else:
            assert shown == ""


def test_a_round_in_words():
    info = RoundInfo(
        round=2, rounds=9, mean_loss=0.5, worst_loss=0.75, worst_agent="oslo", near=["rome"],
        left=["bonn"], silent={f"n{i}": "timeout" for i in range(5)}, seconds=1.25, line={},
        metrics={"rome": {"accuracy": 0.5}},
    )  # fmt: skip
    assert str(info) == (
        "round 2 of 9; loss 0.5, worst 0.75 (oslo); near: rome; left: bonn; no answer: "
        "n0 (timeout), n1 (timeout), n2 (timeout) and 2 more; 1.2 s"
    )
    assert info.scalars()["client/rome/accuracy"] == 0.5

"""Parameters and buffers behind Flower, without PyTorch: who says which is which, and what becomes of them."""

import hashlib

import fedstay
import numpy as np
import pytest
from fedstay.flower import FedStay, leaves, report
from flwr.app import Array, ArrayRecord
from flwr.clientapp import ClientApp
from nodes import Nodes

PARAMETERS = ["net.weight"]


def arrays(**more):
    made = {
        "net.weight": np.ones(3, np.float32),
        "bn.running_mean": np.zeros(2, np.float32),
        "bn.num_batches_tracked": np.array(0),
        "scale": np.ones(2, np.float32),
    }
    return ArrayRecord({key: Array(value) for key, value in {**made, **more}.items()})


def app(names=PARAMETERS, told=lambda name, mean: mean):
    made = ClientApp()

    @made.train()
    def train(message, context):
        got = message.content["arrays"]
        weights = got["net.weight"].numpy()
        loss = 0.5 * float(weights @ weights)
        assert not leaves(loss, message, context)
        name = context.node_config["agent"]
        mean = got["bn.running_mean"].numpy() + {"a": 1.0, "b": 3.0}[name]
        trained = arrays(**{
            "net.weight": weights * np.float32(0.9),
            "bn.running_mean": told(name, mean).astype(np.float32),
            "bn.num_batches_tracked": np.asarray(got["bn.num_batches_tracked"].numpy() + 4),
        })  # fmt: skip
        slopes = ArrayRecord({"net.weight": Array(weights)})
        said = {"parameters": names} if names else None
        return report(message, context, loss=loss, weights=trained, gradient=slopes, names=said)

    return made


def begin(made, rounds=3, **options):
    grid = Nodes("ab", made)
    quick = {"wait": 0.01, "tries": 2, "evaluate_at_end": False}
    strategy = FedStay(epsilon=1e-9, **{**quick, **options})
    flower = strategy.start(grid, arrays(), num_rounds=rounds, timeout=1)
    return strategy, flower, grid


def test_the_agents_say_what_their_parameters_are():
    strategy, flower, grid = begin(app())
    assert strategy.reader.layout.keys == PARAMETERS and len(strategy.result.weights) == 3
    assert np.allclose(flower.arrays["net.weight"].numpy(), 0.9**3)
    # Buffers are averaged, counters stay integers and count, and what nobody trains stays.
    assert flower.arrays["bn.running_mean"].numpy().tolist() == [6.0, 6.0]
    assert flower.arrays["bn.num_batches_tracked"].numpy() == 12
    assert flower.arrays["bn.num_batches_tracked"].numpy().dtype == np.int64
    # They said it once, and it cost no exchange of its own.
    assert [round for kind, round, node in grid.asked if node == 101] == [1, 2, 3]
    state = strategy.result.state_dict()
    assert (
        set(state) == set(arrays()) and np.asarray(state["bn.running_mean"]).tolist() == [6.0] * 2
    )


def test_without_that_they_are_told_by_their_names(caplog):
    with caplog.at_level("WARNING", "flwr"):
        strategy, _, _ = begin(app(names=None), on_few="stop")
    # It cannot know about `scale`, so the gradient does not fit, and that is said.
    assert "bn.running_mean are taken for buffers" in caplog.text
    assert "lacks the array `scale`" in caplog.text


def test_the_server_may_say_it_and_nonsense_has_no_vote():
    strategy, flower, _ = begin(app(names=["nothing"]), parameters=PARAMETERS)
    assert flower.arrays["bn.running_mean"].numpy().tolist() == [6.0, 6.0]
    with pytest.raises(fedstay.Error, match="lack.*nothing"):
        begin(app(), parameters=["nothing"])
    strategy, _, _ = begin(app(names=["nothing"]), on_few="stop")
    assert "net.weight" in strategy.reader.layout.keys


def test_a_run_that_is_resumed_has_the_same_buffers(tmp_path):
    whole, flower, _ = begin(app(), rounds=4, out=tmp_path / "whole")

    def stop(info):
        if info.round == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        begin(app(), rounds=4, out=tmp_path / "cut", callbacks=[stop])
    again, resumed, _ = begin(app(), rounds=4, out=tmp_path / "cut")
    for key in arrays():
        assert resumed.arrays[key].numpy().tobytes() == flower.arrays[key].numpy().tobytes()
    for name in ("rounds.jsonl", "summary.json", "model.safetensors", "config.toml"):
        there, wanted = tmp_path / "cut" / name, tmp_path / "whole" / name
        assert there.read_bytes() == wanted.read_bytes(), name
    assert fedstay.read(tmp_path / "cut").state_dict().keys() == set(arrays())


def test_a_model_with_buffers_is_what_the_run_wrote(tmp_path):
    begin(app(), out=tmp_path / "run")
    sums = (tmp_path / "run" / "SHA256SUMS").read_text().splitlines()
    assert any(line.endswith("  model.safetensors") for line in sums), sums
    for line in sums:
        noted, name = line.split("  ")
        content = (tmp_path / "run" / name).read_bytes()
        assert hashlib.sha256(content).hexdigest() == noted, name


def test_a_run_in_a_folder_that_is_over_is_kept_beside_it(tmp_path):
    first, _, _ = begin(app(), out=tmp_path / "run")
    second, _, _ = begin(app(), out=tmp_path / "run")
    assert (first.folder.name, second.folder.name) == ("run", "run-1")
    named, _, _ = begin(app(), out=tmp_path / "of-{run}")
    assert named.folder.name == "of-1" and fedstay.read(named.folder).summary["rounds"] == 3


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e30])
def test_absurd_buffers_are_a_fault(bad):
    made = app(told=lambda name, mean: mean * 0 + bad if name == "b" else mean)
    strategy, flower, _ = begin(made)
    # An agent without one usable report is known by its number only.
    assert {agent for _, agent, _ in strategy.result.faults} in ({"b"}, {1})
    assert flower.arrays["bn.running_mean"].numpy().tolist() == [3.0, 3.0]


def test_a_share_of_the_agents_is_asked():
    grid = Nodes("abababab", None)
    for number, context in enumerate(grid.contexts.values()):
        context.node_config["agent"] = str(number)
    made = ClientApp()

    @made.train()
    def train(message, context):
        weights = message.content["arrays"]["w"].numpy()
        loss = float(weights @ weights)
        assert not leaves(loss, message, context)
        slope = ArrayRecord({"w": Array(2 * weights)})
        return report(message, context, loss=loss, direction=slope, exact=True)

    grid.app = made
    strategy = FedStay(step_size=0.1, epsilon=1e-9, fraction_train=0.5, evaluate_at_end=False)
    strategy.start(grid, ArrayRecord({"w": Array(np.ones(2))}), num_rounds=6, timeout=1)
    asked = [line["agents"] for line in strategy.result.lines]
    assert {len(round) for round in asked} == {4} and len({tuple(round) for round in asked}) > 2
    assert strategy.result.faults == [] and strategy.result.left == []

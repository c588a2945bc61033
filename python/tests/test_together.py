"""Several PyTorch agents at once: the bits of one after the other, or nearly; and when it is refused."""

import fedstay
import numpy as np
import pytest
from fedstay.stack import Stack, faster, obstacle
from fedstay.together import Threads, chosen

torch = pytest.importorskip("torch")
from test_torch import OPTIMISERS, batches, net  # noqa: E402
from torch import nn  # noqa: E402


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def crowd(model=None, count=4, make=OPTIMISERS["adam"], **more):
    model = model or net(False)
    options = {"optimizer": make, "epsilon": 0.3, **more}
    return [fedstay.TorchAgent(model, batches(number), **options) for number in range(count)]


def play(agents, **more):
    options = {"rounds": 8, "seed": 3, "policy": fedstay.Preview(margin=0.1), **more}
    return fedstay.simulate(agents, "fedavg", **options)


@pytest.mark.parametrize("normalises", [True, False])
@pytest.mark.parametrize("work", [{}, {"epochs": 2}, {"steps": 5}, {"batch_size": 16}])
def test_threads_give_the_same_bits(normalises, work, tmp_path):
    runs = [
        play(crowd(net(normalises), **work), together=way, out=tmp_path / way)
        for way in ("off", "threads")
    ]
    for name in ("rounds.jsonl", "summary.json", "model.safetensors"):
        assert len({(tmp_path / way / name).read_bytes() for way in ("off", "threads")}) == 1
    assert runs[0].weights.tobytes() == runs[1].weights.tobytes()


def test_agents_that_draw_work_one_after_the_other():
    """Dropout draws from PyTorch's one generator: threads are tried once, and given up."""

    def model():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.ReLU(), nn.Linear(8, 3))

    ways = [play(crowd(model()), together=way) for way in ("off", "threads")]
    assert ways[0].weights.tobytes() == ways[1].weights.tobytes()
    threads = Threads(2)
    seen = []

    def draws(agent, job):
        seen.append(agent is job.agent)
        return torch.rand(1)

    class Call:
        agent = crowd(model(), count=1)[0]

    threads._all("look", draws, [Call(), Call()])
    assert sorted(seen) == [False, False, True, True]
    seen.clear()
    threads._all("look", draws, [Call(), Call()])
    assert seen == [True, True]
    threads.close()


@pytest.mark.parametrize("optimizer", OPTIMISERS)
@pytest.mark.parametrize("work", [{}, {"epochs": 2}, {"steps": 5}, {"batch_size": 16}])
def test_a_stack_gives_nearly_the_same_and_repeats_its_own_bits(optimizer, work):
    def agents():
        return crowd(make=OPTIMISERS[optimizer], **work)

    alone, first, again = (play(agents(), together=way) for way in ("off", "stacked", "stacked"))
    assert first.weights.tobytes() == again.weights.tobytes() and first.lines == again.lines
    assert np.allclose(first.weights, alone.weights, atol=2e-4)
    assert first.left == alone.left
    losses = [[line["loss"] for line in run.lines] for run in (alone, first)]
    assert np.allclose(losses[0], losses[1], atol=1e-3)


def test_a_stack_of_agents_with_unequal_numbers_of_rows_is_several_stacks():
    def agents():
        made = crowd()
        made[1].data = made[1].data[:2]
        made[3].data = [(x[:7], y[:7]) for x, y in made[3].data]
        return made

    alone, stacked = (play(agents(), together=way) for way in ("off", "stacked"))
    assert np.allclose(stacked.weights, alone.weights, atol=2e-4)
    told = [line["loss"] for line in stacked.lines]
    assert np.allclose(told, [line["loss"] for line in alone.lines], atol=1e-3)


def test_gradients_alone_are_stacked_too():
    def agents():
        return crowd(make=None)

    common = {"step_size": 0.2, "policy": None, "rounds": 5}
    alone, stacked = (play(agents(), together=way, **common) for way in ("off", "stacked"))
    assert np.allclose(stacked.weights, alone.weights, atol=1e-5)


@pytest.mark.parametrize(
    "agents, why",
    [
        (lambda: crowd(net(True)), "has buffers"),
        (lambda: crowd(make=None, train=print), "must be called for each"),
        (lambda: crowd(loss=lambda m, b: m(b[0]).sum()), "must be called for each"),
        (lambda: [*crowd(), *crowd(make=OPTIMISERS["sgd"])], "the same optimiser"),
        (lambda: [*crowd(), *crowd(epochs=2)], "the same amount of local work"),
        (lambda: crowd(make=lambda p: torch.optim.LBFGS(p)), "more than one weight"),
        (lambda: crowd(nn.Sequential(nn.Linear(4, 3), nn.Dropout())), "random"),
    ],
)
def test_what_cannot_be_stacked(agents, why):
    assert why in obstacle(agents())
    with pytest.raises(fedstay.Error, match=why):
        chosen("stacked", agents())


def test_what_is_chosen():
    small, large = crowd(), crowd(nn.Sequential(nn.Linear(4, 8000), nn.ReLU(), nn.Linear(8000, 3)))
    assert faster(small) and isinstance(chosen("auto", small), Stack)
    assert not faster(large) and chosen("auto", large) is None
    torch.set_num_threads(2)
    assert isinstance(chosen("auto", large), Threads)
    # A loader draws from the generator that all threads share.
    loader = torch.utils.data.DataLoader(large[0].data, batch_size=None)
    apart = [fedstay.TorchAgent(agent.model, loader, train=print) for agent in large]
    assert chosen("auto", apart) is None
    assert chosen("auto", [object(), object()]) is None and chosen("auto", small[:1]) is None
    for way, agents, why in (("hope", small, "must be one of"), ("threads", [1, 2], "two or more")):
        with pytest.raises(fedstay.Error, match=why):
            chosen(way, agents)


@pytest.mark.parametrize("way", ["off", "threads", "stacked"])
def test_early_exit_changes_nothing_but_what_is_known_of_losses(way):
    common = {"policy": None, "together": way, "rounds": 25}
    whole = play(crowd(epsilon=0.5), **common)
    early = play(crowd(epsilon=0.5), early_exit=True, **common)
    assert whole.left and early.left == whole.left
    assert early.weights.tobytes() == whole.weights.tobytes()
    for one, other in zip(early.lines, whole.lines, strict=True):
        bounded = set(one.get("at_least", []))
        for agent, low, loss in zip(one["agents"], one["loss"], other["loss"], strict=True):
            assert low <= loss + 1e-6 and (agent in bounded or low == pytest.approx(loss))
            assert agent not in bounded or low > 0.5
    if way != "stacked":
        assert any(line.get("at_least") for line in early.lines)
    # A rule that computes with losses is given them.
    exact = play(crowd(), early_exit=True, together=way)
    assert exact.lines == play(crowd(), together=way).lines


def test_a_resumed_run_is_the_same(tmp_path):
    def stop(info):
        if info.round == 3:
            raise KeyboardInterrupt

    for way in ("threads", "stacked"):
        whole = play(crowd(batch_size=16), together=way)
        out = tmp_path / way
        with pytest.raises(KeyboardInterrupt):
            play(crowd(batch_size=16), together=way, out=out, callbacks=[stop])
        again = play(crowd(batch_size=16), together=way, out=out, resume=True)
        assert again.weights.tobytes() == whole.weights.tobytes() and again.lines == whole.lines


def test_batch_sizes():
    for wrong, data in ((0, batches(0)), (8, torch.utils.data.DataLoader(batches(0)))):
        with pytest.raises(fedstay.Error, match="`batch_size`"):
            fedstay.TorchAgent(net(), data, batch_size=wrong)
    agent = fedstay.TorchAgent(net(), batches(0), batch_size=16, optimizer=OPTIMISERS["sgd"])
    drawn = [[y for _, y in agent.batches(seed)] for seed in (1, 1, 2)]
    assert [len(y) for y in drawn[0]] == [16, 16, 16, 12]
    assert torch.equal(torch.cat(drawn[0]), torch.cat(drawn[1]))
    assert not torch.equal(torch.cat(drawn[0]), torch.cat(drawn[2]))

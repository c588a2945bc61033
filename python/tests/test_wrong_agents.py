"""What is no agent, no data and no target is refused by name, with what to give instead."""

import fedstay
import numpy as np
import pytest
from fedstay import TorchAgent


class Bowl:
    epsilon = 0.1

    def loss_and_grad(self, weights):
        return float(weights @ weights), 2 * weights


class Module:
    """What can be seen of a module without PyTorch."""

    def named_parameters(self):
        return []


class Sgd:
    """An optimiser that is made already."""

    param_groups = ()

    def step(self):
        raise AssertionError


def told(agents=None, **given):
    settings = {"weights": [1.0], "step_size": 0.1, "rounds": 2, **given}
    with pytest.raises(fedstay.Error) as refused:
        fedstay.simulate([Bowl()] if agents is None else agents, "fedavg", **settings)
    return str(refused.value)


def test_a_module_is_no_agent_yet():
    assert "agent oslo is a Module" in told({"bergen": Bowl(), "oslo": Module()})
    assert "fedstay.TorchAgent" in told([Module()], weights=None)
    assert "agent 1 is a float" in told([Bowl(), 1.0]) and "loss_and_grad" in told([Bowl(), 1.0])


def test_nobody_is_said_before_the_weights_are_missed():
    assert "`agents` is empty" in told([], weights=None)


@pytest.mark.parametrize("rounds", [-1, 0, 2.5, "3", True])
def test_rounds_are_named(rounds):
    assert f"`rounds` is {rounds}" in told(rounds=rounds)


def test_a_formula_is_no_target_loss():
    """Also where all agents have targets of their own, which it would otherwise not be asked for."""
    assert '`epsilon` is "1.1 * local"' in told(epsilon="1.1 * local")


def refused(*given, **more):
    with pytest.raises(fedstay.Error) as refusal:
        TorchAgent(*given, **more)
    return str(refusal.value)


def test_an_optimiser_that_is_made_already_is_refused_with_what_to_write():
    batches = [(np.zeros((2, 3)), np.zeros(2))]
    assert "lambda parameters: torch.optim.Sgd" in refused(Module(), batches, optimizer=Sgd())


@pytest.mark.parametrize("kind", [tuple, list])
def test_a_pair_of_arrays_is_no_list_of_batches(kind):
    pair = kind((np.zeros((2, 3)), np.zeros(2)))
    assert "data=[(inputs, labels)]" in refused(Module(), pair)
    # With a loss of its own a batch may be one array.
    TorchAgent(Module(), pair, loss=lambda model, batch: 0.0)


def test_data_that_are_used_up_after_one_pass_are_refused():
    assert "used up" in refused(Module(), (batch for batch in []))


def test_a_model_that_is_none_is_named():
    assert "`model` is a str" in refused("resnet", [])

"""What Flower offers around a strategy and cannot work with these rules is refused with a message."""

import fedstay
import numpy as np
import pytest
from fedstay.flower import FedStay, agent_name, decide_and_report
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, RecordDict
from flwr.client.mod import secaggplus_mod
from flwr.clientapp import ClientApp
from flwr.server import ServerConfig
from flwr.server.compat.legacy_context import LegacyContext
from flwr.server.workflow import SecAggPlusWorkflow
from flwr.server.workflow.constant import MAIN_CONFIGS_RECORD, MAIN_PARAMS_RECORD
from flwr.server.workflow.constant import Key as WorkflowKey
from flwr.server.workflow.default_workflows import default_init_params_workflow
from flwr.serverapp.strategy import (
    DifferentialPrivacyClientSideAdaptiveClipping,
    DifferentialPrivacyClientSideFixedClipping,
    DifferentialPrivacyServerSideAdaptiveClipping,
    DifferentialPrivacyServerSideFixedClipping,
)
from loopback.bowls import START, STEP_SIZE, agents
from nodes import Nodes, bowl_app

FIXED = {"noise_multiplier": 1.0, "clipping_norm": 10.0, "num_sampled_clients": 3}
ADAPTIVE = {"noise_multiplier": 0.1, "num_sampled_clients": 3}
WRAPPERS = [
    (DifferentialPrivacyServerSideFixedClipping, FIXED),
    (DifferentialPrivacyClientSideFixedClipping, FIXED),
    (DifferentialPrivacyServerSideAdaptiveClipping, ADAPTIVE),
    (DifferentialPrivacyClientSideAdaptiveClipping, ADAPTIVE),
]


@pytest.mark.parametrize("rounds", [1, 3])
@pytest.mark.parametrize("wrapper, options", WRAPPERS, ids=[w.__name__ for w, _ in WRAPPERS])
def test_central_differential_privacy_is_refused_before_anything_is_sent(wrapper, options, rounds):
    grid = Nodes("abc", bowl_app(epsilon=0.001))
    wrapped = wrapper(FedStay("fedavg", step_size=STEP_SIZE), **options)
    with pytest.raises(fedstay.Error, match=f"cannot be wrapped in {wrapper.__name__}.*privacy.md"):
        wrapped.start(grid, ArrayRecord({"w": Array(START)}), num_rounds=rounds, timeout=1)
    assert grid.asked == []
    # Nor may one leave out the summary, where it is refused first.
    with pytest.raises(fedstay.Error, match="cannot be wrapped"):
        wrapped.configure_train(1, ArrayRecord({"w": Array(START)}), ConfigRecord(), grid)


def test_weights_that_others_changed_between_rounds_are_not_silently_lost():
    grid, strategy = Nodes("abc", bowl_app(epsilon=0.001)), FedStay("fedavg", step_size=STEP_SIZE)
    arrays = ArrayRecord({"w": Array(START)})
    messages = list(strategy.configure_train(1, arrays, ConfigRecord(), grid))
    arrays, _ = strategy.aggregate_train(1, grid.send_and_receive(messages))
    noisy = ArrayRecord({"w": Array(arrays["w"].numpy() + 1e-9)})
    with pytest.raises(fedstay.Error, match="other arrays than aggregate_train returned"):
        strategy.configure_train(2, noisy, ConfigRecord(), grid)
    assert len(list(strategy.configure_train(2, arrays, ConfigRecord(), grid))) == 3


def test_a_subclass_is_not_a_wrapper():
    class Mine(FedStay):
        def configure_train(self, server_round, arrays, config, grid):
            return super().configure_train(server_round, arrays, config, grid)

    grid, strategy = Nodes("abc", bowl_app(epsilon=0.001)), Mine("fedavg", step_size=STEP_SIZE)
    strategy.summary()
    arrays = ArrayRecord({"w": Array(np.array(START, np.float32))})
    for round in (1, 2):
        messages = list(strategy.configure_train(round, arrays, ConfigRecord(), grid))
        arrays, metrics = strategy.aggregate_train(round, grid.send_and_receive(messages))
        assert metrics["reported"] == 3


def test_agents_behind_secure_aggregation_are_told_why_it_cannot_be():
    app = ClientApp(mods=[secaggplus_mod])

    @app.train()
    def _(message, context):
        return decide_and_report(
            agents()[agent_name(context)], None, message, context, epsilon=0.01
        )

    strategy = FedStay("fedavg", step_size=STEP_SIZE, wait=0.01, tries=1)
    with pytest.raises(fedstay.Error, match="secure aggregation.*docs/privacy.md.*secaggplus_mod"):
        strategy.start(Nodes("abc", app), ArrayRecord({"w": Array(START)}), num_rounds=1, timeout=1)


def test_the_workflow_of_secure_aggregation_is_told_why_it_cannot_be():
    context = LegacyContext(
        context=Context(1, 1, {}, RecordDict(), {}),
        config=ServerConfig(num_rounds=1),
        strategy=FedStay("fedavg", step_size=STEP_SIZE),
    )
    why = "SecAggPlusWorkflow.*docs/privacy.md"
    # What DefaultWorkflow does first, without the thread that it starts beforehand.
    with pytest.raises(fedstay.Error, match=why):
        default_init_params_workflow(Nodes("abc", bowl_app()), context)
    round = {WorkflowKey.CURRENT_ROUND: 1}
    context.state[MAIN_CONFIGS_RECORD] = ConfigRecord(round)
    context.state[MAIN_PARAMS_RECORD] = ArrayRecord({"w": Array(START)})
    with pytest.raises(fedstay.Error, match=why):
        SecAggPlusWorkflow(3, 2)(Nodes("abc", bowl_app()), context)


@pytest.mark.parametrize(
    "rule", [fedstay.MwFed(variant="load"), {"kind": "mw-fed", "variant": "load"}]
)
def test_a_rule_whose_loads_nobody_applies_is_refused_by_name(rule):
    instead = 'mw-fed with variant "load".*variant="weight".*fedstay.run'
    with pytest.raises(fedstay.Error, match=f"{instead}"):
        FedStay(rule, step_size=STEP_SIZE)
    with pytest.raises(fedstay.Error, match=instead):
        fedstay.simulate(agents(), rule, weights=START, step_size=STEP_SIZE)
    # The simulator applies them, and a server of one's own says what they are.
    study = {"rounds": 2, "data.per_agent": 40, "rule.kind": "mw-fed", "rule.variant": "load"}
    assert fedstay.run(set=study).summary["rounds"] == 2
    assert fedstay.Server(START, rule, STEP_SIZE).loads is None
    assert fedstay.MwFed(variant="weight") and FedStay(fedstay.MwFed(), step_size=STEP_SIZE)

"""The server: any rule, the same federation."""

from fedstay.flower import FedStay
from flwr.app import ArrayRecord
from flwr.serverapp import ServerApp

from .task import net

app = ServerApp()


@app.main()
def main(grid, context):
    config = context.run_config
    strategy = FedStay(
        config["rule"],
        step_size=config["step-size"],
        epsilon=config["epsilon"],
        out=config["out"],
        min_available_nodes=config["agents"],
        evaluate_every=1,
        evaluate_leavers=True,  # an experiment: all agents are ours, so we may ask
        on="cifar10",
    )
    strategy.start(grid, ArrayRecord(net().state_dict()), num_rounds=config["rounds"])
    agents = strategy.result.summary["agents"]
    print(f"{config['rule']}: {strategy.result}")
    print(f"worst agent: {100 * min(a['accuracy'] for a in agents):.1f}% accuracy")

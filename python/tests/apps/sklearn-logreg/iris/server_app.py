"""The server: averages, and saves the last average."""

import joblib
from flwr.app import ArrayRecord, Context
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from iris.task import get_params, make_model, set_params

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    config = context.run_config
    model = make_model(config["local-epochs"])
    strategy = FedAvg(fraction_train=1.0, fraction_evaluate=1.0)
    result = strategy.start(
        grid=grid,
        initial_arrays=ArrayRecord(get_params(model)),
        num_rounds=config["num-server-rounds"],
    )
    set_params(model, result.arrays.to_numpy_ndarrays())
    joblib.dump(model, "logreg_model.pkl")

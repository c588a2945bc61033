"""A task of `tasks.py` in pfl-research (PyPI `pfl`).

    python bench/contestants/pfl_research.py TASK ROUNDS SEED
    python -m torch.distributed.run --nproc_per_node=2 bench/contestants/pfl_research.py TASK ROUNDS SEED

One thread per process; under `torch.distributed.run` each process trains a part of the clients of a round. Prints
one line of JSON: the seconds of the rounds with their evaluations, and the last test accuracy.
"""

import dataclasses
import json
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F
from pfl.aggregate.simulate import SimulatedBackend
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.base import TrainingProcessCallback
from pfl.callback.central_evaluation import CentralEvaluationCallback
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.pytorch import PyTorchTensorDataset
from pfl.data.sampling import get_user_sampler
from pfl.hyperparam.base import NNEvalHyperParams, NNTrainHyperParams
from pfl.internal.ops.selector import get_default_framework_module
from pfl.metrics import Metrics, Weighted, get_overall_value
from pfl.model.pytorch import PyTorchModel
from tasks import TASKS


class Net(torch.nn.Module):
    """The task's model with the two methods that pfl asks for."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def loss(self, x, y):
        return F.cross_entropy(self.net(x), y)

    @torch.no_grad()
    def metrics(self, x, y):
        return {"accuracy": Weighted((self.net(x).argmax(1) == y).sum().item(), len(y))}


class Looks(CentralEvaluationCallback):
    """Evaluates the test images after the task's rounds; pfl's own does after the 11th, the 21st and so on."""

    def __init__(self, task, test):
        super().__init__(test, NNEvalHyperParams(local_batch_size=1000))
        self.task, self.accuracy = task, None

    def after_central_iteration(self, aggregate_metrics, model, *, central_iteration):
        if central_iteration + 1 not in self.task.looks:
            return False, Metrics()
        stop, metrics = self._eval(model)
        self.accuracy = get_overall_value(dict(metrics)[self._format_fn("accuracy")])
        return stop, metrics


class Clock(TrainingProcessCallback):
    """Begins after the evaluation that pfl does before training, which others do not do."""

    def on_train_begin(self, *, model):
        self.began = time.perf_counter()
        return Metrics()


def main():
    name, rounds, seed = sys.argv[1], *map(int, sys.argv[2:])
    task = dataclasses.replace(TASKS[name], rounds=rounds)
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    np.random.seed(seed)
    (xs, ys), test = task.deal(seed)
    # Made once: pfl keeps the batches of a data set.
    users = [PyTorchTensorDataset((x, y), user_id=str(user)) for user, (x, y) in enumerate(zip(xs, ys))]
    data = FederatedDataset(users.__getitem__, get_user_sampler("random", list(range(task.clients))))
    net = Net(task.net())
    model = PyTorchModel(
        net,
        local_optimizer_create=torch.optim.SGD,
        central_optimizer=torch.optim.SGD(net.parameters(), lr=1.0),
    )
    looks, clock = Looks(task, PyTorchTensorDataset(test)), Clock()
    FederatedAveraging().run(
        # Clients' own images are evaluated in the first round only.
        NNAlgorithmParams(
            central_num_iterations=rounds,
            evaluation_frequency=rounds + 1,
            train_cohort_size=task.asked,
            val_cohort_size=0,
        ),
        SimulatedBackend(training_data=data, val_data=data),
        model,
        NNTrainHyperParams(
            local_num_epochs=task.epochs, local_learning_rate=task.step, local_batch_size=task.batch
        ),
        NNEvalHyperParams(local_batch_size=None),
        callbacks=[looks, clock],
        send_metrics_to_platform=False,
    )
    seconds = time.perf_counter() - clock.began
    if get_default_framework_module().distributed.global_rank == 0:
        print(json.dumps({"rounds": seconds, "accuracy": looks.accuracy}))


if __name__ == "__main__":
    main()

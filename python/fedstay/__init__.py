"""Federated learning that keeps its agents.

`Server` turns reports into steps; `simulate` runs Python agents, `run` the native simulator, `sweep`
many runs of it, and `fedstay.flower` real machines. See docs/python.md in the repository.
"""

from ._core import Behaviour, Decision, Error, Report, Server, __version__, tau
from .result import Departure, Picture, Result, read
from .rules import (
    AdaGd,
    Afl,
    FedAvg,
    FedFv,
    FedMgdaPlus,
    MaxFl,
    Mean,
    MinibatchSgd,
    MwFed,
    PcGrad,
    QFedAvg,
    Retain,
    Rule,
)
from .simulation import Agent, run, simulate
from .sweeps import Sweep, sweep

__all__ = [
    "AdaGd",
    "Afl",
    "Agent",
    "Behaviour",
    "Decision",
    "Departure",
    "Error",
    "FedAvg",
    "FedFv",
    "FedMgdaPlus",
    "MaxFl",
    "Mean",
    "MinibatchSgd",
    "MwFed",
    "PcGrad",
    "Picture",
    "QFedAvg",
    "Report",
    "Result",
    "Retain",
    "Rule",
    "Server",
    "Sweep",
    "__version__",
    "read",
    "run",
    "simulate",
    "sweep",
    "tau",
]

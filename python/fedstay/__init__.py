"""Federated learning that keeps its agents.

`Server` turns reports into steps; `simulate` runs Python agents, `run` the native simulator, `sweep`
many runs of it, and `fedstay.flower` real machines. See docs/python.md in the repository.
"""

from . import callbacks, policies, rules
from ._core import (
    Behaviour,
    Decision,
    Error,
    Participant,
    Rates,
    Report,
    Round,
    RuleError,
    Server,
    __version__,
    tau,
)
from .policies import *  # noqa: F403  (likewise)
from .pytorch import TorchAgent
from .result import Departure, Picture, Result, read
from .rules import *  # noqa: F403  (a rule's class is listed once, in `rules.__all__`)
from .simulation import Agent, baselines, run, simulate
from .sweeps import Sweep, sweep
from .worth import Worth

__all__ = [
    "Agent",
    "Behaviour",
    "Decision",
    "Departure",
    "Error",
    "Participant",
    "Picture",
    "Rates",
    "Report",
    "Result",
    "Round",
    "RuleError",
    "Server",
    "Sweep",
    "TorchAgent",
    "Worth",
    "__version__",
    "baselines",
    "callbacks",
    "read",
    "run",
    "simulate",
    "sweep",
    "tau",
]
__all__ += rules.__all__ + policies.__all__

"""Federated learning that keeps its agents.

`Server` turns reports into steps; `simulate` runs Python agents, `run` the native simulator, `sweep`
many runs of it, and `fedstay.flower` real machines. See docs/python.md in the repository.
"""

from . import rules
from ._core import (
    Behaviour,
    Decision,
    Error,
    Participant,
    Report,
    Round,
    RuleError,
    Server,
    __version__,
    tau,
)
from .result import Departure, Picture, Result, read
from .rules import *  # noqa: F403  (a rule's class is listed once, in `rules.__all__`)
from .simulation import Agent, run, simulate
from .sweeps import Sweep, sweep

__all__ = [
    "Agent",
    "Behaviour",
    "Decision",
    "Departure",
    "Error",
    "Participant",
    "Picture",
    "Report",
    "Result",
    "Round",
    "RuleError",
    "Server",
    "Sweep",
    "__version__",
    "read",
    "run",
    "simulate",
    "sweep",
    "tau",
]
__all__ += rules.__all__

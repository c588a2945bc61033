"""fedstay on Flower: real machines, or Flower's simulation engine. All contact with Flower is in
this folder.

Server side: `FedStay`, a strategy. Client side: `decide_and_report` (fedstay computes the loss and the
gradient), or `agent_mod` around a train function that exists already. Needs `pip install
fedstay[flower]`.

Leaving is a message. An agent that crashes, times out or answers with nonsense is a fault: skipped,
asked again, set aside after a while, and welcome when it is back.
"""

from ..pytorch import TorchAgent
from ._agent import agent_mod, decide_and_report, goodbye, leaves, report
from ._evaluate import evaluate_and_report
from ._sent import agent_name
from ._strategy import FedStay
from ._torch import arrays_of

__all__ = [
    "FedStay",
    "TorchAgent",
    "agent_mod",
    "agent_name",
    "arrays_of",
    "decide_and_report",
    "evaluate_and_report",
    "goodbye",
    "leaves",
    "report",
]

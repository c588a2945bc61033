"""fedstay on NVIDIA FLARE: its simulator, POC mode, or provisioned sites. All contact with FLARE is in
this folder.

Server side: `FedStay`, a `ModelController`. Client side, in a script for FLARE's client API: `serve`
around an object with `loss_and_grad`, or a `Site` in a loop of your own. Needs `pip install
fedstay[flare]`.

Leaving is an answer. A site that crashes, is silent or answers with nonsense is a fault: skipped, asked
again, set aside after a while, and welcome when it is back.
"""

from ._serve import serve
from ._site import Site
from .controller import FedStay

__all__ = ["FedStay", "Site", "serve"]

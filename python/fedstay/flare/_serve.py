"""The loop of a site: receive, answer, send, until the job is over."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from ._site import Site

log = logging.getLogger(__name__)


def serve(
    agent: Any,
    *,
    epsilon: float | None = None,
    behaviour: Any = None,
    memory: str | Path | None = None,
) -> None:
    """A whole client script: answers for `agent`, anything with `loss_and_grad(weights)`, until the
    job is over. A function that makes the agent from the site's name will do as well.

    The agent's own `epsilon` and `behaviour`, where it has them, come before those given here. An
    exception of the agent costs it this round and not the job: the server is told, and asks again.
    """
    import nvflare.client as flare

    flare.init()
    if isinstance(agent, type) or not hasattr(agent, "loss_and_grad"):
        agent = agent(flare.get_site_name())
    own = getattr(agent, "epsilon", None)
    site = Site(
        epsilon=own if own is not None else epsilon,
        behaviour=getattr(agent, "behaviour", behaviour),
        memory=memory,
    )
    while flare.is_running():
        model = flare.receive()
        if model is None:
            break
        try:
            answer = site.answer(model, agent)
        # Whatever goes wrong in the agent's own code, the server should hear of it.
        except Exception as error:
            log.exception("fedstay: this round has no report")
            answer = site.fault(model, error)
        flare.send(answer)

"""A courier inside the process: sites are `Site` objects, and messages go through FLARE's own
serialisation, but over no network."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import fedstay
from bowls import Bowl
from fedstay import _core
from fedstay.flare import FedStay, Site
from fedstay.flare._engine import Engine
from fedstay.result import from_outcome
from nvflare.app_common.abstract.fl_model import FLModel
from nvflare.app_common.decomposers import common_decomposers
from nvflare.app_common.utils.fl_model_utils import FLModelUtils
from nvflare.fuel.utils import fobs

common_decomposers.register()

#: What a site answers instead of what it should; None for nothing at all.
Mischief = Callable[[str, FLModel, FLModel], FLModel | None]


def over_the_wire(model: FLModel) -> FLModel:
    """What arrives of a message."""
    return FLModelUtils.from_shareable(fobs.loads(fobs.dumps(FLModelUtils.to_shareable(model))))


class Inside:
    """Sites in this process."""

    def __init__(self, agents: Mapping[str, Bowl], mischief: Mischief | None = None) -> None:
        self.agents, self.mischief = dict(agents), mischief
        self.sites = {name: Site(epsilon=agent.epsilon) for name, agent in agents.items()}
        self.away: set[str] = set()
        #: Every message sent: task, site, message.
        self.sent: list[tuple[str, str, FLModel]] = []
        self.logged: list[str] = []

    def connected(self):
        return [name for name in self.agents if name not in self.away]

    def exchange(self, task, messages, deadline):
        answers, failed = {}, {}
        for name, message in messages.items():
            self.sent.append((task, name, message))
            received = over_the_wire(message)
            try:
                answer = self.sites[name].answer(received, self.agents[name])
            # As `serve` does it.
            except fedstay.Error as error:
                answer = self.sites[name].fault(received, error)
            if self.mischief is not None:
                answer = self.mischief(name, received, answer)
            if answer is None:
                failed[name] = "no answer within 1 s"
            else:
                answers[name] = over_the_wire(answer)
        return answers, failed

    def log(self, text, *, warn=False):
        self.logged.append(text)


def engine_of(controller: FedStay, courier: Inside) -> Engine:
    """The engine that the controller would make."""
    return controller._gather_with(courier, controller._start(), controller.judge)


def run(controller: FedStay, courier: Inside, **more) -> fedstay.Result:
    """A whole run without FLARE's processes."""
    engine = engine_of(controller, courier)
    outcome = _core.drive(
        engine,
        engine.layout.unpack(controller._start()),
        controller.rule,
        step_size=controller.step_size,
        rounds=controller.rounds,
        policy=controller.policy,
        on=controller.on,
        worth=controller.worth or [],
        judge=engine.judge if controller.judge is not None else None,
        **more,
    )
    return from_outcome(outcome, more.get("out"))

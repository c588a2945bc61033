"""A courier inside the process: sites are `Site` objects, and messages go through FLARE's own
serialisation, but over no network."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import fedstay
from bowls import Bowl
from fedstay import _core
from fedstay.flare import FedStay, Site
from fedstay.flare._engine import Engine, Evaluation, Patience
from fedstay.flare._layout import Layout
from fedstay.flare._replies import Reader
from fedstay.flare._roll import Roll
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

    def exchange(self, task, messages, enough):
        answers, failed = {}, {}
        for name, message in messages.items():
            self.sent.append((task, name, message))
            received = over_the_wire(message)
            answer = self.sites[name].answer(received, self.agents[name])
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
    layout = Layout(controller._start())
    roll = Roll(controller.agents, controller.max_silent, controller.retry_every)
    reader = Reader(
        layout,
        controller.step_size,
        controller.epsilon,
        controller.max_reach,
        controller.max_ratio,
    )
    patience = Patience(controller.min_agents, controller.on_few, controller.wait, controller.tries)
    evaluation = Evaluation(
        controller.evaluate_every, controller.evaluate_at_end, controller.evaluate_leavers
    )
    rule = str(controller.rule)
    return Engine(courier, layout, roll, reader, patience, evaluation, controller.rounds, rule)


def run(controller: FedStay, courier: Inside) -> fedstay.Result:
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
    )
    return from_outcome(outcome, None)

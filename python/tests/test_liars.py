"""What one liar among nine can do to the others through the strategy, by replies that look honest. Eight
members have a common optimum; the ninth says what it likes about its loss, its target and its weight."""

import numpy as np
import pytest
from fedstay.flower import FedStay, agent_name, decide_and_report
from flwr.app import Array, ArrayRecord, Message, RecordDict
from flwr.clientapp import ClientApp
from hostile import filled, say, send
from nodes import Nodes

NAMES, SIZE, EPSILON = "abcdefghi", 24, 0.05
DRAW = np.random.default_rng(3)
BEST = DRAW.normal(size=SIZE)
ROWS = {name: DRAW.normal(size=(8, SIZE)) / SIZE**0.5 for name in NAMES}


class Squares:
    """Least squares with an optimum that everybody shares."""

    samples = 1

    def __init__(self, name):
        self.rows = ROWS[name]

    def loss_and_grad(self, weights):
        away = self.rows @ (weights - BEST)
        return 0.5 * float(away @ away), self.rows.T @ away


def floor(reply, round):
    """It claims to stand on its floor in every round."""
    return say(epsilon=float(reply.content["fedstay"]["loss"]) - 0.02)(reply)


def dance(reply, round):
    return say(epsilon=[EPSILON, 10.0, -5.0, 1e-3][round % 4])(reply)


#: What the liar makes of its honest report.
LIES = {
    "a target far above everybody's": lambda reply, round: say(epsilon=1e4, loss=2e4)(reply),
    "a target that cannot be reached": lambda reply, round: say(epsilon=-1e4)(reply),
    "another target in every round": dance,
    "a target right below its loss": floor,
    "a loss right above its target": lambda reply, round: say(loss=0.0500001)(reply),
    "a loss far above everybody's": lambda reply, round: say(loss=500.0)(reply),
    "a high loss and nothing to do about it": lambda reply, round: send(filled(0.0), loss=50.0)(
        reply
    ),
    "more samples than there are": lambda reply, round: say(samples=10**15)(reply),
}


def ended(settings, lie, rounds=40):
    """The run, and the losses of the eight honest members at what it delivers."""
    app = ClientApp()

    @app.train()
    def _(message, context):
        name = agent_name(context)
        reply = decide_and_report(Squares(name), None, message, context, epsilon=EPSILON)
        reply.asked, lies = message, name == "a" and "arrays" in reply.content
        return lie(reply, int(message.content["config"]["server-round"])) if lies else reply

    strategy = FedStay(**settings, step_size=0.5, max_silent=99, wait=0.0, evaluate_at_end=False)
    arrays = ArrayRecord({"w": Array(np.zeros(SIZE))})
    strategy.start(Nodes(NAMES, app), arrays, num_rounds=rounds, timeout=1)
    weights = strategy.result.weights
    return strategy.result, [Squares(name).loss_and_grad(weights)[0] for name in NAMES[1:]]


@pytest.mark.parametrize("settings", [{"rule": "retain"}, {}], ids=["retain", "the default"])
@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_a_lie_in_numbers_costs_no_honest_member_its_place_or_what_it_began_with(lie, settings):
    result, losses = ended(settings, lie)
    first = max(Squares(name).loss_and_grad(np.zeros(SIZE))[0] for name in NAMES)
    assert max(losses) < 0.5 * first
    assert {departure.agent for departure in result.left} <= {"a"}
    assert result.verdict is not None


def test_an_old_report_does_not_hold_the_others_back():
    """What b said in round 2, for ever: if its nonce were not looked at, it would be believed, and the model
    stay there."""

    def replay(reply, round, old={}):  # noqa: B006
        if round <= 2:
            old["content"] = dict(reply.content)
            return reply
        return Message(RecordDict(old["content"]), reply_to=reply.asked)

    result, losses = ended({}, replay)
    assert max(losses) < EPSILON and result.left == []
    assert {who for _, who, _ in result.faults} == {"a"}

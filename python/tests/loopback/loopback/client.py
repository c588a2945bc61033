"""The client app; in some scenarios agent b does not behave."""

import numpy as np
from fedstay.flower import agent_name, decide_and_report, evaluate_and_report
from flwr.app import Array, ArrayRecord
from flwr.clientapp import ClientApp

from .bowls import agents

app = ClientApp()


def me(context):
    name = agent_name(context)
    # The simulation engine knows partitions 0, 1, 2.
    agent = agents()[name] if name in agents() else list(agents().values())[int(name)]
    if context.run_config["scenario"] != "plain":
        agent.epsilon = 0.01  # Nobody is to leave.
    return agent


@app.train()
def train(message, context):
    agent = me(context)
    reply = decide_and_report(agent, None, message, context, epsilon=agent.epsilon)
    if context.run_config["scenario"] == "nonsense" and agent_name(context) == "b":
        return spoiled(reply, int(message.content["config"]["server-round"]))
    return reply


@app.evaluate()
def evaluate(message, context):
    return evaluate_and_report(me(context), None, message, context)


def spoiled(reply, round):
    """Round 2: not a number. Round 3: another shape. Round 4: somebody else's name. Round 5: a crash."""
    arrays = reply.content["arrays"]
    if round == 2:
        values = arrays["w"].numpy().copy()
        values[5] = np.nan
        reply.content["arrays"] = ArrayRecord({"w": Array(values)})
    if round == 3:
        reply.content["arrays"] = ArrayRecord({"w": Array(np.zeros(7))})
    if round == 4:
        reply.content["fedstay"]["agent"] = "a"
    if round == 5:
        raise RuntimeError("agent b crashes on purpose")
    return reply

"""A grid inside this process: Flower's own messages and apps, without its processes."""

import itertools

import fedstay
from fedstay.flower import agent_name, decide_and_report, evaluate_and_report
from flwr.app import Array, ArrayRecord, Context, Error, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid
from flwr.supercore.task_identity import TaskIdentity
from loopback.bowls import START, STEP_SIZE, agents

# What Flower tells every process of a server app; messages carry it.
TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = 1, 1, 1


class Nodes(Grid):
    """Nodes in this process: each has a context and answers with the app, unless it is `dead`."""

    def __init__(self, names, app):
        self.app, self.contexts, self.dead, self.asked = app, {}, set(), []
        self.hook = lambda round, grid: None
        self.numbers = itertools.count(101)
        self.ids = itertools.count()
        self.replies = {}
        for name in names:
            self.join(name)

    def join(self, name):
        node = next(self.numbers)
        self.contexts[node] = Context(1, node, {"agent": name}, RecordDict(), {})
        return node

    def set_run(self, run): ...

    run = None

    def create_message(self, *arguments): ...

    def get_node_ids(self):
        return list(self.contexts)

    def push_messages(self, messages):
        sent = []
        for message in messages:
            message.metadata.__dict__["_message_id"] = str(next(self.ids))
            sent.append(message.metadata.message_id)
            node = message.metadata.dst_node_id
            config = next(iter(message.content.config_records.values()))
            round = int(config["server-round"])
            self.asked.append((message.metadata.message_type, round, node))
            if node not in self.dead:
                self.replies[sent[-1]] = self.answer(message, self.contexts[node])
        return sent

    def answer(self, message, context):
        try:
            return self.app(message, context)
        except Exception as error:  # noqa: BLE001
            # As Flower does: the error comes from node 1, not from the node that failed.
            return Message(Error(5, f"trace\n{error!r}"), reply_to=message)

    def pull_messages(self, ids):
        return [self.replies.pop(i) for i in reversed(list(ids)) if i in self.replies]

    def send_and_receive(self, messages, *, timeout=None):
        return self.pull_messages(self.push_messages(messages))


def bowl_app(change=lambda reply, name, round: reply, **options):
    app = ClientApp()

    @app.train()
    def train(message, context):
        name = agent_name(context)
        agent = agents()[name]
        epsilon = options.get("epsilon", agent.epsilon)
        reply = decide_and_report(agent, None, message, context, epsilon=epsilon)
        return change(reply, name, int(message.content["config"]["server-round"]))

    @app.evaluate()
    def evaluate(message, context):
        return evaluate_and_report(agents()[agent_name(context)], None, message, context)

    return app


def start(strategy, grid, rounds=4, **more):
    arrays = ArrayRecord({"w": Array(START)})
    strategy.start(grid, arrays, num_rounds=rounds, timeout=more.pop("timeout", 0.3), **more)
    return strategy.result


def simulated(**options):
    return fedstay.simulate(
        agents(), "fedavg", weights=START, step_size=STEP_SIZE, rounds=4, **options
    )

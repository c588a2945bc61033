"""The strategy: Flower's contract. What replies mean is in _replies.py."""

from __future__ import annotations

import json
import random
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from logging import INFO, WARNING
from pathlib import Path
from typing import Any, Literal

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Message, MessageType, MetricRecord, RecordDict
from flwr.common.logger import log
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Result as FlowerResult
from flwr.serverapp.strategy import Strategy
from numpy.typing import NDArray

from .. import _core
from .._core import Error, RuleError
from ..callbacks import Callback
from ..policies import PolicyLike, Preview, called, shows
from ..remote.asks import Asks
from ..remote.folder import reopened
from ..remote.patience import Patience, refuse_wrong_seconds
from ..remote.showing import Showing
from ..result import Result, from_outcome
from ..rules import FedAvg, RuleLike, usual_epsilon, weighs
from ..scale import kind_of
from ..worth import WorthLike, asked, needing_a_judge, refuse_unjudged, refuse_unknown
from ._engine import Engine
from ._layout import CORRECTION, Layout
from ._metrics import WEIGHT, Kept, mean
from ._overrides import Asking, Outgoing, Stepped, refuse_replaced
from ._replies import Answers, Reader, Sent, told_parameters
from ._roll import Roll
from ._sent import ARRAYS, ARRAYS_KEY, CONFIG

#: What makes one record of the metrics that clients sent, as Flower's strategies take it.
MetricsAggregation = Callable[[list[RecordDict], str], MetricRecord]


class FedStay(Strategy):
    """A Flower strategy under which agents may leave, and rules that keep them.

    Parameters
    ----------
    rule : Rule, str, dict or an object of your own
        How reports become a step: "fedavg", `fedstay.Retain()`, anything with `aggregate(round)` …
        Without one it is averaging with previews, which keeps agents however they train.
    step_size : float
        The server's step size, 1 unless given. Under averaging, trained weights are averaged as they
        are whatever it is. Where agents report gradients it is how far the server follows them. For a
        rule that takes trained weights for gradients (ada-gd, retain), the sum of the local step sizes.
    epsilon : float, optional
        The loss at which an agent leaves, sent to agents that have no `epsilon` of their own; the
        rule's if not given.
    policy : Policy, str, dict or a list of them, optional
        What to do around the rule: `fedstay.Preview()`, "guard", "early-stop", "keep-best".
    out : path, optional
        The run's folder, as `fedstay run` writes it, with a checkpoint after every round. If the
        folder holds a run that was cut off, it continues with the next round. If it holds a run that is
        over, the new one is kept beside it, in a folder whose name ends in the id of Flower's run;
        `{run}` in the name is that id in any case. `strategy.folder` says where it is.
    parameters : list of names, optional
        Which of the model's arrays are trained; the others are buffers, averaged outside the rule.
        Unless given, the agents say it with their first reports.
    fraction_train, fraction_evaluate : float
        The share of the agents that is asked to train, or to evaluate, in a round; drawn by `seed`.
    min_train_nodes, min_evaluate_nodes : int
        At least so many are asked, if so many are there.
    min_available_nodes : int
        Wait for this many nodes before the first round.
    weighted_by_key : str
        By which of the numbers that clients send their metrics are averaged, and their reports under a
        rule that weighs: `FedStay()` without a rule does, and rules with `weigh="samples"`.
    arrayrecord_key, configrecord_key : str
        What the weights and the config are called in the messages to clients.
    train_metrics_aggr_fn, evaluate_metrics_aggr_fn : functions, optional
        Make one MetricRecord of the usable replies' contents (a list of RecordDicts, by agent) and
        `weighted_by_key`.
    agents : list of names, or mapping from names to node ids, optional
        Who may take part; anybody, if not given. With node ids (SuperNodes that authenticate keep
        theirs) a name cannot move to another node.
    max_reach : float
        An agent's `reach`, the sum of its local step sizes, is at most this many times the step size.
    max_ratio : float
        A report is taken for garbage if it would move the model by more than this many times the
        model's own length (at least 1) and this many times what the median of the other reports
        would; or if its loss is more than this many times the median of the others' (at least 1).
    min_agents : int
        The number of reports that a round needs.
    grace : float, optional
        Once so many have reported, the others have this many seconds more; all of `timeout`, if not
        given. With it, who takes part in a round is a matter of time.
    on_few : "wait" or "stop"
        What to do with fewer: ask the missing ones again after `wait` seconds, at most `tries` times,
        or end the run at once. It ends as "too-few" in any case, with a verdict; one that has waited is
        continued by the next start with the same `out`.
    max_silent : int
        After this many rounds without a usable answer an agent is set aside, and so is a node that has
        never told its name.
    retry_every : int
        It is then asked again after this many rounds, and at once when its node is back.
    evaluate_every : int
        After how many rounds every agent still in evaluates what it is shown, which is the model unless
        the policy hides that (an `@app.evaluate()` whose metrics have `loss_key`, and `accuracy_key` if
        you like); 0 for never.
    evaluate_at_end : bool
        Whether they evaluate what is delivered.
    evaluate_leavers : bool
        Whether agents that left evaluate too: for experiments whose agents are all yours.
    worth : Worth or list of str, optional
        The scores that say what every agent gives and gets: `fedstay.Worth`. Those that need rows which
        nobody trains on ask its `judge`, or the `evaluate_fn` that `start` is given.
    callbacks : list of callables, optional
        Told of every round; one that returns True ends the run: see `fedstay.callbacks`.
    on : str
        What is trained, in a word, for titles.
    """

    def __init__(
        self,
        rule: RuleLike | None = None,
        *,
        step_size: float | None = None,
        epsilon: float | None = None,
        policy: PolicyLike | None = None,
        out: str | Path | None = None,
        parameters: Sequence[str] | None = None,
        fraction_train: float = 1.0,
        fraction_evaluate: float = 1.0,
        min_train_nodes: int = 2,
        min_evaluate_nodes: int = 2,
        min_available_nodes: int = 2,
        weighted_by_key: str = WEIGHT,
        arrayrecord_key: str = ARRAYS,
        configrecord_key: str = CONFIG,
        train_metrics_aggr_fn: MetricsAggregation | None = None,
        evaluate_metrics_aggr_fn: MetricsAggregation | None = None,
        seed: int = 0,
        agents: Sequence[str] | Mapping[str, int | None] | None = None,
        max_reach: float = 1000.0,
        max_ratio: float = 1e6,
        min_agents: int = 1,
        on_few: Literal["wait", "stop"] = "wait",
        wait: float = 10.0,
        tries: int = 30,
        grace: float | None = None,
        max_silent: int = 3,
        retry_every: int = 5,
        evaluate_every: int = 0,
        evaluate_at_end: bool = True,
        evaluate_leavers: bool = False,
        loss_key: str = "eval_loss",
        accuracy_key: str = "eval_acc",
        worth: WorthLike | None = None,
        callbacks: Sequence[Callback] = (),
        on: str = "flower",
    ) -> None:
        refuse_replaced(self, FedStay)
        if on_few not in ("wait", "stop"):
            raise Error(f'`on_few` is "{on_few}", but must be "wait" or "stop"')
        for name, value in (("min_agents", min_agents), ("max_silent", max_silent),
                            ("retry_every", retry_every), ("tries", tries),
                            ("min_train_nodes", min_train_nodes),
                            ("min_available_nodes", min_available_nodes)):  # fmt: skip
            if value < 1:
                raise Error(f"`{name}` is {value}, but must be 1 or more")
        if min_evaluate_nodes < 0:
            raise Error(f"`min_evaluate_nodes` is {min_evaluate_nodes}, but must be 0 or more")
        refuse_wrong_seconds(wait=wait, grace=grace)
        for name, most in (("max_reach", max_reach), ("max_ratio", max_ratio)):
            if not 1 <= most < float("inf"):
                raise Error(f"`{name}` is {most}, but must be a finite number, 1 or more")
        for name, share in (("fraction_train", fraction_train),
                            ("fraction_evaluate", fraction_evaluate)):  # fmt: skip
            if not 0.0 <= share <= 1.0:
                raise Error(f"`{name}` is {share}, but must be from 0 to 1")
        if fraction_train == 0.0:
            raise Error(
                "`fraction_train` is 0: nobody would train, and every round be without a step"
            )
        given, step_size = step_size is not None, 1.0 if step_size is None else step_size
        self.rule: RuleLike = rule if rule is not None else FedAvg(weigh="samples")
        if rule is None and policy is None:
            policy = Preview()
        self.step_size, self.policy = step_size, policy
        #: Whether agents may be shown models of their own.
        self.previews = shows(policy)
        self.parameters = list(parameters) if parameters is not None else None
        self.fraction_train, self.fraction_evaluate = fraction_train, fraction_evaluate
        self.min_train_nodes, self.min_evaluate_nodes = min_train_nodes, min_evaluate_nodes
        self.weighted_by_key = weighted_by_key
        self.arrayrecord_key, self.configrecord_key = arrayrecord_key, configrecord_key
        self.train_metrics_aggr_fn = train_metrics_aggr_fn
        self.evaluate_metrics_aggr_fn = evaluate_metrics_aggr_fn
        self.seed, self.callbacks = seed, list(callbacks)
        #: What clients sent along, by kind, round and name; also in client-metrics.jsonl.
        self.kept = Kept()
        self.missing_keys: set[tuple[str, str]] = set()
        #: Where the run is kept, once it has begun.
        self.folder: Path | None = None
        self.epsilon = epsilon if epsilon is not None else usual_epsilon(rule)
        self.out = Path(out) if out is not None else None
        self.min_available_nodes, self.min_agents = min_available_nodes, min_agents
        self.on_few, self.wait, self.tries, self.grace = on_few, wait, tries, grace
        self.evaluate_every, self.evaluate_at_end = evaluate_every, evaluate_at_end
        self.evaluate_leavers = evaluate_leavers
        self.loss_key, self.accuracy_key, self.on = loss_key, accuracy_key, on
        self.roll = Roll(agents, max_silent, retry_every)
        #: The run as `fedstay.Result`, once it is over.
        self.result: Result | None = None
        self.reader = Reader(self.roll, step_size, self.epsilon, max_reach, max_ratio)
        self.reader.expects_gradients = given
        self.reader.asks = Asks.of(self.rule)
        self.reader.weighs, self.reader.weighted_by = weighs(self.rule), weighted_by_key
        self.reader.keeps_replies = train_metrics_aggr_fn is not None
        self.worth = asked(worth)
        self._server: _core.Server | None = None
        self._configured: list[Message] = []
        #: What everybody is shown now, in a run of `start`; and what each node was sent last.
        self.showing: Showing | None = None
        self._went: Sent | None = None
        self._outgoing: dict[int, Outgoing] = {}
        #: What the loop of `start` is at, while it calls a method that a subclass may override.
        self._asking: Asking | None = None
        self._stepped: Stepped | None = None
        self._evaluated: tuple[Sequence[Message], MetricRecord | None] | None = None
        # Refuses wrong settings now, not after the first round.
        refuse_unknown(self.worth)
        _core.refuse_loads(self.rule, "agents behind Flower")
        _core.Server([0.0], self.rule, step_size, policy=policy)

    # -- Flower's contract ----------------------------------------------------------------------

    def start(
        self,
        grid: Grid,
        initial_arrays: ArrayRecord,
        num_rounds: int = 3,
        timeout: float = 300,
        train_config: ConfigRecord | None = None,
        evaluate_config: ConfigRecord | None = None,
        evaluate_fn: Callable[[int, ArrayRecord], MetricRecord | None] | None = None,
    ) -> FlowerResult:
        """Runs until the rule stops, nobody is left, or the rounds are over; resumes if there is
        something to resume in `out`. An agent has `timeout` seconds to answer."""
        if evaluate_fn is None:
            refuse_unjudged(
                self.worth, "`fedstay.Worth(methods, judge=…)`, or `start(…, evaluate_fn=…)`"
            )
        self.folder = self.kept.folder = self._choose_folder(grid)
        self.showing = None
        self.summary()
        if not self.roll.only_known_nodes():
            log(WARNING, "fedstay: names are not bound to nodes: while an agent's node is away, another "
                "node can answer under its name; with authenticated SuperNodes give agents={name: node "
                "id}")  # fmt: skip
        engine = Engine(
            self,
            grid,
            timeout,
            train_config if train_config is not None else ConfigRecord(),
            evaluate_config if evaluate_config is not None else ConfigRecord(),
            evaluate_fn,
            num_rounds,
            FedStay,
        )
        resume = self.folder is not None and (self.folder / "config.toml").exists()
        if resume:
            log(INFO, "fedstay: continuing the run in %s", self.folder)
        layout = self._layout = self._tell_apart(initial_arrays, engine, resume)
        outcome = _core.drive(
            engine,
            layout.unpack(initial_arrays, "(server)", np.float64),
            self.rule,
            step_size=self.step_size,
            rounds=num_rounds,
            policy=self.policy,
            on=self.on,
            out=self.folder,
            resume=resume,
            seconds_between_checkpoints=0.0,
            settings=json.dumps(self._settings()),
            layout=layout.tensors(),
            worth=list(self.worth.methods),
            judge=engine.judge if needing_a_judge(self.worth) else None,
        )
        rest = layout.rest(outcome.weights)
        self.result = from_outcome(outcome, self.folder, layout.tensors(), rest)
        self._log_result(self.result)
        engine.flower.arrays = layout.pack(outcome.weights)
        self.showing = None
        return engine.flower

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """The messages of a round: to everybody connected who has not left and is not set aside.

        `start` calls it for every exchange, twice in some rounds; a subclass may change `config`, or leave
        messages out. It sees the same `config` at every call of a round, and in the next round what it
        made of it.
        """
        asking = self._asking
        if asking is not None:
            nodes, kind = asking.nodes, MessageType.TRAIN
            more = asking.corrections, asking.words
            return self._messages(nodes, server_round, asking.showing, config, kind, *more)
        self._refuse_wrapping(sys._getframe(1).f_locals.get("self"))
        self._refuse_a_loop_without_record()
        self._refuse_other_weights(arrays)
        nodes = self.roll.to_ask(server_round, grid.get_node_ids())
        assert self._server is not None
        showing, by = self._shown(arrays), self._by_node(nodes, self._corrections())
        self._went = Sent({}, self._server.weights, showing, self._at(nodes, showing))
        return self._messages(nodes, server_round, showing, config, MessageType.TRAIN, by)

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """One step from one round's replies, for loops other than `start`: no waiting, no folder.

        `start` calls it once the rule has taken the step, and it says what has come of it; a subclass may
        look at that, and return other metrics.
        """
        if self._stepped is not None:
            if [id(r) for r in replies] != [id(r) for r in self._stepped.replies]:
                raise Error(
                    f"{type(self).__name__}.aggregate_train hands on other replies than it was given; the "
                    "step was taken with all that are usable. `agents=` says who may take part"
                )
            return self._stepped.arrays, self._stepped.metrics
        if self._layout is None or self._server is None or self._went is None:
            raise Error("aggregate_train: `configure_train` comes first")
        answers = Answers()
        sent = self._sent()
        went = replace(self._went, nodes=sent)
        self.reader.read(replies, went, list(sent.values()), server_round, answers)
        reported = self._step(answers)
        self._layout.take_buffers(*answers.all_buffers(self.reader.weighs))
        if not reported and not answers.goodbyes:
            return None, None
        metrics: dict[str, Any] = {"left": len(answers.goodbyes), "reported": reported}
        return self._layout.pack(self._server.weights), MetricRecord(metrics)

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Messages to every agent still in and, with `evaluate_leavers`, to those that left. While a
        policy hides the model from somebody, every agent evaluates what it is shown, and agents that
        left are shown nothing."""
        members = self.roll.members.values() if self.evaluate_leavers else self.roll.still_in()
        showing = self._shown(arrays)
        wanted = {
            member.node
            for member in members
            if member.aside is None and (member.left is None or not showing.hides_from(member.id))
        }
        nodes = [node for node in sorted(grid.get_node_ids()) if node in wanted]
        if self.fraction_evaluate < 1.0:
            known = sorted(nodes, key=lambda node: getattr(self.roll.of_node(node), "id", node))
            draw = random.Random(f"{self.seed}/evaluate/{server_round}")
            count = int(len(nodes) * self.fraction_evaluate)
            least = max(self.min_evaluate_nodes, 1) if self.fraction_evaluate > 0.0 else 0
            nodes = draw.sample(known, min(max(count, least), len(nodes)))
        return self._messages(nodes, server_round, showing, config, MessageType.EVALUATE)

    def aggregate_evaluate(
        self, server_round: int, replies: Iterable[Message]
    ) -> MetricRecord | None:
        """The mean of what the agents reported, or what `evaluate_metrics_aggr_fn` makes of it."""
        if self._evaluated is not None:
            all_of_them, made = self._evaluated
            if [id(r) for r in replies] == [id(r) for r in all_of_them]:
                return made
        usable: list[RecordDict] = []
        told, everything = self._evaluations(replies, self._sent(), usable)
        return self._aggregated_evaluations(told, mean(everything, self.weighted_by_key)[0], usable)

    def summary(self) -> None:
        """Logs what this strategy does."""
        self._refuse_wrapping(sys._getframe(1).f_locals.get("self"))
        kept = self.folder if self.folder is not None else "nowhere (give `out` to keep it)"
        around = f", policy {called(self.policy)}" if self.policy is not None else ""
        rule = kind_of(self.rule) or self.rule
        log(INFO, "fedstay: rule %s%s, step size %g", rule, around, self.step_size)
        if self.reader.weighs:
            log(INFO, "fedstay: reports are weighed by `%s`", self.weighted_by_key)
        log(INFO, "fedstay: a round needs %d reports; the run is kept in %s", self.min_agents, kept)

    def patience(self, timeout: float) -> Patience:
        """How long agents are waited for, and how many."""
        return Patience(timeout, self.min_agents, self.grace, self.on_few, self.wait, self.tries)

    # -- messages -------------------------------------------------------------------------------

    def _settings(self) -> dict[str, Any]:
        settings: dict[str, Any] = {
            "agents": self.roll.settings(),
            "min_agents": self.min_agents,
            "on_few": self.on_few,
            "max_reach": self.reader.max_reach,
            "max_ratio": self.reader.max_ratio,
        }
        if self.epsilon is not None:
            settings["epsilon"] = self.epsilon
        if self.fraction_train < 1.0:
            settings |= {"fraction_train": self.fraction_train, "seed": self.seed}
        layout = self._layout
        if layout is not None and (layout.buffers or layout.tied):
            settings["parameters"] = layout.keys
            if layout.tied:
                settings["tied"] = layout.tied
        return {"flower": settings}

    def _choose_folder(self, grid: Grid) -> Path | None:
        """Where the run is kept: in `out`, unless a run that is over is there already."""
        if self.out is None:
            return None
        folder = self.out
        if "{run}" in str(folder):
            folder = Path(str(folder).replace("{run}", str(_run_id(grid))))
        if (folder / "summary.json").exists() and not reopened(folder):
            beside = folder.with_name(f"{folder.name}-{_run_id(grid)}")
            log(INFO, "fedstay: the run in %s is over; this one is kept in %s", folder, beside)
            return beside
        return folder

    def _tell_apart(self, arrays: ArrayRecord, engine: Engine, resume: bool) -> Layout:
        """Which of the model's arrays are parameters: as given, as kept, or as the agents say."""
        if self.parameters is not None:
            return Layout(arrays, self.parameters)
        if resume and self.folder is not None:
            kept = tomllib.loads((self.folder / "config.toml").read_text()).get("flower", {})
            return Layout(arrays, kept.get("parameters"), kept.get("tied"))
        layout = self._layout = Layout(arrays)
        told = told_parameters(engine.ask_early(arrays, layout), arrays)
        if told is not None:
            return Layout(arrays, *told)
        if layout.guessed():
            log(WARNING, "fedstay: %s are taken for buffers because of their names, and averaged outside "
                "the rule: no agent says what its parameters are. Give `parameters=`",
                ", ".join(layout.guessed()[:3]))  # fmt: skip
        return layout

    def _messages(
        self,
        nodes: list[int],
        round: int,
        showing: Showing,
        config: ConfigRecord,
        kind: str,
        corrections: Mapping[int, ArrayRecord] | None = None,
        words: Mapping[str, Any] | None = None,
    ) -> list[Message]:
        """One message for every node, with what its agent is shown; `corrections` is what agents add
        to every local step, and `words` what else the config says."""
        assert self._layout is not None
        config = ConfigRecord({**config, **(words or {})})
        if self.arrayrecord_key != ARRAYS:
            config[ARRAYS_KEY] = self.arrayrecord_key
        config["server-round"] = round
        config["step-size"] = self.step_size
        if self.epsilon is not None:
            config["epsilon"] = float(self.epsilon)
        if kind == MessageType.TRAIN:
            for name, asks in self.reader.asks.words().items():
                config[name] = asks
        weights_key, settings = self.arrayrecord_key, self.configrecord_key
        # What is the same for several nodes is one object, which Flower keeps once.
        contents: dict[int, RecordDict] = {}
        self._configured = []
        for node, weights in self._at(nodes, showing).items():
            if id(weights) not in contents:
                arrays = self._layout.pack(weights, first=showing.is_first(weights))
                contents[id(weights)] = RecordDict({weights_key: arrays, settings: config})
            content = contents[id(weights)]
            by = (corrections or {}).get(node)
            if by is not None:
                content = RecordDict({**content, CORRECTION: by})
            self._outgoing[node] = Outgoing.of(content, settings)
            self._configured.append(Message(content, node, kind, group_id=str(round)))
        return self._configured

    def _at(self, nodes: Iterable[int], showing: Showing) -> dict[int, NDArray[np.float64]]:
        """What the agents behind nodes are shown."""
        members = {node: self.roll.of_node(node) for node in nodes}
        return {node: showing.to(m.id if m else None) for node, m in members.items()}

    def _by_node(
        self, nodes: Iterable[int], corrections: Mapping[int, NDArray[np.float64]]
    ) -> dict[int, ArrayRecord]:
        """What the agents behind nodes are to add to the gradient of every local step."""
        found = {}
        for node in nodes:
            member = self.roll.of_node(node)
            if member is not None and member.id in corrections and self._layout is not None:
                found[node] = self._layout.pack_parameters(corrections[member.id])
        return found

    def _corrections(self) -> dict[int, NDArray[np.float64]]:
        """The corrections of a round, in loops other than `start`."""
        if self._server is None:
            return {}
        told = {m.id: self._server.correction(m.id) for m in self.roll.still_in()}
        return {agent: by for agent, by in told.items() if by is not None}

    def _sent(self) -> dict[str, int]:
        """Which node each message went to; a message has its id once it was pushed."""
        return {m.metadata.message_id: m.metadata.dst_node_id for m in self._configured}

    def _evaluations(
        self, replies: Iterable[Message], sent: Mapping[str, int], usable: list[RecordDict]
    ) -> tuple[dict[int, tuple[float, float | None]], dict[str, dict[str, float]]]:
        return self.reader.evaluations(replies, sent, self.loss_key, self.accuracy_key, usable)

    def _aggregated_evaluations(
        self,
        told: Mapping[int, tuple[float, float | None]],
        means: Mapping[str, float],
        usable: list[RecordDict],
    ) -> MetricRecord | None:
        """What Flower's result says of an evaluation: means, weighted where everybody sends the weight, or
        what the strategy was given to make of the replies."""
        if self.evaluate_metrics_aggr_fn is not None and usable:
            return self.evaluate_metrics_aggr_fn(usable, self.weighted_by_key)
        own = self._mean(told)
        plain: dict[str, Any] = {**(dict(own) if own is not None else {}), **means}
        return MetricRecord(plain) if plain else None

    def _mean(self, told: Mapping[int, tuple[float, float | None]]) -> MetricRecord | None:
        """The mean of what the agents reported."""
        if not told:
            return None
        accuracy = [accuracy for _, accuracy in told.values() if accuracy is not None]
        mean: dict[str, Any] = {self.loss_key: sum(loss for loss, _ in told.values()) / len(told)}
        if accuracy:
            mean[self.accuracy_key] = sum(accuracy) / len(accuracy)
        return MetricRecord(mean)

    # -- loops other than `start` ----------------------------------------------------------------

    @property
    def _layout(self) -> Layout | None:
        return self.reader.layout

    @_layout.setter
    def _layout(self, layout: Layout) -> None:
        self.reader.layout = layout

    def _shown(self, arrays: ArrayRecord) -> Showing:
        """What everybody is shown now; in loops other than `start` the server knows, once there is one,
        and what it hides is not handed in."""
        if self.showing is not None:
            return self.showing
        if not self.previews or self._server is None or not self._server.round:
            layout = self._layout = self._layout or Layout(arrays)
            return Showing.the_same(layout.unpack(arrays, "(server)", np.float64))
        shared, first = self._server.weights, self._server.weights_for(None)
        everybody = [member.id for member in self.roll.everybody()]
        personal = {}
        for agent in everybody:
            own = self._server.weights_for(agent)
            if np.array_equal(own, first):
                personal[agent] = first
            elif not np.array_equal(own, shared):
                personal[agent] = own
        return Showing(shared, personal, first, everybody)

    def _step(self, answers: Answers) -> int:
        """A step with as many reports as it can be taken with. Returns how many those are."""
        assert self._server is not None
        members = {member.id: member for member in self.roll.members.values()}
        while answers.reports or answers.goodbyes:
            try:
                reports = [answers.reports[agent] for agent in sorted(answers.reports)]
                absent = max(len(self.roll.still_in()) - len(reports), 0)
                self._server.step(reports, answers.goodbyes, absent, newcomers=True)
                break
            except RuleError:
                raise  # Nobody's report is to blame.
            except Error as error:
                # As the core's own loop does: an overflow is blamed on whoever moves farthest.
                farthest = max(answers.moves, key=lambda agent: answers.moves[agent])
                bad = members[farthest if error.agent is None else error.agent]
                log(WARNING, "fedstay: agent %s is skipped: %s", bad.name, error)
                answers.drop(bad, str(error))
        return len(answers.reports)

    def _refuse_wrapping(self, caller: object) -> None:
        """Refuses to be part of another strategy, as Flower's central differential privacy has it.

        Such a wrapper clips replies as if they were models, adds noise to what comes back, and
        accounts for a mean of clipped updates. The rules here take no mean: what they do depends on
        every agent's own loss and gradient, at weights that the server knows.
        """
        if isinstance(caller, Strategy) and caller is not self:
            raise Error(
                f"FedStay cannot be wrapped in {type(caller).__name__}: its rules compute with each "
                "agent's own loss and gradient, so clipping and noise around them would not be the "
                "mechanism that is accounted for. Use FedStay alone; docs/privacy.md says what noise "
                "there is"
            )

    def _refuse_a_loop_without_record(self) -> None:
        """Refuses what only the loop of `start` does, in loops that call the methods themselves."""
        given = {"out": self.out, "callbacks": self.callbacks, "worth": self.worth.methods}
        lost = [f"`{name}`" for name, value in given.items() if value]
        if lost:
            raise Error(
                f"configure_train was called by a loop other than FedStay.start, which alone has "
                f"{' and '.join(lost)}: call `strategy.start(...)`, or leave them out"
            )

    def _refuse_other_weights(self, arrays: ArrayRecord) -> None:
        """The server continues from its own weights, so nobody may hand in others between rounds."""
        layout = self._layout = self._layout or Layout(arrays)
        given = layout.unpack(arrays, "(server)", np.float64)
        if self._server is None:
            self._server = _core.Server(given, self.rule, self.step_size, policy=self.policy)
            return
        own = layout.unpack(layout.pack(self._server.weights), "(server)", np.float64)
        if not np.array_equal(own, given):
            raise Error(
                "configure_train was given other arrays than aggregate_train returned, by noise added "
                "in between for instance; FedStay continues from its own weights, so such a change would "
                "silently be lost. Hand in what aggregate_train returned"
            )

    def initialize_parameters(self, *_: Any, **__: Any) -> None:
        """What Flower's older workflows ask for first, secure aggregation's among them."""
        raise Error(
            "FedStay does not run in the older workflows of Flower, SecAggPlusWorkflow for instance: "
            "secure aggregation shows the server only the sum of all reports, and fedstay's rules work "
            "with each agent's own (docs/privacy.md). Call FedStay(...).start(grid, ...)"
        )

    configure_fit = initialize_parameters

    @staticmethod
    def _log_result(result: Result) -> None:
        """Logs how it ended: as a warning, unless it is what one hopes for."""
        log(INFO if result.is_good else WARNING, "fedstay: %r", result)
        for warning in result.warnings:
            log(WARNING, "fedstay: %s", warning)


def _run_id(grid: Grid) -> int:
    """The id of Flower's run: the grid knows it, or else the process that it is in."""
    run = getattr(grid, "run", None)
    if run is not None:
        return int(run.run_id)
    from flwr.supercore.task_identity import TaskIdentity

    return int(TaskIdentity.run_id)

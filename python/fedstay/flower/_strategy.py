"""The strategy: Flower's contract. What replies mean is in _replies.py."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from logging import INFO, WARNING
from pathlib import Path
from typing import Any, Literal

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Message, MessageType, MetricRecord
from flwr.common.logger import log
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Result as FlowerResult
from flwr.serverapp.strategy import Strategy

from .. import _core
from .._core import Error
from ..callbacks import Callback
from ..policies import PolicyLike, Preview, around, called, shows
from ..remote.asks import Asks
from ..remote.engine import Evaluation
from ..remote.folder import reopened
from ..remote.patience import Patience
from ..remote.settings import refuse_wrong
from ..remote.showing import Showing
from ..result import Result, from_outcome
from ..rules import FedAvg, RuleLike, usual_epsilon, weighs
from ..scale import Scale, kind_of
from ..worth import WorthLike, asked, refuse_unjudged, refuse_unknown
from ._contract import Contract
from ._courier import Courier
from ._draw import Draw
from ._engine import Engine
from ._judge import Central, EvaluateFn
from ._layout import Layout
from ._loop import Loop
from ._mail import Mail
from ._metrics import WEIGHT, Aggregation, Kept, MetricsAggregation, mean
from ._overrides import Asking, refuse_replaced
from ._replies import Reader, told_parameters
from ._roll import Roll
from ._sent import ARRAYS, CONFIG


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
        A report is rejected if it would move the model by more than this many times the
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
        It is then asked again after this many rounds, and at once when its node is back. Whenever it does
        not answer then, it is asked again after twice as many rounds as before, up to 16 times this.
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
        refuse_wrong(locals(), ("min_train_nodes", "min_available_nodes"))
        if min_evaluate_nodes < 0:
            raise Error(f"`min_evaluate_nodes` is {min_evaluate_nodes}, but must be 0 or more")
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
        policy = around(self.rule, policy)
        self.step_size, self.policy = step_size, policy
        #: Whether agents may be shown models of their own.
        self.previews = shows(policy)
        self.parameters = list(parameters) if parameters is not None else None
        self.seed, self.callbacks, self.on = seed, list(callbacks), on
        self.epsilon = epsilon if epsilon is not None else usual_epsilon(rule)
        self.out = Path(out) if out is not None else None
        #: Where the run is kept, once it has begun.
        self.folder: Path | None = None
        self.min_available_nodes, self.min_agents = min_available_nodes, min_agents
        self.on_few, self.wait, self.tries, self.grace = on_few, wait, tries, grace
        self.fraction_train, self.fraction_evaluate = fraction_train, fraction_evaluate
        self.min_train_nodes, self.min_evaluate_nodes = min_train_nodes, min_evaluate_nodes
        self.evaluate_every, self.evaluate_at_end = evaluate_every, evaluate_at_end
        self.evaluate_leavers = evaluate_leavers
        self.weighted_by_key = weighted_by_key
        self.arrayrecord_key, self.configrecord_key = arrayrecord_key, configrecord_key
        self.train_metrics_aggr_fn = train_metrics_aggr_fn
        self.evaluate_metrics_aggr_fn = evaluate_metrics_aggr_fn
        self.aggregation = Aggregation(
            weighted_by_key, loss_key, accuracy_key, train_metrics_aggr_fn, evaluate_metrics_aggr_fn
        )
        #: What clients sent along, by kind, round and name; also in client-metrics.jsonl.
        self.kept = Kept(weighted_by_key)
        #: The run as `fedstay.Result`, once it is over.
        self.result: Result | None = None
        self.roll = Roll(agents, max_silent, retry_every)
        self.reader = Reader(
            roll=self.roll,
            step_size=step_size,
            epsilon=self.epsilon,
            max_reach=max_reach,
            max_ratio=max_ratio,
            asks=Asks.of(self.rule),
            needing=str(called(policy) or kind_of(self.rule) or self.rule),
            expects_gradients=given,
            weighs=weighs(self.rule),
            weighted_by=weighted_by_key,
            keeps_replies=train_metrics_aggr_fn is not None,
        )
        self.mail = Mail(self.reader, arrayrecord_key, configrecord_key)
        self.worth = asked(worth)
        #: What the loop of `start` is at, while it runs; and what loops other than it remember.
        self._contract: Contract | None = None
        self._loop = Loop(self.rule, policy, self.previews, self.mail)
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
        evaluate_fn: EvaluateFn | None = None,
    ) -> FlowerResult:
        """Runs until the rule stops, nobody is left, or the rounds are over; resumes if there is
        something to resume in `out`. An agent has `timeout` seconds to answer."""
        if evaluate_fn is None:
            refuse_unjudged(
                self.worth, "`fedstay.Worth(methods, judge=…)`, or `start(…, evaluate_fn=…)`"
            )
        self.folder = self.kept.folder = self._choose_folder(grid)
        self.summary()
        if not self.roll.only_known_nodes():
            log(WARNING, "fedstay: names are not bound to nodes: while an agent's node is away, another "
                "node can answer under its name; with authenticated SuperNodes give agents={name: node "
                "id}")  # fmt: skip
        contract = Contract(self, FedStay, self.mail, grid, train_config, evaluate_config)
        engine = self._gather_with(contract, grid, timeout, num_rounds, evaluate_fn)
        self._contract = contract
        try:
            self.result = self._driven(engine, initial_arrays)
        finally:
            self._contract = None
        self._log_result(self.result)
        return engine.flower

    def _gather_with(
        self,
        contract: Contract,
        grid: Grid,
        timeout: float,
        rounds: int,
        evaluate_fn: EvaluateFn | None = None,
    ) -> Engine:
        """What gathers the rounds over a grid."""
        return Engine(
            roll=self.roll,
            reader=self.reader,
            patience=self.patience(timeout),
            evaluation=self._evaluation(),
            rounds=rounds,
            hides=self.previews,
            courier=Courier(grid, self.min_available_nodes),
            contract=contract,
            mail=self.mail,
            draw=self._draws("train"),
            central=Central(evaluate_fn, self.worth.judge, self.aggregation.loss_key),
            aggregation=self.aggregation,
            kept=self.kept,
            scale=Scale(self.rule, self.policy),
            callbacks=self.callbacks,
        )

    def _driven(self, engine: Engine, arrays: ArrayRecord) -> Result:
        resume = self.folder is not None and (self.folder / "config.toml").exists()
        if resume:
            log(INFO, "fedstay: continuing the run in %s", self.folder)
        layout = self.reader.layout = self._tell_apart(arrays, engine, resume)
        start = layout.unpack(arrays, "(server)", np.float64)
        settings = {"flower": engine.settings(**self._settings(layout))}
        kept = {"out": self.folder, "resume": resume}
        outcome = engine.drive(self, layout, start, self.worth, settings, **kept)
        engine.flower.arrays = layout.pack(outcome.weights)
        return from_outcome(outcome, self.folder, layout.tensors(), layout.rest(outcome.weights))

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """The messages of a round: to everybody connected who has not left and is not set aside.

        `start` calls it for every exchange, twice in some rounds; a subclass may change `config`, or leave
        messages out. It sees the same `config` at every call of a round, and in the next round what it
        made of it.
        """
        asking = self._contract.asking if self._contract is not None else None
        if asking is not None:
            return self.mail.messages(MessageType.TRAIN, server_round, asking, config)
        self._refuse_wrapping(sys._getframe(1).f_locals.get("self"))
        self._refuse_a_loop_without_record()
        nodes = self.roll.to_ask(server_round, grid.get_node_ids())
        return self._loop.configure_train(server_round, arrays, config, nodes)

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """One step from one round's replies, for loops other than `start`: no waiting, no folder.

        `start` calls it once the rule has taken the step, and it says what has come of it; a subclass may
        look at that, and return other metrics.
        """
        stepped = self._contract.stepped if self._contract is not None else None
        if stepped is None:
            return self._loop.aggregate_train(server_round, replies)
        if [id(r) for r in replies] != [id(r) for r in stepped.replies]:
            raise Error(
                f"{type(self).__name__}.aggregate_train hands on other replies than it was given; the "
                "step was taken with all that are usable. `agents=` says who may take part"
            )
        return stepped.arrays, stepped.metrics

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Messages to every agent still in and, with `evaluate_leavers`, to those that left. While a
        policy hides the model from somebody, every agent evaluates what it is shown, and agents that
        left are shown nothing."""
        showing = self._showing(arrays)
        wanted = {member.node for member in self._evaluation().asked(self.roll, showing)}
        nodes = [node for node in sorted(grid.get_node_ids()) if node in wanted]
        asking = Asking(self._draws("evaluate").of(server_round, nodes), showing)
        return self.mail.messages(MessageType.EVALUATE, server_round, asking, config)

    def aggregate_evaluate(
        self, server_round: int, replies: Iterable[Message]
    ) -> MetricRecord | None:
        """The mean of what the agents reported, or what `evaluate_metrics_aggr_fn` makes of it."""
        evaluated = self._contract.evaluated if self._contract is not None else None
        if evaluated is not None and [id(r) for r in replies] == [id(r) for r in evaluated[0]]:
            return evaluated[1]
        keys = self.aggregation.loss_key, self.aggregation.accuracy_key
        told, numbers, usable = self.reader.evaluations(replies, self.mail.addresses(), *keys)
        means, _ = mean(numbers, self.aggregation.weighted_by)
        return self.aggregation.evaluated(told, means, usable)

    def summary(self) -> None:
        """Logs what this strategy does."""
        self._refuse_wrapping(sys._getframe(1).f_locals.get("self"))
        kept = self.folder if self.folder is not None else "nowhere (give `out` to keep it)"
        around = f", policy {called(self.policy)}" if self.policy is not None else ""
        rule = kind_of(self.rule) or self.rule
        log(INFO, "fedstay: rule %s%s, step size %g", rule, around, self.step_size)
        if self.reader.weighs:
            log(INFO, "fedstay: reports are weighed by `%s`", self.reader.weighted_by)
        log(INFO, "fedstay: a round needs %d reports; the run is kept in %s", self.min_agents, kept)

    def patience(self, timeout: float) -> Patience:
        """How long agents are waited for, and how many."""
        return Patience(timeout, self.min_agents, self.grace, self.on_few, self.wait, self.tries)

    def _evaluation(self) -> Evaluation:
        return Evaluation(self.evaluate_every, self.evaluate_at_end, self.evaluate_leavers)

    def _draws(self, kind: Literal["train", "evaluate"]) -> Draw:
        if kind == "train":
            least = max(self.min_train_nodes, self.min_agents)
            return Draw(self.roll, self.fraction_train, least, str(self.seed))
        least = max(self.min_evaluate_nodes, 1) if self.fraction_evaluate > 0.0 else 0
        return Draw(self.roll, self.fraction_evaluate, least, f"{self.seed}/evaluate")

    # -- the run --------------------------------------------------------------------------------

    def _settings(self, layout: Layout) -> dict[str, Any]:
        """What config.toml says of Flower alone."""
        settings: dict[str, Any] = {}
        if self.fraction_train < 1.0:
            settings |= {"fraction_train": self.fraction_train, "seed": self.seed}
        if layout.buffers or layout.tied:
            settings["parameters"] = layout.keys
            if layout.tied:
                settings["tied"] = layout.tied
        return settings

    def _showing(self, arrays: ArrayRecord) -> Showing:
        """What everybody is shown now."""
        now = self._contract.showing if self._contract is not None else None
        return now if now is not None else self._loop.shown(arrays)

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
        layout = self.reader.layout = Layout(arrays)
        told = told_parameters(engine.ask_early(arrays, layout), arrays)
        if told is not None:
            return Layout(arrays, *told)
        if layout.guessed():
            log(WARNING, "fedstay: %s are taken for buffers because of their names, and averaged outside "
                "the rule: no agent says what its parameters are. Give `parameters=`",
                ", ".join(layout.guessed()[:3]))  # fmt: skip
        return layout

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

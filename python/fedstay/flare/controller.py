"""The controller: FLARE's contract. What answers mean is in _replies.py.

A job names the class by its path, `fedstay.flare.controller.FedStay`.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from nvflare.app_common.abstract.fl_model import FLModel, ParamsType
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.workflows.model_controller import ModelController

from .. import _core
from .._core import Error
from ..policies import around, called, shows
from ..remote.asks import Asks
from ..remote.engine import Evaluation
from ..remote.folder import reopened
from ..remote.patience import Deadline, Patience
from ..remote.settings import refuse_wrong
from ..result import Result, from_outcome
from ..rules import Rule, RuleLike, usual_epsilon
from ..scale import kind_of
from ..worth import Worth, WorthLike, asked, refuse_unjudged, refuse_unknown, telling
from ._engine import Engine
from ._exchange import Courier, Exchange
from ._layout import Layout
from ._replies import Reader
from ._roll import Roll


class FedStay(ModelController):  # type: ignore[misc]
    """A FLARE controller under which sites may leave, and rules that keep them.

    Parameters
    ----------
    rule : Rule, str or dict
        How reports become a step: `fedstay.AdaGd()`, "fedavg", …
    step_size : float
        The server's step size. For sites that take several local steps, the sum of their sizes.
    rounds : int
        The most rounds there are; a rule may stop before.
    weights : dict of nested lists, optional
        Where training starts, array by array; without it the job's persistor has the model.
    dtype : "float64" or "float32"
        The numbers of `weights`.
    epsilon : float, optional
        The loss at which an agent leaves, sent to sites that have no `epsilon` of their own; the
        rule's if not given.
    policy : str, dict or a list of them, optional
        What to do around the rule: "early-stop", "keep-best", "guard", "preview".
    out : path, optional
        The run's folder on the server, an absolute path, as `fedstay run` writes it, with a checkpoint
        after every round. If the folder holds a run that was cut off, it continues with the next round.
        Without it the run is in the job's own folder, under "fedstay", and cannot be continued.
    agents : list of names, optional
        Who may take part, in the order of their numbers; all sites of the job, if not given.
    timeout : float
        How many seconds a site has to answer.
    min_agents : int
        The number of reports that a round needs.
    grace : float, optional
        Once so many have reported, the others have this many seconds more; all of `timeout`, if not
        given. With it, who takes part in a round is a matter of time.
    on_few : "wait" or "stop"
        What to do with fewer: ask the missing ones again after `wait` seconds, at most `tries` times,
        or end the run at once. It ends as "too-few" in any case, with a verdict; one that has waited is
        continued by the next job with the same `out`.
    max_silent : int
        After this many rounds without a usable answer an agent is set aside.
    retry_every : int
        It is then asked again after this many rounds, and at once when it connects again. Whenever it does
        not answer then, it is asked again after twice as many rounds as before, up to 16 times this.
    evaluate_every : int
        After how many rounds every agent still in evaluates what it is shown; 0 for never.
    evaluate_at_end : bool
        Whether they evaluate what is delivered.
    evaluate_leavers : bool
        Whether agents that left evaluate too: for experiments whose agents are all yours.
    worth : Worth or list of str, optional
        The scores that say what every agent gives and gets: `fedstay.Worth`.
    judge : object or str, optional
        Who tells the loss of a model on rows that nobody trains on, for scores that need it: an object
        of a class of your own, which FLARE makes on the server as it makes every component, or the id of
        a component. It has `loss(weights)` or `loss_and_grad(weights)` of one vector, or is called with
        the arrays by name.
    max_reach, max_ratio : float
        How large a report may be before it is rejected (docs/python.md).
    on : str
        What is trained, in a word, for titles.
    persistor_id : str, optional
        The component that has the first model and is given the last; "persistor" unless there are
        `weights`.
    task_check_period : float
        How often FLARE looks at its tasks, in seconds.
    """

    # FLARE makes a job's configuration from the attributes that are named like the parameters.
    def __init__(
        self,
        rule: RuleLike = "retain",
        *,
        step_size: float,
        rounds: int,
        weights: Mapping[str, Any] | None = None,
        dtype: Literal["float64", "float32"] = "float64",
        epsilon: float | None = None,
        policy: str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]] | None = None,
        out: str | None = None,
        agents: Sequence[str] | None = None,
        timeout: float = 600.0,
        min_agents: int = 1,
        grace: float | None = None,
        on_few: Literal["wait", "stop"] = "wait",
        wait: float = 10.0,
        tries: int = 30,
        max_silent: int = 3,
        retry_every: int = 5,
        evaluate_every: int = 0,
        evaluate_at_end: bool = True,
        evaluate_leavers: bool = False,
        worth: WorthLike | None = None,
        judge: Any = None,
        max_reach: float = 1000.0,
        max_ratio: float = 1e6,
        on: str = "flare",
        persistor_id: str | None = None,
        task_check_period: float = 0.2,
    ) -> None:
        if persistor_id is None:
            persistor_id = "" if weights is not None else AppConstants.DEFAULT_PERSISTOR_ID
        # Which errors of sites matter is for the engine to say, so FLARE ignores them.
        super().__init__(
            persistor_id=persistor_id, ignore_result_error=True, task_check_period=task_check_period
        )
        self.persistor_id, self.task_check_period = persistor_id, task_check_period
        usual = epsilon if epsilon is not None else usual_epsilon(rule)
        self.rule: Any = rule.to_dict() if isinstance(rule, Rule) else rule
        self.step_size, self.rounds, self.epsilon = step_size, rounds, usual
        self.weights, self.dtype = _lists(weights), dtype
        under = around(self.rule, policy)
        self.policy = dict(under) if isinstance(under, Mapping) else under
        self.out = str(out) if out is not None else None
        self.agents = list(agents) if agents is not None else None
        self.timeout, self.min_agents, self.grace = timeout, min_agents, grace
        self.on_few, self.wait, self.tries = on_few, wait, tries
        self.max_silent, self.retry_every = max_silent, retry_every
        self.evaluate_every, self.evaluate_at_end = evaluate_every, evaluate_at_end
        self.evaluate_leavers, self.on = evaluate_leavers, on
        self.max_reach, self.max_ratio = max_reach, max_ratio
        scores = asked(worth)
        self.worth = list(scores.methods) or None
        self.judge = judge if judge is not None else scores.judge
        #: The run as `fedstay.Result`, once it is over.
        self.result: Result | None = None
        self._refuse_wrong_settings()

    # -- FLARE's contract -----------------------------------------------------------------------

    def run(self) -> None:
        """Runs until the rule stops, nobody is left, or the rounds are over; resumes if there is
        something to resume in `out`."""
        start, scores = self._start(), self._scores()
        engine = self._gather_with(self, start, scores.judge)
        layout = engine.layout
        out = Path(self.out) if self.out is not None else Path(self.get_run_dir()) / "fedstay"
        reopened(out)
        resume = (out / "config.toml").exists()
        self.log(f"{'continuing' if resume else 'keeping'} the run in {out}")
        begins, settings = layout.unpack(start, np.float64), {"flare": engine.settings()}
        outcome = engine.drive(self, layout, begins, scores, settings, out=out, resume=resume)
        self.result = from_outcome(outcome, out)
        self.log(repr(self.result), warn=not self.result.is_good)
        for warning in self.result.warnings:
            self.log(warning, warn=True)
        if self.persistor is not None:
            params = layout.pack(outcome.weights)
            self.save_model(FLModel(params_type=ParamsType.FULL, params=params))

    def _gather_with(self, courier: Courier, start: Mapping[str, Any], judge: Any = None) -> Engine:
        """What gathers the rounds, over FLARE or whatever carries messages."""
        layout = Layout(start)
        reader = Reader(
            layout=layout,
            step_size=self.step_size,
            epsilon=self.epsilon,
            max_reach=self.max_reach,
            max_ratio=self.max_ratio,
            asks=Asks.of(self.rule),
            needing=str(called(self.policy) or kind_of(self.rule) or self.rule),
        )
        few = self.min_agents, self.grace, self.on_few, self.wait, self.tries
        return Engine(
            roll=Roll(self.agents, self.max_silent, self.retry_every),
            reader=reader,
            patience=Patience(self.timeout, *few),
            evaluation=Evaluation(self.evaluate_every, self.evaluate_at_end, self.evaluate_leavers),
            rounds=self.rounds,
            hides=shows(self.policy),
            courier=courier,
            layout=layout,
            judges=judge,
        )

    def add_to_fed_job(self, job: Any, ctx: Any, **kwargs: Any) -> None:
        """Puts the controller into a job. FLARE would copy parts of fedstay into it as custom code;
        the server has fedstay installed."""
        super().add_to_fed_job(job, ctx, **kwargs)
        job.set_app_packages([*job.job.app_packages, "fedstay"])

    def _process_result(self, client_task: Any, fl_ctx: Any) -> None:
        """FLARE has a result, or an error in its place; the exchange hears of both.

        FLARE drops a result that it cannot read, or that says it is an error, with a line in the log
        and no word to the workflow, which would then wait for nothing until the time is up.
        """
        callback = client_task.task.get_prop(AppConstants.TASK_PROP_CALLBACK)
        exchange, code = getattr(callback, "__self__", None), "?"
        try:
            code = str(client_task.result.get_return_code() or "OK")
            super()._process_result(client_task, fl_ctx)
        finally:
            if isinstance(exchange, Exchange):
                why = "its result could not be read" if code == "OK" else f"its task failed: {code}"
                exchange.settle(client_task.client.name, why)

    # -- what the engine needs of FLARE -----------------------------------------------------------

    def connected(self) -> list[str]:
        """The sites of the job that FLARE does not hold for dead."""
        names = [client.name for client in self.engine.get_clients()]
        return [name for name in names if not self.get_client_disconnect_time(name)]

    def exchange(
        self, task: str, messages: Mapping[str, FLModel], deadline: Deadline
    ) -> tuple[dict[str, FLModel], dict[str, str]]:
        """Sends every site its message: one task for all that get the same, else one for each."""
        exchange = Exchange(set(messages))
        groups: dict[int, tuple[FLModel, list[str]]] = {}
        for name, message in messages.items():
            groups.setdefault(id(message), (message, []))[1].append(name)
        try:
            for message, names in groups.values():
                self.send_model(
                    task,
                    data=message,
                    targets=names,
                    # The exchange ends the task; this is only for a server that forgets to.
                    timeout=math.ceil(self.timeout) + 60,
                    callback=exchange.take,
                )
            exchange.wait(deadline, self._is_useless)
        finally:
            self.cancel_all_tasks()
        if self.abort_signal.triggered:
            raise Error(
                "the job was aborted; submit it again, with the same `out`, to continue the run"
            )
        return exchange.result()

    def _is_useless(self, waiting: set[str]) -> bool:
        """Whether nobody can answer any more: the job is aborted, or all of them are gone."""
        gone = all(self.get_client_disconnect_time(name) for name in waiting)
        return bool(self.abort_signal.triggered) or gone

    def log(self, text: str, *, warn: bool = False) -> None:
        """Writes a line to the job's log."""
        (self.warning if warn else self.info)(f"fedstay: {text}")

    # -- settings ---------------------------------------------------------------------------------

    def _start(self) -> Mapping[str, Any]:
        """Where training starts."""
        if self.weights is not None:
            return {
                name: np.asarray(array, dtype=self.dtype) for name, array in self.weights.items()
            }
        model = self.load_model()
        return model.params if model is not None else {}

    def _scores(self) -> Worth:
        """What agents are worth: the scores, and who judges."""
        judge = self.judge
        if isinstance(judge, str):
            judge = self.engine.get_component(judge)
            if judge is None:
                raise Error(
                    f'`judge` is "{self.judge}", and the job has no component of that id on the server: '
                    f'`job.to_server(…, id="{self.judge}")`'
                )
        return Worth(self.worth or (), judge)

    def _refuse_wrong_settings(self) -> None:
        """Says what is wrong when the job is made, not after the first round on another machine."""
        refuse_wrong(vars(self), ("rounds",))
        if self.dtype not in ("float64", "float32"):
            raise Error(f'`dtype` is "{self.dtype}", but must be "float64" or "float32"')
        if self.out is not None and not Path(self.out).is_absolute():
            raise Error(
                f"`out` is {self.out}, but must be an absolute path: FLARE's server works in folders "
                "of its own, which do not outlive a job"
            )
        if self.agents is not None and len(set(self.agents)) != len(self.agents):
            raise Error("`agents` names a site twice")
        _core.refuse_loads(self.rule, "agents behind FLARE")
        scores = Worth(self.worth or (), self.judge)
        refuse_unknown(scores)
        refuse_unjudged(scores, "`judge=`, an object with `loss(weights)`")
        if inspect.isroutine(self.judge) or inspect.isclass(self.judge):
            raise Error(
                "`judge` is a function or a class, and FLARE writes a job as JSON: give an object of a class "
                "of your own, with `loss(weights)`, or the id of a component of the job"
            )
        if not isinstance(self.judge, str):
            telling(self.judge)
        _core.Server([0.0], self.rule, self.step_size, policy=self.policy)
        if self.weights is not None:
            Layout(self._start())


def _lists(weights: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Arrays as lists, because FLARE writes a job as JSON; float64 survives that exactly."""
    if weights is None:
        return None
    return {name: np.asarray(array).tolist() for name, array in weights.items()}

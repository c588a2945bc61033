"""The strategy: Flower's contract, and what replies mean."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
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
from .._core import Error, Report
from ..result import Result, from_outcome
from ..rules import AdaGd, usual_epsilon
from ..simulation import RuleLike
from ._engine import Engine
from ._layout import RECORD, Layout
from ._replies import Answers, number
from ._roll import Member, Roll


class FedStay(Strategy):
    """A Flower strategy under which agents may leave, and rules that keep them.

    Parameters
    ----------
    rule : Rule, str or dict
        How reports become a step.
    step_size : float
        The server's step size. For agents that take several local steps, the sum of their sizes.
    epsilon : float, optional
        The loss at which an agent leaves, sent to agents that have no `epsilon` of their own; the
        rule's if not given.
    policy : str or dict, optional
        What to do around the rule: "early-stop", "keep-best", "guard".
    out : path, optional
        The run's folder, as `fedstay run` writes it, with a checkpoint after every round. If the
        folder holds a run that was cut off, it goes on with the next round.
    agents : list of names, or mapping from names to node ids, optional
        Who may take part; anybody, if not given. With node ids (SuperNodes that authenticate keep
        theirs) a name cannot move to another node.
    min_available_nodes : int
        Wait for so many nodes before the first round.
    min_agents : int
        A round needs so many reports.
    on_few : "wait" or "stop"
        What to do with fewer: ask the missing ones again after `wait` seconds, at most `tries` times,
        or end the run as "too-few".
    max_silent : int
        After so many rounds without a usable answer an agent is set aside.
    retry_every : int
        It is then asked again every so many rounds, and at once when its node has been away.
    evaluate_every : int
        Every how many rounds everybody still in evaluates the model (an `@app.evaluate()` whose
        metrics have `loss_key`, and `accuracy_key` if you like); 0 for never.
    evaluate_at_end : bool
        Whether they evaluate what is delivered.
    evaluate_leavers : bool
        Whether agents that left evaluate too: for experiments whose agents are all yours.
    on : str
        What is trained, in a word, for titles.
    """

    def __init__(
        self,
        rule: RuleLike | None = None,
        *,
        step_size: float,
        epsilon: float | None = None,
        policy: str | Mapping[str, Any] | None = None,
        out: str | Path | None = None,
        agents: Sequence[str] | Mapping[str, int | None] | None = None,
        min_available_nodes: int = 1,
        min_agents: int = 1,
        on_few: Literal["wait", "stop"] = "wait",
        wait: float = 10.0,
        tries: int = 30,
        max_silent: int = 3,
        retry_every: int = 5,
        evaluate_every: int = 0,
        evaluate_at_end: bool = True,
        evaluate_leavers: bool = False,
        loss_key: str = "eval_loss",
        accuracy_key: str = "eval_acc",
        on: str = "flower",
    ) -> None:
        if on_few not in ("wait", "stop"):
            raise Error(f'`on_few` is "{on_few}", but must be "wait" or "stop"')
        for name, value in (("min_agents", min_agents), ("max_silent", max_silent),
                            ("retry_every", retry_every), ("tries", tries)):  # fmt: skip
            if value < 1:
                raise Error(f"`{name}` is {value}, but must be 1 or more")
        self.rule: RuleLike = rule if rule is not None else AdaGd()
        self.step_size, self.policy = step_size, policy
        self.epsilon = epsilon if epsilon is not None else usual_epsilon(rule)
        self.out = Path(out) if out is not None else None
        self.min_available_nodes, self.min_agents = min_available_nodes, min_agents
        self.on_few, self.wait, self.tries = on_few, wait, tries
        self.evaluate_every, self.evaluate_at_end = evaluate_every, evaluate_at_end
        self.evaluate_leavers = evaluate_leavers
        self.loss_key, self.accuracy_key, self.on = loss_key, accuracy_key, on
        self.roll = Roll(agents, max_silent, retry_every)
        #: The run as `fedstay.Result`, once it is over.
        self.result: Result | None = None
        self._layout: Layout | None = None
        self._server: _core.Server | None = None
        self._configured: list[Message] = []
        # Refuses what is wrong now, and not after the first round.
        _core.Server([0.0], self.rule, step_size, policy=policy)

    # -- Flower's contract ----------------------------------------------------------------------

    def start(
        self,
        grid: Grid,
        initial_arrays: ArrayRecord,
        num_rounds: int = 3,
        timeout: float = 3600,
        train_config: ConfigRecord | None = None,
        evaluate_config: ConfigRecord | None = None,
        evaluate_fn: Callable[[int, ArrayRecord], MetricRecord | None] | None = None,
    ) -> FlowerResult:
        """Runs until the rule stops, nobody is left, or the rounds are over; resumes if there is
        something to resume in `out`. An agent has `timeout` seconds to answer."""
        self._layout = Layout(initial_arrays)
        self.summary()
        engine = Engine(
            self,
            grid,
            timeout,
            train_config if train_config is not None else ConfigRecord(),
            evaluate_config if evaluate_config is not None else ConfigRecord(),
            evaluate_fn,
        )
        resume = self.out is not None and (self.out / "config.toml").exists()
        if resume:
            log(INFO, "fedstay: going on with the run in %s", self.out)
        outcome = _core.drive(
            engine,
            self._layout.unpack(initial_arrays, "(server)", np.float64),
            self.rule,
            step_size=self.step_size,
            rounds=num_rounds,
            policy=self.policy,
            on=self.on,
            out=self.out,
            resume=resume,
            seconds_between_checkpoints=0.0,
            settings=json.dumps(self._settings()),
            layout=self._layout.tensors(),
        )
        self.result = from_outcome(outcome, self.out)
        log(INFO, "fedstay: %r", self.result)
        engine.flower.arrays = self._layout.pack(outcome.weights)
        return engine.flower

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """The messages of a round: to everybody connected who has not left and is not set aside."""
        nodes = self.roll.to_ask(server_round, grid.get_node_ids())
        return self._messages(nodes, server_round, arrays, config, MessageType.TRAIN)

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """One step from one round's replies, for loops other than `start`: no waiting, no folder."""
        if self._layout is None or self._server is None:
            raise Error("aggregate_train: `configure_train` comes first")
        answers = Answers()
        weights = self._server.weights
        sent = self._sent()
        self._read(replies, sent, list(sent.values()), weights, server_round, answers)
        if not answers.reports and not answers.goodbyes:
            return None, None
        reports = [answers.reports[agent] for agent in sorted(answers.reports)]
        self._server.step(reports, answers.goodbyes)
        metrics: dict[str, Any] = {"left": len(answers.goodbyes), "reported": len(reports)}
        return self._layout.pack(self._server.weights), MetricRecord(metrics)

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """To everybody still in; to those who left as well, with `evaluate_leavers`."""
        members = self.roll.members.values() if self.evaluate_leavers else self.roll.still_in()
        wanted = {member.node for member in members if member.aside is None}
        nodes = [node for node in sorted(grid.get_node_ids()) if node in wanted]
        return self._messages(nodes, server_round, arrays, config, MessageType.EVALUATE)

    def aggregate_evaluate(
        self, server_round: int, replies: Iterable[Message]
    ) -> MetricRecord | None:
        """The mean of what the agents told."""
        told = list(self._evaluations(replies, self._sent()).values())
        if not told:
            return None
        accuracy = [accuracy for _, accuracy in told if accuracy is not None]
        mean: dict[str, Any] = {self.loss_key: sum(loss for loss, _ in told) / len(told)}
        if accuracy:
            mean[self.accuracy_key] = sum(accuracy) / len(accuracy)
        return MetricRecord(mean)

    def summary(self) -> None:
        """Logs what this strategy does."""
        kept = self.out if self.out is not None else "nowhere (give `out` to keep and resume it)"
        log(INFO, "fedstay: rule %s, step size %g", self.rule, self.step_size)
        log(INFO, "fedstay: a round needs %d reports; the run is kept in %s", self.min_agents, kept)

    # -- messages -------------------------------------------------------------------------------

    def _settings(self) -> dict[str, Any]:
        settings: dict[str, Any] = {
            "agents": self.roll.settings(),
            "min_agents": self.min_agents,
            "on_few": self.on_few,
        }
        if self.epsilon is not None:
            settings["epsilon"] = self.epsilon
        return {"flower": settings}

    def _messages(
        self, nodes: list[int], round: int, arrays: ArrayRecord, config: ConfigRecord, kind: str
    ) -> list[Message]:
        if self._layout is None:
            self._layout = Layout(arrays)
        if self._server is None:
            start = self._layout.unpack(arrays, "(server)", np.float64)
            self._server = _core.Server(start, self.rule, self.step_size, policy=self.policy)
        config = ConfigRecord(dict(config))
        config["server-round"] = round
        config["step-size"] = self.step_size
        if self.epsilon is not None:
            config["epsilon"] = float(self.epsilon)
        content = RecordDict({"arrays": arrays, "config": config})
        self._configured = [Message(content, node, kind, group_id=str(round)) for node in nodes]
        return self._configured

    def _sent(self) -> dict[str, int]:
        """Which node each message went to; a message has its id once it was pushed."""
        return {m.metadata.message_id: m.metadata.dst_node_id for m in self._configured}

    def _read(
        self,
        replies: Iterable[Message],
        sent: Mapping[str, int],
        listed: Iterable[int],
        weights: NDArray[np.float64],
        round: int,
        answers: Answers,
    ) -> None:
        """Sorts replies into reports, goodbyes and faults. Their order does not matter."""
        contents: dict[int, RecordDict] = {}
        claims: dict[int, str] = {}
        for reply in replies:
            node = sent.get(reply.metadata.reply_to_message_id)
            if node is None:
                continue
            if reply.has_error():
                reason = (reply.error.reason or "").strip().splitlines()
                self._blame(
                    node, f"error {reply.error.code}: {reason[-1] if reason else '?'}", answers
                )
                continue
            said = reply.content.config_records.get(RECORD)
            if said is None or not isinstance(said.get("agent"), str):
                why = f"its reply has no `{RECORD}` record with an `agent`; use decide_and_report or agent_mod"
                self._blame(node, why, answers)
                continue
            contents[node], claims[node] = reply.content, str(said["agent"])
        for node, member in self.roll.admit(claims, listed).items():
            if isinstance(member, Error):
                self._blame(node, str(member), answers)
            else:
                self._hear(member, contents[node], weights, round, answers)

    def _hear(
        self,
        member: Member,
        content: RecordDict,
        weights: NDArray[np.float64],
        round: int,
        answers: Answers,
    ) -> None:
        if member.left is not None:
            log(
                INFO,
                "fedstay: agent %s left in round %d and is not asked again",
                member.name,
                member.left,
            )
            return
        said = content.config_records[RECORD]
        try:
            if said.get("epsilon") is not None:
                member.epsilon = number(said, "epsilon", member.name)
            if said.get("leaves") is True:
                member.left = round
                answers.goodbyes.append(member.id)
                log(INFO, "fedstay: round %d: agent %s leaves", round, member.name)
            else:
                answers.reports[member.id] = self._report(member, content, weights)
                if said.get("loss") is not None:
                    member.loss, member.loss_round = number(said, "loss", member.name), round
        # Whatever an agent sends, it can only lose its own place in this round.
        except Exception as error:  # noqa: BLE001
            why = str(error) if isinstance(error, Error) else f"{type(error).__name__}: {error}"
            for prefix in (f"agent {member.id}: ", f"agent {member.name}: "):
                why = why.removeprefix(prefix)
            answers.faults[member.name] = why
            return
        answers.faults.pop(member.name, None)
        if self.roll.answered(member):
            log(INFO, "fedstay: round %d: agent %s is back", round, member.name)

    def _report(self, member: Member, content: RecordDict, weights: NDArray[np.float64]) -> Report:
        assert self._layout is not None
        said, who = content.config_records[RECORD], member.name
        arrays = content.array_records.get("arrays")
        if arrays is None:
            raise Error(f"agent {who}: its reply has no arrays")
        reach = number(said, "reach", who) if "reach" in said else None
        direction = self._layout.unpack(arrays, who)
        if said.get("kind") == "weights":
            if not (reach or self.step_size) > 0:
                raise Error(f"agent {who}: its reach is {reach}, but must be above zero")
            sent = self._layout.unpack(self._layout.pack(weights), who, np.float64)
            moved = sent - direction.astype(np.float64)
            direction = (moved / (reach or self.step_size)).astype(self._layout.dtype)
        gradient = content.array_records.get("gradient")
        numbers: dict[str, Any] = {
            name: number(said, name, who)
            for name in ("loss", "epsilon", "tau", "standard_error")
            if name in said
        }
        if "loss" in numbers and self.epsilon is not None:
            numbers.setdefault("epsilon", self.epsilon)
        made = Report(
            member.id,
            direction,
            gradient=self._layout.unpack(gradient, who) if gradient is not None else None,
            reach=reach,
            samples=max(int(number(said, "samples", who)), 1) if "samples" in said else 1,
            **numbers,
        )
        made.check(len(weights))
        return made

    def _blame(self, node: int, why: str, answers: Answers) -> None:
        """A node's fault is its agent's, where that is known."""
        member = self.roll.of_node(node)
        if member is None:
            log(WARNING, "fedstay: node %d: %s", node, why)
            answers.strangers[node] = why
        elif member.left is None and not answers.heard(member):
            answers.faults[member.name] = why.removeprefix(f"agent {member.name}: ")

    def _evaluations(
        self, replies: Iterable[Message], sent: Mapping[str, int]
    ) -> dict[int, tuple[float, float | None]]:
        told: dict[int, tuple[float, float | None]] = {}
        for reply in replies:
            member = self.roll.of_node(sent.get(reply.metadata.reply_to_message_id, -1))
            if member is None or reply.has_error():
                continue
            metrics: dict[str, Any] = {}
            for record in reply.content.metric_records.values():
                metrics.update(record)
            loss, accuracy = metrics.get(self.loss_key), metrics.get(self.accuracy_key)
            if isinstance(loss, (int, float)) and np.isfinite(loss):
                told[member.id] = (float(loss), None if accuracy is None else float(accuracy))
        return told

"""A site's side: decide, then report or say goodbye. For scripts that use FLARE's client API."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from nvflare.app_common.abstract.fl_model import FLModel, MetaKey, ParamsType

from .._core import Error, Rates
from ..asks import corrected, rates_of
from ..local import descended
from ..remote.agent import asked, echoed, participant, said, seed
from ..remote.asks import CORRECTS
from ..remote.door import reason
from ._layout import CORRECTION, GRADIENT, KEY, Layout


class Site:
    """One agent, over all rounds of a job: it remembers what its behaviour has to.

    epsilon : float, optional
        The loss at which it leaves; what the server proposes, if not given.
    behaviour : str or dict, optional
        How it decides ("threshold" if not given), as in TOML.
    memory : path, optional
        A file that keeps what it remembers, so that a job that is submitted again continues with it.
    """

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        behaviour: Any = None,
        memory: str | Path | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.behaviour = behaviour
        self._file = Path(memory) if memory is not None else None
        self._round = 0
        #: What the behaviour remembered before the round that it answered last.
        self._before: str | None = None
        self._now: str | None = None
        self._left: int | None = None
        self._told: Callable[[float], float] = float
        if self._file is not None and self._file.exists():
            self._recall(json.loads(self._file.read_text()))

    # -- deciding ---------------------------------------------------------------------------------

    def leaves(
        self,
        model: FLModel,
        loss: float,
        *,
        descended: Callable[[int, float], float] | None = None,
    ) -> bool:
        """Whether the agent leaves for good, given its loss at the weights it received.

        A round that is asked about again, because an answer was lost or the server was restarted, is
        decided again from what was remembered before it. `descended(steps, rate)` gives the loss after
        private steps, for behaviours that look ahead.
        """
        sent = self._sent(model)
        round = int(sent["round"])
        if self._left is not None and self._left < round:
            return True
        if round > self._round:
            self._before = self._now
        elif round < self._round:
            self._before = None  # Another run has begun.
        who = participant(self._target(sent), self.behaviour, self._before, "")
        step_size = float(sent["step_size"])
        answer = who.answer(loss=float(loss), round=round, step_size=step_size, descended=descended)
        self._round, self._now, self._told = round, who.save(), who.told
        self._left = round if answer == "leaves" else None
        self._keep()
        return answer == "leaves"

    # -- answering --------------------------------------------------------------------------------

    def goodbye(self, model: FLModel) -> FLModel:
        """The answer of an agent that leaves. It says that, and its target loss, and nothing else."""
        sent = self._sent(model)
        words = {"leaves": True, "epsilon": self._target(sent), **echoed(sent)}
        return _words(model, words, {"left": 1.0})

    def report(
        self,
        model: FLModel,
        *,
        loss: float,
        gradient: Mapping[str, Any] | None = None,
        weights: Mapping[str, Any] | None = None,
        reach: float | None = None,
        samples: int = 1,
        corrects: bool = False,
        rates: Rates | None = None,
    ) -> FLModel:
        """The answer of an agent that stays: its `gradient` at the weights it received, or the
        `weights` that it trained, or both.

        reach : the sum of the local step sizes; the server's step size unless given.
        corrects : whether every local step had `correction(model)` added to its gradient, for rules that
            correct (scaffold). A gradient alone is one step, and is corrected here.
        rates : how well the received weights serve its groups, for rules that ask (fairfed).
        """
        if gradient is None and weights is None:
            raise Error("a report has a `gradient`, or the `weights` that were trained, or both")
        sent = self._sent(model)
        told = {"loss": float(self._told(float(loss))), "epsilon": self._target(sent)}
        more: dict[str, Any] = {"samples": samples, "corrects": corrects, "rates": rates}
        words = said(sent, told, trained=weights is not None, reach=reach, **more)
        arrays = dict(weights) if weights is not None else {}
        if gradient is not None:
            slopes = _complete(gradient, model.params)
            words["gradient"] = weights is not None
            if weights is None and sent.get(CORRECTS):
                words |= {"gradient": True, "corrects": True}
                by = sent.get(CORRECTION, {})
                arrays = {n: slope + by[n] if n in by else slope for n, slope in slopes.items()}
            mark = GRADIENT if words["gradient"] else ""
            arrays |= {f"{mark}{name}": slope for name, slope in slopes.items()}
        return FLModel(
            # What is a difference already, FLARE sends as it is.
            params_type=ParamsType.DIFF if weights is None else ParamsType.FULL,
            params={name: _like(array, model.params) for name, array in arrays.items()},
            metrics={"loss": words["loss"]},
            current_round=model.current_round,
            meta={KEY: words},
        )

    def evaluation(self, model: FLModel, *, loss: float, accuracy: float | None = None) -> FLModel:
        """The answer to the task "evaluate"."""
        measured = {"loss": float(loss)}
        if accuracy is not None:
            measured["accuracy"] = float(accuracy)
        return _words(model, {"kind": "evaluation", **measured}, measured)

    def fault(self, model: FLModel, error: Exception) -> FLModel:
        """The answer of an agent that cannot answer: the server skips it in this round and asks again
        in the next."""
        return _words(model, {"fault": reason(error)}, {"fault": 1.0})

    @staticmethod
    def evaluates(model: FLModel) -> bool:
        """Whether the server asks how good the model is, and nothing else."""
        return bool(Site._sent(model).get("task") == "evaluate")

    @staticmethod
    def correction(model: FLModel) -> dict[str, Any] | None:
        """What to add to the gradient of every local step, array by array, under a rule that corrects
        them (scaffold): zeros for an agent that was not heard yet. None under every other rule."""
        sent = Site._sent(model)
        if not sent.get(CORRECTS):
            return None
        by = _complete(sent.get(CORRECTION, {}), model.params)
        return {name: _like(array, model.params) for name, array in by.items()}

    def answer(self, model: FLModel, agent: Any) -> FLModel:
        """The whole answer of anything with `loss_and_grad(weights)`, as `fedstay.simulate` takes it:
        one vector in, the loss and one vector out. If it also has `work(weights, seed=…)`, which
        returns the weights that it trained, it reports those beside its gradient. Under rules that ask
        for more it needs `corrected(weights, correction, seed=…)` or `rates(weights)`."""
        received = {name: _numpy(array) for name, array in model.params.items()}
        layout = Layout(received)
        weights = layout.unpack(received)
        if self.evaluates(model):
            ask = getattr(agent, "loss", None)
            loss = ask(weights) if callable(ask) else agent.loss_and_grad(weights)[0]
            accuracy = getattr(agent, "accuracy", None)
            share = float(accuracy(weights)) if callable(accuracy) else None
            return self.evaluation(model, loss=float(loss), accuracy=share)
        sent = self._sent(model)
        asks, lack = asked(sent, agent)
        if lack is not None:
            raise Error(lack)
        value, slope = agent.loss_and_grad(weights)
        if self.leaves(
            model,
            float(value),
            descended=lambda steps, rate: descended(agent, weights, steps, rate),
        ):
            return self.goodbye(model)
        flat: NDArray[Any] = np.asarray(slope).reshape(-1)
        if flat.size != layout.length:
            raise Error(
                f"its gradient has {flat.size} numbers where the model has {layout.length} weights"
            )
        name = str(model.meta.get(MetaKey.SITE_NAME, ""))
        # At the weights that it received, before it trains.
        rates = rates_of(agent, weights, name) if "rates" in asks else None
        draw, reach = seed(name, int(sent["round"])), None
        work = getattr(agent, "work", None)
        if "corrections" in asks:
            by = sent.get(CORRECTION)
            add = np.zeros_like(weights) if by is None else layout.unpack(by, weights.dtype)
            led = corrected(agent, weights.copy(), add, draw)
            trained, reach = (None, None) if led is None else led
        else:
            trained = work(weights.copy(), seed=draw) if callable(work) else None
        return self.report(
            model,
            loss=float(value),
            gradient=layout.pack(flat),
            weights=layout.pack(np.asarray(trained).reshape(-1)) if trained is not None else None,
            reach=reach,
            samples=int(getattr(agent, "samples", 1)),
            corrects="corrections" in asks,
            rates=rates,
        )

    # -- inside -----------------------------------------------------------------------------------

    @staticmethod
    def _sent(model: FLModel) -> Mapping[str, Any]:
        said = model.meta.get(KEY) if model is not None and model.meta else None
        if not isinstance(said, Mapping):
            raise Error(
                f"the server's message has no `{KEY}` in its meta; is fedstay.flare.FedStay the job's "
                "controller?"
            )
        return said

    def _target(self, said: Mapping[str, Any]) -> float:
        epsilon = self.epsilon if self.epsilon is not None else said.get("epsilon")
        if epsilon is None:
            raise Error(
                "this site has no `epsilon`, the loss at which it leaves; give it one here, or give one "
                "to the controller for all"
            )
        return float(epsilon)

    def _keep(self) -> None:
        if self._file is None:
            return
        state = {
            "round": self._round,
            "before": self._before,
            "now": self._now,
            "left": self._left,
        }
        partial = self._file.with_suffix(".tmp")
        partial.write_text(json.dumps(state))
        os.replace(partial, self._file)

    def _recall(self, state: Mapping[str, Any]) -> None:
        self._round, self._left = int(state["round"]), state["left"]
        self._before, self._now = state["before"], state["now"]


def _words(model: FLModel, said: Mapping[str, Any], metrics: Mapping[str, float]) -> FLModel:
    """An answer without arrays; FLARE wants metrics instead."""
    return FLModel(metrics=dict(metrics), current_round=model.current_round, meta={KEY: dict(said)})


def _numpy(array: Any) -> NDArray[Any]:
    """A NumPy array of what FLARE gave: one already, or a tensor of PyTorch."""
    if hasattr(array, "detach"):
        array = array.detach().cpu().numpy()
    return np.asarray(array)


def _complete(gradient: Mapping[str, Any], model: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """A gradient array for every array of floats of the model; zero for what is not trained."""
    unknown = [name for name in gradient if name not in model]
    if unknown:
        raise Error(f"the gradient has arrays that the model does not have: {unknown[:3]}")
    slopes = {}
    for name, array in model.items():
        own = _numpy(array)
        if own.dtype.kind == "f":
            slopes[name] = _numpy(gradient[name]) if name in gradient else np.zeros_like(own)
    return slopes


def _like(array: Any, model: Mapping[str, Any]) -> Any:
    """An array of the kind that the script was given: FLARE drops others without a word."""
    if any(hasattr(own, "detach") for own in model.values()) and not hasattr(array, "detach"):
        import torch

        return torch.from_numpy(np.ascontiguousarray(array))
    return array

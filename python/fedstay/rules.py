"""Rules: how a server turns the reports of a round into a step.

One class per rule, with the names and the defaults a configuration has; a test compares them with the
list of the core. Wherever a rule is expected, its name ("ada-gd") or a dict as in TOML
(`{"kind": "ada-gd", "delta": 0.02}`) will do as well, and so will an object of your own: see `CustomRule`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    from ._core import Round

__all__ = [
    "AdaGd",
    "Afl",
    "CustomRule",
    "FairFed",
    "FedAvg",
    "FedCe",
    "FedFv",
    "FedMgdaPlus",
    "Level",
    "MaxFl",
    "Mean",
    "Mifa",
    "MinibatchSgd",
    "MwFed",
    "PcGrad",
    "QFedAvg",
    "Retain",
    "Rule",
    "Scaffold",
    "Stay",
    "Step",
    "Uniform",
]


@dataclass(frozen=True, kw_only=True)
class Rule:
    """What all rules have in common.

    epsilon: the target loss of agents that bring none of their own. One that comes with a report, or
        with the agent, takes precedence over this one.

    >>> import fedstay
    >>> fedstay.QFedAvg(q=2.0).to_dict()
    {'kind': 'q-fedavg', 'q': 2.0, 'weigh': 'uniform', 'delta': 0.0}
    """

    kind: ClassVar[str]
    epsilon: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """The rule as a configuration has it: without epsilon, and without what is None."""
        given = {name: value for name, value in asdict(self).items() if value is not None}
        given.pop("epsilon", None)
        return {"kind": self.kind, **given}


class Step(NamedTuple):
    """What a rule of your own returns when it has more to say than the step itself."""

    #: What to add to the weights; None with `stop`, because a run that stops keeps its weights.
    step: Any
    #: Why the run ends here: everybody is content enough, or no step helps anybody.
    stop: Literal["settled", "stalled"] | None = None
    #: The agents that are about to leave, for the records; the first-order prediction unless given.
    about_to_leave: Sequence[int] | None = None


class CustomRule(Protocol):
    """A rule of your own: any object with `aggregate`, wherever a rule is expected.

    It may also have

    name : str, its name in headers, summaries and drawings; that of its class unless given.
    epsilon : float, the target loss of agents that bring none of their own.
    save() -> str and restore(text) : what it remembers between rounds. Without them a run is kept in
        its folder like any other, but cannot be resumed.

    The server works on a deep copy, taken afresh for every step: a step that fails leaves no trace in the
    rule, and the object that was given never changes, so that it can be used for the next run.

    >>> import fedstay
    >>> class Mean:
    ...     def aggregate(self, round):
    ...         return round.displacements.mean(axis=0)
    >>> server = fedstay.Server([0.0], Mean(), 0.1)
    >>> near = fedstay.Report(0, [1.0], loss=1.0, epsilon=0.1)
    >>> far = fedstay.Report(1, [3.0], loss=9.0, epsilon=0.1)
    >>> decision = server.step([near, far])
    >>> server.weights.tolist(), server.rule
    ([-0.2], 'Mean')
    """

    def aggregate(self, round: Round, /) -> Any:
        """The step: as many finite numbers as there are weights, in any shape; or a `Step`."""


#: A rule as an object, of the list or of your own, by name, or as a dict as in TOML.
RuleLike = Rule | CustomRule | str | Mapping[str, Any]


def usual_epsilon(rule: Any) -> float | None:
    """The target loss that a rule was given for agents that bring none."""
    epsilon: float | None = getattr(rule, "epsilon", None)
    return epsilon


def weighs(rule: Any) -> bool:
    """Whether a rule weighs reports by the samples behind them, as far as it says so."""
    said = rule.get("weigh") if isinstance(rule, Mapping) else getattr(rule, "weigh", None)
    return bool(said == "samples")


@dataclass(frozen=True, kw_only=True)
class FedAvg(Rule):
    """The mean of the agents' displacements; watches departures, does nothing about them.

    weigh: all agents count alike ("uniform"), or each by the samples behind its report ("samples").
    delta: widens the forecast of departures and changes no step.

    Reference: McMahan et al., AISTATS 2017.
    """

    kind: ClassVar[str] = "fedavg"
    weigh: Literal["uniform", "samples"] = "uniform"
    delta: float = 0.0


Mean = FedAvg


@dataclass(frozen=True, kw_only=True)
class MinibatchSgd(Rule):
    """The mean of gradients that are all taken at the received weights.

    weigh: all agents count alike ("uniform"), or each by the samples behind its report ("samples").
    delta: widens the forecast of departures and changes no step.

    Reference: Dekel et al., JMLR 2012.
    """

    kind: ClassVar[str] = "minibatch-sgd"
    weigh: Literal["uniform", "samples"] = "uniform"
    delta: float = 0.0


@dataclass(frozen=True, kw_only=True)
class AdaGd(Rule):
    """Predicts who is about to leave and moves only where their losses stay as they are.

    delta: the slack in the prediction. Larger: agents are held earlier and end farther from their
        target loss. The theorem wants 0 < delta <= epsilon.
    on_settled: what to do when everybody is about to leave: "stop", or "halve" the step size.
    projection: False is the control that shows what the projection itself does.
    margin: added to every agent's target loss in the prediction, against agents that leave early.
    horizon: also adds horizon times the squared length of the agent's gradient.

    Reference: Han, Patel, Shao, Wang, arXiv 2311.16459, Algorithm 2.
    """

    kind: ClassVar[str] = "ada-gd"
    delta: float = 0.02
    on_settled: Literal["stop", "halve"] = "stop"
    projection: bool = True
    margin: float = 0.0
    horizon: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Retain(Rule):
    """The shortest step to where all are nearly content that keeps each above its floor; then lands.

    delta: how far above its target loss every agent is kept. Larger: more room for misses, and agents
        end farther from their target loss.
    base: where to go where no floor is in the way: "level" (the shortest step after which everybody
        is predicted to be near) or "descent" (down the mean direction, by the step size).
    floors: False is the control without floors, for agents that never leave.
    trust: keep steps within a radius in which predictions held: "auto" (for float32 gradients),
        "region" (always) or "proof" (never: convex losses, exact gradients).
    landing: whether to bring everybody under their target loss at the end.
    margin: added to every agent's target loss for its floor, against agents that leave early.
    horizon: also adds horizon times the squared length of the agent's gradient.
    smoothness: a constant H such that every loss is H-smooth, which certifies the landing.
    convex: whether every loss is convex, so that reports that contradict each other prove that no
        model within a radius satisfies everybody (`within` in the summary).
    on_unrealizable: once that is proved, "stop" or go to the "least" level that is possible.
    bench: whether one agent may be left out of all constraints when nobody else can be served
        because of it. It may then leave.

    Reference: this project.
    """

    kind: ClassVar[str] = "retain"
    delta: float = 0.02
    base: Literal["level", "descent"] = "level"
    floors: bool = True
    trust: Literal["auto", "region", "proof"] = "auto"
    landing: bool = True
    margin: float = 0.0
    horizon: float = 0.0
    smoothness: float | None = None
    convex: bool | None = None
    on_unrealizable: Literal["stop", "least"] = "stop"
    bench: bool = True


@dataclass(frozen=True, kw_only=True)
class MwFed(Rule):
    """Multiplicative weights: agents that are not content count more.

    c: the factor for agents that are not content; 1 is the plain mean.
    variant: the weights are those of the answers, "weight", or set the samples too, "load".
    delta: widens the forecast of departures and changes no step.

    Reference: Blum, Haghtalab, Phillips, Shao, ICML 2021.
    """

    kind: ClassVar[str] = "mw-fed"
    c: float = 4.0
    variant: Literal["weight", "load"] = "weight"
    delta: float = 0.0


@dataclass(frozen=True, kw_only=True)
class MaxFl(Rule):
    """As many agents as possible under their requirement; favours those that are near it.

    reading: weigh by the objective's "gradient" or by the "sigmoid" itself.
    rho: the requirement of every agent; its own epsilon unless given.
    e: keeps the step short when hardly anybody is near. 0: always a weighted mean.
    delta: widens the forecast of departures and changes no step.

    Reference: Cho, Jhunjhunwala, Li, Smith, Joshi, TMLR 2024.
    """

    kind: ClassVar[str] = "maxfl"
    reading: Literal["gradient", "sigmoid"] = "gradient"
    rho: float | None = None
    e: float = 1e-8
    delta: float = 0.0


@dataclass(frozen=True, kw_only=True)
class QFedAvg(Rule):
    """The larger an agent's loss, the more it counts.

    q: how much more; 0 is FedAvg.
    weigh: all agents count alike ("uniform"), or each by the samples behind its report ("samples").
    delta: widens the forecast of departures and changes no step.

    Reference: Li, Sanjabi, Beirami, Smith, ICLR 2020.
    """

    kind: ClassVar[str] = "q-fedavg"
    q: float = 1.0
    weigh: Literal["uniform", "samples"] = "uniform"
    delta: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Afl(Rule):
    """The best model for the worst mixture of the agents.

    gamma: the step size of the mixture: a larger one turns to the worst agent sooner, and may swing.
    delta: widens the forecast of departures and changes no step.

    Reference: Mohri, Sivek, Suresh, ICML 2019.
    """

    kind: ClassVar[str] = "afl"
    gamma: float = 0.1
    delta: float = 0.0


@dataclass(frozen=True, kw_only=True)
class FedMgdaPlus(Rule):
    """The shortest combination of normalised gradients: helps everybody at once where it can.

    e: how far a weight may be from 1/M; 0 is the mean of the normalised gradients.
    delta: widens the forecast of departures and changes no step.

    Reference: Hu, Shaloudegi, Zhang, Yu, IEEE TNSE 2022.
    """

    kind: ClassVar[str] = "fedmgda-plus"
    e: float = 0.1
    delta: float = 0.0


@dataclass(frozen=True, kw_only=True)
class FedFv(Rule):
    """Gradients are turned until they do not conflict; those with large losses give way least.

    alpha: the share of the agents, those with the largest losses, that do not give way.
    tau: for how many rounds the last gradient of an absent agent counts.
    delta: widens the forecast of departures and changes no step.

    Reference: Wang, Fan, Qi, Wen, Wang, Yu, IJCAI 2021.
    """

    kind: ClassVar[str] = "fedfv"
    alpha: float = 0.1
    tau: int = 1
    delta: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Level(Rule):
    """The shortest step after which everybody is predicted to be below their target loss.

    For servers whose agents do not leave, or are held by the policy `Preview`: on its own it loses
    everybody, as averaging does.

    delta: it aims 2δ below every target loss.

    Reference: Polyak, USSR Comput. Math. 9, 1969.
    """

    kind: ClassVar[str] = "level"
    delta: float = 0.02


@dataclass(frozen=True, kw_only=True)
class Stay(Rule):
    """Levels with a price on every agent: the shortest step to where all are predicted content, at which
    no agent pulls harder than its price allows.

    Made for the policy `Preview`: `simulate`, and the strategies for Flower and FLARE, run it under that one
    unless a policy is named (`policy="none"` is none). On its own it loses everybody, as averaging does.

    share: the slack δ of each agent, as a share of how far above its target loss it is when it is first
        heard. It aims 2δ below every target loss.
    delta: the slack δ of all agents, in units of the loss, instead of the share.
    price: how many times harder than under averaging an agent may pull at first. It falls where losses
        rise, and grows where they do what was promised.
    watch: an agent whose exact reports contradict each other, as far as losses are convex, pulls less.

    Reference: this project.
    """

    kind: ClassVar[str] = "stay"
    share: float = 0.02
    delta: float | None = None
    price: float = 8.0
    watch: bool = True


@dataclass(frozen=True, kw_only=True)
class PcGrad(Rule):
    """Each gradient is projected off those it conflicts with, in random order.

    seed: the seed of the orders; the experiment's seed does not change it.
    delta: widens the forecast of departures and changes no step.

    Reference: Yu, Kumar, Gupta, Levine, Hausman, Finn, NeurIPS 2020.
    """

    kind: ClassVar[str] = "pcgrad"
    seed: int = 0
    delta: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Mifa(Rule):
    """The mean of everybody's latest update, also of those who are silent or have left.

    weigh: all agents count alike ("uniform"), or each by the samples behind its report ("samples").
    delta: widens the forecast of departures and changes no step.

    Reference: Gu, Huang, Zhang, Huang, NeurIPS 2021.
    """

    kind: ClassVar[str] = "mifa"
    weigh: Literal["uniform", "samples"] = "uniform"
    delta: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Uniform(Rule):
    """Along the mean of all directions, by a length that the whole federation decides.

    nu: what the mean is multiplied by: "one", "unit" (1/‖ḡ‖), "clipped" (min(1, 1/‖ḡ‖)) or "polyak".
    level: the mean loss that "polyak" aims at, the smallest there can be.
    weigh: all agents count alike ("uniform"), or each by the samples behind its report ("samples").
    delta: widens the forecast of departures and changes no step.

    Reference: arXiv 2311.16459, Observation 3.
    """

    kind: ClassVar[str] = "uniform"
    nu: Literal["one", "unit", "clipped", "polyak"] = "clipped"
    level: float = 0.0
    weigh: Literal["uniform", "samples"] = "uniform"
    delta: float = 0.0


@dataclass(frozen=True, kw_only=True)
class FedCe(Rule):
    """Agents count by what they contribute that the others do not.

    mode: how much an agent differs, "times" or "plus" how badly it would be served without itself, or
        only the former ("gradient").
    delta: widens the forecast of departures and changes no step.

    Reference: Jiang, Roth, Li, Yang, Zhao, Nath, Xu, Dou, Xu, CVPR 2023.
    """

    kind: ClassVar[str] = "fedce"
    mode: Literal["times", "plus", "gradient"] = "times"
    delta: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Scaffold(Rule):
    """Averaging whose local steps are corrected by what the others do.

    weigh: all agents count alike ("uniform"), or each by the samples behind its report ("samples").
    leavers: the variate of an agent that leaves stays in the mean ("keep"), or goes with it ("drop").
    delta: widens the forecast of departures and changes no step.

    Agents add the server's correction to every local step: those of `fedstay.run` do, a
    `fedstay.TorchAgent` with plain SGD does, and any other that trains needs `corrected`, see
    `fedstay.Agent`. Agents that report a gradient need nothing.

    Reference: Karimireddy, Kale, Mohri, Reddi, Stich, Suresh, ICML 2020.
    """

    kind: ClassVar[str] = "scaffold"
    weigh: Literal["uniform", "samples"] = "uniform"
    leavers: Literal["keep", "drop"] = "keep"
    delta: float = 0.0


@dataclass(frozen=True, kw_only=True)
class FairFed(Rule):
    """Agents count more the closer their groups are served to how everybody's are.

    beta: how fast weights follow; 0 is FedAvg by samples.
    delta: widens the forecast of departures and changes no step.

    Agents tell how well their groups are served: in `fedstay.run` by `data.group`, a
    `fedstay.TorchAgent` by `groups=`, and any other by `rates`, see `fedstay.Agent`.

    Reference: Ezzeldin, Yan, He, Ferrara, Avestimehr, AAAI 2023.
    """

    kind: ClassVar[str] = "fairfed"
    beta: float = 1.0
    delta: float = 0.0


def classes() -> dict[str, type[Rule]]:
    """Every rule's class, by its name in a configuration."""
    return {rule.kind: rule for rule in Rule.__subclasses__()}

//! Rules: how a server turns the reports of a round into a step.
//!
//! One file a rule. A rule is a struct of parameters (its name and fields are what a configuration
//! says) with whatever it remembers between rounds, and one method. [`Rule`] is the list: what is
//! not in it does not exist, what is in it is held to the laws in `laws.rs`.

mod ada_gd;
mod afl;
mod conflict;
mod fedfv;
mod fedmgda;
pub(crate) mod floors;
mod maxfl;
mod mean;
mod mw_fed;
mod pcgrad;
mod q_fedavg;
mod retain;
pub(crate) mod safety;

pub use ada_gd::{AdaGd, OnSettled};
pub use afl::Afl;
pub use fedfv::FedFv;
pub use fedmgda::FedMgdaPlus;
pub use maxfl::{MaxFl, Reading};
pub use mean::Mean;
pub use mw_fed::{MwFed, Variant};
pub use pcgrad::PcGrad;
pub use q_fedavg::QFedAvg;
pub use retain::{Base, Retain, Trust};

use crate::{AgentId, Error, Loss, Reports, Vector, linalg, projection::Projection};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a rule sees of a round.
#[derive(Debug, Clone, Copy)]
pub struct Round<'a> {
    /// The round, from 1.
    pub number: u32,
    /// The server's step size η, as the last decision left it.
    pub step_size: f64,
    /// The step size the run began with.
    pub initial_step_size: f64,
    /// The length of the last step; zero before the first.
    pub last_step: f64,
    /// The weights that were sent out.
    pub weights: &'a [f64],
    /// What came back.
    pub reports: &'a Reports<'a>,
}

/// The agents of a round, parted by whether they are predicted to leave.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Split {
    /// Predicted to leave, by id.
    pub d: Vec<AgentId>,
    /// The others, by id.
    pub nd: Vec<AgentId>,
}

impl Split {
    /// The paper's case: 1 if some are predicted to leave, 2 if nobody, 3 if everybody.
    pub fn case(&self) -> u8 {
        match (self.d.is_empty(), self.nd.is_empty()) {
            (false, false) => 1,
            (true, _) => 2,
            (false, true) => 3,
        }
    }
}

/// Why a run ended. All of these are results; none is an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopReason {
    /// Everybody is within reach of their precision (ADA-GD's case 3).
    Settled,
    /// All agents were brought under their precision in one broadcast.
    Landed,
    /// No direction is left that helps somebody and leaves those about to leave alone.
    Stalled,
    /// Every agent has left.
    #[serde(alias = "nobody-left")]
    EveryoneLeft,
    /// The policy stopped before a predicted departure.
    EarlyStop,
    /// The rounds that were asked for are over.
    RoundLimit,
    /// Fewer agents answered than the server was told to go on with.
    TooFew,
}

impl StopReason {
    /// Every reason there is.
    pub const ALL: [Self; 7] = [
        Self::Settled,
        Self::Landed,
        Self::Stalled,
        Self::EveryoneLeft,
        Self::EarlyStop,
        Self::RoundLimit,
        Self::TooFew,
    ];

    /// The name it has in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Settled => "settled",
            Self::Landed => "landed",
            Self::Stalled => "stalled",
            Self::EveryoneLeft => "everyone-left",
            Self::EarlyStop => "early-stop",
            Self::RoundLimit => "round-limit",
            Self::TooFew => "too-few",
        }
    }
}

/// What the server decided in a round.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// Why the run ends here, if it does. The weights then stay as they are, but for a landing,
    /// whose step is the last.
    pub stop: Option<StopReason>,
    /// Who was predicted to leave.
    pub split: Split,
    /// The paper's case, for rules that act on the split; `None` for those that only watch it.
    pub case: Option<u8>,
    /// The step size from here on.
    pub step_size: f64,
    /// What the projection did, where there was one.
    pub projection: Option<Projection>,
    /// Whether everybody was brought under their precision in this step, for rules that try.
    pub landed: Option<Landing>,
    /// Whether the step keeps every agent above its precision as far as first-order information
    /// tells, or lands; for rules and policies that see to it, `None` for those that do not.
    pub kept: Option<bool>,
    /// Whether the guard changed the rule's step.
    pub guarded: bool,
    /// Whose loss the last step's prediction missed, for rules that rest on predictions; `None` for
    /// those that make none.
    pub missed: Option<Vec<Miss>>,
}

impl Decision {
    /// Nothing moves, nobody is predicted to leave, and the run continues.
    pub(crate) fn standing(step_size: f64) -> Self {
        Self {
            stop: None,
            split: Split::default(),
            case: None,
            step_size,
            projection: None,
            landed: None,
            kept: None,
            guarded: false,
            missed: None,
        }
    }
}

/// An agent whose loss came out below its prediction by more than the room it had: the dangerous
/// kind of error, which might have carried it to its precision.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Miss {
    /// The agent.
    pub agent: AgentId,
    /// What its loss was to be.
    pub predicted: f64,
    /// What it is.
    pub loss: f64,
}

/// Whether everybody was brought under their precision in one broadcast.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Landing {
    /// Yes, provably: convex losses, exact gradients, known smoothness.
    Certified,
    /// Yes, as far as can be predicted.
    Estimated,
    /// Not yet.
    No,
}

/// Which losses must be exact.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Losses {
    /// All.
    Exact,
    /// Those of agents within a step's reach of their precision, `F ≤ ε + δ + step · ‖g‖`. All
    /// others are only known to be above that.
    Near {
        /// The slack δ.
        delta: f64,
        /// The length of the step.
        step: f64,
    },
}

/// How a server turns reports into a step.
pub trait Aggregator {
    /// Fills `step` (zeros on entry) with the displacement of the weights and says what was
    /// decided. `round.reports` has at least one report. A rule that fails may leave itself and
    /// `step` in any state: the server then drops both.
    fn aggregate(&mut self, round: &Round<'_>, step: &mut [f64]) -> Result<Decision, Error>;

    /// Checks the parameters, once, before the first round.
    fn check(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Which losses the rule computes with, given the step size in force and the length of the
    /// last step. An agent whose loss is not among them may report a lower bound.
    fn losses(&self, step_size: f64, last_step: f64) -> Losses {
        let _ = (step_size, last_step);
        Losses::Exact
    }

    /// How much of the usual work each agent is to do in the next round, for rules that set loads.
    /// An agent that is not listed does its usual work.
    fn loads(&self) -> Option<Vec<(AgentId, f64)>> {
        None
    }

    /// What the rule remembers between rounds; null if nothing.
    fn memory(&self) -> Value {
        Value::Null
    }

    /// Takes up what [`memory`](Self::memory) gave.
    fn recall(&mut self, memory: &Value) -> Result<(), Error> {
        match memory {
            Value::Null => Ok(()),
            _ => Err(Error::BadState {
                why: "this rule remembers nothing, but a memory came".into(),
            }),
        }
    }
}

/// Every rule, under the name it has in a configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Rule {
    /// Federated averaging: the mean of the agents' own displacements.
    #[serde(rename = "fedavg")]
    FedAvg(Mean),
    /// The same mean; the agents take all their gradients at the weights they received.
    MinibatchSgd(Mean),
    /// The paper's defection-aware rule.
    AdaGd(AdaGd),
    /// This project's own: everybody above their floor, and nothing more.
    Retain(Retain),
    /// Multiplicative weights for agents that are not content.
    MwFed(MwFed),
    /// As many agents as possible under their requirement.
    #[serde(rename = "maxfl")]
    MaxFl(MaxFl),
    /// The larger an agent's loss, the more it counts.
    #[serde(rename = "q-fedavg")]
    QFedAvg(QFedAvg),
    /// The best model for the worst mixture of the agents.
    Afl(Afl),
    /// A step that helps everybody at once.
    #[serde(rename = "fedmgda-plus", alias = "fedmgda+")]
    FedMgdaPlus(FedMgdaPlus),
    /// Fair averaging: gradients are turned until they do not conflict.
    #[serde(rename = "fedfv")]
    FedFv(FedFv),
    /// Gradients projected off each other in random order.
    #[serde(rename = "pcgrad")]
    PcGrad(PcGrad),
}

impl Rule {
    /// The slack δ of a rule that keeps agents by it. The others know a δ too, but only watch with it
    /// who would leave, so the theorem has nothing to say about theirs.
    pub fn slack(&self) -> Option<f64> {
        match self {
            Self::AdaGd(rule) => Some(rule.delta),
            Self::Retain(rule) => Some(rule.delta),
            Self::FedAvg(_)
            | Self::MinibatchSgd(_)
            | Self::MwFed(_)
            | Self::MaxFl(_)
            | Self::QFedAvg(_)
            | Self::Afl(_)
            | Self::FedMgdaPlus(_)
            | Self::FedFv(_)
            | Self::PcGrad(_) => None,
        }
    }

    /// The name in a configuration, one sentence, and the reference of every rule.
    pub const LIST: &'static [crate::list::Entry] = &[
        crate::list::Entry {
            name: "fedavg",
            about: "uniform mean of the agents' local models; watches departures, does nothing about them",
            reference: "McMahan et al., Communication-Efficient Learning of Deep Networks from Decentralized Data, AISTATS 2017",
        },
        crate::list::Entry {
            name: "minibatch-sgd",
            about: "uniform mean of gradients that are all taken at the received weights",
            reference: "Dekel et al., Optimal Distributed Online Prediction Using Mini-Batches, JMLR 2012",
        },
        crate::list::Entry {
            name: "ada-gd",
            about: "predicts who is about to leave and moves only where their losses stay as they are",
            reference: "Han, Patel, Shao, Wang, On the Effect of Defections in Federated Learning and How to Prevent Them, arXiv 2311.16459",
        },
        crate::list::Entry {
            name: "retain",
            about: "the shortest step to where all are nearly content that keeps each above its floor; a proof for convex losses",
            reference: "this project",
        },
        crate::list::Entry {
            name: "mw-fed",
            about: "multiplicative weights (or loads): more of those who are not content",
            reference: "Blum, Haghtalab, Phillips, Shao, One for One, or All for All: Equilibria and Optimality of Collaboration in Federated Learning, ICML 2021",
        },
        crate::list::Entry {
            name: "maxfl",
            about: "as many agents as possible under their requirement; pulls at those who are near it",
            reference: "Cho, Jhunjhunwala, Li, Smith, Joshi, Maximizing Global Model Appeal in Federated Learning, TMLR 2024",
        },
        crate::list::Entry {
            name: "q-fedavg",
            about: "the larger an agent's loss, the more it counts",
            reference: "Li, Sanjabi, Beirami, Smith, Fair Resource Allocation in Federated Learning, ICLR 2020",
        },
        crate::list::Entry {
            name: "afl",
            about: "the best model for the worst mixture of the agents",
            reference: "Mohri, Sivek, Suresh, Agnostic Federated Learning, ICML 2019",
        },
        crate::list::Entry {
            name: "fedmgda-plus",
            about: "the shortest combination of normalised gradients: helps everybody at once where it can",
            reference: "Hu, Shaloudegi, Zhang, Yu, Federated Learning Meets Multi-Objective Optimization, IEEE TNSE 2022",
        },
        crate::list::Entry {
            name: "fedfv",
            about: "gradients are turned until they do not conflict; those with large losses give way least",
            reference: "Wang, Fan, Qi, Wen, Wang, Yu, Federated Learning with Fair Averaging, IJCAI 2021",
        },
        crate::list::Entry {
            name: "pcgrad",
            about: "each gradient is projected off those it conflicts with, in random order",
            reference: "Yu, Kumar, Gupta, Levine, Hausman, Finn, Gradient Surgery for Multi-Task Learning, NeurIPS 2020",
        },
    ];

    /// Other names under which a configuration may ask for a rule.
    pub const ALIASES: &'static [&'static str] = &["fedmgda+"];

    /// The name in a configuration.
    pub fn name(&self) -> &'static str {
        match self {
            Self::FedAvg(_) => "fedavg",
            Self::MinibatchSgd(_) => "minibatch-sgd",
            Self::AdaGd(_) => "ada-gd",
            Self::MwFed(_) => "mw-fed",
            Self::MaxFl(_) => "maxfl",
            Self::QFedAvg(_) => "q-fedavg",
            Self::Afl(_) => "afl",
            Self::FedMgdaPlus(_) => "fedmgda-plus",
            Self::FedFv(_) => "fedfv",
            Self::PcGrad(_) => "pcgrad",
            Self::Retain(_) => "retain",
        }
    }

    fn inner(&self) -> &dyn Aggregator {
        match self {
            Self::FedAvg(rule) | Self::MinibatchSgd(rule) => rule,
            Self::AdaGd(rule) => rule,
            Self::MwFed(rule) => rule,
            Self::MaxFl(rule) => rule,
            Self::QFedAvg(rule) => rule,
            Self::Afl(rule) => rule,
            Self::FedMgdaPlus(rule) => rule,
            Self::FedFv(rule) => rule,
            Self::PcGrad(rule) => rule,
            Self::Retain(rule) => rule,
        }
    }

    fn inner_mut(&mut self) -> &mut dyn Aggregator {
        match self {
            Self::FedAvg(rule) | Self::MinibatchSgd(rule) => rule,
            Self::AdaGd(rule) => rule,
            Self::MwFed(rule) => rule,
            Self::MaxFl(rule) => rule,
            Self::QFedAvg(rule) => rule,
            Self::Afl(rule) => rule,
            Self::FedMgdaPlus(rule) => rule,
            Self::FedFv(rule) => rule,
            Self::PcGrad(rule) => rule,
            Self::Retain(rule) => rule,
        }
    }
}

impl Aggregator for Rule {
    fn aggregate(&mut self, round: &Round<'_>, step: &mut [f64]) -> Result<Decision, Error> {
        self.inner_mut().aggregate(round, step)
    }

    fn check(&self) -> Result<(), Error> {
        self.inner().check()
    }

    fn losses(&self, step_size: f64, last_step: f64) -> Losses {
        self.inner().losses(step_size, last_step)
    }

    fn loads(&self) -> Option<Vec<(AgentId, f64)>> {
        self.inner().loads()
    }

    fn memory(&self) -> Value {
        self.inner().memory()
    }

    fn recall(&mut self, memory: &Value) -> Result<(), Error> {
        self.inner_mut().recall(memory)
    }
}

impl From<Mean> for Rule {
    fn from(rule: Mean) -> Self {
        Self::FedAvg(rule)
    }
}

macro_rules! from {
    ($($rule:ident),*) => {
        $(impl From<$rule> for Rule {
            fn from(rule: $rule) -> Self {
                Self::$rule(rule)
            }
        })*
    };
}
from!(AdaGd, Retain, MwFed, MaxFl, QFedAvg, Afl, FedMgdaPlus, FedFv, PcGrad);

/// Checks the slack δ that most rules have.
fn check_delta(delta: f64) -> Result<(), Error> {
    check_not_negative("rule.delta", delta)
}

/// How much earlier than at its precision an agent may leave, as far as a rule is told to mind:
/// `margin + horizon · ‖g‖²`.
pub(crate) fn ahead(margin: f64, horizon: f64, norm: f64) -> f64 {
    if horizon > 0.0 { margin + horizon * norm * norm } else { margin }
}

/// Checks a parameter that is a number, zero or more.
fn check_not_negative(name: &str, value: f64) -> Result<(), Error> {
    if value.is_finite() && value >= 0.0 {
        Ok(())
    } else {
        Err(Error::bad_parameter(name, value, "a number, zero or more"))
    }
}

/// A list as a memory; null if it is empty.
fn remember<T: Serialize>(list: &[T]) -> Value {
    if list.is_empty() { Value::Null } else { serde_json::json!(list) }
}

/// The list that [`remember`] made a memory.
fn recollect<'a, T: Default + Deserialize<'a>>(memory: &'a Value) -> Result<T, Error> {
    match memory {
        Value::Null => Ok(T::default()),
        _ => T::deserialize(memory).map_err(|error| Error::BadState { why: error.to_string() }),
    }
}

/// The step of a weighted mean, `−η Σ weight_m · direction_m`.
fn descend(round: &Round<'_>, weights: &[f64], step: &mut [f64]) {
    for (report, weight) in round.reports.iter().zip(weights) {
        linalg::add_scaled(step, -round.step_size * weight, report.direction);
    }
}

/// The decision of a rule that watches departures and does nothing about them.
fn watched(round: &Round<'_>, step: &[f64], delta: f64) -> Decision {
    let split = forecast(round.reports, step, delta);
    Decision { split, ..Decision::standing(round.step_size) }
}

/// Who the step would carry to their precision, to first order: `F_m + ⟨g_m, s⟩ ≤ ε_m + margin`.
///
/// For convex losses this is no mere guess in one direction: the loss after the step is at least
/// its linear prediction, so an agent in `nd` provably stays. An agent that does not tell its loss
/// cannot be predicted here and counts as staying.
pub(crate) fn forecast(reports: &Reports<'_>, step: &[f64], margin: f64) -> Split {
    let mut split = Split::default();
    for report in reports.iter() {
        let slope = || linalg::dot(report.slope(), Vector::F64(step));
        let leaves = match (report.loss(), report.epsilon()) {
            (Some(loss), Some(epsilon)) => carries(loss, slope, epsilon, margin),
            _ => false,
        };
        if leaves { split.d.push(report.agent) } else { split.nd.push(report.agent) }
    }
    split
}

/// Whether a step would carry an agent to its precision, to first order: `F + ⟨g, s⟩ ≤ ε + margin`.
/// `slope` gives ⟨g, s⟩ and is asked only where it decides: an agent with only a lower bound on its
/// loss was beyond the reach of a step.
pub fn carries(loss: Loss, slope: impl FnOnce() -> f64, epsilon: f64, margin: f64) -> bool {
    !matches!(loss, Loss::AtLeast(_)) && loss.cautious() + slope() <= epsilon + margin
}

#[cfg(test)]
mod laws;

//! Rules: how a server turns the reports of a round into a step.
//!
//! One file per rule. A rule is one serialisable struct: its parameters (its name and fields are
//! what a configuration says) and what it remembers between rounds, under the key `memory`, which a
//! configuration must not have. It has one required method, and [`Facts`] for everything that asks
//! about it. [`Rule`] is the list: what is not in it does not exist, and what is in it must obey
//! the laws in `laws.rs`. Custom rules are run by [`Server::with_rule`](crate::Server::with_rule).

mod ada_gd;
mod afl;
mod conflict;
mod custom;
mod facts;
mod fairfed;
mod fedce;
mod fedfv;
mod fedmgda;
pub(crate) mod floors;
mod level;
mod maxfl;
mod mean;
mod mifa;
mod mw_fed;
mod pcgrad;
mod q_fedavg;
mod retain;
pub(crate) mod safety;
mod scaffold;
mod sent;
mod stay;
mod uniform;
mod weigh;

pub use crate::message::{
    Decision, Doubted, Landing, Measured, Miss, Shown, Split, StopReason, Why, carries, stays,
};
pub(crate) use crate::message::{forecast, forecast_asks, forecast_by};
pub use ada_gd::{AdaGd, OnSettled};
pub use afl::Afl;
pub use custom::CustomRule;
pub use facts::{Facts, LabelChange};
pub use fairfed::FairFed;
pub use fedce::{Contribution, FedCe};
pub use fedfv::FedFv;
pub use fedmgda::FedMgdaPlus;
pub use level::Level;
pub use maxfl::{MaxFl, Reading};
pub use mean::{Mean, MinibatchSgd};
pub use mifa::Mifa;
pub use mw_fed::{MwFed, Variant};
pub use pcgrad::PcGrad;
pub use q_fedavg::QFedAvg;
pub use retain::{Base, OnUnrealizable, Retain, Trust};
pub use scaffold::{Leavers, Scaffold};
pub use stay::Stay;
pub use uniform::{Nu, Uniform};
pub use weigh::Weigh;

use crate::list::{Origin, listed};
use crate::message::{Correct, check_not_negative};
use crate::{AgentId, Error, Report, Reports, linalg};
use fedstay_kernels::numerics::PerPrecision;
use serde_json::Value;
use std::fmt;

/// The slack δ of every rule and policy that keeps agents by one, unless something else is said: in
/// Rust, in Python and in an experiment's file. A named problem has its own.
pub const SLACK: f64 = 0.02;

listed! {
    /// Every rule, under the name it has in a configuration.
    pub enum Rule: deref mut Aggregator, "kind", Retain {
        /// Federated averaging: the mean of the agents' own displacements.
        FedAvg(Mean) = "fedavg", mean::FEDAVG;
        /// The mean of gradients that are all taken at the received weights.
        MinibatchSgd(MinibatchSgd) = "minibatch-sgd", mean::MINIBATCH_SGD;
        /// The paper's defection-aware rule.
        AdaGd(AdaGd) = "ada-gd", ada_gd::ORIGIN;
        /// This project's own rule: keeps everybody above their floor, and nothing more.
        Retain(Retain) = "retain", retain::ORIGIN;
        /// The shortest step to where everybody is predicted content, without floors.
        Level(Level) = "level", level::ORIGIN;
        /// Levels with a price on every agent, for agents that are held by previews.
        Stay(Stay) = "stay", stay::ORIGIN;
        /// Multiplicative weights for agents that are not content.
        MwFed(MwFed) = "mw-fed", mw_fed::ORIGIN;
        /// As many agents as possible under their requirement.
        MaxFl(MaxFl) = "maxfl", maxfl::ORIGIN;
        /// The larger an agent's loss, the more it counts.
        QFedAvg(QFedAvg) = "q-fedavg", q_fedavg::ORIGIN;
        /// The best model for the worst mixture of the agents.
        Afl(Afl) = "afl", afl::ORIGIN;
        /// A step that helps everybody at once.
        FedMgdaPlus(FedMgdaPlus) = "fedmgda-plus" | "fedmgda+", fedmgda::ORIGIN;
        /// Fair averaging: gradients are turned until they do not conflict.
        FedFv(FedFv) = "fedfv", fedfv::ORIGIN;
        /// Gradients projected off each other in random order.
        PcGrad(PcGrad) = "pcgrad", pcgrad::ORIGIN;
        /// The latest update of everybody, leavers included.
        Mifa(Mifa) = "mifa", mifa::ORIGIN;
        /// Along the mean, by a length of one's choice.
        Uniform(Uniform) = "uniform", uniform::ORIGIN;
        /// Agents count by what they contribute that the others do not.
        FedCe(FedCe) = "fedce", fedce::ORIGIN;
        /// Local steps that are corrected by what the others do.
        Scaffold(Scaffold) = "scaffold", scaffold::ORIGIN;
        /// Agents count more the closer their groups are served to how everybody's are.
        FairFed(FairFed) = "fairfed", fairfed::ORIGIN;
        +
        /// A custom rule. No configuration can name it, and it is not serialised: see
        /// [`Aggregator::save`] for how a server that has it is saved.
        Custom(CustomRule)
    }
}

impl Correct for Rule {
    fn correction(&self, agent: AgentId) -> Option<Vec<f64>> {
        (**self).correction(agent)
    }
}

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

impl Round<'_> {
    /// The agents that the step would carry to their target loss, to first order:
    /// `F_m + ⟨g_m, s⟩ ≤ ε_m + margin`.
    ///
    /// For convex losses everybody else provably stays. An agent that does not tell its loss cannot
    /// be predicted here and counts as staying.
    pub fn forecast(&self, step: &[f64], margin: f64) -> Split {
        forecast(self.reports, step, margin)
    }

    /// How far an agent went along its direction, in steps of the server's size η: with K local steps
    /// of size η it is K. Times the direction it is what the literature sends as a gradient,
    /// `(w − w_m)/η`.
    pub fn strides(&self, report: &Report<'_>) -> f64 {
        report.reach.map_or(1.0, |reach| reach / self.step_size)
    }
}

/// Which losses must be exact.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Losses {
    /// The losses of all agents.
    Exact,
    /// The losses of agents within a step's reach of their target loss, `F ≤ ε + δ + step · ‖g‖`.
    /// All others are only known to be above that.
    Near {
        /// The slack δ.
        delta: f64,
        /// The length of the step.
        step: f64,
    },
}

/// How a server turns reports into a step.
///
/// One method is enough; the others have defaults that are safe for any rule. A rule must be
/// deterministic, and must not depend on the order of anything but the reports, which are sorted by
/// agent.
///
/// ```
/// use fedstay::{
///     AgentId, Aggregator, Decision, Error, Loss, Report, Reports, Round, Server, Vector,
/// };
///
/// /// The median of the agents' directions, one component at a time.
/// #[derive(Debug, Clone)]
/// struct Median;
///
/// impl Aggregator for Median {
///     fn aggregate(&mut self, round: &Round<'_>, step: &mut [f64]) -> Result<Decision, Error> {
///         for (index, value) in step.iter_mut().enumerate() {
///             let directions = round.reports.iter().map(|report| report.direction);
///             let mut column: Vec<f64> = directions.filter_map(|g| g.get(index)).collect();
///             column.sort_by(f64::total_cmp);
///             *value = -round.step_size * column[column.len() / 2];
///         }
///         Ok(Decision::new(round.forecast(step, 0.0), round.step_size))
///     }
/// }
///
/// let mut server = Server::with_rule(vec![0.0], Box::new(Median), 0.1)?;
/// let directions = [[1.0], [2.0], [1e9]];
/// let far = Loss::Exact(5.0).leaves_at(0.1);
/// let report = |id: usize| Report::new(AgentId(id as u64), far, Vector::F64(&directions[id]));
/// server.step(&Reports::new(1, (0..3).map(report).collect())?)?;
/// assert_eq!(server.weights(), [-0.2], "the third agent moves nothing");
/// # Ok::<(), fedstay::Error>(())
/// ```
pub trait Aggregator: custom::CloneRule + fmt::Debug + Send + Sync {
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
        let _ = step_size;
        let facts = self.facts();
        let near = |times| Losses::Near { delta: facts.margin, step: times * last_step };
        facts.near.map_or(Losses::Exact, near)
    }

    /// How much of the usual work each agent is to do in the next round, for rules that set loads.
    /// An agent that is not listed does its usual work.
    fn loads(&self) -> Option<Vec<(AgentId, f64)>> {
        None
    }

    /// What an agent is to add to the gradient of every local step, for rules that correct local
    /// steps; [`Facts::corrects`] says so. It is sent along with the weights.
    fn correction(&self, agent: AgentId) -> Option<Vec<f64>> {
        let _ = agent;
        None
    }

    /// The weights to deliver instead of the present ones, if the rule knows better ones.
    fn deliver(&self) -> Option<&[f64]> {
        None
    }

    /// What others need to know about the rule, with its parameters as they are.
    fn facts(&self) -> Facts {
        Facts::default()
    }

    /// For a custom rule: what it remembers between rounds, as text for a checkpoint; empty if it
    /// remembers nothing. `None`, the default, says that it cannot be saved: then neither can a
    /// server that runs it. Listed rules are serialised instead.
    fn save(&self) -> Option<String> {
        None
    }

    /// Takes up what [`save`](Self::save) gave.
    fn restore(&mut self, saved: &str) -> Result<(), Error> {
        let _ = saved;
        Err(Error::BadState { why: "this rule cannot be restored: it has no `restore`".into() })
    }
}

impl Rule {
    /// The slack δ of a rule that keeps agents by it; see [`Facts::slack`].
    pub fn slack(&self) -> Option<f64> {
        self.facts().slack
    }

    /// Whether the rule may halve its step size where it would stop: `on_settled = "halve"`.
    pub fn halves(&self) -> bool {
        self.facts().changes.iter().any(|change| change.name == "halve")
    }

    /// What the rule remembers between rounds; null if nothing.
    pub(crate) fn memory(&self) -> Result<Value, Error> {
        match self {
            Self::Custom(rule) => rule.rule.save().map(Value::String).ok_or(Error::CannotSave),
            _ => crate::memory::inside::of(self),
        }
    }

    /// Takes up what [`memory`](Self::memory) gave.
    pub(crate) fn recall(&mut self, memory: Value) -> Result<(), Error> {
        match (&mut *self, memory) {
            (Self::Custom(rule), Value::String(saved)) => rule.rule.restore(&saved),
            (Self::Custom(_), _) => Err(Error::CannotSave),
            (_, memory) => crate::memory::inside::put(self, memory),
        }
    }
}

impl From<Box<dyn Aggregator>> for Rule {
    fn from(rule: Box<dyn Aggregator>) -> Self {
        Self::Custom(CustomRule::new(rule))
    }
}

/// The length, relative to the gradients it came from, below which what is left of a direction is
/// only rounding.
const NOTHING_LEFT: PerPrecision = PerPrecision { f64: 1e-12, f32: 1e-6 };

/// Checks the slack δ that most rules have.
fn check_delta(delta: f64) -> Result<(), Error> {
    check_not_negative("rule.delta", delta)
}

/// How far above its target loss an agent may leave, as far as a rule is told to expect:
/// `margin + horizon · ‖g‖²`.
pub(crate) fn ahead(margin: f64, horizon: f64, norm: f64) -> f64 {
    if horizon > 0.0 { margin + horizon * norm * norm } else { margin }
}

/// The step of a weighted mean of the agents' own displacements, `−Σ weight_m · reach_m · direction_m`.
fn descend(round: &Round<'_>, weights: &[f64], step: &mut [f64]) {
    for (report, weight) in round.reports.iter().zip(weights) {
        let weight = weight * round.strides(report);
        linalg::add_scaled(step, -round.step_size * weight, report.direction);
    }
}

/// Fills `step` with `Σ times · direction / divisor`, over the reports in order, and measures it in the
/// same pass against everybody a forecast asks about.
fn combined(round: &Round<'_>, times: &[f64], divisor: f64, step: &mut [f64]) -> Measured {
    let reports = round.reports;
    let asked = forecast_asks(reports);
    let watched: Vec<_> = asked.iter().map(|index| reports.as_slice()[*index].slope()).collect();
    let terms: Vec<_> = times.iter().copied().zip(reports.iter().map(|r| r.direction)).collect();
    let made = reports.machine().combine(false, &terms, divisor, &watched, step);
    let mut slopes = vec![None; reports.len()];
    for (index, along) in asked.into_iter().zip(made.along) {
        slopes[index] = Some(along);
    }
    Measured { length: made.square.sqrt(), slopes }
}

/// The decision of a rule that watches departures and does nothing about them.
fn watched(round: &Round<'_>, step: &[f64], margin: f64) -> Decision {
    Decision::new(round.forecast(step, margin), round.step_size)
}

#[cfg(test)]
pub(crate) mod laws;

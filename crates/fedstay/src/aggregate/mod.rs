//! Rules: how a server turns the reports of a round into a step.
//!
//! One file a rule. A rule is a struct of parameters (its name and fields are what a configuration
//! says) with whatever it remembers between rounds, and one method. [`Rule`] is the list: what is
//! not in it does not exist, what is in it is held to the laws at the end of this file.

mod ada_gd;
mod half_space;
mod mean;
mod retain;

pub use ada_gd::{AdaGd, OnSettled};
pub use mean::Mean;
pub use retain::{Retain, Trust};

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
    NobodyLeft,
    /// The policy stopped before a predicted departure.
    EarlyStop,
    /// The rounds that were asked for are over.
    RoundLimit,
}

impl StopReason {
    /// The name it has in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Settled => "settled",
            Self::Landed => "landed",
            Self::Stalled => "stalled",
            Self::NobodyLeft => "nobody-left",
            Self::EarlyStop => "early-stop",
            Self::RoundLimit => "round-limit",
        }
    }
}

/// What the server decided in a round.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// Why the run ends here, if it does; the weights then stay as they are.
    pub stop: Option<StopReason>,
    /// Who was predicted to leave.
    pub split: Split,
    /// The paper's case, for rules that act on the split; `None` for those that only watch it.
    pub case: Option<u8>,
    /// The step size from here on.
    pub step_size: f64,
    /// What the projection did, where there was one.
    pub projection: Option<Projection>,
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
}

impl Rule {
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
            about: "the nearest step to averaging that keeps every agent above its floor; a proof for convex losses",
            reference: "this project",
        },
    ];

    /// The name in a configuration.
    pub fn name(&self) -> &'static str {
        match self {
            Self::FedAvg(_) => "fedavg",
            Self::MinibatchSgd(_) => "minibatch-sgd",
            Self::AdaGd(_) => "ada-gd",
            Self::Retain(_) => "retain",
        }
    }

    fn inner(&self) -> &dyn Aggregator {
        match self {
            Self::FedAvg(rule) | Self::MinibatchSgd(rule) => rule,
            Self::AdaGd(rule) => rule,
            Self::Retain(rule) => rule,
        }
    }

    fn inner_mut(&mut self) -> &mut dyn Aggregator {
        match self {
            Self::FedAvg(rule) | Self::MinibatchSgd(rule) => rule,
            Self::AdaGd(rule) => rule,
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

impl From<Retain> for Rule {
    fn from(rule: Retain) -> Self {
        Self::Retain(rule)
    }
}

impl From<AdaGd> for Rule {
    fn from(rule: AdaGd) -> Self {
        Self::AdaGd(rule)
    }
}

/// Checks the slack δ that most rules have.
fn check_delta(delta: f64) -> Result<(), Error> {
    if delta.is_finite() && delta >= 0.0 {
        Ok(())
    } else {
        Err(Error::bad_parameter("rule.delta", delta, "a number, zero or more"))
    }
}

/// Who the step would carry to their precision, to first order: `F_m + ⟨g_m, s⟩ ≤ ε_m + margin`.
///
/// For convex losses this is no mere guess in one direction: the loss after the step is at least
/// its linear prediction, so an agent in `nd` provably stays. An agent that does not tell its loss
/// cannot be predicted here and counts as staying.
pub(crate) fn forecast(reports: &Reports<'_>, step: &[f64], margin: f64) -> Split {
    let mut split = Split::default();
    for report in reports.iter() {
        let leaves = match (report.loss(), report.epsilon()) {
            (Some(loss), Some(epsilon)) => {
                // An agent with only a lower bound on its loss was beyond the reach of a step.
                let slope = linalg::dot(report.slope(), Vector::F64(step));
                !matches!(loss, Loss::AtLeast(_)) && loss.cautious() + slope <= epsilon + margin
            }
            _ => false,
        };
        if leaves { split.d.push(report.agent) } else { split.nd.push(report.agent) }
    }
    split
}

#[cfg(test)]
mod tests {
    //! Laws that hold for every rule of the list.

    use super::*;
    use crate::{Report, Server};
    use proptest::prelude::*;

    fn every_rule() -> Vec<Rule> {
        Rule::LIST
            .iter()
            .map(|entry| serde_json::from_value(serde_json::json!({ "kind": entry.name })).unwrap())
            .collect()
    }

    #[test]
    fn the_list_and_the_enum_are_the_same() {
        for (rule, entry) in every_rule().iter().zip(Rule::LIST) {
            assert_eq!(rule.name(), entry.name);
            rule.check().unwrap();
        }
    }

    prop_compose! {
        fn round()(dimension in 1usize..6, agents in 1usize..6)(
            losses in prop::collection::vec(0.0..3.0f64, agents),
            directions in prop::collection::vec(prop::collection::vec(-2.0..2.0f64, dimension), agents),
        ) -> (Vec<f64>, Vec<Vec<f64>>) {
            (losses, directions)
        }
    }

    fn reports<'a>(losses: &[f64], directions: &'a [Vec<f64>]) -> Vec<Report<'a>> {
        losses
            .iter()
            .zip(directions)
            .enumerate()
            .map(|(id, (loss, g))| Report::new(AgentId(id as u64), *loss, 0.2, Vector::F64(g)))
            .collect()
    }

    proptest! {
        #[test]
        fn steps_are_finite_repeatable_and_blind_to_the_order_of_arrival(
            (losses, directions) in round(),
            turn in 0usize..6,
        ) {
            let dimension = directions[0].len();
            for rule in every_rule() {
                let mut first = Server::new(vec![0.5; dimension], rule, 0.1).unwrap();
                let mut second = first.clone();
                let ordered = reports(&losses, &directions);
                let mut turned = ordered.clone();
                turned.rotate_left(turn % losses.len());
                for _ in 0..3 {
                    let a = first.step(&Reports::new(dimension, ordered.clone()).unwrap()).unwrap();
                    let b = second.step(&Reports::new(dimension, turned.clone()).unwrap()).unwrap();
                    prop_assert_eq!(a, b);
                }
                let bits = |server: &Server| -> Vec<u64> {
                    server.weights().iter().map(|value| value.to_bits()).collect()
                };
                prop_assert_eq!(bits(&first), bits(&second));
                prop_assert!(first.weights().iter().all(|value| value.is_finite()));
            }
        }

        #[test]
        fn a_step_stays_in_the_span_of_the_reports((losses, directions) in round()) {
            // Intermittently communicating first-order: the server knows nothing else.
            let dimension = directions[0].len();
            let views: Vec<Vector<'_>> = directions.iter().map(|g| Vector::F64(g)).collect();
            for rule in every_rule() {
                let mut server = Server::new(vec![0.0; dimension], rule, 0.1).unwrap();
                server.step(&Reports::new(dimension, reports(&losses, &directions)).unwrap()).unwrap();
                let mut outside = vec![0.0; dimension];
                let step = server.displacement().to_vec();
                let left = crate::projection::project_sum(&[Vector::F64(&step)], &views, &mut outside);
                prop_assert!(left.after <= 1e-6 * left.before.max(1e-9), "{left:?}");
            }
        }

        #[test]
        fn a_saved_state_goes_on_as_if_nothing_had_happened((losses, directions) in round()) {
            let dimension = directions[0].len();
            for rule in every_rule() {
                let mut server = Server::new(vec![0.0; dimension], rule, 0.1).unwrap();
                let step = |server: &mut Server| {
                    server.step(&Reports::new(dimension, reports(&losses, &directions)).unwrap()).unwrap();
                };
                step(&mut server);
                let text = serde_json::to_string(&server.state()).unwrap();
                let mut resumed = Server::from_state(serde_json::from_str(&text).unwrap()).unwrap();
                step(&mut server);
                step(&mut resumed);
                prop_assert_eq!(server.weights(), resumed.weights());
                prop_assert_eq!(server.round(), resumed.round());
            }
        }
    }
}

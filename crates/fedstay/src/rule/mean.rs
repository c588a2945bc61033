//! The mean: FedAvg and mini-batch SGD.
//!
//! Every agent moves the weights by its own displacement `−reach_m · direction_m`; the server takes
//! the mean, which is the average of the local models:
//!
//! ```text
//! s = −(1/M) Σ reach_m · direction_m
//! ```
//!
//! With `weigh = "samples"` an agent counts n_m/Σn instead of 1/M, as in the first reference.
//!
//! The two algorithms differ in the agents' local work (along a path, or all gradients at the
//! received weights), not here. The server must know: the directions. It never stops on its own.
//! The split it returns is a forecast for those who watch; the step does not depend on it.
//!
//! No uniform averaging can prevent harmful departures (Observation 3 of the reference).
//!
//! References: McMahan, Moore, Ramage, Hampson, Agüera y Arcas, *Communication-Efficient Learning
//! of Deep Networks from Decentralized Data*, AISTATS 2017. Dekel, Gilad-Bachrach, Shamir, Xiao,
//! *Optimal Distributed Online Prediction Using Mini-Batches*, JMLR 13, 2012.

use super::weigh::{CHANGES, Weigh};
use super::{Aggregator, Decision, Facts, Origin, Round, forecast_by};
use crate::Error;
use serde::{Deserialize, Serialize};

pub(super) const FEDAVG: Origin = Origin {
    about: "uniform mean of the agents' local models; watches departures, does nothing about them",
    reference: "McMahan et al., Communication-Efficient Learning of Deep Networks from Decentralized Data, AISTATS 2017",
};

pub(super) const MINIBATCH_SGD: Origin = Origin {
    about: "uniform mean of gradients that are all taken at the received weights",
    reference: "Dekel et al., Optimal Distributed Online Prediction Using Mini-Batches, JMLR 2012",
};

/// For the forecast, exact losses are worth computing only for agents that a step as long as the last could
/// reach at 60° to their gradient; knowing everybody it might reach at all would cost more than half of what
/// the early exit saves.
const REACHED: f64 = 0.5;

/// The mean of the agents' displacements.
///
/// ```
/// use fedstay::{AgentId, Loss, Mean, Report, Reports, Server, Vector};
///
/// let near = Report::new(AgentId(0), Loss::Exact(0.5).leaves_at(0.1), Vector::F64(&[1.0, 0.0]));
/// let far = Report::new(AgentId(1), Loss::Exact(2.0).leaves_at(0.1), Vector::F64(&[0.0, 2.0]));
/// let mut server = Server::new(vec![0.0, 0.0], Mean::default(), 1.0)?;
/// server.step(&Reports::new(2, vec![near, far])?)?;
/// // Half of what either agent did.
/// assert_eq!(server.weights(), [-0.5, -1.0]);
/// # Ok::<(), fedstay::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Mean {
    /// How much each agent counts.
    pub weigh: Weigh,
    /// How far above its target loss an agent's predicted loss may be and still count as about to
    /// leave. It widens the forecast and changes no step.
    pub delta: f64,
}

impl Aggregator for Mean {
    fn aggregate(&mut self, round: &Round<'_>, step: &mut [f64]) -> Result<Decision, Error> {
        let measured = self.weigh.mean(round, step);
        let split = forecast_by(round.reports, self.delta, |index| {
            measured.slope(round.reports, index, step)
        });
        Ok(Decision { measured: Some(measured), ..Decision::new(split, round.step_size) })
    }

    fn facts(&self) -> Facts {
        let (label, changes) = (self.weigh.label(), CHANGES);
        let facts = Facts::blind(self.delta).near(REACHED);
        Facts { label, changes, fills_step: true, drops_delta: true, ..facts }
    }

    fn check(&self) -> Result<(), Error> {
        super::check_delta(self.delta)
    }
}

/// The mean of gradients that are all taken at the received weights: the same mean, of other work.
///
/// ```
/// use fedstay::rule::MinibatchSgd;
/// use fedstay::{Mean, Rule};
///
/// // Agents are told to take all gradients of a round at the weights they received.
/// assert!(Rule::from(MinibatchSgd::default()).facts().stands);
/// assert!(!Rule::from(Mean::default()).facts().stands);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MinibatchSgd(pub Mean);

impl Aggregator for MinibatchSgd {
    fn aggregate(&mut self, round: &Round<'_>, step: &mut [f64]) -> Result<Decision, Error> {
        self.0.aggregate(round, step)
    }

    fn facts(&self) -> Facts {
        Facts { stands: true, ..self.0.facts() }
    }

    fn check(&self) -> Result<(), Error> {
        self.0.check()
    }
}

#[cfg(test)]
mod tests {
    use crate::{AgentId, Loss, Mean, Report, Reports, Server, Vector};

    #[test]
    fn it_returns_the_average_of_the_local_models() {
        let mut server = Server::new(vec![1.0, 1.0], Mean::default(), 0.1).unwrap();
        let (a, b) = ([1.0f32, 0.0], [0.0f32, 2.0]);
        let reports = vec![
            Report {
                reach: Some(0.5),
                ..Report::new(AgentId(0), Loss::Exact(9.0).leaves_at(0.1), Vector::F32(&a))
            },
            Report::new(AgentId(1), Loss::Exact(9.0).leaves_at(0.1), Vector::F32(&b)),
        ];
        let decision = server.step(&Reports::new(2, reports).unwrap()).unwrap();
        assert_eq!(server.weights(), [1.0 - 0.5 / 2.0, 1.0 - 0.2 / 2.0]);
        assert_eq!(decision.case, None);
    }

    #[test]
    fn it_foresees_a_departure_and_takes_the_step_all_the_same() {
        let mut server = Server::new(vec![0.0], Mean::default(), 1.0).unwrap();
        let g = [1.0];
        let reports =
            vec![Report::new(AgentId(3), Loss::Exact(1.0).leaves_at(0.1), Vector::F64(&g))];
        let decision = server.step(&Reports::new(1, reports).unwrap()).unwrap();
        assert_eq!(decision.split.d, [AgentId(3)]);
        assert_eq!(server.weights(), [-1.0]);
    }
}

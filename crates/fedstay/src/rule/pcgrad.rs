//! PCGrad: project conflicting gradients.
//!
//! ```text
//! g_m = reach_m · direction_m / η
//! for every agent i:  v_i = g_i;  for every other j in random order:
//!     if ⟨v_i, g_j⟩ < 0:  v_i ← v_i − ⟨v_i, g_j⟩/‖g_j‖² · g_j
//! s = −(η/M) Σ v_i
//! ```
//!
//! Without conflicts it is the plain mean. Each gradient is projected off the *others' own*, not
//! off what became of them.
//!
//! The server must know: the directions. It never stops on its own. The orders are drawn from the
//! parameter `seed`, the round and the agent, so there is nothing to remember between rounds.
//!
//! Simplified here: the authors sum where this rule takes the mean, which is a matter of the step
//! size, and see tasks of one learner where this rule sees agents.
//!
//! Reference: Tianhe Yu, Saurabh Kumar, Abhishek Gupta, Sergey Levine, Karol Hausman, Chelsea Finn,
//! *Gradient Surgery for Multi-Task Learning*, NeurIPS 2020, Algorithm 1.

use super::conflict::Conflicts;
use super::{Aggregator, Decision, Facts, Origin, Round, descend, watched};
use crate::{Error, Seed, Vector};
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

pub(super) const ORIGIN: Origin = Origin {
    about: "each gradient is projected off those it conflicts with, in random order",
    reference: "Yu, Kumar, Gupta, Levine, Hausman, Finn, Gradient Surgery for Multi-Task Learning, NeurIPS 2020",
};

/// Project conflicting gradients.
///
/// ```
/// use fedstay::rule::PcGrad;
/// use fedstay::{AgentId, Loss, Report, Reports, Server, Vector};
///
/// // The gradients conflict: each is projected off the other, to (½, ½) and (0, 1).
/// let near = Report::new(AgentId(0), Loss::Exact(0.5).leaves_at(0.1), Vector::F64(&[1.0, 0.0]));
/// let far = Report::new(AgentId(1), Loss::Exact(2.0).leaves_at(0.1), Vector::F64(&[-1.0, 1.0]));
/// let mut server = Server::new(vec![0.0, 0.0], PcGrad::default(), 1.0)?;
/// server.step(&Reports::new(2, vec![near, far])?)?;
/// assert_eq!(server.weights(), [-0.25, -0.75]);
/// # Ok::<(), fedstay::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PcGrad {
    /// The seed of the orders. It is the rule's own: the experiment's seed does not change it.
    pub seed: u64,
    /// Widens the forecast of departures and changes no step.
    pub delta: f64,
}

impl Aggregator for PcGrad {
    fn aggregate(&mut self, round: &Round<'_>, step: &mut [f64]) -> Result<Decision, Error> {
        let directions: Vec<Vector<'_>> =
            round.reports.iter().map(|report| report.direction).collect();
        let count = directions.len();
        let strides: Vec<f64> = round.reports.iter().map(|report| round.strides(report)).collect();
        let conflicts = Conflicts::new(&directions, &strides);
        let mut weights = vec![0.0; count];
        for (own, report) in round.reports.iter().enumerate() {
            let mut order: Vec<usize> = (0..count).collect();
            let number = u64::from(round.number);
            order.shuffle(&mut Seed(self.seed).stream("pcgrad", number, report.agent.0));
            let resolved = conflicts.resolve(own, &order);
            weights.iter_mut().zip(resolved).for_each(|(weight, more)| *weight += more);
        }
        weights.iter_mut().for_each(|weight| *weight /= count as f64);
        descend(round, &weights, step);
        Ok(watched(round, step, self.delta))
    }

    fn facts(&self) -> Facts {
        Facts::blind(self.delta).near(2.0)
    }

    fn check(&self) -> Result<(), Error> {
        super::check_delta(self.delta)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AgentId, Loss, Report, Reports, Server};

    fn server(seed: u64) -> Server {
        Server::new(vec![0.0; 2], PcGrad { seed, ..PcGrad::default() }, 1.0).unwrap()
    }

    fn reports(gradients: &[[f64; 2]]) -> Reports<'_> {
        let reports = gradients.iter().enumerate();
        let reports = reports.map(|(id, g)| {
            Report::new(AgentId(id as u64), Loss::Exact(9.0).leaves_at(0.1), Vector::F64(g))
        });
        Reports::new(2, reports.collect()).unwrap()
    }

    #[test]
    fn a_conflict_is_taken_out_on_both_sides() {
        let mut server = server(0);
        server.step(&reports(&[[1.0, 0.0], [-1.0, 1.0]])).unwrap();
        // (½, ½) and (0, 1), the mean of which is (¼, ¾).
        assert_eq!(server.displacement(), [-0.25, -0.75]);
        server.step(&reports(&[[1.0, 0.0], [-2.0, 0.0]])).unwrap();
        assert_eq!(server.displacement(), [0.0, 0.0]);
    }

    #[test]
    fn the_order_matters_and_comes_from_the_seed_and_the_round() {
        let gradients = [[1.0, 0.0], [-1.0, 1.0], [-1.0, -0.5], [0.2, -1.0], [-0.3, 0.9]];
        let path = |seed| {
            let mut server = server(seed);
            let step = |server: &mut Server| {
                server.step(&reports(&gradients)).unwrap();
                server.displacement().to_vec()
            };
            let steps: Vec<Vec<f64>> = (0..4).map(|_| step(&mut server)).collect();
            steps
        };
        assert_eq!(path(3), path(3));
        assert_ne!(path(3), path(4));
        let steps = path(3);
        assert!(steps.windows(2).any(|pair| pair[0] != pair[1]));
    }
}

//! AFL: agnostic federated learning, the best model for the worst mixture of the agents.
//!
//! ```text
//! s = −η Σ λ_m g_m,   g_m = reach_m · direction_m / η
//! λ ← Π(λ + γF),   Π onto the simplex
//! ```
//!
//! Descent in the weights and ascent in the mixture, both from the same point, on
//! `min over w, max over λ, of Σ λ_m F_m(w)`. The mixture begins uniform.
//!
//! The server must know: every agent's exact loss and its direction. It never stops on its own.
//! When an agent leaves, λ goes to the nearest mixture of the others; an agent that joins begins
//! with an equal share. Agents that were not asked in a round keep their share, and the others move
//! theirs among themselves.
//!
//! Simplified here: the authors draw one agent from λ or sample from all, weigh by sample counts
//! within an agent, and return the *average* of all rounds' weights, which is what their guarantee
//! is about; here, as everywhere in this crate, the last weights are the result.
//!
//! Reference: Mehryar Mohri, Gary Sivek, Ananda Theertha Suresh, *Agnostic Federated Learning*,
//! ICML 2019, the algorithm Stochastic-AFL.

use super::{Aggregator, Decision, Facts, Origin, Round, descend, watched};
use crate::memory::inside;
use crate::{AgentId, Error};
use fedstay_kernels::numerics::simplex;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub(super) const ORIGIN: Origin = Origin {
    about: "the best model for the worst mixture of the agents",
    reference: "Mohri, Sivek, Suresh, Agnostic Federated Learning, ICML 2019",
};

/// The best model for the worst mixture of the agents.
///
/// ```
/// use fedstay::rule::Afl;
/// use fedstay::{AgentId, Loss, Report, Reports, Server, Vector};
///
/// let near = Report::new(AgentId(0), Loss::Exact(1.0).leaves_at(0.1), Vector::F64(&[1.0, 0.0]));
/// let far = Report::new(AgentId(1), Loss::Exact(3.0).leaves_at(0.1), Vector::F64(&[0.0, 1.0]));
/// let mut server = Server::new(vec![0.0, 0.0], Afl::new(0.1), 1.0)?;
/// // The mean at first; then the mixture has turned to the larger loss.
/// for expected in [-0.5, -0.6] {
///     server.step(&Reports::new(2, vec![near, far])?)?;
///     assert!((server.displacement()[1] - expected).abs() < 1e-12);
/// }
/// # Ok::<(), fedstay::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Afl {
    /// The step size of the mixture. Larger: turns to the worst agent sooner, and may oscillate. 0
    /// is the plain mean.
    pub gamma: f64,
    /// Widens the forecast of departures and changes no step.
    pub delta: f64,
    /// Every agent's share of the mixture.
    #[serde(rename = "memory", with = "inside::pairs", skip_serializing_if = "BTreeMap::is_empty")]
    mixture: BTreeMap<AgentId, f64>,
}

impl Default for Afl {
    fn default() -> Self {
        Self::new(0.1)
    }
}

impl Afl {
    /// The rule before its first round.
    pub fn new(gamma: f64) -> Self {
        Self { gamma, delta: 0.0, mixture: BTreeMap::new() }
    }

    /// Removes the agents that left from the mixture and adds those that are new.
    fn admit(&mut self, round: &Round<'_>) {
        let before = self.mixture.len();
        for agent in round.reports.goodbyes() {
            self.mixture.remove(agent);
        }
        let share = 1.0 / self.mixture.len().max(1) as f64;
        for report in round.reports.iter() {
            self.mixture.entry(report.agent).or_insert(share);
        }
        if self.mixture.len() != before || !round.reports.goodbyes().is_empty() {
            let mut shares: Vec<f64> = self.mixture.values().copied().collect();
            simplex::project(&mut shares, 1.0);
            self.mixture.values_mut().zip(shares).for_each(|(share, new)| *share = new);
        }
    }
}

impl Aggregator for Afl {
    fn aggregate(&mut self, round: &Round<'_>, step: &mut [f64]) -> Result<Decision, Error> {
        let losses = round.reports.iter().map(|report| report.exact_loss("afl"));
        let losses: Vec<f64> = losses.collect::<Result<_, _>>()?;
        self.admit(round);
        let share = |agent: AgentId| self.mixture.get(&agent).copied().unwrap_or(0.0);
        let shares: Vec<f64> = round.reports.iter().map(|report| share(report.agent)).collect();
        let mut weights = shares.clone();
        if weights.len() < self.mixture.len() {
            simplex::project(&mut weights, 1.0);
        }
        descend(round, &weights, step);

        // Adding the same to all does not change the projection, so the largest loss may become
        // zero.
        let largest = losses.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let climb = |loss: f64| self.gamma * (loss - largest).max(f64::MIN);
        let mut climbed: Vec<f64> =
            shares.iter().zip(&losses).map(|(share, loss)| share + climb(*loss)).collect();
        simplex::project(&mut climbed, shares.iter().sum());
        for (report, share) in round.reports.iter().zip(climbed) {
            self.mixture.insert(report.agent, share);
        }
        Ok(watched(round, step, self.delta))
    }

    fn facts(&self) -> Facts {
        Facts::blind(self.delta)
    }

    fn check(&self) -> Result<(), Error> {
        super::check_not_negative("rule.gamma", self.gamma)?;
        super::check_delta(self.delta)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Loss, Report, Reports, Server, Vector};

    const SIDES: [[f64; 3]; 3] = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];

    fn report(id: usize, loss: f64) -> Report<'static> {
        Report::new(
            AgentId(id as u64),
            Loss::Exact(loss).leaves_at(0.1),
            Vector::F64(&SIDES[id][..]),
        )
    }

    fn server(gamma: f64) -> Server {
        Server::new(vec![0.0; 3], Afl::new(gamma), 1.0).unwrap()
    }

    fn near(step: &[f64], expected: [f64; 3]) -> bool {
        step.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-14)
    }

    #[test]
    fn the_mixture_turns_to_the_largest_loss_one_round_later() {
        let mut server = server(0.1);
        let all = || Reports::new(3, vec![report(0, 1.0), report(1, 2.0), report(2, 3.0)]).unwrap();
        server.step(&all()).unwrap();
        assert!(near(server.displacement(), [-1.0 / 3.0; 3]));
        server.step(&all()).unwrap();
        // ⅓ + (0.1, 0.2, 0.3) less 0.2.
        let third = 1.0 / 3.0;
        assert!(near(server.displacement(), [0.1 - third, -third, -0.1 - third]));
    }

    #[test]
    fn who_leaves_with_all_of_the_mixture_leaves_an_equal_share_to_the_others() {
        let mut server = server(1e300);
        let first = vec![report(0, 1.0), report(1, 2.0), report(2, 1e300)];
        server.step(&Reports::new(3, first).unwrap()).unwrap();
        let rest = vec![report(0, 1.0), report(1, 1.0)];
        let rest = Reports::with_goodbyes(3, rest, vec![AgentId(2)]).unwrap();
        server.step(&rest).unwrap();
        assert!(near(server.displacement(), [-0.5, -0.5, 0.0]));
    }

    #[test]
    fn who_was_not_asked_keeps_its_share() {
        let mut server = server(0.1);
        let all = || Reports::new(3, vec![report(0, 1.0), report(1, 2.0), report(2, 3.0)]).unwrap();
        server.step(&all()).unwrap();
        // (7, 10, 13)/30; the first two alone are nearest to (7, 10)/30 + 13/60 each.
        let two = Reports::new(3, vec![report(0, 5.0), report(1, 5.0)]).unwrap();
        server.step(&two).unwrap();
        assert!(near(server.displacement(), [-0.45, -0.55, 0.0]));
        server.step(&all()).unwrap();
        assert!(near(server.displacement(), [-7.0 / 30.0, -10.0 / 30.0, -13.0 / 30.0]));
    }
}

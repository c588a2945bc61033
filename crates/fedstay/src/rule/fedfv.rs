//! FedFV: fair averaging, in which gradients are turned until they do not conflict.
//!
//! ```text
//! g_m = reach_m · direction_m / η
//! order: the agents by ascending loss
//! v_i = g_i for the α share with the largest losses; for the others, along the order:
//!     if ⟨v_i, g_j⟩ < 0:  v_i ← v_i − ⟨v_i, g_j⟩/‖g_j‖² · g_j
//! v = (1/M) Σ v_i
//! for age τ, τ−1, …, 1:  h = Σ of the gradients that agents absent now sent that many rounds ago,
//!     of those with ⟨v, g⟩ < 0;   v ← v − ⟨v, h⟩/‖h‖² · h
//! s = −η · ‖(1/M) Σ g_m‖ · v/‖v‖
//! ```
//!
//! The last to be projected off is the agent with the largest loss, so that its gradient is kept
//! best. With α = 1 and nobody absent the rule is the plain mean. The α share is rounded up, as in
//! the authors' program.
//!
//! The server must know: every agent's exact loss and its direction; it remembers the last
//! directions for τ rounds. It never stops on its own; where nothing is left of the direction but
//! rounding, the step is zero. An agent that left is absent like one that was not asked: for τ
//! rounds the step does not undo what its last gradient asked for.
//!
//! Reference: Zheng Wang, Xiaoliang Fan, Jianzhong Qi, Chenglu Wen, Cheng Wang, Rongshan Yu,
//! *Federated Learning with Fair Averaging*, IJCAI 2021, Algorithms 1 to 3.

use super::conflict::Conflicts;
use super::sent::{self, Last, LastSent};
use super::{Aggregator, Decision, Facts, NOTHING_LEFT, Origin, Round, watched};
use crate::{AgentId, Error, Vector, linalg};
use serde::{Deserialize, Serialize};

pub(super) const ORIGIN: Origin = Origin {
    about: "gradients are turned until they do not conflict; those with large losses give way least",
    reference: "Wang, Fan, Qi, Wen, Wang, Yu, Federated Learning with Fair Averaging, IJCAI 2021",
};

/// Fair averaging.
///
/// ```
/// use fedstay::rule::FedFv;
/// use fedstay::{AgentId, Loss, Report, Reports, Server, Vector};
///
/// // The gradients conflict.
/// let near = Report::new(AgentId(0), Loss::Exact(0.5).leaves_at(0.1), Vector::F64(&[1.0, 0.0]));
/// let far = Report::new(AgentId(1), Loss::Exact(2.0).leaves_at(0.1), Vector::F64(&[-1.0, 1.0]));
/// let mut server = Server::new(vec![0.0, 0.0], FedFv::default(), 1.0)?;
/// server.step(&Reports::new(2, vec![near, far])?)?;
/// // The agent with the larger loss keeps its gradient, the other gives way.
/// let [a, b] = [server.weights()[0], server.weights()[1]];
/// assert!(b - a < 0.0 && a > 0.0);
/// # Ok::<(), fedstay::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FedFv {
    /// The share of the agents, those with the largest losses, whose gradients stay as they are.
    pub alpha: f64,
    /// For how many rounds the last gradient of an absent agent counts; 0 for not at all.
    pub tau: u32,
    /// Widens the forecast of departures and changes no step.
    pub delta: f64,
    #[serde(rename = "memory", with = "sent", skip_serializing_if = "Last::is_empty")]
    last: Last,
}

impl Default for FedFv {
    fn default() -> Self {
        Self::new(0.1, 1)
    }
}

impl FedFv {
    /// The rule before its first round.
    pub fn new(alpha: f64, tau: u32) -> Self {
        Self { alpha, tau, delta: 0.0, last: Last::new() }
    }

    /// The mean of the gradients without the conflicts among them.
    fn resolve(
        &self,
        directions: &[Vector<'_>],
        strides: &[f64],
        losses: &[f64],
        mean: &mut [f64],
    ) {
        let count = directions.len();
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by(|a, b| losses[*a].total_cmp(&losses[*b]));
        // A little less, so that 0.1 of 30 is 3 however it is rounded.
        let kept = (self.alpha * count as f64 - 1e-9).ceil().max(0.0) as usize;
        let (turned, kept) = order.split_at(count - kept.min(count));
        let conflicts = Conflicts::new(directions, strides);
        let mut weights = vec![0.0; count];
        kept.iter().for_each(|own| weights[*own] += 1.0);
        for own in turned {
            let resolved = conflicts.resolve(*own, &order);
            weights.iter_mut().zip(resolved).for_each(|(weight, more)| *weight += more);
        }
        for ((direction, strides), weight) in directions.iter().zip(strides).zip(weights) {
            linalg::add_scaled(mean, weight * strides / count as f64, *direction);
        }
    }

    /// Removes from the mean what conflicts with absent agents, the oldest gradients first.
    fn spare_absent(&self, round: &Round<'_>, mean: &mut [f64]) {
        let present = |agent: AgentId| round.reports.iter().any(|report| report.agent == agent);
        for age in (1..=self.tau.min(round.number)).rev() {
            let mut against = vec![0.0; mean.len()];
            for sent in self.last.values() {
                let direction = Vector::F64(&sent.direction);
                if sent.round + age == round.number
                    && !present(sent.agent)
                    && linalg::dot(direction, Vector::F64(mean)) < 0.0
                {
                    linalg::add_scaled(&mut against, 1.0, direction);
                }
            }
            let squared = linalg::dot(Vector::F64(&against), Vector::F64(&against));
            let product = linalg::dot(Vector::F64(&against), Vector::F64(mean));
            if product < 0.0 && squared > 0.0 {
                linalg::add_scaled(mean, -product / squared, Vector::F64(&against));
            }
        }
    }

    fn keep(&mut self, round: &Round<'_>) {
        if self.tau == 0 {
            return;
        }
        for report in round.reports.iter() {
            self.last
                .insert(report.agent, LastSent::new(report, round.strides(report), round.number));
        }
        self.last.retain(|_, sent| round.number - sent.round < self.tau);
    }
}

impl Aggregator for FedFv {
    fn aggregate(&mut self, round: &Round<'_>, step: &mut [f64]) -> Result<Decision, Error> {
        let losses = round.reports.iter().map(|report| report.exact_loss("fedfv"));
        let losses: Vec<f64> = losses.collect::<Result<_, _>>()?;
        let directions: Vec<Vector<'_>> =
            round.reports.iter().map(|report| report.direction).collect();
        let share = 1.0 / directions.len() as f64;
        let (mut plain, mut lengths) = (vec![0.0; step.len()], 0.0);
        let strides: Vec<f64> = round.reports.iter().map(|report| round.strides(report)).collect();
        for (direction, strides) in directions.iter().zip(&strides) {
            linalg::add_scaled(&mut plain, share * strides, *direction);
            lengths += share * strides * linalg::norm(*direction);
        }
        self.resolve(&directions, &strides, &losses, step);
        self.spare_absent(round, step);
        let length = linalg::norm(Vector::F64(step));
        if length <= NOTHING_LEFT.of(directions) * lengths {
            step.fill(0.0);
        } else {
            let target = linalg::norm(Vector::F64(&plain));
            linalg::scale(step, -round.step_size * (target / length));
        }
        self.keep(round);
        Ok(watched(round, step, self.delta))
    }

    fn facts(&self) -> Facts {
        Facts::blind(self.delta)
    }

    fn check(&self) -> Result<(), Error> {
        if !(0.0..=1.0).contains(&self.alpha) {
            return Err(Error::bad_parameter("rule.alpha", self.alpha, "a share, from 0 to 1"));
        }
        super::check_delta(self.delta)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Loss, Report, Reports, Server};

    fn near(step: &[f64], expected: [f64; 2]) -> bool {
        step.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-14)
    }

    fn report(id: u64, loss: f64, g: &[f64]) -> Report<'_> {
        Report::new(AgentId(id), Loss::Exact(loss).leaves_at(0.1), Vector::F64(g))
    }

    #[test]
    fn the_worst_keeps_its_gradient_and_the_other_gives_way() {
        let (a, b) = ([1.0, 0.0], [-1.0, 1.0]);
        let mut server = Server::new(vec![0.0; 2], FedFv::default(), 1.0).unwrap();
        let both = vec![report(0, 1.0, &a), report(1, 2.0, &b)];
        server.step(&Reports::new(2, both).unwrap()).unwrap();
        // (½, ½) + (−1, 1), as long as the mean of (1, 0) and (−1, 1), which is ½.
        let length = 10f64.sqrt();
        assert!(near(server.displacement(), [0.5 / length, -1.5 / length]));
    }

    #[test]
    fn the_step_spares_who_just_left_for_tau_rounds() {
        let (a, b) = ([1.0, 1.0], [-1.0, 0.0]);
        for tau in [0, 1, 2] {
            let mut server = Server::new(vec![0.0; 2], FedFv::new(0.1, tau), 1.0).unwrap();
            server
                .step(&Reports::new(2, vec![report(0, 2.0, &a), report(1, 1.0, &b)]).unwrap())
                .unwrap();
            for round in 1..4 {
                let goodbyes = if round == 1 { vec![AgentId(1)] } else { vec![] };
                let rest = Reports::with_goodbyes(2, vec![report(0, 2.0, &a)], goodbyes).unwrap();
                server.step(&rest).unwrap();
                // Off (−1, 0) what is left of (1, 1) is (0, 1), at the old length.
                let spared = [0.0, -2f64.sqrt()];
                let expected = if round <= tau { spared } else { [-1.0, -1.0] };
                assert!(near(server.displacement(), expected), "τ = {tau}, round {round}");
            }
        }
    }

    #[test]
    fn gradients_that_cancel_are_no_step() {
        let (a, b) = ([1.0, 0.0], [-2.0, 0.0]);
        let mut server = Server::new(vec![0.0; 2], FedFv::new(0.0, 1), 1.0).unwrap();
        for gradients in [[&a, &b], [&[0.0, 0.0], &[0.0, 0.0]]] {
            let both = vec![report(0, 1.0, gradients[0]), report(1, 2.0, gradients[1])];
            server.step(&Reports::new(2, both).unwrap()).unwrap();
            assert_eq!(server.displacement(), [0.0, 0.0]);
        }
    }
}

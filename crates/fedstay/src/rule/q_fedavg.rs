//! q-FedAvg: the larger an agent's loss, the more it counts.
//!
//! ```text
//! g_m = L(w − w_m) = reach_m · direction_m / η,   L = 1/η
//! s = −Σ F_m^q g_m / Σ (q F_m^(q−1) ‖g_m‖² + L F_m^q)
//! ```
//!
//! This is gradient descent on `Σ F_m^(q+1)/(q+1)` whose step size follows from an upper bound on
//! the curvature of that, so η is tuned once, for q = 0, where the rule is FedAvg, for any number of
//! local steps. A large q comes close to minimising the largest loss. With `weigh = "samples"` every
//! agent's terms are multiplied by its share p_m of the samples, as in the authors' objective
//! `Σ p_m F_m^(q+1)/(q+1)`.
//!
//! The server must know: every agent's exact loss and its direction. It never stops on its own.
//! Losses below 1e-10, including negative ones, count as 1e-10, because `F^(q−1)` grows without
//! bound at zero for q < 1. With one local step g_m is the gradient, and the rule their q-FedSGD.
//!
//! Reference: Tian Li, Maziar Sanjabi, Ahmad Beirami, Virginia Smith, *Fair Resource Allocation in
//! Federated Learning*, ICLR 2020, Algorithms 1 and 2.

use super::weigh::{CHANGES, Weigh};
use super::{Aggregator, Decision, Facts, Origin, Round, descend, watched};
use crate::{Error, linalg};
use serde::{Deserialize, Serialize};

pub(super) const ORIGIN: Origin = Origin {
    about: "the larger an agent's loss, the more it counts",
    reference: "Li, Sanjabi, Beirami, Smith, Fair Resource Allocation in Federated Learning, ICLR 2020",
};

/// Losses below this value count as this value.
const LEAST_LOSS: f64 = 1e-10;

/// The larger an agent's loss, the more it counts.
///
/// ```
/// use fedstay::rule::QFedAvg;
/// use fedstay::{AgentId, Loss, Report, Reports, Server, Vector};
///
/// let near = Report::new(AgentId(0), Loss::Exact(0.5).leaves_at(0.1), Vector::F64(&[1.0, 0.0]));
/// let far = Report::new(AgentId(1), Loss::Exact(2.0).leaves_at(0.1), Vector::F64(&[0.0, 1.0]));
/// let mut server = Server::new(vec![0.0, 0.0], QFedAvg::default(), 1.0)?;
/// server.step(&Reports::new(2, vec![near, far])?)?;
/// // Four times the loss, four times the pull.
/// assert!((server.weights()[1] - 4.0 * server.weights()[0]).abs() < 1e-12);
/// # Ok::<(), fedstay::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct QFedAvg {
    /// How much more a larger loss counts: 0 is FedAvg, a large q looks at the largest loss only.
    /// Larger: shorter steps.
    pub q: f64,
    /// How much each agent counts.
    pub weigh: Weigh,
    /// Widens the forecast of departures and changes no step.
    pub delta: f64,
}

impl Default for QFedAvg {
    fn default() -> Self {
        Self { q: 1.0, weigh: Weigh::default(), delta: 0.0 }
    }
}

impl Aggregator for QFedAvg {
    fn aggregate(&mut self, round: &Round<'_>, step: &mut [f64]) -> Result<Decision, Error> {
        let losses = round.reports.iter().map(|report| report.exact_loss("q-fedavg"));
        let losses: Vec<f64> =
            losses.map(|loss| loss.map(|loss| loss.max(LEAST_LOSS))).collect::<Result<_, _>>()?;
        let largest = losses.iter().copied().fold(LEAST_LOSS, f64::max);
        // Numerator and denominator over (largest loss)^q, which no q can overflow; over L as well,
        // which leaves the server's η in front.
        let mut weights: Vec<f64> =
            losses.iter().map(|loss| (self.q * (loss / largest).ln()).exp()).collect();
        if let Some(shares) = self.weigh.shares(round.reports.iter().map(|report| report.samples)) {
            weights.iter_mut().zip(shares).for_each(|(weight, share)| *weight *= share);
        }
        let mut total = 0.0;
        for ((report, loss), weight) in round.reports.iter().zip(&losses).zip(&weights) {
            let strides = round.strides(report);
            let squared = linalg::dot(report.direction, report.direction) * strides * strides;
            if *weight > 0.0 {
                total += weight * (1.0 + self.q * round.step_size * squared / loss);
            }
        }
        weights.iter_mut().for_each(|weight| *weight /= total);
        descend(round, &weights, step);
        Ok(watched(round, step, self.delta))
    }

    fn facts(&self) -> Facts {
        Facts { label: self.weigh.label(), changes: CHANGES, ..Facts::blind(self.delta) }
    }

    fn check(&self) -> Result<(), Error> {
        super::check_not_negative("rule.q", self.q)?;
        super::check_delta(self.delta)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AgentId, Loss, Report, Reports, Server, Vector};

    fn step(q: f64, losses: [f64; 2], gradients: [[f64; 2]; 2]) -> Vec<f64> {
        let rule = QFedAvg { q, ..QFedAvg::default() };
        let mut server = Server::new(vec![0.0; 2], rule, 0.5).unwrap();
        let [a, b] = &gradients;
        let report = |id: u64, loss, g| {
            Report::new(AgentId(id), Loss::Exact(loss).leaves_at(0.1), Vector::F64(g))
        };
        let reports = vec![report(0, losses[0], &a[..]), report(1, losses[1], b)];
        server.step(&Reports::new(2, reports).unwrap()).unwrap();
        server.displacement().to_vec()
    }

    #[test]
    fn a_loss_of_zero_is_no_division_by_it() {
        let sides = [[1.0, 0.0], [0.0, 1.0]];
        for q in [0.0, 0.1, 0.5, 1.0, 2.0, 1000.0] {
            for losses in [[0.0, 0.0], [0.0, 1.0], [-1.0, 1e-300], [1e300, 1e-300]] {
                let step = step(q, losses, sides);
                assert!(step.iter().all(|value| value.is_finite() && *value <= 0.0), "q = {q}");
            }
        }
        assert_eq!(step(0.5, [0.0, 0.0], [[0.0; 2]; 2]), [0.0, 0.0]);
    }

    #[test]
    fn a_large_q_looks_at_the_largest_loss_only() {
        let step = step(200.0, [1.0, 2.0], [[1.0, 0.0], [0.0, 1.0]]);
        // −F g/(q‖g‖² + L F) with L = 2.
        assert!(step[0].abs() < 1e-50 && (step[1] + 2.0 / 204.0).abs() < 1e-15, "{step:?}");
    }
}

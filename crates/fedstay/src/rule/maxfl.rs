//! MaxFL: as many agents as possible under their requirement.
//!
//! ```text
//! q_m = σ(x_m)(1 − σ(x_m))  or  σ(x_m),   x_m = F_m − ρ_m
//! s = −η Σ q_m g_m / (Σ q_m + e),   g_m = reach_m · direction_m / η
//! ```
//!
//! The first reading (`"gradient"`) is the authors' algorithm: gradient descent on
//! `Σ σ(F_m − ρ_m)`, a smooth count of the agents above their requirement, with a step size that
//! adapts to `Σ q_m`. It pulls hardest at the agents nearest to their requirement. The second
//! (`"sigmoid"`) weighs agents by the objective instead of its derivative, so that those far above
//! pull hardest. The requirement ρ_m is the agent's target loss ε_m unless given.
//!
//! The server must know: every agent's exact loss, its direction, and its target loss if ρ is not
//! given. It never stops on its own. Pulling agents across their requirement is its very purpose,
//! so if agents leave once they are content, it is expected to lose them.
//!
//! Simplified here: the authors' ρ_m is the loss of a model that the agent trained alone (set
//! `epsilon = "1.0 * local"` for that).
//!
//! Reference: Yae Jee Cho, Divyansh Jhunjhunwala, Tian Li, Virginia Smith, Gauri Joshi, *Maximizing
//! Global Model Appeal in Federated Learning*, TMLR 2024; arXiv 2205.14840 (2022), first titled *To
//! Federate or Not To Federate: Incentivizing Client Participation in Federated Learning*.

use super::{Aggregator, Decision, Facts, Origin, Round, descend, watched};
use crate::Error;
use serde::{Deserialize, Serialize};

pub(super) const ORIGIN: Origin = Origin {
    about: "as many agents as possible under their requirement; pulls at those who are near it",
    reference: "Cho, Jhunjhunwala, Li, Smith, Joshi, Maximizing Global Model Appeal in Federated Learning, TMLR 2024",
};

/// As many agents as possible under their requirement.
///
/// ```
/// use fedstay::rule::MaxFl;
/// use fedstay::{AgentId, Loss, Report, Reports, Server, Vector};
///
/// let near = Report::new(AgentId(0), Loss::Exact(0.6).leaves_at(0.5), Vector::F64(&[1.0, 0.0]));
/// let far = Report::new(AgentId(1), Loss::Exact(3.5).leaves_at(0.5), Vector::F64(&[0.0, 1.0]));
/// let mut server = Server::new(vec![0.0, 0.0], MaxFl::default(), 1.0)?;
/// server.step(&Reports::new(2, vec![near, far])?)?;
/// // The agent near its requirement pulls hardest.
/// assert!(server.weights()[0] < 4.0 * server.weights()[1]);
/// # Ok::<(), fedstay::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MaxFl {
    /// How the weights follow from an agent's distance to its requirement.
    pub reading: Reading,
    /// The requirement of every agent; its own target loss unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rho: Option<f64>,
    /// Keeps the step short when hardly anybody is near their requirement. Zero: the step is always
    /// a weighted mean.
    pub e: f64,
    /// Widens the forecast of departures and changes no step.
    pub delta: f64,
}

/// How MaxFL weighs agents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reading {
    /// σ(x)(1 − σ(x)): the gradient of the objective.
    #[default]
    Gradient,
    /// σ(x): the objective itself.
    Sigmoid,
}

impl Default for MaxFl {
    fn default() -> Self {
        Self { reading: Reading::Gradient, rho: None, e: 1e-8, delta: 0.0 }
    }
}

impl Reading {
    fn weight(self, x: f64) -> f64 {
        // e^(−|x|) cannot overflow, and loses no digits where the weight is small.
        let small = (-x.abs()).exp();
        match self {
            Self::Gradient => small / (1.0 + small).powi(2),
            Self::Sigmoid if x >= 0.0 => 1.0 / (1.0 + small),
            Self::Sigmoid => small / (1.0 + small),
        }
    }
}

impl Aggregator for MaxFl {
    fn aggregate(&mut self, round: &Round<'_>, step: &mut [f64]) -> Result<Decision, Error> {
        let mut weights = Vec::with_capacity(round.reports.len());
        for report in round.reports.iter() {
            let loss = report.exact_loss("maxfl")?;
            // An agent that tells its loss tells its target loss.
            let rho = self.rho.or(report.epsilon()).unwrap_or(0.0);
            weights.push(self.reading.weight(loss - rho));
        }
        let total = weights.iter().sum::<f64>() + self.e;
        if total > 0.0 {
            weights.iter_mut().for_each(|weight| *weight /= total);
        }
        descend(round, &weights, step);
        Ok(watched(round, step, self.delta))
    }

    fn facts(&self) -> Facts {
        Facts::watching(self.delta)
    }

    fn check(&self) -> Result<(), Error> {
        if let Some(rho) = self.rho.filter(|rho| !rho.is_finite()) {
            return Err(Error::bad_parameter("rule.rho", rho, "a finite number"));
        }
        super::check_not_negative("rule.e", self.e)?;
        super::check_delta(self.delta)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AgentId, Loss, Report, Reports, Server, Vector};

    fn step(rule: MaxFl, losses: [f64; 2]) -> Vec<f64> {
        let (a, b) = ([1.0, 0.0], [0.0, 1.0]);
        let mut server = Server::new(vec![0.0; 2], rule, 1.0).unwrap();
        let report = |id: u64, loss, g| {
            Report::new(AgentId(id), Loss::Exact(loss).leaves_at(0.5), Vector::F64(g))
        };
        let reports = vec![report(0, losses[0], &a[..]), report(1, losses[1], &b)];
        server.step(&Reports::new(2, reports).unwrap()).unwrap();
        server.displacement().to_vec()
    }

    #[test]
    fn one_reading_pulls_at_the_near_and_one_at_the_far() {
        let near_and_far = [0.6, 3.5];
        let gradient = step(MaxFl::default(), near_and_far);
        assert!(gradient[0] < 4.0 * gradient[1], "{gradient:?}");
        let sigmoid = step(MaxFl { reading: Reading::Sigmoid, ..MaxFl::default() }, near_and_far);
        assert!(sigmoid[1] < 1.5 * sigmoid[0], "{sigmoid:?}");
    }

    #[test]
    fn rho_takes_the_place_of_the_precision() {
        let own = step(MaxFl { rho: Some(3.5), ..MaxFl::default() }, [0.6, 3.5]);
        assert!(own[1] < 4.0 * own[0], "{own:?}");
        assert_eq!(
            step(MaxFl { rho: Some(0.5), ..MaxFl::default() }, [0.6, 3.5]),
            step(MaxFl::default(), [0.6, 3.5])
        );
    }

    #[test]
    fn weights_too_small_for_a_float_are_no_step() {
        for reading in [Reading::Gradient, Reading::Sigmoid] {
            let rule = MaxFl { reading, rho: Some(0.0), e: 0.0, delta: 0.0 };
            assert_eq!(step(rule, [-1e300, -1e4]), [0.0, 0.0]);
        }
        assert_eq!(step(MaxFl { e: 0.0, ..MaxFl::default() }, [1e4, 1e300]), [0.0, 0.0]);
    }
}

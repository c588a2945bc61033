//! FedMGDA+: a step that helps everybody at once, as far as there is one.
//!
//! ```text
//! u_m = g_m/‖g_m‖,   g_m = reach_m · direction_m / η
//! λ = argmin ‖Σ λ_m u_m‖²  over  Σ λ = 1,  λ ≥ 0,  |λ_m − 1/M| ≤ e
//! s = −η Σ λ_m u_m
//! ```
//!
//! With e ≥ 1 the shortest combination has a non-negative inner product with every gradient, so to
//! first order nobody's loss rises (multiple-gradient descent); with e = 0 it is the plain mean of
//! the normalised gradients. Normalising keeps a long gradient from buying influence.
//!
//! The server must know: the directions. It never stops on its own. The length of the step does not
//! fall with the gradients, so a fixed η circles around a solution. A zero gradient stays zero:
//! with e ≥ 1 it takes all the weight and the step is zero, because nothing helps an agent that is
//! at its minimum.
//!
//! How far an agent went is normalised away, so several local steps make no step longer, here as for
//! the authors.
//!
//! Simplified here: the authors let the server's step size decay over the rounds, and prefer weights
//! by sample counts instead of 1/M where agents differ in size.
//!
//! Reference: Zeou Hu, Kiarash Shaloudegi, Guojun Zhang, Yaoliang Yu, *Federated Learning Meets
//! Multi-Objective Optimization*, IEEE Transactions on Network Science and Engineering 9(4), 2022;
//! arXiv 2006.11489 (2020).

use super::{Aggregator, Decision, Facts, Origin, Round, watched};
use crate::{Error, Vector, linalg};
use fedstay_kernels::numerics::simplex;
use serde::{Deserialize, Serialize};

pub(super) const ORIGIN: Origin = Origin {
    about: "the shortest combination of normalised gradients: helps everybody at once where it can",
    reference: "Hu, Shaloudegi, Zhang, Yu, Federated Learning Meets Multi-Objective Optimization, IEEE TNSE 2022",
};

/// A squared length below this is a zero gradient.
const ZERO: f64 = 1e-200;

/// A step that helps everybody at once.
///
/// ```
/// use fedstay::rule::FedMgdaPlus;
/// use fedstay::{AgentId, Loss, Report, Reports, Server, Vector};
///
/// // The gradients conflict.
/// let near = Report::new(AgentId(0), Loss::Exact(0.5).leaves_at(0.1), Vector::F64(&[1.0, 0.0]));
/// let far = Report::new(AgentId(1), Loss::Exact(2.0).leaves_at(0.1), Vector::F64(&[-1.0, 1.0]));
/// let mut server = Server::new(vec![0.0, 0.0], FedMgdaPlus { e: 1.0, ..FedMgdaPlus::default() }, 1.0)?;
/// server.step(&Reports::new(2, vec![near, far])?)?;
/// // Both losses fall: ⟨g, s⟩ < 0.
/// let [a, b] = [server.weights()[0], server.weights()[1]];
/// assert!(a < 0.0 && b - a < 0.0);
/// # Ok::<(), fedstay::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FedMgdaPlus {
    /// How far a weight may be from 1/M. 0: the mean of the normalised gradients; 1: the shortest
    /// combination, which may leave agents out.
    pub e: f64,
    /// Widens the forecast of departures and changes no step.
    pub delta: f64,
}

impl Default for FedMgdaPlus {
    fn default() -> Self {
        Self { e: 0.1, delta: 0.0 }
    }
}

impl Aggregator for FedMgdaPlus {
    fn aggregate(&mut self, round: &Round<'_>, step: &mut [f64]) -> Result<Decision, Error> {
        let directions: Vec<Vector<'_>> =
            round.reports.iter().map(|report| report.direction).collect();
        let count = directions.len();
        let mut gram = linalg::gram(&directions);
        let inverse = |m: usize| match gram[m * count + m] {
            squared if squared > ZERO => 1.0 / squared.sqrt(),
            _ => 0.0,
        };
        let inverses: Vec<f64> = (0..count).map(inverse).collect();
        for (index, product) in gram.iter_mut().enumerate() {
            // One after the other: the product of two may be out of range.
            *product = *product * inverses[index / count] * inverses[index % count];
        }
        let mut weights = simplex::shortest(&gram, count, self.e);
        weights.iter_mut().zip(&inverses).for_each(|(weight, inverse)| *weight *= inverse);
        for (direction, weight) in directions.into_iter().zip(weights) {
            linalg::add_scaled(step, -round.step_size * weight, direction);
        }
        Ok(watched(round, step, self.delta))
    }

    fn facts(&self) -> Facts {
        Facts::blind(self.delta).near(2.0)
    }

    fn check(&self) -> Result<(), Error> {
        super::check_not_negative("rule.e", self.e)?;
        super::check_delta(self.delta)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AgentId, Loss, Report, Reports, Server};

    fn step(e: f64, gradients: &[[f64; 2]]) -> Vec<f64> {
        let rule = FedMgdaPlus { e, ..FedMgdaPlus::default() };
        let mut server = Server::new(vec![0.0; 2], rule, 1.0).unwrap();
        let reports = gradients.iter().enumerate();
        let reports = reports.map(|(id, g)| {
            Report::new(AgentId(id as u64), Loss::Exact(9.0).leaves_at(0.1), Vector::F64(g))
        });
        server.step(&Reports::new(2, reports.collect()).unwrap()).unwrap();
        server.displacement().to_vec()
    }

    fn near(step: &[f64], expected: [f64; 2]) -> bool {
        step.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-7)
    }

    #[test]
    fn lengths_do_not_count_and_the_box_holds() {
        let gradients = [[5.0, 0.0], [0.0, 1e-3], [0.0, 7.0]];
        assert!(near(&step(0.0, &gradients), [-1.0 / 3.0, -2.0 / 3.0]));
        assert!(near(&step(1.0, &gradients), [-0.5, -0.5]));
        assert!(near(&step(0.1, &gradients), [-1.0 / 3.0 - 0.1, -2.0 / 3.0 + 0.1]));
    }

    #[test]
    fn opposite_and_zero_gradients_are_no_step() {
        assert!(near(&step(1.0, &[[2.0, 0.0], [-3.0, 0.0]]), [0.0, 0.0]));
        assert!(near(&step(1.0, &[[2.0, 0.0], [0.0, 0.0]]), [0.0, 0.0]));
        assert!(near(&step(0.1, &[[2.0, 0.0], [0.0, 0.0]]), [-0.4, 0.0]));
        assert_eq!(step(0.5, &[[0.0, 0.0]]), [0.0, 0.0]);
        assert!(near(&step(0.5, &[[1e-90, 1e-90]]), [-(0.5f64.sqrt()), -(0.5f64.sqrt())]));
        assert_eq!(step(0.5, &[[1e-170, 0.0]]), [0.0, 0.0]);
    }
}

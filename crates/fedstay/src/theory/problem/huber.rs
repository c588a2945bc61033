//! Random realizable regression with Huber's loss.
//!
//! `F_m(w) = (1/n) Σ h(⟨a_i, w⟩ − ⟨a_i, w*⟩)` with unit rows `a_i` and `h(t) = t²/2` for `|t| ≤ 1`,
//! `|t| − ½` beyond. Convex, shared optimum `w*`, L ≤ 1, and H by Gershgorin's circles.

use super::random::{Table, check_sizes, dot, instance, normal, smoothness, unit};
use super::{Instance, Oracle, Origin, Pose, Posed};
use crate::{Error, Seed};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

pub(super) const ORIGIN: Origin = Origin {
    about: "random realizable regression with Huber's loss; L and H are known",
    reference: "for the theorem of arXiv 2311.16459",
};

/// Parameters of the family; the seed picks the member.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Huber {
    /// The number of agents, M.
    pub agents: usize,
    /// The number of weights, d; above M the gradients are independent almost surely.
    pub dim: usize,
    /// The samples of each agent.
    pub samples: usize,
    /// Where a run begins; drawn so that nobody is content, unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<Vec<f64>>,
}

impl Default for Huber {
    fn default() -> Self {
        Self { agents: 5, dim: 20, samples: 10, start: None }
    }
}

fn huber(prediction: f64, target: f64) -> (f64, f64) {
    let residual = prediction - target;
    if residual.abs() <= 1.0 {
        (0.5 * residual * residual, residual)
    } else {
        (residual.abs() - 0.5, residual.signum())
    }
}

impl Pose for Huber {
    fn pose(&self, seed: Seed) -> Result<Instance, Error> {
        check_sizes(self.agents, self.dim, self.samples)?;
        let mut rng = seed.stream("optimum", 0, 0);
        let optimum: Vec<f64> = (0..self.dim).map(|_| normal(&mut rng)).collect();
        let mut steepest: f64 = 0.0;
        let mut oracles: Vec<Arc<dyn Oracle>> = Vec::new();
        for agent in 0..self.agents {
            let mut rng = seed.stream("samples", 0, agent as u64);
            let rows: Vec<Vec<f64>> = (0..self.samples).map(|_| unit(&mut rng, self.dim)).collect();
            let targets = rows.iter().map(|row| dot(row, &optimum)).collect();
            steepest = steepest.max(smoothness(&rows));
            oracles.push(Arc::new(Table { rows, targets, phi: huber, correct: None }));
        }
        Ok(instance(oracles, &optimum, seed, (1.0, steepest), 0.5))
    }

    fn facts(&self) -> Posed<'_> {
        Posed { start: &self.start, convex: true, reaches_zero: true }
    }
}

//! Random separable classification with a smoothed hinge.
//!
//! `F_m(w) = (1/n) Σ φ(y_i ⟨a_i, w⟩)` with unit rows, labels by a shared `w*` of margin at least 1,
//! and `φ(t) = 0` for `t ≥ 1`, `(1 − t)²/2` on (0, 1), `½ − t` below. Convex, `F_m(w*) = 0`, L ≤ 1,
//! and H by Gershgorin's circles.

use super::random::{Table, check_sizes, dot, instance, smoothness, unit};
use super::{Instance, Oracle, Origin, Pose, Posed};
use crate::{Error, Seed};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The length of the shared optimum; rows closer to its border than one over this are pulled away.
const LENGTH: f64 = 10.0;

pub(super) const ORIGIN: Origin = Origin {
    about: "random separable classification with a smoothed hinge; L and H are known",
    reference: "for the theorem of arXiv 2311.16459",
};

/// Parameters of the family; the seed picks the member.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SmoothedHinge {
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

impl Default for SmoothedHinge {
    fn default() -> Self {
        Self { agents: 5, dim: 20, samples: 10, start: None }
    }
}

fn smoothed_hinge(prediction: f64, label: f64) -> (f64, f64) {
    let margin = label * prediction;
    if margin >= 1.0 {
        (0.0, 0.0)
    } else if margin > 0.0 {
        (0.5 * (1.0 - margin).powi(2), -label * (1.0 - margin))
    } else {
        (0.5 - margin, -label)
    }
}

impl Pose for SmoothedHinge {
    fn pose(&self, seed: Seed) -> Result<Instance, Error> {
        check_sizes(self.agents, self.dim, self.samples)?;
        let mut optimum = unit(&mut seed.stream("optimum", 0, 0), self.dim);
        optimum.iter_mut().for_each(|value| *value *= LENGTH);
        let mut steepest: f64 = 0.0;
        let mut oracles: Vec<Arc<dyn Oracle>> = Vec::new();
        for agent in 0..self.agents {
            let mut rng = seed.stream("samples", 0, agent as u64);
            let mut rows = Vec::with_capacity(self.samples);
            while rows.len() < self.samples {
                let mut row = unit(&mut rng, self.dim);
                let margin = dot(&row, &optimum);
                if margin.abs() < 1.0 {
                    // Too near the border for a margin of 1: pull the row to its own side, which
                    // ends for every dimension, where drawing again might not.
                    let pull = margin.signum() / LENGTH;
                    row.iter_mut().zip(&optimum).for_each(|(r, w)| *r += pull * w / LENGTH);
                    let length = dot(&row, &row).sqrt();
                    row.iter_mut().for_each(|value| *value /= length);
                }
                if dot(&row, &optimum).abs() >= 1.0 {
                    rows.push(row);
                }
            }
            let targets = rows.iter().map(|row| dot(row, &optimum).signum()).collect();
            steepest = steepest.max(smoothness(&rows));
            let correct: fn(f64, f64) -> bool = |prediction, label| prediction * label > 0.0;
            let phi = smoothed_hinge;
            oracles.push(Arc::new(Table { rows, targets, phi, correct: Some(correct) }));
        }
        // The origin has loss ½ for everybody: no agent is content, whatever its data.
        let mut instance = instance(oracles, &optimum, seed, (1.0, steepest), 0.4);
        instance.start.fill(0.0);
        Ok(instance)
    }

    fn facts(&self) -> Posed<'_> {
        Posed { start: &self.start, convex: true, reaches_zero: true }
    }
}

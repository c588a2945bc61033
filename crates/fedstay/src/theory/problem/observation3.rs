//! Observation 3: `F_0 = max(w_2, 0)`, `F_1 = max(w_1 − w_2 + α, 0)`, from (2, 1).
//!
//! Averaging moves in the direction (−1, 0), the same for every α, until agent 1 leaves; agent 0
//! alone then moves down and passes by the shared optimum: it ends with a mean loss of about ½.
//! ADA-GD turns when agent 1 is about to leave and slides along its level set into the corner.
//! Reference: arXiv 2311.16459, Observation 3 and Figure 6b.

use super::{Instance, Oracle, Origin, Pose, Posed};
use crate::{Error, Seed};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

pub(super) const ORIGIN: Origin = Origin {
    about: "max(w2, 0) and max(w1 − w2 + α, 0) from (2, 1): averaging fails, ADA-GD does not",
    reference: "arXiv 2311.16459, Observation 3 and Figure 6b",
};

/// Parameters of Observation 3.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Observation3 {
    /// Shifts agent 1's zero set; zero or more.
    pub alpha: f64,
    /// Where a run begins; (2, 1) unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<Vec<f64>>,
}

impl Default for Observation3 {
    fn default() -> Self {
        Self { alpha: 1.0, start: None }
    }
}

/// `max(⟨a, w⟩ + b, 0)`.
struct Ramp {
    slope: [f64; 2],
    offset: f64,
}

impl Ramp {
    fn inside(&self, weights: &[f64]) -> f64 {
        self.slope[0] * weights[0] + self.slope[1] * weights[1] + self.offset
    }
}

impl Oracle for Ramp {
    fn loss(&self, weights: &[f64]) -> f64 {
        self.inside(weights).max(0.0)
    }

    fn loss_and_gradient(&self, weights: &[f64], gradient: &mut [f64]) -> f64 {
        let value = self.inside(weights);
        let on = if value > 0.0 { 1.0 } else { 0.0 };
        gradient[0] = on * self.slope[0];
        gradient[1] = on * self.slope[1];
        value.max(0.0)
    }
}

impl Pose for Observation3 {
    fn pose(&self, _: Seed) -> Result<Instance, Error> {
        if !(self.alpha.is_finite() && self.alpha >= 0.0) {
            return Err(Error::bad_parameter(
                "problem.alpha",
                self.alpha,
                "a number, zero or more",
            ));
        }
        Ok(Instance {
            oracles: vec![
                Arc::new(Ramp { slope: [0.0, 1.0], offset: 0.0 }),
                Arc::new(Ramp { slope: [1.0, -1.0], offset: self.alpha }),
            ],
            start: vec![2.0, 1.0],
            lipschitz: Some(std::f64::consts::SQRT_2),
            smoothness: None,
            epsilon: 0.12,
            step_size: 0.1,
            delta: 0.05,
        })
    }

    fn facts(&self) -> Posed<'_> {
        Posed { start: &self.start, convex: true, reaches_zero: true }
    }
}

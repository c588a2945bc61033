//! Observation 2: `F_0 = |w_2|`, `F_1 = |w_1 − w_2|`, from (1, 1).
//!
//! Agent 1 is content at the start and leaves at once. What remains can only move along `w_2`, so
//! every first-order rule ends at some (1, β), where the mean loss is at least ½: the start lies in
//! the problem's *bad region*. Reference: arXiv 2311.16459, Observation 2 and Figure 6a.

use super::{Instance, Oracle, Origin, Pose, Posed};
use crate::{Error, Seed};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

pub(super) const ORIGIN: Origin = Origin {
    about: "|w2| and |w1 − w2| from (1, 1): a start in the bad region, which no rule survives",
    reference: "arXiv 2311.16459, Observation 2 and Figure 6a",
};

/// Parameters of Observation 2.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Observation2 {
    /// Where a run begins; (1, 1) unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<Vec<f64>>,
}

/// `|⟨a, w⟩|`.
struct Absolute([f64; 2]);

impl Oracle for Absolute {
    fn loss(&self, weights: &[f64]) -> f64 {
        (self.0[0] * weights[0] + self.0[1] * weights[1]).abs()
    }

    fn loss_and_gradient(&self, weights: &[f64], gradient: &mut [f64]) -> f64 {
        let value = self.0[0] * weights[0] + self.0[1] * weights[1];
        // At the kink, zero: the subgradient of least length.
        let sign = if value == 0.0 { 0.0 } else { value.signum() };
        gradient[0] = sign * self.0[0];
        gradient[1] = sign * self.0[1];
        value.abs()
    }
}

impl Pose for Observation2 {
    fn pose(&self, _: Seed) -> Result<Instance, Error> {
        Ok(Instance {
            oracles: vec![Arc::new(Absolute([0.0, 1.0])), Arc::new(Absolute([1.0, -1.0]))],
            start: vec![1.0, 1.0],
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

//! Observation 4: a problem whose agents' gradients are parallel somewhere on the path.
//!
//! `F_0 = max(|w_1| − b, 0)` is zero on a strip that separates the start from agent 1's zero set,
//! the disc `F_1 = max(‖w − c‖² − r², 0)`. Strip and disc overlap, so some weights satisfy both.
//! But the path of small steps crosses the strip high above the overlap: agent 0 leaves there, the
//! rest of the path leads straight to the disc, and agent 0 ends with `F_0 = 1`. The numbers are
//! chosen so that averaging moves on the line through the start and (3.5, 0) until
//! `w_1 = −(b + ε)`, then on the line to `c`, and meets the ε-level of `F_1` at `w_1 = b + 1`.
//!
//! A rule that keeps agent 0 out of the strip can only slide down along it, to the point where both
//! gradients are parallel. There it has to stop: ADA-GD, which for convex losses never loses
//! anybody, ends `stalled`, with agent 1 unsatisfied. Reference: arXiv 2311.16459, Observation 4
//! and its figure of a bad problem.

use super::{Instance, Oracle, Origin, Pose, Posed};
use crate::{Error, Seed};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Half the strip's width.
const STRIP: f64 = 0.5;
/// The disc's centre.
const CENTRE: [f64; 2] = [3.0, 0.0];
/// The disc's radius.
const RADIUS: f64 = 3.0;
/// The target loss for which the numbers come out even.
const EPSILON: f64 = 0.1;

pub(super) const ORIGIN: Origin = Origin {
    about: "a strip before a disc: small steps either lose the strip's agent or stall",
    reference: "arXiv 2311.16459, Observation 4 and its figure of a bad problem",
};

/// Parameters of Observation 4.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Observation4 {
    /// Where a run begins; unless given, on the line described above, at `w_1 = −2`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<Vec<f64>>,
}

struct Strip;

impl Oracle for Strip {
    fn loss(&self, weights: &[f64]) -> f64 {
        (weights[0].abs() - STRIP).max(0.0)
    }

    fn loss_and_gradient(&self, weights: &[f64], gradient: &mut [f64]) -> f64 {
        let loss = self.loss(weights);
        gradient[0] = if loss > 0.0 { weights[0].signum() } else { 0.0 };
        gradient[1] = 0.0;
        loss
    }
}

struct Disc;

impl Oracle for Disc {
    fn loss(&self, weights: &[f64]) -> f64 {
        let (x, y) = (weights[0] - CENTRE[0], weights[1] - CENTRE[1]);
        (x * x + y * y - RADIUS * RADIUS).max(0.0)
    }

    fn loss_and_gradient(&self, weights: &[f64], gradient: &mut [f64]) -> f64 {
        let loss = self.loss(weights);
        for axis in 0..2 {
            gradient[axis] = if loss > 0.0 { 2.0 * (weights[axis] - CENTRE[axis]) } else { 0.0 };
        }
        loss
    }
}

impl Pose for Observation4 {
    fn pose(&self, _: Seed) -> Result<Instance, Error> {
        // Back from the end: the point of the ε-level circle at w_1 = b + 1, the ray through it
        // from the centre up to the strip, and from there the line away from (c_1 + ½, c_2).
        let level = (RADIUS * RADIUS + EPSILON).sqrt();
        let along = (CENTRE[0] - (STRIP + 1.0)) / level;
        let across = (1.0 - along * along).sqrt();
        let entry = [-(STRIP + EPSILON), (CENTRE[0] + STRIP + EPSILON) / along * across];
        let pull = CENTRE[0] + 0.5;
        let start = [-2.0, entry[1] * (pull + 2.0) / (pull - entry[0])];
        Ok(Instance {
            oracles: vec![Arc::new(Strip), Arc::new(Disc)],
            start: start.to_vec(),
            lipschitz: None,
            smoothness: None,
            epsilon: EPSILON,
            step_size: 0.01,
            delta: 0.05,
        })
    }

    fn facts(&self) -> Posed<'_> {
        Posed { start: &self.start, convex: true, reaches_zero: true }
    }
}

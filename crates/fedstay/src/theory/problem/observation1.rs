//! Observation 1: a problem on which every departure is benign.
//!
//! A point `x` of the plane is labelled by whether `x_1 ≤ 0`. Agent 0's points are uniform on the
//! unit ball, agent 1's are `±e_1`. With `z = y·x` (the point times its label ±1) the logistic loss
//! is `E softplus(−⟨w, z⟩)`. Agent 1 has `z = −e_1` always, so `F_1 = softplus(w_1)`; agent 0's `z`
//! is uniform on the left half of the ball.
//!
//! *What is good for agent 0 is good for agent 1*, for every ε < log 2: by Jensen's inequality
//! `F_0(w) ≥ softplus(−⟨w, E z⟩) = softplus(4 w_1/(3π))`. If that is below log 2 then `w_1 < 0`,
//! and so `F_1(w) = softplus(w_1) ≤ softplus(4 w_1/(3π)) ≤ F_0(w)`.
//!
//! From a start on the first axis both gradients stay parallel to it, which makes ADA-GD stall: it
//! cannot help agent 0 and leave agent 1 alone. Reference: arXiv 2311.16459, Observation 1.

use super::{Instance, Oracle, Origin, Pose, Posed};
use crate::{Error, Seed};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

pub(super) const ORIGIN: Origin = Origin {
    about: "unit ball against ±e1: every departure is benign; ADA-GD stalls on its parallel gradients",
    reference: "arXiv 2311.16459, Observation 1",
};

/// Parameters of Observation 1.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Observation1 {
    /// Where a run begins; (1, 0) unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<Vec<f64>>,
}

pub(super) fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

pub(super) fn sigmoid(x: f64) -> f64 {
    if x >= 0.0 {
        1.0 / (1.0 + (-x).exp())
    } else {
        let e = x.exp();
        e / (1.0 + e)
    }
}

/// The uniform distribution on the left half of the unit ball, as rings of equal-area points.
///
/// A point and its mirror image below the axis stand next to each other, so that on the axis their
/// shares of the second component cancel to the last bit and the gradient is exactly parallel to
/// it, as it truly is.
struct HalfBall {
    upper: Vec<[f64; 2]>,
}

const RINGS: u32 = 24;
const SPOKES: u32 = 24;

impl HalfBall {
    fn new() -> Self {
        let mut upper = Vec::new();
        for ring in 0..RINGS {
            let radius = ((f64::from(ring) + 0.5) / f64::from(RINGS)).sqrt();
            for spoke in 0..SPOKES {
                let share = (f64::from(spoke) + 0.5) / f64::from(SPOKES);
                let angle = std::f64::consts::FRAC_PI_2 * (1.0 + share);
                upper.push([radius * angle.cos(), radius * angle.sin()]);
            }
        }
        Self { upper }
    }
}

impl Oracle for HalfBall {
    fn loss(&self, weights: &[f64]) -> f64 {
        let pair = |z: &[f64; 2]| {
            let (along, across) = (weights[0] * z[0], weights[1] * z[1]);
            softplus(-(along + across)) + softplus(-(along - across))
        };
        self.upper.iter().map(pair).sum::<f64>() / (2 * self.upper.len()) as f64
    }

    fn loss_and_gradient(&self, weights: &[f64], gradient: &mut [f64]) -> f64 {
        let (mut total, mut first, mut second) = (0.0, 0.0, 0.0);
        for z in &self.upper {
            let (along, across) = (weights[0] * z[0], weights[1] * z[1]);
            let (above, below) = (-(along + across), -(along - across));
            total += softplus(above) + softplus(below);
            first -= (sigmoid(above) + sigmoid(below)) * z[0];
            second -= (sigmoid(above) - sigmoid(below)) * z[1];
        }
        let count = (2 * self.upper.len()) as f64;
        gradient[0] = first / count;
        gradient[1] = second / count;
        total / count
    }

    fn accuracy(&self, weights: &[f64]) -> Option<f64> {
        let right = |z: &[f64; 2]| {
            let (along, across) = (weights[0] * z[0], weights[1] * z[1]);
            f64::from(along + across > 0.0) + f64::from(along - across > 0.0)
        };
        Some(self.upper.iter().map(right).sum::<f64>() / (2 * self.upper.len()) as f64)
    }
}

/// `z = −e_1`, always.
struct Poles;

impl Oracle for Poles {
    fn loss(&self, weights: &[f64]) -> f64 {
        softplus(weights[0])
    }

    fn loss_and_gradient(&self, weights: &[f64], gradient: &mut [f64]) -> f64 {
        gradient[0] = sigmoid(weights[0]);
        gradient[1] = 0.0;
        softplus(weights[0])
    }

    fn accuracy(&self, weights: &[f64]) -> Option<f64> {
        Some(f64::from(weights[0] < 0.0))
    }
}

impl Pose for Observation1 {
    fn pose(&self, _: Seed) -> Result<Instance, Error> {
        Ok(Instance {
            oracles: vec![Arc::new(HalfBall::new()), Arc::new(Poles)],
            start: vec![1.0, 0.0],
            lipschitz: Some(1.0),
            smoothness: Some(0.25),
            epsilon: 0.3,
            step_size: 0.5,
            delta: 0.05,
        })
    }

    fn facts(&self) -> Posed<'_> {
        Posed { start: &self.start, convex: true, reaches_zero: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_satisfies_agent_1_satisfies_agent_2() {
        let instance = Observation1::default().pose(Seed(0)).unwrap();
        let mut inside = 0;
        for i in -40..=40 {
            for j in -40..=40 {
                let w = [f64::from(i), f64::from(j)];
                if instance.oracles[0].loss(&w) <= 0.5 {
                    inside += 1;
                    assert!(instance.oracles[1].loss(&w) <= 0.5, "{w:?}");
                }
            }
        }
        assert!(inside > 100);
    }

    #[test]
    fn on_the_axis_the_gradients_are_parallel_to_the_last_bit() {
        let instance = Observation1::default().pose(Seed(0)).unwrap();
        let mut gradient = [1.0; 2];
        instance.oracles[0].loss_and_gradient(&[0.37, 0.0], &mut gradient);
        assert_eq!(gradient[1], 0.0);
    }
}

//! Figure 1: red and blue, two devices whose classifiers need each other's data.
//!
//! Points of the disc with labels ±1, and linear classifiers through the origin with the logistic
//! loss. Each device alone has many perfect classifiers; only those within 10° of the first axis
//! serve both. Eight of a device's ten points lie on its own side near the axis, two lie 80° away:
//! they are the ones a classifier trained for the other device gets wrong, 20% of the device's
//! data and 10% on average. Blue's points are shorter, so red is content first; after it has left,
//! blue's data turn the classifier to blue's side. Reference: arXiv 2311.16459, Figure 1.

use super::observation1::{sigmoid, softplus};
use super::{Instance, Oracle, Origin, Pose, Posed};
use crate::{Error, Seed};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

pub(super) const ORIGIN: Origin = Origin {
    about: "two linear classifiers on the disc; without red's data, red is 20% wrong",
    reference: "arXiv 2311.16459, Figure 1",
};

/// Parameters of the red and blue devices.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RedBlue {
    /// Where a run begins; the origin unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<Vec<f64>>,
}

/// One device's labelled points.
#[derive(Debug, Clone, PartialEq)]
pub struct Device {
    /// The points.
    pub points: Vec<[f64; 2]>,
    /// Their labels, ±1.
    pub labels: Vec<f64>,
}

impl RedBlue {
    /// The devices, red first.
    pub fn devices() -> [Device; 2] {
        [Device::on_side(-1.0, 1.0, 1.0), Device::on_side(1.0, 0.4, 0.4)]
    }
}

impl Pose for RedBlue {
    fn pose(&self, _: Seed) -> Result<Instance, Error> {
        let [red, blue] = Self::devices();
        Ok(Instance {
            oracles: vec![Arc::new(red), Arc::new(blue)],
            start: vec![0.0, 0.0],
            lipschitz: Some(1.0),
            smoothness: Some(0.25),
            epsilon: 0.1,
            step_size: 0.1,
            delta: 0.02,
        })
    }

    fn facts(&self) -> Posed<'_> {
        Posed { start: &self.start, convex: true, reaches_zero: false }
    }
}

impl Device {
    fn on_side(side: f64, near: f64, far: f64) -> Self {
        let near = (1..=8).map(|index| (5.0 * f64::from(index), near));
        let polar = near.chain([(80.0, far), (80.0, far)]);
        let mut device = Self { points: Vec::new(), labels: Vec::new() };
        for (index, (degrees, radius)) in polar.enumerate() {
            // Every other point has the label −1 and lies opposite.
            let label = if index % 2 == 0 { 1.0 } else { -1.0 };
            let angle: f64 = side * degrees.to_radians();
            device.points.push([label * radius * angle.cos(), label * radius * angle.sin()]);
            device.labels.push(label);
        }
        device
    }

    /// Every point's margin `y⟨w, x⟩`.
    fn margins(&self, weights: &[f64]) -> impl Iterator<Item = f64> {
        let w = [weights[0], weights[1]];
        self.points.iter().zip(&self.labels).map(move |(x, y)| y * (w[0] * x[0] + w[1] * x[1]))
    }
}

impl Oracle for Device {
    fn loss(&self, weights: &[f64]) -> f64 {
        self.margins(weights).map(|margin| softplus(-margin)).sum::<f64>()
            / self.points.len() as f64
    }

    fn loss_and_gradient(&self, weights: &[f64], gradient: &mut [f64]) -> f64 {
        gradient.fill(0.0);
        let count = self.points.len() as f64;
        for ((x, y), margin) in self.points.iter().zip(&self.labels).zip(self.margins(weights)) {
            let pull = sigmoid(-margin) * y / count;
            gradient[0] -= pull * x[0];
            gradient[1] -= pull * x[1];
        }
        self.loss(weights)
    }

    fn accuracy(&self, weights: &[f64]) -> Option<f64> {
        let right = self.margins(weights).filter(|margin| *margin > 0.0).count();
        Some(right as f64 / self.points.len() as f64)
    }
}

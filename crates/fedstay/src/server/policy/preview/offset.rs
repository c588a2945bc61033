//! The way from what an agent was shown to the server's new weights.

use crate::Personal;

/// A buffer for one such way at a time.
pub(super) struct Offset {
    /// `w⁺ − w̃` of the agent looked at last.
    pub(super) way: Vec<f64>,
}

impl Offset {
    pub(super) fn new(step: &[f64]) -> Self {
        Self { way: step.to_vec() }
    }

    /// Looks at an agent that was shown `own`, or the server's weights.
    pub(super) fn from(&mut self, weights: &[f64], step: &[f64], own: Option<&Personal>) {
        self.way.copy_from_slice(step);
        if let Some(own) = own {
            own.subtract_offset(weights, &mut self.way);
        }
    }

    /// The point that has this share of the way behind it.
    pub(super) fn part(&self, weights: &[f64], step: &[f64], share: f64) -> Vec<f64> {
        let left = 1.0 - share;
        let new = weights.iter().zip(step).map(|(weight, step)| weight + step);
        new.zip(&self.way).map(|(new, way)| new - left * way).collect()
    }
}

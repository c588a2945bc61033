//! The units in which a model is fitted: as if every feature had mean 0 and deviation 1 on its rows.
//!
//! A descent is slow where one feature is measured in millions and another in thousandths. So it moves a
//! point of other coordinates, from which the weights follow: those of the first layer are divided by the
//! features' deviations, and its biases make up for the means. The model is the same; only the way to it
//! is shorter.

use crate::model::{Network, Rows};
use std::ops::Range;

/// How a point becomes weights.
pub(super) struct Units {
    /// Every feature's mean and its unit; empty where weights are taken as they are.
    features: Vec<(f64, f64)>,
    weight: Range<usize>,
    bias: Range<usize>,
}

impl Units {
    /// The units that suit these rows. Images are read as they are by convolutions.
    pub(super) fn new(network: &Network, rows: &Rows<'_>) -> Self {
        let (weight, bias) = network.layout().layer(0);
        if network.front.is_some() {
            return Self { features: Vec::new(), weight, bias };
        }
        let (count, mut row) = (rows.len() as f64, vec![0f32; network.features()]);
        let mut features = vec![(0.0, 0.0); row.len()];
        for index in 0..rows.len() {
            rows.data().fill(index, 0, &mut row);
            for ((mean, square), value) in features.iter_mut().zip(&row) {
                *mean += f64::from(*value) / count;
                *square += f64::from(*value).powi(2) / count;
            }
        }
        for (mean, square) in &mut features {
            // A feature that does not vary has no weight to find beside the bias.
            *square = (*square - *mean * *mean).max(1.0 / count).sqrt().recip();
        }
        Self { features, weight, bias }
    }

    /// The weights of a point.
    pub(super) fn weights(&self, point: &[f64]) -> Vec<f64> {
        let mut weights = point.to_vec();
        for (row, bias) in self.outputs() {
            for (place, (mean, unit)) in row.zip(&self.features) {
                weights[place] = unit * point[place];
                weights[bias] -= mean * weights[place];
            }
        }
        weights
    }

    /// The point of some weights.
    pub(super) fn point(&self, weights: &[f64]) -> Vec<f64> {
        let mut point = weights.to_vec();
        for (row, bias) in self.outputs() {
            for (place, (mean, unit)) in row.zip(&self.features) {
                point[place] = weights[place] / unit;
                point[bias] += mean * weights[place];
            }
        }
        point
    }

    /// The gradient with respect to a point, from that with respect to the weights.
    pub(super) fn gradient(&self, gradient: &mut [f64]) {
        for (row, bias) in self.outputs() {
            for (place, (mean, unit)) in row.zip(&self.features) {
                gradient[place] = unit * (gradient[place] - mean * gradient[bias]);
            }
        }
    }

    /// The first layer's outputs: where the weights of each lie, and its bias.
    fn outputs(&self) -> impl Iterator<Item = (Range<usize>, usize)> {
        let inputs = self.features.len();
        let (weight, bias) = (self.weight.start, self.bias.start);
        let outputs = if inputs == 0 { 0 } else { self.bias.len() };
        (0..outputs).map(move |output| {
            let start = weight + output * inputs;
            (start..start + inputs, bias + output)
        })
    }
}

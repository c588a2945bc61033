//! A network with convolutions in front: one tile forward, and local steps.

use super::Front;
use super::front::{FilterSums, Filters};
use crate::model::matmul::{Matrix, matmul, shape};
use crate::model::pass::Accumulate;
use crate::model::{Network, Rows, Workspace};

/// The most images of a tile in training: what is kept of them stays in the second cache.
pub(crate) const IMAGES: usize = 64;

impl Network {
    /// The convolutions' weights in a flat vector.
    fn filters<'a>(&self, flat: &'a [f32]) -> Filters<'a> {
        let [(first, first_bias), (second, second_bias)] = self.layout.front();
        Filters {
            first: &flat[first],
            first_bias: &flat[first_bias],
            second: &flat[second],
            second_bias: &flat[second_bias],
        }
    }

    /// Computes the first linear layer of the rows in `work.index` through the convolutions, given its
    /// weights as a matrix of features by outputs. Leaves the features in `work`, and with `keep` what
    /// the way back needs.
    pub(crate) fn first_convolved(
        &self,
        front: &Front,
        flat: &[f32],
        matrix: Matrix<'_>,
        rows: &Rows<'_>,
        keep: bool,
        work: &mut Workspace,
    ) {
        let (count, features, width) = (work.index.len(), self.widths[0], self.widths[1]);
        let filters = self.filters(flat);
        front.fit(count, keep, &mut work.front);
        front.pack(work.isa, filters, &mut work.front);
        work.inputs.resize(count * features);
        for (slot, row) in work.index.iter().enumerate() {
            let (before, features) = work.inputs.split_at_mut(slot * features);
            let features = &mut features[..self.widths[0]];
            // An evaluation fills its last tile up with the same row again and again.
            if !keep && slot > 0 && work.index[slot - 1] == *row {
                features.copy_from_slice(&before[before.len() - features.len()..]);
                continue;
            }
            let (image, slot) = ((rows.data(), *row), keep.then_some(slot));
            let scratch = &mut work.front;
            front.forward((work.isa, self.activation), image, filters, slot, scratch, features);
        }
        self.first_bias(flat, width, count, &mut work.values[0]);
        let x = Matrix::rows(&work.inputs, count, features, features);
        matmul(&mut work.values[0], shape(count, width, width), 1.0, 1.0, x, matrix);
    }

    /// Adds the gradients of the images in `work.index`, and returns the sum of their losses.
    pub(crate) fn train_images(
        &self,
        front: &Front,
        flat: &[f32],
        rows: &Rows<'_>,
        into: Accumulate,
        work: &mut Workspace,
    ) -> f64 {
        let (count, features, width) = (work.index.len(), self.widths[0], self.widths[1]);
        let first = self.layout.layer(0).0;
        let matrix = Matrix::rows(&flat[first], width, features, features);
        self.first_convolved(front, flat, matrix.transposed(), rows, true, work);
        let loss = self.train_tile(flat, rows, width, into, work);
        self.first_gradient_plain(into, work);
        let errors = Matrix::rows(&work.errors[0], count, width, width);
        let to = shape(count, features, features);
        matmul(&mut work.front.errors, to, 0.0, 1.0, errors, matrix);
        front.begin_backward(self.filters(flat), &mut work.front);
        for (slot, row) in work.index.iter().enumerate() {
            front.backward(work.isa, (rows.data(), *row), slot, &mut work.front);
        }
        let [(first, first_bias), (second, second_bias)] = self.layout.front();
        let sums = work.sum[first.start..second_bias.end].split_at_mut(first.len());
        let (first, rest) = sums;
        let (first_bias, rest) = rest.split_at_mut(first_bias.len());
        let (second, second_bias) = rest.split_at_mut(second.len());
        let sums = FilterSums { first, first_bias, second, second_bias };
        front.end_backward(into, &work.front, sums);
        loss
    }
}

//! The two convolutions in front of the linear layers: images in, features out, and back.

use super::Scratch;
use crate::model::RowsData;
use crate::model::pass::Accumulate;
use fedstay_kernels::Isa;
use fedstay_kernels::layer::conv::{self, Grid, SLACK, Shape, VIEW};
use fedstay_kernels::layer::rows::gather;
use fedstay_kernels::layer::scalar::Activation;

/// The shape of both convolutions, and where errors act on their way back.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Front {
    pub(crate) first: Shape,
    pub(crate) second: Shape,
    first_grid: Grid,
    second_grid: Grid,
    patches: Grid,
}

/// The weights and biases of both convolutions, `[output][input][row][column]`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Filters<'a> {
    pub(crate) first: &'a [f32],
    pub(crate) first_bias: &'a [f32],
    pub(crate) second: &'a [f32],
    pub(crate) second_bias: &'a [f32],
}

/// Where the gradients of [`Filters`] are added.
#[derive(Debug)]
pub(crate) struct FilterSums<'a> {
    pub(crate) first: &'a mut [f32],
    pub(crate) first_bias: &'a mut [f32],
    pub(crate) second: &'a mut [f32],
    pub(crate) second_bias: &'a mut [f32],
}

/// Where the filter of a pooled pixel lies on pixels with their channels side by side. `stride` says
/// how far apart the rows of pooled pixels are, `len` how many there are in all.
fn grid(shape: Shape, stride: usize, len: usize) -> Grid {
    let line = shape.width * shape.inputs;
    let base = (0..len).map(|at| match (at / stride, at % stride) {
        (row, column) if row < shape.pooled_height() && column < shape.pooled_width() => {
            2 * row * line + 2 * column * shape.inputs
        }
        _ => 0,
    });
    Grid::new(base, [0, shape.inputs, line, line + shape.inputs])
}

impl Front {
    pub(crate) fn new(first: Shape, second: Shape) -> Self {
        let patch = conv::patch(second);
        let base = (0..second.depth())
            .map(|output| if output < second.outputs { output * patch } else { 0 });
        let patches = Grid::new(base, std::array::from_fn(|place| place * second.outputs * patch));
        Self {
            first,
            second,
            first_grid: grid(first, first.stride(), first.plane()),
            second_grid: grid(second, second.pooled_width(), plane(second)),
            patches,
        }
    }

    /// How many numbers an image has.
    pub(crate) fn pixels(&self) -> usize {
        self.first.inputs * self.first.height * self.first.width
    }

    /// How many features the linear layers receive.
    pub(crate) fn features(&self) -> usize {
        self.second.pooled() * self.second.outputs
    }

    /// Makes room for tiles of this many images.
    pub(crate) fn fit(&self, tile: usize, keep: bool, scratch: &mut Scratch) {
        let (first, second) = (self.first, self.second);
        let kept = if keep { tile } else { 1 };
        scratch.image.resize(self.pixels() + SLACK);
        scratch.pixels.resize(self.pixels() + SLACK);
        scratch.hidden.resize(kept * first.outputs * first.plane());
        scratch.hidden_slopes.resize(kept * first.outputs * first.plane());
        scratch.hidden_which.resize(kept * first.outputs * first.plane(), 0);
        scratch.pooled.resize(second.pooled() * second.depth());
        scratch.pooled_which.resize(kept * second.pooled() * second.depth(), 0);
        scratch.planes_which.resize(kept * second.outputs * plane(second), 0);
        scratch.slopes.resize(kept * self.features());
        scratch.errors.resize(kept * self.features());
        scratch.planes_errors.resize(second.outputs * plane(second));
        scratch.pooled_errors.resize(second.pooled() * second.depth());
        scratch.hidden_pixels.resize(first.outputs * first.pooled() + SLACK);
        scratch.hidden_errors.resize(first.outputs * first.pooled());
        scratch.hidden_planes.resize(first.outputs * first.plane());
        scratch.patch.resize(conv::patch(second));
    }

    /// Takes over weights for the forward pass.
    pub(crate) fn pack(&self, isa: Isa, filters: Filters<'_>, scratch: &mut Scratch) {
        let second = self.second;
        scratch.first.resize(filters.first.len());
        conv::pack_wide(isa, self.first, filters.first, &mut scratch.first);
        scratch.second.resize(second.depth() * filters.second.len() / second.outputs);
        scratch.second_bias.resize(second.depth());
        let (packed, bias) = (&mut scratch.second, &mut scratch.second_bias);
        conv::pack_deep(isa, second, filters.second, filters.second_bias, packed, bias);
    }

    /// The features of one image, plane by plane. With `slot`, what the way back needs is kept there.
    pub(crate) fn forward(
        &self,
        (isa, activation): (Isa, Activation),
        image: (RowsData<'_>, u32),
        filters: Filters<'_>,
        slot: Option<usize>,
        scratch: &mut Scratch,
        features: &mut [f32],
    ) {
        let (first, second) = (self.first, self.second);
        let kept = slot.unwrap_or(0);
        let span = |size: usize| kept * size..(kept + 1) * size;
        gather(isa, image.0, &[image.1], &mut scratch.image[..self.pixels()]);
        let planes = span(first.outputs * first.plane());
        let hidden = &mut scratch.hidden[planes.clone()];
        let which = &mut scratch.hidden_which[planes.clone()];
        conv::wide(isa, first, &scratch.image, &scratch.first, filters.first_bias, hidden, which);
        if slot.is_some() {
            activation.apply_with_slope(isa, hidden, &mut scratch.hidden_slopes[planes]);
        } else {
            activation.apply(isa, hidden);
        }
        let which = &mut scratch.pooled_which[span(second.pooled() * second.depth())];
        let (weights, bias) = (&scratch.second, &scratch.second_bias);
        conv::deep(isa, second, first.stride(), hidden, weights, bias, &mut scratch.pooled, which);
        for (output, features) in features.chunks_exact_mut(second.pooled()).enumerate() {
            let pixels = scratch.pooled[output..].iter().step_by(second.depth());
            features.iter_mut().zip(pixels).for_each(|(feature, pixel)| *feature = *pixel);
        }
        if slot.is_none() {
            return activation.apply(isa, features);
        }
        let planes = &mut scratch.planes_which[span(second.outputs * plane(second))];
        for (output, planes) in planes.chunks_exact_mut(plane(second)).enumerate() {
            let pixels = which[output..].iter().step_by(second.depth());
            planes.iter_mut().zip(pixels).for_each(|(plane, pixel)| *plane = *pixel);
        }
        let slopes = &mut scratch.slopes[span(self.features())];
        activation.apply_with_slope(isa, features, slopes);
    }

    /// Takes over weights for the backward pass, and starts with gradients of zero.
    pub(crate) fn begin_backward(&self, filters: Filters<'_>, scratch: &mut Scratch) {
        let (first, second) = (self.first, self.second);
        scratch.second_patches.resize(4 * second.outputs * conv::patch(second));
        conv::pack_inputs(second, filters.second, &mut scratch.second_patches);
        scratch.first_sums.resize(first.outputs * conv::weights_line(first));
        scratch.second_sums.resize(second.outputs * conv::weights_line(second));
        scratch.first_sums.fill(0.0);
        scratch.second_sums.fill(0.0);
        scratch.first_bias_sums.clear();
        scratch.first_bias_sums.resize(first.outputs, 0.0);
        scratch.second_bias_sums.clear();
        scratch.second_bias_sums.resize(second.outputs, 0.0);
    }

    /// Adds the gradients of one image, whose forward pass was kept in `slot`, and whose errors with
    /// respect to its features are there as well.
    pub(crate) fn backward(
        &self,
        isa: Isa,
        image: (RowsData<'_>, u32),
        slot: usize,
        scratch: &mut Scratch,
    ) {
        let span = |size: usize| slot * size..(slot + 1) * size;
        self.spread_errors(isa, slot, scratch);
        self.backward_second(isa, slot, scratch);

        let first = self.first;
        let planes = span(first.outputs * first.plane());
        let (width, stride) = (first.pooled_width(), first.stride());
        let slopes = &scratch.hidden_slopes[planes.clone()];
        let errors = &mut scratch.hidden_planes;
        conv::separate(&scratch.hidden_errors, slopes, first.outputs, width, stride, errors);
        conv::add_sums(isa, errors, &mut scratch.first_bias_sums);
        gather(isa, image.0, &[image.1], &mut scratch.image[..self.pixels()]);
        let image = &scratch.image[..self.pixels()];
        conv::interleave(isa, image, first.inputs, first.width, first.width, &mut scratch.pixels);
        let which = scratch.hidden_which[planes].chunks_exact(first.plane());
        let sums = scratch.first_sums.chunks_exact_mut(conv::weights_line(first));
        for ((errors, which), sum) in errors.chunks_exact(first.plane()).zip(which).zip(sums) {
            conv::select(isa, errors, which, &self.first_grid, &mut scratch.list);
            conv::weights(isa, first, &scratch.pixels, &scratch.list, sum);
        }
    }

    /// The errors of the second convolution before its activation, in the two orders that the
    /// gradients of its weights and of its inputs want.
    fn spread_errors(&self, isa: Isa, slot: usize, scratch: &mut Scratch) {
        let second = self.second;
        let features = slot * self.features()..(slot + 1) * self.features();
        let (errors, slopes) = (&scratch.errors[features.clone()], &scratch.slopes[features]);
        let planes = scratch.planes_errors.chunks_exact_mut(plane(second));
        let features =
            errors.chunks_exact(second.pooled()).zip(slopes.chunks_exact(second.pooled()));
        for (plane, (errors, slopes)) in planes.zip(features) {
            let (values, padding) = plane.split_at_mut(second.pooled());
            for ((value, error), slope) in values.iter_mut().zip(errors).zip(slopes) {
                *value = error * slope;
            }
            padding.fill(0.0);
        }
        conv::add_sums(isa, &scratch.planes_errors, &mut scratch.second_bias_sums);
        for (pixel, errors) in scratch.pooled_errors.chunks_exact_mut(second.depth()).enumerate() {
            let (values, padding) = errors.split_at_mut(second.outputs);
            let planes = scratch.planes_errors[pixel..].iter().step_by(plane(second));
            values.iter_mut().zip(planes).for_each(|(value, plane)| *value = *plane);
            padding.fill(0.0);
        }
    }

    /// The gradients of the second convolution's weights and inputs.
    fn backward_second(&self, isa: Isa, slot: usize, scratch: &mut Scratch) {
        let (first, second) = (self.first, self.second);
        let span = |size: usize| slot * size..(slot + 1) * size;
        scratch.hidden_errors.fill(0.0);
        let line = second.width * second.inputs;
        let errors = scratch.pooled_errors.chunks_exact(second.depth());
        let which = &scratch.pooled_which[span(second.pooled() * second.depth())];
        for (pixel, (errors, which)) in errors.zip(which.chunks_exact(second.depth())).enumerate() {
            conv::select(isa, errors, which, &self.patches, &mut scratch.list);
            let (row, column) = (pixel / second.pooled_width(), pixel % second.pooled_width());
            let from = 2 * row * line + 2 * column * second.inputs;
            let to = from + (VIEW - 1) * line + VIEW * second.inputs;
            let gradient = &mut scratch.hidden_errors[from..to];
            let (packed, patch) = (&scratch.second_patches, &mut scratch.patch);
            conv::inputs(isa, second, packed, &scratch.list, patch, gradient, line);
        }
        let hidden = &scratch.hidden[span(first.outputs * first.plane())];
        let (width, stride) = (first.pooled_width(), first.stride());
        conv::interleave(isa, hidden, first.outputs, width, stride, &mut scratch.hidden_pixels);
        let which = &scratch.planes_which[span(second.outputs * plane(second))];
        let planes = scratch.planes_errors.chunks_exact(plane(second));
        let sums = scratch.second_sums.chunks_exact_mut(conv::weights_line(second));
        for ((errors, which), sum) in planes.zip(which.chunks_exact(plane(second))).zip(sums) {
            conv::select(isa, errors, which, &self.second_grid, &mut scratch.list);
            conv::weights(isa, second, &scratch.hidden_pixels, &scratch.list, sum);
        }
    }

    /// Adds the gradients of all images since [`begin_backward`](Self::begin_backward).
    pub(crate) fn end_backward(&self, into: Accumulate, scratch: &Scratch, sums: FilterSums<'_>) {
        let Accumulate { beta, alpha } = into;
        conv::unpack_weights(self.first, &scratch.first_sums, beta, alpha, sums.first);
        conv::unpack_weights(self.second, &scratch.second_sums, beta, alpha, sums.second);
        let biases = [
            (sums.first_bias, &scratch.first_bias_sums),
            (sums.second_bias, &scratch.second_bias_sums),
        ];
        for (bias, total) in biases {
            for (bias, total) in bias.iter_mut().zip(total) {
                let old = if beta == 0.0 { 0.0 } else { beta * *bias };
                *bias = old + alpha * total;
            }
        }
    }
}

/// The size of a pooled plane of the second convolution, padded to whole vectors.
fn plane(second: Shape) -> usize {
    second.pooled().next_multiple_of(conv::LANES)
}

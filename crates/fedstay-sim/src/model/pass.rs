//! One tile of rows forward and backward through a network.

use super::cnn::Front;
use super::matmul::{Matrix, matmul, shape};
use super::network::{Head, Network};
use super::{Error, Loaded, RowTargets, Rows, Workspace};
use fedstay_kernels::Isa;
use fedstay_kernels::layer::head;
use fedstay_kernels::layer::limbs::Limbs;
use fedstay_kernels::layer::panel;
use fedstay_kernels::layer::rows::gather;

/// How an evaluation computes the first layer.
#[derive(Debug, Clone, Copy)]
pub(crate) enum FirstLayer<'a> {
    Limbs(&'a Limbs),
    Panels(&'a [f32]),
    Plain(Matrix<'a>),
    Convolved(&'a Front, Matrix<'a>),
}

/// What a tile's gradients are added to: `sum = beta * sum + alpha * gradient`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Accumulate {
    pub(crate) beta: f32,
    pub(crate) alpha: f32,
}

impl Network {
    /// The fastest way to compute the first layer of these rows.
    pub(crate) fn first<'a>(
        &'a self,
        weights: &'a Loaded,
        rows: &Rows<'_>,
        isa: Isa,
    ) -> Result<FirstLayer<'a>, Error> {
        let plain = || {
            let (inputs, outputs) = (self.widths[0], self.widths[1]);
            Matrix::rows(weights.transposed(self), inputs, outputs, outputs)
        };
        Ok(if let Some(front) = &self.front {
            FirstLayer::Convolved(front, plain())
        } else if isa.has_vnni() && Limbs::can_read(rows.data()) {
            FirstLayer::Limbs(weights.limbs(self, rows.data())?)
        } else if isa.has_avx512() {
            FirstLayer::Panels(weights.panels(self))
        } else {
            FirstLayer::Plain(plain())
        })
    }

    /// Evaluates the rows in `work.index` (which it fills up to a whole tile): losses and hits.
    pub(crate) fn evaluate_tile(
        &self,
        weights: &Loaded,
        first: FirstLayer<'_>,
        rows: &Rows<'_>,
        work: &mut Workspace,
    ) {
        let tile = work.tile();
        let last = *work.index.last().expect("a tile has rows");
        work.index.resize(tile, last);
        load_targets(rows, tile, work);
        self.size_buffers(tile, work);
        let stride = self.first_layer(weights, first, rows, work);
        self.forward(weights.flat(), tile, stride, false, work);
        work.losses.resize(tile);
        work.hits.resize(tile, 0);
        let (isa, logits, labels) = (work.isa, &work.logits, &work.labels);
        match self.head {
            Head::Softmax => head::softmax(isa, logits, labels, &mut work.losses, &mut work.hits),
            Head::Logistic => head::logistic(isa, logits, labels, &mut work.losses, &mut work.hits),
            Head::Squared => head::squared(isa, logits, &work.numbers, &mut work.losses),
        }
    }

    /// Computes the first layer of the rows in `work.index`; returns how far apart its lines are.
    pub(crate) fn first_layer(
        &self,
        weights: &Loaded,
        first: FirstLayer<'_>,
        rows: &Rows<'_>,
        work: &mut Workspace,
    ) -> usize {
        match first {
            FirstLayer::Limbs(limbs) => {
                work.values[0].resize(work.index.len() * limbs.stride());
                limbs.forward(rows.data(), &work.index, &mut work.values[0]);
                limbs.stride()
            }
            FirstLayer::Panels(panels) => {
                self.first_panelled(weights.flat(), panels, rows, work);
                self.panels.stride()
            }
            FirstLayer::Plain(matrix) => {
                self.first_plain(weights.flat(), matrix, rows, work);
                self.widths[1]
            }
            FirstLayer::Convolved(front, matrix) => {
                self.first_convolved(front, weights.flat(), matrix, rows, false, work);
                self.widths[1]
            }
        }
    }

    /// Goes from the first layer's output of the rows in `work.index` to all gradients except that
    /// of the first layer's weights, which is left to the caller with `work.errors[0]`. Returns the
    /// sum of the rows' losses.
    pub(crate) fn train_tile(
        &self,
        flat: &[f32],
        rows: &Rows<'_>,
        stride: usize,
        into: Accumulate,
        work: &mut Workspace,
    ) -> f64 {
        let count = work.index.len();
        let padded = count.next_multiple_of(head::LANES);
        load_targets(rows, padded, work);
        work.logits.resize(self.widths[self.layers()] * padded);
        self.forward(flat, count, stride, true, work);
        work.losses.resize(padded);
        let (isa, logits, labels) = (work.isa, &mut work.logits, &work.labels);
        match self.head {
            Head::Softmax => head::softmax_gradient(isa, logits, labels, &mut work.losses),
            Head::Logistic => head::logistic_gradient(isa, logits, labels, &mut work.losses),
            Head::Squared => head::squared_gradient(isa, logits, &work.numbers, &mut work.losses),
        }
        self.backward(flat, count, stride, into, work);
        work.losses[..count].iter().map(|loss| f64::from(*loss)).sum()
    }

    /// Sizes the buffers for tiles of this many rows.
    pub(crate) fn size_buffers(&self, tile: usize, work: &mut Workspace) {
        let stride = |layer: usize| match layer {
            0 => self.panels.stride(),
            _ => self.widths[layer + 1],
        };
        for buffers in [&mut work.values, &mut work.slopes, &mut work.errors] {
            if buffers.len() < self.layers() {
                buffers.resize_with(self.layers(), Default::default);
            }
            for (layer, buffer) in buffers.iter_mut().enumerate().take(self.layers()) {
                buffer.resize(tile * stride(layer));
            }
        }
        work.logits.resize(tile * self.widths[self.layers()]);
    }

    /// Computes the first layer of the rows in `work.index`, in panels.
    pub(crate) fn first_panelled(
        &self,
        flat: &[f32],
        panels: &[f32],
        rows: &Rows<'_>,
        work: &mut Workspace,
    ) {
        self.first_bias(flat, self.panels.stride(), work.index.len(), &mut work.values[0]);
        let batch = panel::PanelRows { data: rows.data(), index: &work.index };
        self.panels.forward(batch, panels, &mut work.values[0]);
    }

    /// Computes the first layer of the rows in `work.index` through `gemm`, given its weights as a
    /// matrix of inputs by outputs. Leaves the rows' inputs in `work`.
    pub(crate) fn first_plain(
        &self,
        flat: &[f32],
        matrix: Matrix<'_>,
        rows: &Rows<'_>,
        work: &mut Workspace,
    ) {
        let (count, features, width) = (work.index.len(), self.widths[0], self.widths[1]);
        self.load_inputs(rows, work);
        self.first_bias(flat, width, count, &mut work.values[0]);
        let x = Matrix::rows(&work.inputs, count, features, features);
        matmul(&mut work.values[0], shape(count, width, width), 1.0, 1.0, x, matrix);
    }

    /// Copies the inputs of the rows in `work.index` to `work`.
    pub(crate) fn load_inputs(&self, rows: &Rows<'_>, work: &mut Workspace) {
        work.inputs.resize(work.index.len() * self.widths[0]);
        gather(work.isa, rows.data(), &work.index, &mut work.inputs);
    }

    /// Starts the first layer's output with its bias.
    pub(crate) fn first_bias(&self, flat: &[f32], stride: usize, count: usize, z: &mut [f32]) {
        let bias = &flat[self.layout.layer(0).1];
        for row in z.chunks_exact_mut(stride).take(count) {
            row[..bias.len()].copy_from_slice(bias);
        }
    }

    /// Goes from the first layer's output, in `work.values[0]`, to the logits.
    fn forward(
        &self,
        flat: &[f32],
        count: usize,
        stride: usize,
        slopes: bool,
        work: &mut Workspace,
    ) {
        let outputs = self.widths[self.layers()];
        let padded = work.logits.len() / outputs;
        if self.layers() == 1 {
            for (output, logits) in work.logits.chunks_exact_mut(padded).enumerate() {
                for (row, logit) in logits.iter_mut().enumerate().take(count) {
                    *logit = work.values[0][row * stride + output];
                }
            }
            return;
        }
        let mut below = stride;
        for layer in 1..self.layers() {
            let (lower, upper) = work.values.split_at_mut(layer);
            let values = &mut lower[layer - 1][..count * below];
            if slopes {
                let slopes = &mut work.slopes[layer - 1][..count * below];
                self.activation.apply_with_slope(work.isa, values, slopes);
            } else {
                self.activation.apply(work.isa, values);
            }
            let (weight, bias) = self.layout.layer(layer);
            let (inputs, width) = (self.widths[layer], self.widths[layer + 1]);
            let x = Matrix::rows(values, count, inputs, below);
            let w = Matrix::rows(&flat[weight], width, inputs, inputs).transposed();
            if layer + 1 == self.layers() {
                for (logits, bias) in work.logits.chunks_exact_mut(padded).zip(&flat[bias]) {
                    logits.fill(*bias);
                }
                let dst = shape(width, count, padded).transposed();
                matmul(&mut work.logits, dst, 1.0, 1.0, x, w);
            } else {
                for row in upper[0].chunks_exact_mut(width).take(count) {
                    row.copy_from_slice(&flat[bias.clone()]);
                }
                matmul(&mut upper[0], shape(count, width, width), 1.0, 1.0, x, w);
            }
            below = width;
        }
    }

    /// Goes from the gradient with respect to the logits to all others except that of the first
    /// layer's weights.
    fn backward(
        &self,
        flat: &[f32],
        count: usize,
        stride: usize,
        into: Accumulate,
        work: &mut Workspace,
    ) {
        let top = self.layers() - 1;
        let width = self.widths[top + 1];
        let padded = work.logits.len() / width;
        // The top layer's error in the same order as the others.
        let top_stride = if top == 0 { stride } else { width };
        for row in 0..count {
            for output in 0..width {
                work.errors[top][row * top_stride + output] = work.logits[output * padded + row];
            }
        }
        for layer in (1..=top).rev() {
            let (weight, bias) = self.layout.layer(layer);
            let (inputs, width) = (self.widths[layer], self.widths[layer + 1]);
            let below = if layer == 1 { stride } else { inputs };
            let (lower, upper) = work.errors.split_at_mut(layer);
            let error = Matrix::rows(&upper[0], count, width, width);
            let values = Matrix::rows(&work.values[layer - 1], count, inputs, below);
            let sum = &mut work.sum[weight.clone()];
            matmul(
                sum,
                shape(width, inputs, inputs),
                into.beta,
                into.alpha,
                error.transposed(),
                values,
            );
            add_columns(&upper[0], width, count, into, &mut work.sum[bias]);
            let lower = &mut lower[layer - 1][..count * below];
            let w = Matrix::rows(&flat[weight], width, inputs, inputs);
            matmul(lower, shape(count, inputs, below), 0.0, 1.0, error, w);
            for (error, slope) in lower.iter_mut().zip(work.slopes[layer - 1].iter()) {
                *error *= slope;
            }
        }
        let bias = self.layout.layer(0).1;
        add_columns(&work.errors[0], stride, count, into, &mut work.sum[bias]);
    }

    /// Adds the gradient of the first layer's weights, through `gemm`, from `work.errors[0]`.
    pub(crate) fn first_gradient_plain(&self, into: Accumulate, work: &mut Workspace) {
        let (count, features, width) = (work.index.len(), self.widths[0], self.widths[1]);
        let x = Matrix::rows(&work.inputs, count, features, features);
        let error = Matrix::rows(&work.errors[0], count, width, width).transposed();
        let sum = &mut work.sum[self.layout.layer(0).0];
        matmul(sum, shape(width, features, features), into.beta, into.alpha, error, x);
    }
}

/// Copies the targets of the rows in `work.index` to `work`, filled up to a vector.
fn load_targets(rows: &Rows<'_>, padded: usize, work: &mut Workspace) {
    match rows.targets() {
        RowTargets::Classes(labels) => {
            work.labels.clear();
            work.labels.extend(work.index.iter().map(|row| u32::from(labels[*row as usize])));
            work.labels.resize(padded, 0);
        }
        RowTargets::Numbers(numbers) => {
            work.numbers.clear();
            work.numbers.extend(work.index.iter().map(|row| numbers[*row as usize]));
            work.numbers.resize(padded, 0.0);
        }
    }
}

/// `sum = beta * sum + alpha * (sums of the columns)`, with the rows added in order.
fn add_columns(errors: &[f32], stride: usize, count: usize, into: Accumulate, sum: &mut [f32]) {
    for (column, sum) in sum.iter_mut().enumerate() {
        let total: f32 = (0..count).map(|row| errors[row * stride + column]).sum();
        let old = if into.beta == 0.0 { 0.0 } else { into.beta * *sum };
        *sum = old + into.alpha * total;
    }
}

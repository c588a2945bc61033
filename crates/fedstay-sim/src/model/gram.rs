//! Local steps by the Gram matrix of an agent's rows: the same path, with fewer products.
//!
//! A path moves the first layer's weights by combinations of the rows in its batches. So instead of
//! the weights one can keep how much of every row they have taken up: what a step adds to that is the
//! batch's errors, and the layer's output on the next batch follows from the rows' products with each
//! other, computed once for all rounds (`gram/matrix.rs`). Rows are multiplied by weights only
//! at the beginning of a round and at its end, every row once however many batches it was in.
//!
//! The path is that of the direct way up to rounding: sums are taken in another order. Whether it is
//! taken is a function of the layer's size and the batches alone ([`Network::products_pay`]).

use std::sync::OnceLock;

use fedstay_kernels::Isa;
use fedstay_kernels::layer::buffer::Buffer;
use fedstay_kernels::layer::listed::{Combination, MAX_ROWS};
use fedstay_kernels::layer::panel;

use super::matmul::{Matrix, matmul, shape};
use super::pass::Accumulate;
use super::steps::{displace, tiles};
use super::{Batch, Error, Loaded, Network, Rows, RowsData, Workspace};
use matrix::RowGram;

mod matrix;

/// The Gram matrix of some rows, computed when it is first needed. It can be shared between threads
/// and between runs on the same rows.
#[derive(Debug, Default)]
pub struct RowProducts(OnceLock<RowGram>);

impl RowProducts {
    /// The memory that the products of this many rows take once they are needed.
    #[must_use]
    pub fn bytes(rows: usize) -> u64 {
        RowGram::bytes(rows)
    }

    /// Computes them now.
    pub fn compute(&self, rows: &Rows<'_>) {
        self.get(Isa::detect(), rows.data());
    }

    /// Whether they were needed so far.
    #[must_use]
    pub fn are_computed(&self) -> bool {
        self.0.get().is_some()
    }

    fn get(&self, isa: Isa, data: RowsData<'_>) -> &RowGram {
        let gram = self.0.get_or_init(|| RowGram::new(isa, data));
        assert_eq!(gram.rows(), data.len(), "products of other rows");
        gram
    }
}

/// Scratch memory for a walk.
#[derive(Debug, Clone, Default)]
pub(crate) struct Dual {
    /// Every row's first layer at the received weights.
    start: Buffer,
    /// How much of every row the sum of gradients has taken up.
    taken: Buffer,
    /// The product with some rows of the Gram matrix.
    product: Buffer,
    /// The rows in all batches, and those in the batches so far; both ascend.
    all: Vec<u32>,
    touched: Vec<u32>,
    /// For every row, the step after which it is touched.
    since: Vec<u32>,
}

/// A layer with fewer weights stays in the nearest caches, and there is nothing to gain.
const LEAST_WEIGHTS: usize = 1 << 16;
/// One pass over the layer's weights costs as much as the products of this many rows with them.
const WALK: f64 = 32.0;
/// How much less work it must be.
const MARGIN: f64 = 1.25;
/// The number of rounds in which the products of the rows with each other must have paid for
/// themselves.
const ROUNDS: f64 = 30.0;

impl Network {
    /// Whether to take steps on these batches by the rows' products. Counts multiplications for one
    /// output of the first layer, with d features:
    ///
    /// - directly, every row of a batch costs 2 d, and every step a walk over the weights;
    /// - by products, every row in some batch costs 2 d once, with a walk for 64 of them, and every
    ///   row of a batch a product with each of the rows touched before.
    pub(crate) fn products_pay(&self, rows: &Rows<'_>, batches: &[Batch<'_>]) -> bool {
        let (features, outputs) = (self.widths[0] as f64, self.widths[1]);
        let small = |batch: &Batch<'_>| batch.len(rows) <= MAX_ROWS;
        // Behind convolutions the first linear layer reads something else in every step.
        if self.front.is_some()
            || self.widths[0] * outputs < LEAST_WEIGHTS
            || batches.len() < 2
            || !batches.iter().all(small)
        {
            return false;
        }
        let mut seen = vec![false; rows.len()];
        let (mut distinct, mut drawn, mut pairs) = (0usize, 0usize, 0.0);
        for batch in batches {
            pairs += batch.len(rows) as f64 * distinct as f64;
            drawn += batch.len(rows);
            batch.each(rows, |row| {
                distinct += usize::from(!std::mem::replace(&mut seen[row], true))
            });
        }
        let direct = (2.0 * drawn as f64 + WALK * batches.len() as f64) * features;
        let walks = distinct.div_ceil(panel::MAX_ROWS) as f64;
        let dual = (2.0 * distinct as f64 + WALK * walks) * features + pairs;
        let once = 0.5 * (rows.len() as f64).powi(2) * features / outputs as f64;
        dual * MARGIN <= direct && once <= ROUNDS * (direct - dual)
    }

    /// Takes the steps by the rows' products; leaves the sum of gradients in `work`, that of the
    /// first layer's weights in panels where those are used. Batches fit a tile.
    pub(super) fn walk_by_products(
        &self,
        products: &RowProducts,
        weights: &Loaded,
        rows: &Rows<'_>,
        batches: &[Batch<'_>],
        (eta, keep): (f32, f32),
        work: &mut Workspace,
    ) -> Result<f64, Error> {
        let gram = products.get(work.isa, rows.data());
        let panelled = work.panelled();
        let (width, upper) = (self.widths[1], self.layout.layer(0).0.end);
        let stride = if panelled { self.panels.stride() } else { width };
        let mut dual = std::mem::take(&mut work.dual);
        let mut moved = std::mem::take(&mut work.moved);
        dual.list(rows, batches);
        self.start_of(weights, rows, stride, &mut dual, work)?;
        dual.taken.resize(rows.len() * stride);
        dual.taken.fill(0.0);
        dual.product.resize(MAX_ROWS * stride);
        let mut total = 0.0;
        for (step, batch) in batches.iter().enumerate() {
            if step > 0 {
                displace(&weights.flat()[upper..], eta, &work.sum[upper..], &mut moved[upper..]);
            }
            let flat: &[f32] = if step == 0 { weights.flat() } else { &moved };
            dual.touch(step);
            total += tiles(batch, rows, step, keep, work.tile(), work, |into, work| {
                dual.outputs(gram, eta, stride, width, work);
                let loss = self.train_tile(flat, rows, stride, into, work);
                dual.take_up(into, stride, width, work);
                loss
            });
        }
        self.gradient_of(rows, stride, &dual, work);
        (work.dual, work.moved) = (dual, moved);
        Ok(total)
    }

    /// Computes the first layer of all rows in some batch at the received weights.
    fn start_of(
        &self,
        weights: &Loaded,
        rows: &Rows<'_>,
        stride: usize,
        dual: &mut Dual,
        work: &mut Workspace,
    ) -> Result<(), Error> {
        let first = self.first(weights, rows, work.isa)?;
        dual.start.resize(rows.len() * stride);
        for tile in dual.all.chunks(work.tile()) {
            work.index.clear();
            work.index.extend_from_slice(tile);
            let from = self.first_layer(weights, first, rows, work);
            for (row, z) in tile.iter().zip(work.values[0].chunks_exact(from)) {
                let (own, rest) =
                    dual.start[*row as usize * stride..][..stride].split_at_mut(from.min(stride));
                own.copy_from_slice(&z[..from.min(stride)]);
                rest.fill(0.0);
            }
        }
        self.size_buffers(work.tile(), work);
        Ok(())
    }

    /// Makes the gradient of the first layer's weights of what was taken up of every row.
    fn gradient_of(&self, rows: &Rows<'_>, stride: usize, dual: &Dual, work: &mut Workspace) {
        let size = work.tile();
        work.sum_panels.resize(self.panels.len());
        for (tile, all) in dual.all.chunks(size).enumerate() {
            work.index.clear();
            work.index.extend_from_slice(all);
            for (row, error) in all.iter().zip(work.errors[0].chunks_exact_mut(stride)) {
                error.copy_from_slice(&dual.taken[*row as usize * stride..][..stride]);
            }
            let into = Accumulate { beta: if tile == 0 { 0.0 } else { 1.0 }, alpha: 1.0 };
            if work.panelled() {
                let batch = panel::PanelRows { data: rows.data(), index: &work.index };
                let Accumulate { beta, alpha } = into;
                let (dz, sum) = (&work.errors[0], &mut work.sum_panels);
                self.panels.gradient(batch, &mut panel::Gradient { dz, sum, beta, alpha });
            } else {
                self.load_inputs(rows, work);
                self.first_gradient_plain(into, work);
            }
        }
    }
}

impl Dual {
    /// Finds out which rows are in the batches, and from which step on.
    fn list(&mut self, rows: &Rows<'_>, batches: &[Batch<'_>]) {
        self.since.clear();
        self.since.resize(rows.len(), u32::MAX);
        for (step, batch) in batches.iter().enumerate().rev() {
            batch.each(rows, |row| self.since[row] = step as u32);
        }
        self.all.clear();
        let numbered = self.since.iter().enumerate();
        self.all
            .extend(numbered.filter(|(_, since)| **since != u32::MAX).map(|(row, _)| row as u32));
    }

    /// Lists the rows that were in a batch before this step.
    fn touch(&mut self, step: usize) {
        let Self { all, touched, since, .. } = self;
        touched.clear();
        touched.extend(all.iter().filter(|row| (since[**row as usize] as usize) < step));
    }

    /// The first layer's output on the rows in `work.index`.
    fn outputs(
        &mut self,
        gram: &RowGram,
        eta: f32,
        stride: usize,
        width: usize,
        work: &mut Workspace,
    ) {
        let (count, rows) = (work.index.len(), gram.rows());
        if work.panelled() {
            let c = Combination { lines: &self.taken, stride, touched: &self.touched };
            gram.square().multiply(&work.index, c, &mut self.product);
        } else {
            work.inputs.resize(count * rows);
            for (row, line) in work.index.iter().zip(work.inputs.chunks_exact_mut(rows)) {
                line.copy_from_slice(gram.row(*row as usize));
            }
            let g = Matrix::rows(&work.inputs, count, rows, rows);
            let c = Matrix::rows(&self.taken, rows, width, stride);
            matmul(&mut self.product, shape(count, width, stride), 0.0, 1.0, g, c);
        }
        let lines = work.values[0].chunks_exact_mut(stride).zip(self.product.chunks_exact(stride));
        for (row, (z, product)) in work.index.iter().zip(lines) {
            displace(&self.start[*row as usize * stride..][..stride], eta, product, z);
        }
    }

    /// Adds the errors of the rows in `work.index` to what was taken up of them.
    fn take_up(&mut self, into: Accumulate, stride: usize, width: usize, work: &Workspace) {
        if into.beta != 1.0 {
            for row in &self.touched {
                let taken = &mut self.taken[*row as usize * stride..][..width];
                taken.iter_mut().for_each(|taken| *taken *= into.beta);
            }
        }
        for (row, error) in work.index.iter().zip(work.errors[0].chunks_exact(stride)) {
            let taken = &mut self.taken[*row as usize * stride..][..width];
            taken.iter_mut().zip(error).for_each(|(taken, error)| *taken += into.alpha * error);
        }
    }
}

#[cfg(test)]
mod tests;

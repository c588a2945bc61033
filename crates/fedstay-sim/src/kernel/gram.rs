//! The Gram matrix of an agent's rows: what lets local steps be taken without the weights.
//!
//! Along local steps the first layer's weights move by combinations of the rows themselves,
//! `W_k = W_0 - eta Cᵀ X` with one line of `C` per row, so the layer's output on a batch is
//! `z_0 - eta (X Xᵀ + 1) C`, the 1 being the bias. [`Gram`] holds `X Xᵀ + 1`, computed once:
//! products and sums over [`BLOCK`] features in `f32`, the blocks added in `f64`, the upper triangle
//! mirrored, so that it is symmetric to the bit.
//!
//! With AVX-512 a product reads the lines of `C` and the columns of the matrix by a list of the rows
//! that were in a batch so far; nothing is packed. Every output element is one chain of fused
//! multiply-adds in the list's order, so it does not depend on the tile.

use super::buffer::Buffer;
use super::matmul::{Matrix, matmul, shape};
use super::rows::RowsData;
use super::{Isa, multiversion};

/// The number of features summed in `f32`.
const BLOCK: usize = 256;
/// The number of rows of the matrix computed together.
const STRIPE: usize = 256;
/// Rows of a product's register tile.
pub(crate) const SIDE: usize = 8;
/// The most rows of a product.
pub(crate) const MAX_ROWS: usize = 64;

/// `X Xᵀ + 1` for the rows `X`.
#[derive(Debug, Clone)]
pub(crate) struct Gram {
    rows: usize,
    /// How far apart the rows of the matrix are: whole cache lines, an odd number of them, so that
    /// neighbouring rows do not compete for the same places in a cache.
    stride: usize,
    values: Buffer,
}

/// What is multiplied by some rows of a Gram matrix: `C` in lines of `stride`, all zero but those
/// of `touched`, which ascends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Combination<'a> {
    pub(crate) lines: &'a [f32],
    pub(crate) stride: usize,
    pub(crate) touched: &'a [u32],
}

impl Gram {
    /// Computes the matrix on the calling thread.
    pub(crate) fn new(isa: Isa, data: RowsData<'_>) -> Self {
        let (rows, features) = (data.len(), data.features());
        let stride = Self::stride_of(rows);
        let mut values = Buffer::zeros(rows * stride);
        let mut block = Buffer::zeros(rows * BLOCK);
        let mut product = Buffer::zeros(STRIPE.min(rows) * rows);
        let mut sums = vec![0.0f64; product.len()];
        for top in (0..rows).step_by(STRIPE) {
            let (count, right) = (STRIPE.min(rows - top), rows - top);
            let sums = &mut sums[..count * right];
            sums.fill(1.0);
            for from in (0..features).step_by(BLOCK) {
                let wide = &mut block[..right * BLOCK];
                widen(isa, data, top, from, wide);
                let x = Matrix::rows(wide, right, BLOCK, BLOCK);
                let few = Matrix::rows(&wide[..count * BLOCK], count, BLOCK, BLOCK);
                let part = &mut product[..count * right];
                matmul(part, shape(count, right, right), 0.0, 1.0, few, x.transposed());
                accumulate(isa, part, sums);
            }
            for row in 0..count {
                for column in row..right {
                    let value = sums[row * right + column] as f32;
                    values[(top + row) * stride + top + column] = value;
                    values[(top + column) * stride + top + row] = value;
                }
            }
        }
        Self { rows, stride, values }
    }

    fn stride_of(rows: usize) -> usize {
        16 * (rows.div_ceil(16) | 1)
    }

    /// The memory a matrix of this many rows takes.
    pub(crate) fn bytes(rows: usize) -> u64 {
        4 * rows as u64 * Self::stride_of(rows) as u64
    }

    /// How many rows there are.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// The products of one row with all rows, each plus one.
    pub(crate) fn row(&self, row: usize) -> &[f32] {
        &self.values[row * self.stride..][..self.rows]
    }

    /// `out = (X Xᵀ + 1)[index] C` with AVX-512: lines as far apart as those of `C`, which is a
    /// multiple of 16; those up to the next multiple of eight are written as well, with meaningless
    /// values.
    ///
    /// # Panics
    /// Where AVX-512 is missing, a row is out of range or a slice too short: mistakes of the caller.
    pub(crate) fn multiply(&self, index: &[u32], c: Combination<'_>, out: &mut [f32]) {
        assert!(Isa::Avx512.is_available(), "no AVX-512");
        assert!(c.stride.is_multiple_of(16) && c.lines.len() >= self.rows * c.stride);
        assert!(index.len() <= MAX_ROWS);
        assert!(out.len() >= index.len().next_multiple_of(SIDE) * c.stride);
        let inside = |row: &u32| (*row as usize) < self.rows;
        assert!(index.iter().all(inside) && c.touched.iter().all(inside));
        out[..index.len().next_multiple_of(SIDE) * c.stride].fill(0.0);
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the instructions are available, every row is inside, and the slices cover what is
        // read and written, all checked above.
        unsafe {
            avx512::multiply(self, index, c, out);
        }
    }
}

multiversion! {
    /// Writes a block of features of the rows from `top` on, [`BLOCK`] numbers for each, zeros
    /// where the row ends.
    fn widen(data: RowsData<'_>, top: usize, from: usize, out: &mut [f32]) {
        for (row, out) in out.chunks_exact_mut(BLOCK).enumerate() {
            data.fill(top + row, from, out);
        }
    }
}

multiversion! {
    fn accumulate(part: &[f32], sums: &mut [f64]) {
        for (sum, part) in sums.iter_mut().zip(part) {
            *sum += f64::from(*part);
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512;

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(len: usize) -> Vec<u8> {
        (0..len).map(|i| (i * 7919 % 251) as u8).collect()
    }

    #[test]
    fn is_what_it_says_and_symmetric() {
        for (rows, features) in [(1, 1), (5, 300), (300, 70)] {
            let bytes = bytes(rows * features);
            let scale: Vec<f32> = (0..features).map(|j| 0.01 + (j % 3) as f32 * 0.003).collect();
            let shift: Vec<f32> = (0..features).map(|j| (j % 5) as f32 * 0.2 - 1.0).collect();
            let data = RowsData::Bytes { rows: &bytes, scale: &scale, shift: &shift };
            let gram = Gram::new(Isa::detect(), data);
            let mut x = vec![0.0; rows * features];
            (0..rows).for_each(|row| data.fill(row, 0, &mut x[row * features..][..features]));
            for i in 0..rows {
                for j in 0..rows {
                    let pairs = x[i * features..][..features].iter().zip(&x[j * features..]);
                    let (mut want, mut size) = (1.0, 1.0);
                    for (a, b) in pairs {
                        let term = f64::from(*a) * f64::from(*b);
                        (want, size) = (want + term, size + term.abs());
                    }
                    let got = gram.row(i)[j];
                    assert!((f64::from(got) - want).abs() < 1e-6 * size, "{i} {j} {got} {want}");
                    assert_eq!(got.to_bits(), gram.row(j)[i].to_bits());
                }
            }
        }
        assert!(Gram::bytes(1024) > 4 * 1024 * 1024);
    }

    #[test]
    fn a_product_is_the_sum_over_the_list() {
        if !Isa::Avx512.is_available() {
            return;
        }
        let (rows, features) = (213, 40);
        let floats: Vec<f32> =
            bytes(rows * features).iter().map(|b| f32::from(*b) / 125.0 - 1.0).collect();
        let gram = Gram::new(Isa::detect(), RowsData::Floats { rows: &floats, features });
        for (stride, step, count) in
            [(16, 1, 1usize), (32, 3, 13), (64, 2, 64), (224, 1, 8), (48, 5, 9)]
        {
            let touched: Vec<u32> = (0..rows as u32).filter(|row| row % step == 0).collect();
            let mut lines = vec![0.0; rows * stride];
            for row in &touched {
                for k in 0..stride {
                    lines[*row as usize * stride + k] = (*row as f32 - k as f32) * 1e-2;
                }
            }
            let index: Vec<u32> = (0..count as u32).map(|i| i * 31 % 213).collect();
            let mut out = vec![f32::NAN; count.next_multiple_of(SIDE) * stride];
            let c = Combination { lines: &lines, stride, touched: &touched };
            gram.multiply(&index, c, &mut out);
            for (row, out) in index.iter().zip(out.chunks_exact(stride)) {
                for (k, got) in out.iter().enumerate() {
                    let terms = gram.row(*row as usize).iter().enumerate();
                    let terms =
                        terms.map(|(t, g)| f64::from(*g) * f64::from(lines[t * stride + k]));
                    let (want, size) =
                        terms.fold((0.0, 0.0), |(sum, size), t| (sum + t, size + t.abs()));
                    assert!((f64::from(*got) - want).abs() <= 1e-5 * size + 1e-12);
                }
            }
            // A row's result does not depend on its neighbours.
            let mut alone = vec![f32::NAN; SIDE * stride];
            gram.multiply(&index[count - 1..], c, &mut alone);
            assert_eq!(alone[..stride], out[(count - 1) * stride..][..stride]);
        }
    }
}

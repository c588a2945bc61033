//! The Gram matrix of an agent's rows: what lets local steps be taken without the weights.
//!
//! Along local steps the first layer's weights move by combinations of the rows themselves,
//! `W_k = W_0 - eta Cᵀ X` with one line of `C` per row, so the layer's output on a batch is
//! `z_0 - eta (X Xᵀ + 1) C`, the 1 being the bias. [`RowGram`] holds `X Xᵀ + 1`, computed once:
//! products and sums over [`BLOCK`] features in `f32`, the blocks added in `f64`, the upper triangle
//! mirrored, so that it is symmetric to the bit.

use fedstay_kernels::Isa;
use fedstay_kernels::layer::buffer::Buffer;
use fedstay_kernels::layer::listed::Square;
use fedstay_kernels::layer::rows::{RowsData, accumulate, widen};

use crate::model::matmul::{Matrix, matmul, shape};

/// The number of features summed in `f32`.
const BLOCK: usize = 256;
/// The number of rows of the matrix computed together.
const STRIPE: usize = 256;

/// `X Xᵀ + 1` for the rows `X`.
#[derive(Debug, Clone)]
pub(crate) struct RowGram {
    rows: usize,
    /// How far apart the rows of the matrix are: whole cache lines, an odd number of them, so that
    /// neighbouring rows do not compete for the same places in a cache.
    stride: usize,
    values: Buffer,
}

impl RowGram {
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
                widen(isa, data, top, from, BLOCK, wide);
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

    /// All of it, as kernels read it.
    pub(crate) fn square(&self) -> Square<'_> {
        Square { values: &self.values, rows: self.rows, stride: self.stride }
    }
}

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
            let gram = RowGram::new(Isa::detect(), data);
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
        assert!(RowGram::bytes(1024) > 4 * 1024 * 1024);
    }
}

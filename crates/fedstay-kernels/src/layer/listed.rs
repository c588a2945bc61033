//! Some rows of a square matrix times a matrix of which few lines are not zero, with AVX-512.
//!
//! A product reads those lines, and the columns of the square matrix, by a list; nothing is packed.
//! Every output element is one chain of fused multiply-adds in the list's order, so it does not depend
//! on the tile.

use crate::Isa;

/// Rows of a product's register tile.
pub const SIDE: usize = 8;
/// The most rows of a product.
pub const MAX_ROWS: usize = 64;

/// A square matrix, its rows `stride` apart.
#[derive(Debug, Clone, Copy)]
pub struct Square<'a> {
    /// The rows.
    pub values: &'a [f32],
    /// How many rows and columns there are.
    pub rows: usize,
    /// How far apart the rows are.
    pub stride: usize,
}

/// What is multiplied by some rows of a [`Square`]: lines of `stride`, all zero but those of
/// `touched`, which ascends.
#[derive(Debug, Clone, Copy)]
pub struct Combination<'a> {
    /// A line for every column of the square.
    pub lines: &'a [f32],
    /// How far apart the lines are: a multiple of 16.
    pub stride: usize,
    /// The lines that are not zero.
    pub touched: &'a [u32],
}

impl Square<'_> {
    /// `out = self[index] c`: lines as far apart as those of `c`; those up to the next multiple of
    /// eight are written as well, with meaningless values.
    ///
    /// # Panics
    /// Where AVX-512 is missing, a row is out of range or a slice too short: mistakes of the caller.
    pub fn multiply(self, index: &[u32], c: Combination<'_>, out: &mut [f32]) {
        assert!(Isa::detect().has_avx512(), "no AVX-512");
        assert!(self.rows <= self.stride && self.values.len() >= self.rows * self.stride);
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

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::*;

    use super::{Combination, SIDE, Square};

    /// The number of floats in a vector.
    const LANES: usize = 16;
    /// The number of lines of `C` handled together: they and the block of the matrix stay in the nearest
    /// cache while all rows pass.
    const BLOCK: usize = 64;

    /// `out += square[index] C`.
    ///
    /// # Safety
    /// AVX-512 is available; every row of `index` and of the list is one of the matrix and has a line in
    /// `C`; `out` has a line for every row of `index`, their number rounded up to `SIDE`.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn multiply(
        square: Square<'_>,
        index: &[u32],
        c: Combination<'_>,
        out: &mut [f32],
    ) {
        for (block, touched) in c.touched.chunks(BLOCK).enumerate() {
            prefetch(square, index, c.touched.chunks(BLOCK).nth(block + 1).unwrap_or(&[]));
            for column in (0..c.stride).step_by(2 * LANES) {
                for (tile, index) in index.chunks(SIDE).enumerate() {
                    // A short tile repeats its last row; the surplus is computed and never read.
                    let row = |r: usize| {
                        let row = index[r.min(index.len() - 1)] as usize;
                        // SAFETY: the row is one of the matrix.
                        unsafe { square.values.as_ptr().add(row * square.stride) }
                    };
                    let rows = std::array::from_fn(row);
                    // SAFETY: by the contract; the columns are inside a line.
                    unsafe {
                        let lines = c.lines.as_ptr().add(column);
                        let out = out.as_mut_ptr().add(tile * SIDE * c.stride + column);
                        if column + LANES < c.stride {
                            tile_sums::<2>(&rows, touched, lines, c.stride, out);
                        } else {
                            tile_sums::<1>(&rows, touched, lines, c.stride, out);
                        }
                    }
                }
            }
        }
    }

    /// Asks for the part of the matrix that the next block reads. Rows of a batch lie anywhere, and the
    /// hardware does not recognise that they are read in step.
    #[target_feature(enable = "avx512f")]
    fn prefetch(square: Square<'_>, index: &[u32], touched: &[u32]) {
        let (Some(first), Some(last)) = (touched.first(), touched.last()) else { return };
        for row in index {
            let row = square.values.as_ptr().wrapping_add(*row as usize * square.stride);
            for column in (*first..=*last).step_by(LANES) {
                // SAFETY: a prefetch never faults, and the pointer is made by wrapping arithmetic.
                #[allow(unused_unsafe, reason = "older compilers want it")]
                unsafe {
                    _mm_prefetch::<_MM_HINT_T1>(row.wrapping_add(column as usize).cast())
                };
            }
        }
    }

    /// Eight rows by `V` vectors, over one block of the list. A call of its own, so that what surrounds
    /// it cannot cost the sums their registers.
    ///
    /// # Safety
    /// AVX-512 is available; every row of the list is inside each of `rows` and, times `stride`, followed
    /// by `V` vectors in `lines`; `out` is eight lines of which `V` vectors exist.
    #[target_feature(enable = "avx512f")]
    #[inline(never)]
    unsafe fn tile_sums<const V: usize>(
        rows: &[*const f32; SIDE],
        touched: &[u32],
        lines: *const f32,
        stride: usize,
        out: *mut f32,
    ) {
        let mut sums = [[_mm512_setzero_ps(); V]; SIDE];
        // SAFETY: by the contract.
        unsafe {
            for (r, sums) in sums.iter_mut().enumerate() {
                for (v, sum) in sums.iter_mut().enumerate() {
                    *sum = _mm512_loadu_ps(out.add(r * stride + v * LANES));
                }
            }
            for t in touched {
                let t = *t as usize;
                let mut line = [_mm512_setzero_ps(); V];
                for (v, line) in line.iter_mut().enumerate() {
                    *line = _mm512_loadu_ps(lines.add(t * stride + v * LANES));
                }
                for (row, sums) in rows.iter().zip(&mut sums) {
                    let g = _mm512_set1_ps(*row.add(t));
                    for (sum, line) in sums.iter_mut().zip(&line) {
                        *sum = _mm512_fmadd_ps(g, *line, *sum);
                    }
                }
            }
            for (r, sums) in sums.iter().enumerate() {
                for (v, sum) in sums.iter().enumerate() {
                    _mm512_storeu_ps(out.add(r * stride + v * LANES), *sum);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_is_the_sum_over_the_list() {
        if !Isa::detect().has_avx512() {
            return;
        }
        let (rows, apart) = (213, 215);
        let values: Vec<f32> =
            (0..rows * apart).map(|i| (i * 7919 % 251) as f32 / 125.0 - 1.0).collect();
        let square = Square { values: &values, rows, stride: apart };
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
            square.multiply(&index, c, &mut out);
            for (row, out) in index.iter().zip(out.chunks_exact(stride)) {
                for (k, got) in out.iter().enumerate() {
                    let terms = values[*row as usize * apart..][..rows].iter().enumerate();
                    let terms =
                        terms.map(|(t, g)| f64::from(*g) * f64::from(lines[t * stride + k]));
                    let (want, size) =
                        terms.fold((0.0, 0.0), |(sum, size), t| (sum + t, size + t.abs()));
                    assert!((f64::from(*got) - want).abs() <= 1e-5 * size + 1e-12);
                }
            }
            // A row's result does not depend on its neighbours.
            let mut alone = vec![f32::NAN; SIDE * stride];
            square.multiply(&index[count - 1..], c, &mut alone);
            assert_eq!(alone[..stride], out[(count - 1) * stride..][..stride]);
        }
    }
}

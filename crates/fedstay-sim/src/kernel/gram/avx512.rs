//! The AVX-512 code behind [`Gram::multiply`](super::Gram::multiply), which has checked everything.

use std::arch::x86_64::*;

use super::{Combination, Gram, SIDE};

/// The number of floats in a vector.
const LANES: usize = 16;
/// The number of lines of `C` handled together: they and the block of the matrix stay in the nearest
/// cache while all rows pass.
const BLOCK: usize = 64;

/// `out += (X Xᵀ + 1)[index] C`.
///
/// # Safety
/// AVX-512 is available; every row of `index` and of the list is one of the matrix and has a line in
/// `C`; `out` has a line for every row of `index`, their number rounded up to `SIDE`.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn multiply(gram: &Gram, index: &[u32], c: Combination<'_>, out: &mut [f32]) {
    for (block, touched) in c.touched.chunks(BLOCK).enumerate() {
        prefetch(gram, index, c.touched.chunks(BLOCK).nth(block + 1).unwrap_or(&[]));
        for column in (0..c.stride).step_by(2 * LANES) {
            for (tile, index) in index.chunks(SIDE).enumerate() {
                // A short tile repeats its last row; the surplus is computed and never read.
                let row = |r: usize| {
                    let row = index[r.min(index.len() - 1)] as usize;
                    // SAFETY: the row is one of the matrix.
                    unsafe { gram.values.as_ptr().add(row * gram.stride) }
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
fn prefetch(gram: &Gram, index: &[u32], touched: &[u32]) {
    let (Some(first), Some(last)) = (touched.first(), touched.last()) else { return };
    for row in index {
        let row = gram.values.as_ptr().wrapping_add(*row as usize * gram.stride);
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

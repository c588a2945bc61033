//! The AVX-512 code behind [`Panels`]. All slices have been checked by the caller.

use std::arch::x86_64::*;

use super::transpose::transpose;
use super::{BLOCK, Gradient, LANES, MAX_ROWS, PanelRows, Panels, SIDE};
use crate::layer::rows::RowsData;

/// How far ahead of a block its row is prefetched, in bytes.
const AHEAD: usize = 2 * BLOCK;

/// One block of rows as `f32`, `[row][BLOCK]`, on a cache-line boundary.
#[repr(align(64))]
struct RowBlock([f32; MAX_ROWS * BLOCK]);

/// One block of one panel's weights, `[input][width]`.
#[repr(align(64))]
struct WeightBlock([f32; BLOCK * 2 * LANES]);

/// Chooses the width at compile time.
macro_rules! by_vectors {
    ($panels:expr, $function:ident($($arg:expr),*)) => {
        match $panels.vectors {
            // SAFETY: `Panels::check` has asserted that AVX-512 is available, and the public methods
            // that every slice covers what the shape says; both hold before anything in here is called.
            1 => unsafe { $function::<1>($($arg),*) },
            // SAFETY: as above.
            _ => unsafe { $function::<2>($($arg),*) },
        }
    };
}

pub(super) fn forward(panels: &Panels, batch: PanelRows<'_>, weights: &[f32], z: &mut [f32]) {
    by_vectors!(panels, forward_all(panels, batch, weights, z));
}

pub(super) fn gradient(panels: &Panels, batch: PanelRows<'_>, gradient: &mut Gradient<'_>) {
    by_vectors!(panels, gradient_all(panels, batch, gradient));
}

pub(super) fn turn(
    panels: &Panels,
    batch: PanelRows<'_>,
    gradient: &mut Gradient<'_>,
    next: PanelRows<'_>,
    start: &[f32],
    eta: f32,
    z: &mut [f32],
) {
    by_vectors!(panels, turn_all(panels, batch, gradient, next, start, eta, z));
}

/// Copies panels to rows times `factor`, for the whole squares of 16 outputs by 16 inputs that
/// start at `output` and `input`.
pub(super) fn unpack_square(
    panels: &Panels,
    from: &[f32],
    factor: f32,
    to: &mut [f32],
    output: usize,
    input: usize,
) {
    let (width, features) = (panels.width(), panels.features);
    let at = (output / width * panels.padded + input) * width + output % width;
    let from = &from[at..][..(LANES - 1) * width + LANES];
    let to = &mut to[output * features + input..][..(LANES - 1) * features + LANES];
    // SAFETY: AVX-512 has been asserted by the caller.
    unsafe { square(from, width, factor, to, features) }

    #[target_feature(enable = "avx512f")]
    fn square(from: &[f32], width: usize, factor: f32, to: &mut [f32], features: usize) {
        let mut lines = [_mm512_setzero_ps(); LANES];
        for (line, from) in lines.iter_mut().zip(from.chunks(width)) {
            // SAFETY: every chunk, including the last one, has 16 floats.
            *line = unsafe { _mm512_loadu_ps(from[..LANES].as_ptr()) };
        }
        for (line, to) in transpose(lines).into_iter().zip(to.chunks_mut(features)) {
            let line = _mm512_mul_ps(line, _mm512_set1_ps(factor));
            // SAFETY: as above.
            unsafe { _mm512_storeu_ps(to[..LANES].as_mut_ptr(), line) };
        }
    }
}

/// # Safety
/// AVX-512 is available and the slices fit, as [`Panels::forward`] checks.
#[target_feature(enable = "avx512f")]
unsafe fn forward_all<const V: usize>(
    panels: &Panels,
    batch: PanelRows<'_>,
    weights: &[f32],
    z: &mut [f32],
) {
    let mut x = RowBlock([0.0; MAX_ROWS * BLOCK]);
    for from in (0..panels.padded).step_by(BLOCK) {
        let inputs = BLOCK.min(panels.padded - from);
        widen(batch, from, inputs, &mut x);
        for panel in 0..panels.count {
            let at = (panel * panels.padded + from) * V * LANES;
            let block = &weights[at..][..inputs * V * LANES];
            // SAFETY: `block` holds `inputs` lines; `x` holds `MAX_ROWS` rows; `z` was checked to
            // hold the rows rounded up to `SIDE`.
            unsafe { forward_block::<V>(&x, batch.index.len(), block, z, panel, panels.stride()) };
        }
    }
}

/// # Safety
/// AVX-512 is available and the slices fit, as [`Panels::gradient`] checks.
#[target_feature(enable = "avx512f")]
unsafe fn gradient_all<const V: usize>(
    panels: &Panels,
    batch: PanelRows<'_>,
    gradient: &mut Gradient<'_>,
) {
    let mut x = RowBlock([0.0; MAX_ROWS * BLOCK]);
    for from in (0..panels.padded).step_by(BLOCK) {
        let inputs = BLOCK.min(panels.padded - from);
        widen(batch, from, inputs, &mut x);
        for panel in 0..panels.count {
            let at = (panel * panels.padded + from) * V * LANES;
            // SAFETY: `at` plus `inputs` lines lies inside the panels; `dz` was checked.
            unsafe {
                gradient_block::<V>(&x, batch.index.len(), gradient, panel, panels, at, inputs)
            };
        }
    }
}

/// # Safety
/// AVX-512 is available and the slices fit, as [`Panels::turn`] checks.
#[target_feature(enable = "avx512f")]
unsafe fn turn_all<const V: usize>(
    panels: &Panels,
    batch: PanelRows<'_>,
    gradient: &mut Gradient<'_>,
    next: PanelRows<'_>,
    start: &[f32],
    eta: f32,
    z: &mut [f32],
) {
    let mut x = RowBlock([0.0; MAX_ROWS * BLOCK]);
    let mut y = RowBlock([0.0; MAX_ROWS * BLOCK]);
    let mut moved = WeightBlock([0.0; BLOCK * 2 * LANES]);
    for from in (0..panels.padded).step_by(BLOCK) {
        let inputs = BLOCK.min(panels.padded - from);
        widen(batch, from, inputs, &mut x);
        widen(next, from, inputs, &mut y);
        for panel in 0..panels.count {
            let at = (panel * panels.padded + from) * V * LANES;
            let len = inputs * V * LANES;
            // SAFETY: as in `gradient_all` and `forward_all`.
            unsafe {
                gradient_block::<V>(&x, batch.index.len(), gradient, panel, panels, at, inputs);
                move_block(&start[at..][..len], eta, &gradient.sum[at..][..len], &mut moved);
                let block = &moved.0[..len];
                forward_block::<V>(&y, next.index.len(), block, z, panel, panels.stride());
            }
        }
    }
}

/// Widens inputs `from..from + inputs` of the batch's rows.
#[target_feature(enable = "avx512f")]
fn widen(batch: PanelRows<'_>, from: usize, inputs: usize, x: &mut RowBlock) {
    let blocks = batch.index.iter().zip(x.0.chunks_exact_mut(BLOCK));
    let RowsData::Bytes { rows, scale, shift } = batch.data else {
        return blocks
            .for_each(|(row, out)| batch.data.fill(*row as usize, from, &mut out[..inputs]));
    };
    // Whole blocks of bytes, nearly all there are, go through arrays, so that everything unrolls
    // and the map stays in registers.
    let (Some(scales), Some(shifts)) = (scale[from..].first_chunk(), shift[from..].first_chunk())
    else {
        return blocks
            .for_each(|(row, out)| batch.data.fill(*row as usize, from, &mut out[..inputs]));
    };
    let (scales, shifts): (&[f32; BLOCK], &[f32; BLOCK]) = (scales, shifts);
    for (row, out) in blocks {
        let at = *row as usize * scale.len() + from;
        let bytes: &[u8; BLOCK] = rows[at..].first_chunk().expect("the row is there");
        let out: &mut [f32; BLOCK] = out.try_into().expect("a block");
        // Rows of a batch lie anywhere, and the hardware does not recognise that they are read in
        // step.
        // SAFETY: a prefetch never faults, and the pointer is made by wrapping arithmetic.
        #[allow(unused_unsafe, reason = "older compilers want it")]
        unsafe {
            _mm_prefetch::<_MM_HINT_T1>(bytes.as_ptr().wrapping_add(AHEAD).cast())
        };
        for j in 0..BLOCK {
            out[j] = f32::from(bytes[j]) * scales[j] + shifts[j];
        }
    }
}

/// `moved = start - eta * sum`.
#[target_feature(enable = "avx512f")]
fn move_block(start: &[f32], eta: f32, sum: &[f32], moved: &mut WeightBlock) {
    for ((moved, start), sum) in moved.0.iter_mut().zip(start).zip(sum) {
        *moved = start - eta * sum;
    }
}

/// `z += x Wᵀ` for one block of inputs and one panel, eight rows at a time.
///
/// # Safety
/// `block` is whole lines of `V` vectors, at most `BLOCK`; `z` holds `rows` rounded up to `SIDE`
/// rows of `stride` floats, and the panel lies within the stride.
#[target_feature(enable = "avx512f")]
#[inline]
unsafe fn forward_block<const V: usize>(
    x: &RowBlock,
    rows: usize,
    block: &[f32],
    z: &mut [f32],
    panel: usize,
    stride: usize,
) {
    let inputs = block.len() / (V * LANES);
    for first in (0..rows).step_by(SIDE) {
        // SAFETY: `first < MAX_ROWS` is a multiple of `SIDE`, which divides `MAX_ROWS`, so the
        // eight rows are in `x` and, by the contract, in `z`; `j < inputs <= BLOCK`.
        unsafe {
            let x = x.0.as_ptr().add(first * BLOCK);
            let z = z.as_mut_ptr().add(first * stride + panel * V * LANES);
            let w = block.as_ptr();
            let mut sum = [[_mm512_setzero_ps(); V]; SIDE];
            for (r, sum) in sum.iter_mut().enumerate() {
                for (v, sum) in sum.iter_mut().enumerate() {
                    *sum = _mm512_loadu_ps(z.add(r * stride + v * LANES));
                }
            }
            for j in 0..inputs {
                let mut line = [_mm512_setzero_ps(); V];
                for (v, line) in line.iter_mut().enumerate() {
                    *line = _mm512_loadu_ps(w.add((j * V + v) * LANES));
                }
                for (r, sum) in sum.iter_mut().enumerate() {
                    let x = _mm512_set1_ps(*x.add(r * BLOCK + j));
                    for (sum, line) in sum.iter_mut().zip(&line) {
                        *sum = _mm512_fmadd_ps(x, *line, *sum);
                    }
                }
            }
            for (r, sum) in sum.iter().enumerate() {
                for (v, sum) in sum.iter().enumerate() {
                    _mm512_storeu_ps(z.add(r * stride + v * LANES), *sum);
                }
            }
        }
    }
}

/// The gradient of one block of inputs and one panel, eight inputs at a time.
///
/// # Safety
/// `inputs <= BLOCK` is a multiple of `SIDE`, the sum holds that many lines from `at`, and `dz`
/// holds `rows` rows of the panels' stride.
#[target_feature(enable = "avx512f")]
#[inline]
unsafe fn gradient_block<const V: usize>(
    x: &RowBlock,
    rows: usize,
    gradient: &mut Gradient<'_>,
    panel: usize,
    panels: &Panels,
    at: usize,
    inputs: usize,
) {
    let stride = panels.stride();
    let alpha = _mm512_set1_ps(gradient.alpha);
    let beta = _mm512_set1_ps(gradient.beta);
    for first in (0..inputs).step_by(SIDE) {
        // SAFETY: by the contract; the eight inputs are inside a row of `x`.
        unsafe {
            let x = x.0.as_ptr().add(first);
            let dz = gradient.dz.as_ptr().add(panel * V * LANES);
            let out = gradient.sum.as_mut_ptr().add(at + first * V * LANES);
            let mut sum = [[_mm512_setzero_ps(); V]; SIDE];
            for r in 0..rows {
                let mut line = [_mm512_setzero_ps(); V];
                for (v, line) in line.iter_mut().enumerate() {
                    *line = _mm512_loadu_ps(dz.add(r * stride + v * LANES));
                }
                for (j, sum) in sum.iter_mut().enumerate() {
                    let x = _mm512_set1_ps(*x.add(r * BLOCK + j));
                    for (sum, line) in sum.iter_mut().zip(&line) {
                        *sum = _mm512_fmadd_ps(x, *line, *sum);
                    }
                }
            }
            for (j, sum) in sum.iter().enumerate() {
                for (v, sum) in sum.iter().enumerate() {
                    let out = out.add((j * V + v) * LANES);
                    let new = _mm512_mul_ps(alpha, *sum);
                    let old = if gradient.beta == 0.0 {
                        _mm512_setzero_ps()
                    } else {
                        _mm512_loadu_ps(out)
                    };
                    _mm512_storeu_ps(out, _mm512_fmadd_ps(beta, old, new));
                }
            }
        }
    }
}

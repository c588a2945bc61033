//! A convolution with pooling in which neighbouring pixels are the lanes.

use super::floats::FloatLanes;
use super::{Floats, SIDE, SLACK, Shape, TAPS, VIEW};
use crate::isa::dispatch;

dispatch! {
    /// Convolves planes of pixels and pools. `image` is `[input][row][column]` with [`SLACK`] floats
    /// behind it, `weights` as [`pack_wide`] left them for the same instruction set; `value` and
    /// `which` are `[output][pooled row][stride]`, and what lies beyond the pooled width in them is
    /// unspecified.
    pub fn wide(
        shape: Shape, image: &[f32], weights: &[f32], bias: &[f32], value: &mut [f32], which: &mut [u8],
    ) {
        assert!(image.len() >= shape.inputs * shape.height * shape.width + SLACK, "image");
        assert_eq!((weights.len(), bias.len()), (shape.weights(), shape.outputs), "weights");
        let planes = shape.outputs * shape.plane();
        assert_eq!((value.len(), which.len()), (planes, planes), "outputs");
    } = rows over Floats
}

dispatch! {
    /// Copies filters `[output][input][row][column]` to the order in which [`wide`] reads them.
    pub fn pack_wide(shape: Shape, weights: &[f32], packed: &mut [f32]) {
        assert_eq!((weights.len(), packed.len()), (shape.weights(), shape.weights()), "weights");
    } = pack over Floats
}

/// `[group of outputs][input][column][row][output of the group]`.
#[inline(always)]
unsafe fn pack<V: FloatLanes>(shape: Shape, weights: &[f32], packed: &mut [f32]) {
    let mut packed = packed.iter_mut();
    for first in (0..shape.outputs).step_by(V::CHANNELS) {
        let group = V::CHANNELS.min(shape.outputs - first);
        for input in 0..shape.inputs {
            for (column, row) in (0..TAPS).map(|tap| (tap / SIDE, tap % SIDE)) {
                for output in first..first + group {
                    let at = (output * shape.inputs + input) * TAPS + row * SIDE + column;
                    *packed.next().expect("as many as weights") = weights[at];
                }
            }
        }
    }
}

/// # Safety
/// The lengths are those that [`wide`] checks.
#[inline(always)]
unsafe fn rows<V: FloatLanes>(
    shape: Shape,
    image: &[f32],
    weights: &[f32],
    bias: &[f32],
    value: &mut [f32],
    which: &mut [u8],
) {
    for row in 0..shape.pooled_height() {
        for column in (0..shape.pooled_width()).step_by(V::LANES) {
            for first in (0..shape.outputs).step_by(V::CHANNELS) {
                let at = first * shape.plane() + row * shape.stride() + column;
                // SAFETY: a tile reads from pixel (2 row, 2 column) of every plane six rows, and at
                // most `SLACK` beyond the last one's end; the stride is padded, so `LANES` pooled
                // pixels from `column` on are there in every output's row.
                unsafe {
                    let image = image.as_ptr().add(2 * row * shape.width + 2 * column);
                    let weights = weights.as_ptr().add(first * shape.inputs * TAPS);
                    let bias = bias.as_ptr().add(first);
                    let (value, which) = (value.as_mut_ptr().add(at), which.as_mut_ptr().add(at));
                    match V::CHANNELS.min(shape.outputs - first) {
                        1 => tile::<V, 1>(shape, image, weights, bias, value, which),
                        2 => tile::<V, 2>(shape, image, weights, bias, value, which),
                        _ => tile::<V, 3>(shape, image, weights, bias, value, which),
                    }
                }
            }
        }
    }
}

/// `LANES` pooled pixels of `N` outputs: two rows of two vectors for each.
///
/// # Safety
/// As in [`rows`].
#[inline(always)]
unsafe fn tile<V: FloatLanes, const N: usize>(
    shape: Shape,
    image: *const f32,
    weights: *const f32,
    bias: *const f32,
    value: *mut f32,
    which: *mut u8,
) {
    // SAFETY: `input`, `column`, `row` and `n` stay within the shape.
    unsafe {
        let mut sum = [[[V::splat(0.0); 2]; 2]; N];
        for (n, sum) in sum.iter_mut().enumerate() {
            *sum = [[V::splat(*bias.add(n)); 2]; 2];
        }
        for input in 0..shape.inputs {
            for column in 0..SIDE {
                let weights = weights.add((input * SIDE + column) * SIDE * N);
                let image = image.add(input * shape.height * shape.width + column);
                for row in 0..VIEW {
                    let image = image.add(row * shape.width);
                    let pixels = [V::load(image), V::load(image.add(V::LANES))];
                    // A row of pixels is row `row` of the upper filter and the one before of the
                    // lower.
                    if row < SIDE {
                        for (n, sum) in sum.iter_mut().enumerate() {
                            let weight = V::splat(*weights.add(row * N + n));
                            sum[0][0] = sum[0][0].add_product(weight, pixels[0]);
                            sum[0][1] = sum[0][1].add_product(weight, pixels[1]);
                        }
                    }
                    if row > 0 {
                        for (n, sum) in sum.iter_mut().enumerate() {
                            let weight = V::splat(*weights.add((row - 1) * N + n));
                            sum[1][0] = sum[1][0].add_product(weight, pixels[0]);
                            sum[1][1] = sum[1][1].add_product(weight, pixels[1]);
                        }
                    }
                }
            }
        }
        for (n, sum) in sum.iter().enumerate() {
            let (upper_even, upper_odd) = V::halves(sum[0][0], sum[0][1]);
            let (lower_even, lower_odd) = V::halves(sum[1][0], sum[1][1]);
            let (value, which) = (value.add(n * shape.plane()), which.add(n * shape.plane()));
            V::largest([upper_even, upper_odd, lower_even, lower_odd], value, which);
        }
    }
}

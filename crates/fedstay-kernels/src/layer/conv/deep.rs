//! A convolution with pooling in which output channels are the lanes.

use super::floats::FloatLanes;
use super::{Floats, SIDE, Shape, TAPS, VIEW};
use crate::isa::dispatch;

dispatch! {
    /// Convolves planes of pixels and pools. `image` is `[input][row][stride]`, `weights` and `bias`
    /// as [`pack_deep`] left them for the same instruction set; `value` and `which` are `[pooled
    /// pixel][depth]`, where what lies beyond the outputs is what zero weights give.
    pub fn deep(
        shape: Shape, stride: usize, image: &[f32], weights: &[f32], bias: &[f32], value: &mut [f32],
        which: &mut [u8],
    ) {
        assert!(stride >= shape.width && image.len() >= shape.inputs * shape.height * stride, "image");
        let depth = shape.depth();
        assert_eq!((weights.len(), bias.len()), (depth * shape.inputs * TAPS, depth), "weights");
        let pixels = shape.pooled() * depth;
        assert_eq!((value.len(), which.len()), (pixels, pixels), "outputs");
    } = rows over Floats
}

dispatch! {
    /// Copies filters `[output][input][row][column]` and biases to the order in which [`deep`] reads
    /// them, filled up with zeros.
    pub fn pack_deep(shape: Shape, weights: &[f32], bias: &[f32], packed: &mut [f32], packed_bias: &mut [f32]) {
        assert_eq!((weights.len(), bias.len()), (shape.weights(), shape.outputs), "weights");
        let depth = shape.depth();
        assert_eq!((packed.len(), packed_bias.len()), (depth * shape.inputs * TAPS, depth), "packed");
    } = pack over Floats
}

/// `[group of outputs][input][column][row][lane]`.
#[inline(always)]
unsafe fn pack<V: FloatLanes>(
    shape: Shape,
    weights: &[f32],
    bias: &[f32],
    packed: &mut [f32],
    packed_bias: &mut [f32],
) {
    packed_bias.fill(0.0);
    packed_bias[..bias.len()].copy_from_slice(bias);
    let lines = packed.chunks_exact_mut(V::LANES).enumerate();
    for (line, packed) in lines {
        let (group, tap) = (line / (shape.inputs * TAPS), line % (shape.inputs * TAPS));
        let (input, column, row) = (tap / TAPS, tap % TAPS / SIDE, tap % SIDE);
        for (lane, packed) in packed.iter_mut().enumerate() {
            let output = group * V::LANES + lane;
            let at = (output * shape.inputs + input) * TAPS + row * SIDE + column;
            *packed = if output < shape.outputs { weights[at] } else { 0.0 };
        }
    }
}

/// # Safety
/// The lengths are those that [`deep`] checks.
#[inline(always)]
unsafe fn rows<V: FloatLanes>(
    shape: Shape,
    stride: usize,
    image: &[f32],
    weights: &[f32],
    bias: &[f32],
    value: &mut [f32],
    which: &mut [u8],
) {
    let columns = 2 * shape.pooled_width();
    for group in 0..shape.depth() / V::LANES {
        for row in 0..shape.pooled_height() {
            let mut column = 0;
            while column < columns {
                let pixels = V::PIXELS.min(columns - column);
                let pooled = row * shape.pooled_width() + column / 2;
                let at = pooled * shape.depth() + group * V::LANES;
                // SAFETY: a tile reads six rows of `pixels + 4` pixels from (2 row, column), which
                // the image has; the pooled pixels from `pooled` on are in the same row.
                unsafe {
                    let image = image.as_ptr().add(2 * row * stride + column);
                    let weights = weights.as_ptr().add(group * shape.inputs * TAPS * V::LANES);
                    let bias = bias.as_ptr().add(group * V::LANES);
                    let (value, which) = (value.as_mut_ptr().add(at), which.as_mut_ptr().add(at));
                    let plane = shape.height * stride;
                    match pixels {
                        2 => tile::<V, 1>(shape, plane, stride, image, weights, bias, value, which),
                        4 => tile::<V, 2>(shape, plane, stride, image, weights, bias, value, which),
                        6 => tile::<V, 3>(shape, plane, stride, image, weights, bias, value, which),
                        8 => tile::<V, 4>(shape, plane, stride, image, weights, bias, value, which),
                        _ => tile::<V, 5>(shape, plane, stride, image, weights, bias, value, which),
                    }
                }
                column += pixels;
            }
        }
    }
}

/// `N` pooled pixels of `LANES` outputs: two rows of `2 N` pixels.
///
/// # Safety
/// As in [`rows`].
#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "pointers into five arrays and their strides")]
unsafe fn tile<V: FloatLanes, const N: usize>(
    shape: Shape,
    plane: usize,
    stride: usize,
    image: *const f32,
    weights: *const f32,
    bias: *const f32,
    value: *mut f32,
    which: *mut u8,
) {
    // SAFETY: `input`, `column`, `row` and `n` stay within the shape.
    unsafe {
        let bias = V::load(bias);
        // [pooled pixel][row][column]
        let mut sum = [[[bias; 2]; 2]; N];
        for input in 0..shape.inputs {
            for column in 0..SIDE {
                let image = image.add(input * plane + column);
                let weights = weights.add((input * SIDE + column) * SIDE * V::LANES);
                let mut above = V::splat(0.0);
                for row in 0..VIEW {
                    let image = image.add(row * stride);
                    let filter =
                        if row < SIDE { V::load(weights.add(row * V::LANES)) } else { above };
                    for (n, [upper, lower]) in sum.iter_mut().enumerate() {
                        for (side, (upper, lower)) in upper.iter_mut().zip(lower).enumerate() {
                            let pixel = V::splat(*image.add(2 * n + side));
                            if row < SIDE {
                                *upper = upper.add_product(pixel, filter);
                            }
                            if row > 0 {
                                *lower = lower.add_product(pixel, above);
                            }
                        }
                    }
                    above = filter;
                }
            }
        }
        for (n, sum) in sum.iter().enumerate() {
            let of = [sum[0][0], sum[0][1], sum[1][0], sum[1][1]];
            V::largest(of, value.add(n * shape.depth()), which.add(n * shape.depth()));
        }
    }
}

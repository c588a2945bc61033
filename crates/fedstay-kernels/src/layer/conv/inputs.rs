//! The gradient of a convolution's inputs: every error times the filter that it passed through.
//!
//! A pooled pixel looks at 6×6 pixels; the filter that gave the largest sum lies in one of four
//! places there. Filters are therefore stored four times, each as a patch of 6×6 pixels with zeros
//! around it, so that one pooled pixel's errors add up in registers whichever place it was.

use super::floats::FloatLanes;
use super::{Floats, LANES, Places, SIDE, Shape, TAPS, VIEW};
use crate::isa::dispatch;

/// The number of vectors that add up together.
const GROUP: usize = 7;

/// How many floats a patch takes.
pub fn patch(shape: Shape) -> usize {
    (VIEW * VIEW * shape.inputs).next_multiple_of(GROUP * LANES)
}

/// Copies filters `[output][input][row][column]` to patches: `[place][output][patch]`, a patch being
/// `[row][column][input]`.
pub fn pack_inputs(shape: Shape, weights: &[f32], packed: &mut [f32]) {
    let size = patch(shape);
    assert_eq!(
        (weights.len(), packed.len()),
        (shape.weights(), 4 * shape.outputs * size),
        "weights"
    );
    packed.fill(0.0);
    for (place, packed) in packed.chunks_exact_mut(shape.outputs * size).enumerate() {
        let (down, right) = (place / 2, place % 2);
        let filters = weights.chunks_exact(shape.inputs * TAPS);
        for (packed, filter) in packed.chunks_exact_mut(size).zip(filters) {
            for (input, filter) in filter.chunks_exact(TAPS).enumerate() {
                for (row, filter) in filter.chunks_exact(SIDE).enumerate() {
                    let at = ((row + down) * VIEW + right) * shape.inputs + input;
                    let columns = packed[at..].iter_mut().step_by(shape.inputs);
                    columns.zip(filter).for_each(|(packed, weight)| *packed = *weight);
                }
            }
        }
    }
}

dispatch! {
    /// Adds the gradients that one pooled pixel's errors give to `gradient`, which is `[row][column]
    /// [input]` from the first pixel it looks at on, rows `line` floats apart. Places are those of
    /// patches in `packed`. `scratch` has room for a patch.
    pub fn inputs(
        shape: Shape, packed: &[f32], list: &Places, scratch: &mut [f32], gradient: &mut [f32],
        line: usize,
    ) {
        let size = patch(shape);
        assert!(line >= VIEW * shape.inputs, "line");
        assert!(gradient.len() >= (VIEW - 1) * line + VIEW * shape.inputs, "gradient");
        assert_eq!(scratch.len(), size, "scratch");
        assert!(list.last() + size <= packed.len(), "places");
    } = one over Floats
}

/// # Safety
/// The lengths and places are those that [`inputs`] checks.
#[inline(always)]
unsafe fn one<V: FloatLanes>(
    shape: Shape,
    packed: &[f32],
    list: &Places,
    scratch: &mut [f32],
    gradient: &mut [f32],
    line: usize,
) {
    let used = VIEW * VIEW * shape.inputs;
    for from in (0..used).step_by(GROUP * V::LANES) {
        // SAFETY: a patch is a multiple of seven of the longest vectors, so `GROUP` vectors from
        // `from` on are in every patch and in the scratch.
        unsafe {
            let packed = packed.as_ptr().add(from);
            let mut total = [V::splat(0.0); GROUP];
            for (place, error) in list.places().iter().zip(list.values()) {
                let error = V::splat(*error);
                let packed = packed.add(*place as usize);
                for (n, total) in total.iter_mut().enumerate() {
                    *total = total.add_product(error, V::load(packed.add(n * V::LANES)));
                }
            }
            for (n, total) in total.iter().enumerate() {
                total.store(scratch.as_mut_ptr().add(from + n * V::LANES));
            }
        }
    }
    let width = VIEW * shape.inputs;
    for (row, patch) in scratch[..used].chunks_exact(width).enumerate() {
        let gradient = &mut gradient[row * line..][..width];
        gradient.iter_mut().zip(patch).for_each(|(gradient, patch)| *gradient += patch);
    }
}

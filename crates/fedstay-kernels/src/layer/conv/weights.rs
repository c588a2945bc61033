//! The gradient of a filter's weights: every error times the pixels its filter looked at.
//!
//! Pixels are stored with their channels side by side, so that one row of a filter looks at 5 ×
//! channels numbers in a row: those are the lanes.

use super::floats::FloatLanes;
use super::{Floats, LANES, Places, SIDE, SLACK, Shape, TAPS};
use crate::isa::dispatch;

/// How many floats the gradient of one filter takes: five rows, each padded.
pub fn weights_line(shape: Shape) -> usize {
    SIDE * row(shape)
}

/// How many floats one row of a filter takes.
fn row(shape: Shape) -> usize {
    (SIDE * shape.inputs).next_multiple_of(LANES)
}

dispatch! {
    /// Adds the gradient of one filter: each listed error times the pixels from its place on. `image`
    /// is `[row][column][input]` with [`SLACK`] floats behind it; places are such that a whole filter
    /// fits there. `sum` is one line of [`weights_line`] floats.
    pub fn weights(shape: Shape, image: &[f32], list: &Places, sum: &mut [f32]) {
        let line = shape.width * shape.inputs;
        assert!(image.len() >= shape.height * line + SLACK, "image");
        assert_eq!(sum.len(), weights_line(shape), "sum");
        let reach = (SIDE - 1) * line + SIDE * shape.inputs;
        assert!(list.last() + reach <= shape.height * line, "places");
    } = all over Floats
}

/// # Safety
/// The lengths and places are those that [`weights`] checks.
#[inline(always)]
unsafe fn all<V: FloatLanes>(shape: Shape, image: &[f32], list: &Places, sum: &mut [f32]) {
    let line = shape.width * shape.inputs;
    let mut from = 0;
    while from < SIDE * shape.inputs {
        // SAFETY: a filter fits at every place; its row is read up to the next multiple of two
        // vectors, which is within `SLACK` of it. `sum` has five rows, padded likewise.
        unsafe {
            let image = image.as_ptr().add(from);
            let sum = sum.as_mut_ptr().add(from);
            if SIDE * shape.inputs - from > V::LANES {
                columns::<V, 2>(image, line, list, sum, row(shape));
                from += 2 * V::LANES;
            } else {
                columns::<V, 1>(image, line, list, sum, row(shape));
                from += V::LANES;
            }
        }
    }
}

/// `N` vectors of each of the five rows.
///
/// # Safety
/// As in [`all`].
#[inline(always)]
unsafe fn columns<V: FloatLanes, const N: usize>(
    image: *const f32,
    line: usize,
    list: &Places,
    sum: *mut f32,
    row: usize,
) {
    // SAFETY: as in `all`.
    unsafe {
        let mut total = [[V::splat(0.0); N]; SIDE];
        for (r, total) in total.iter_mut().enumerate() {
            for (n, total) in total.iter_mut().enumerate() {
                *total = V::load(sum.add(r * row + n * V::LANES));
            }
        }
        for (place, error) in list.places().iter().zip(list.values()) {
            let error = V::splat(*error);
            let image = image.add(*place as usize);
            for (r, total) in total.iter_mut().enumerate() {
                for (n, total) in total.iter_mut().enumerate() {
                    let pixels = V::load(image.add(r * line + n * V::LANES));
                    *total = total.add_product(error, pixels);
                }
            }
        }
        for (r, total) in total.iter().enumerate() {
            for (n, total) in total.iter().enumerate() {
                total.store(sum.add(r * row + n * V::LANES));
            }
        }
    }
}

/// Adds what [`weights`] summed up, one line per output, to a gradient `[output][input][row][column]`:
/// `gradient = beta * gradient + alpha * sum`. With `beta` 0 the old gradient is not read.
pub fn unpack_weights(shape: Shape, sums: &[f32], beta: f32, alpha: f32, gradient: &mut [f32]) {
    let filters = gradient.chunks_exact_mut(shape.inputs * TAPS);
    for (sum, filter) in sums.chunks_exact(weights_line(shape)).zip(filters) {
        for (at, gradient) in filter.iter_mut().enumerate() {
            let (input, r, column) = (at / TAPS, at % TAPS / SIDE, at % SIDE);
            let old = if beta == 0.0 { 0.0 } else { beta * *gradient };
            *gradient = old + alpha * sum[r * row(shape) + column * shape.inputs + input];
        }
    }
}

dispatch! {
    /// Adds the sum of each of the equally long rows to its total: the gradient of the biases. Rows are
    /// whole vectors long.
    pub fn add_sums(rows: &[f32], totals: &mut [f32]) {
        let len = rows.len() / totals.len();
        for (row, total) in rows.chunks_exact(len).zip(totals) {
            let mut lanes = [0.0f32; LANES];
            for part in row.chunks_exact(LANES) {
                for (lane, value) in lanes.iter_mut().zip(part) {
                    *lane += value;
                }
            }
            *total += lanes.iter().sum::<f32>();
        }
    }
}

//! All inner products of two sets of vectors, a square tile of them at a time.
//!
//! The vectors are widened a block of columns at a time; a tile then takes each widened number once
//! for several sums, which stay in registers for the whole block.

use super::dot::widen;
use super::lanes::{Exact, Lanes, Product, Rounded, WIDTH};
use super::{BLOCK, Isa, Line, kernel};
use crate::Vector;
use std::ops::Range;

/// Lines between the widened rows; one more than a block has, so that rows do not meet in one set of
/// the cache.
const STRIDE: usize = BLOCK / WIDTH + 1;

/// The inner products, over these columns of one span, of every vector on the left with every one on
/// the right, row by row. Without a right side, those on the left with each other: the lower triangle,
/// row by row.
pub(in super::super) fn products(
    isa: Isa,
    left: &[Vector<'_>],
    right: Option<&[Vector<'_>]>,
    columns: Range<usize>,
) -> Vec<f64> {
    let wide = |vector: &Vector<'_>| matches!(vector, Vector::F64(_));
    let rounded = left.iter().any(wide) || right.is_some_and(|right| right.iter().any(wide));
    for vector in left.iter().chain(right.unwrap_or_default()) {
        assert!(columns.end <= vector.len(), "columns that a vector does not have");
    }
    match rounded {
        true => panel::<Rounded>(isa, left, right, columns),
        false => panel::<Exact>(isa, left, right, columns),
    }
}

kernel! {
    fn panel<P: Product>(
        left: &[Vector<'_>], right: Option<&[Vector<'_>]>, columns: Range<usize>
    ) -> Vec<f64> = body
}

/// # Safety
/// The machine must have the instructions of `V`, and all vectors these columns.
#[inline(always)]
unsafe fn body<V: Lanes, P: Product>(
    left: &[Vector<'_>],
    right: Option<&[Vector<'_>]>,
    columns: Range<usize>,
) -> Vec<f64> {
    // The tile that wastes least on rows of zeros; of two, the larger one.
    let waste = |tile: usize| {
        let padding = |count: usize| count.next_multiple_of(tile) - count;
        padding(left.len()) + right.map_or(0, |right| padding(right.len()))
    };
    let best = V::TILES.iter().rev().min_by_key(|tile| waste(**tile)).copied();
    unsafe {
        match best {
            Some(5) if V::TILES.len() > 1 => tiles::<V, P, 5>(left, right, columns),
            Some(4) if V::TILES.len() > 1 => tiles::<V, P, 4>(left, right, columns),
            _ => tiles::<V, P, 2>(left, right, columns),
        }
    }
}

/// # Safety
/// As above.
#[inline(always)]
unsafe fn tiles<V: Lanes, P: Product, const T: usize>(
    left: &[Vector<'_>],
    right: Option<&[Vector<'_>]>,
    columns: Range<usize>,
) -> Vec<f64> {
    let room = |count: usize| vec![Line::ZERO; count.next_multiple_of(T) * STRIDE];
    let mut rows = room(left.len());
    let mut others = right.map(|right| room(right.len()));
    let down = left.len().div_ceil(T);
    let across = |top: usize| right.map_or(top + 1, |right| right.len().div_ceil(T));
    let count: usize = (0..down).map(across).sum();
    let mut totals = vec![[[Line::ZERO; T]; T]; count];
    for start in columns.clone().step_by(BLOCK) {
        let block = BLOCK.min(columns.end - start);
        let lines = block.div_ceil(WIDTH);
        // SAFETY: the block lies within the columns that all vectors have, and in a row's lines.
        unsafe {
            for (vector, row) in left.iter().zip(rows.chunks_exact_mut(STRIDE)) {
                widen::<V>(*vector, start, block, row.as_mut_ptr());
            }
            if let (Some(right), Some(others)) = (right, &mut others) {
                for (vector, row) in right.iter().zip(others.chunks_exact_mut(STRIDE)) {
                    widen::<V>(*vector, start, block, row.as_mut_ptr());
                }
            }
        }
        let mut totals = totals.iter_mut();
        for top in 0..down {
            let above = rows[top * T * STRIDE..][..T * STRIDE].as_ptr();
            for (side, total) in (0..across(top)).zip(&mut totals) {
                let beside = others.as_ref().unwrap_or(&rows);
                let beside = beside[side * T * STRIDE..][..T * STRIDE].as_ptr();
                // SAFETY: there are `T` rows of `STRIDE` lines each.
                unsafe {
                    match right.is_none() && side == top {
                        true => tile::<V, P, T, true>(above, beside, lines, total),
                        false => tile::<V, P, T, false>(above, beside, lines, total),
                    }
                }
            }
        }
    }
    read(left.len(), right.map(<[_]>::len), &totals)
}

/// Adds the inner products of `T` rows with `T` others to their totals; on the diagonal, those at and
/// below it.
///
/// # Safety
/// The machine must have the instructions of `V`, and there must be `T` rows of at least `lines`
/// lines, `STRIDE` apart, behind both pointers.
#[inline(always)]
unsafe fn tile<V: Lanes, P: Product, const T: usize, const DIAGONAL: bool>(
    above: *const Line,
    beside: *const Line,
    lines: usize,
    totals: &mut [[Line; T]; T],
) {
    unsafe {
        let mut sums = [[V::zero(); T]; T];
        for line in 0..lines {
            let mut rows = [V::zero(); T];
            for (index, row) in rows.iter_mut().enumerate() {
                *row = V::load_f64(above.add(index * STRIDE + line).cast());
            }
            for column in 0..T {
                let other = match DIAGONAL {
                    true => rows[column],
                    false => V::load_f64(beside.add(column * STRIDE + line).cast()),
                };
                let first = if DIAGONAL { column } else { 0 };
                for row in first..T {
                    sums[row][column] = P::add(sums[row][column], rows[row], other);
                }
            }
        }
        for (totals, sums) in totals.iter_mut().zip(sums) {
            for (total, sum) in totals.iter_mut().zip(sums) {
                let at: *mut f64 = total.0.as_mut_ptr();
                V::load_f64(at).add(sum).store(at);
            }
        }
    }
}

/// The totals as numbers, without the rows of zeros.
fn read<const T: usize>(left: usize, right: Option<usize>, tiles: &[[[Line; T]; T]]) -> Vec<f64> {
    let mut read = Vec::with_capacity(left * right.unwrap_or(left));
    for row in 0..left {
        let (top, before) = (row / T, |top: usize| match right {
            Some(right) => top * right.div_ceil(T),
            None => top * (top + 1) / 2,
        });
        for column in 0..right.unwrap_or(row + 1) {
            let tile = &tiles[before(top) + column / T];
            read.push(tile[row % T][column % T].sum());
        }
    }
    read
}

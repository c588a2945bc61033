//! All inner products of two sets of vectors, a square tile of them at a time.
//!
//! The vectors are copied a block of columns at a time, in most cases widened; a tile then takes each number
//! once for several sums, which stay in registers for the whole block.

use super::few::few;
use super::lanes::{Exact, Lanes, Rounded};
use super::tiled::{Doubles, Singles, Tiled};
use super::{Isa, Line, Sums, WIDTH, kernel};
use crate::Vector;
use std::cell::RefCell;
use std::ops::Range;

/// Lines between the rows; one more than a block has, so that rows do not meet in one set of the cache.
const fn stride<P: Tiled>() -> usize {
    P::COLUMNS / P::WIDTH + 1
}

/// The inner products, over these columns of one span, of every vector on the left with every one on
/// the right, row by row. Without a right side, those on the left with each other: the lower triangle,
/// row by row. Sums in single precision are for vectors in single precision; others are summed in
/// double, whatever was asked for.
pub(in super::super) fn products(
    isa: Isa,
    sums: Sums,
    left: &[Vector<'_>],
    right: Option<&[Vector<'_>]>,
    columns: Range<usize>,
) -> Vec<f64> {
    let (mut single, mut rounded) = (sums == Sums::Single, false);
    for vector in left.iter().chain(right.unwrap_or_default()) {
        assert!(columns.end <= vector.len(), "columns that a vector does not have");
        single &= matches!(vector, Vector::F32(_));
        rounded |= matches!(vector, Vector::F64(_));
    }
    let mut room = ROOM.take();
    let few =
        if right.is_none() && !single { few(isa, &mut room, left, columns.clone()) } else { None };
    let products = few.unwrap_or_else(|| match (single, rounded) {
        (true, _) => panel::<Singles>(isa, &mut room, left, right, columns),
        (_, true) => panel::<Doubles<Rounded>>(isa, &mut room, left, right, columns),
        (_, false) => panel::<Doubles<Exact>>(isa, &mut room, left, right, columns),
    });
    ROOM.set(room);
    products
}

kernel! {
    fn panel<P: Tiled>(
        room: &mut Room, left: &[Vector<'_>], right: Option<&[Vector<'_>]>, columns: Range<usize>
    ) -> Vec<f64> = body
}

/// # Safety
/// The machine must have the instructions of `V`, and all vectors these columns.
#[inline(always)]
unsafe fn body<V: Lanes, P: Tiled>(
    room: &mut Room,
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
            Some(5) if V::TILES.len() > 1 => tiles::<V, P, 5>(room, left, right, columns),
            Some(4) if V::TILES.len() > 1 => tiles::<V, P, 4>(room, left, right, columns),
            _ => tiles::<V, P, 2>(room, left, right, columns),
        }
    }
}

/// Room for the rows and totals of one call. To ask for it every time, and to have it cleared, took as long as the
/// products of a few thousand columns.
#[derive(Default)]
pub(super) struct Room {
    rows: Vec<Line>,
    others: Vec<Line>,
    totals: Vec<Line>,
}

impl Room {
    /// Room for so many totals of doubles, with anything in it.
    pub(super) fn totals(&mut self, count: usize) -> &mut [Line] {
        lines(&mut self.totals, count)
    }
}

thread_local! {
    static ROOM: RefCell<Room> = RefCell::default();
}

/// So many lines, with anything in them.
fn lines(of: &mut Vec<Line>, count: usize) -> &mut [Line] {
    if of.len() < count {
        of.resize(count, Line::ZERO);
    }
    &mut of[..count]
}

/// # Safety
/// As above.
#[inline(always)]
unsafe fn tiles<V: Lanes, P: Tiled, const T: usize>(
    room: &mut Room,
    left: &[Vector<'_>],
    right: Option<&[Vector<'_>]>,
    columns: Range<usize>,
) -> Vec<f64> {
    let stride = stride::<P>();
    let padded = |count: usize| count.next_multiple_of(T) * stride;
    let rows = lines(&mut room.rows, padded(left.len()));
    rows[left.len() * stride..].fill(Line::ZERO);
    let others = lines(&mut room.others, right.map_or(0, |right| padded(right.len())));
    others[right.map_or(0, |right| right.len() * stride)..].fill(Line::ZERO);
    let down = left.len().div_ceil(T);
    let across = |top: usize| right.map_or(top + 1, |right| right.len().div_ceil(T));
    let count: usize = (0..down).map(across).sum();
    let totals = lines(&mut room.totals, (count * T * T * P::TOTAL).div_ceil(WIDTH));
    if columns.is_empty() {
        totals.fill(Line::ZERO);
    }
    for start in columns.clone().step_by(P::COLUMNS) {
        let block = P::COLUMNS.min(columns.end - start);
        let lines = block.div_ceil(P::WIDTH);
        // SAFETY: the block lies within the columns that all vectors have, and in a row's lines.
        unsafe {
            for (vector, row) in left.iter().zip(rows.chunks_exact_mut(stride)) {
                P::take::<V>(*vector, start, block, row.as_mut_ptr());
            }
            for (vector, row) in right.into_iter().flatten().zip(others.chunks_exact_mut(stride)) {
                P::take::<V>(*vector, start, block, row.as_mut_ptr());
            }
        }
        let mut total: *mut f64 = totals.as_mut_ptr().cast();
        for top in 0..down {
            let above = rows[top * T * stride..][..T * stride].as_ptr();
            for side in 0..across(top) {
                let beside = if right.is_some() { &*others } else { &*rows };
                let beside = beside[side * T * stride..][..T * stride].as_ptr();
                let first = start == columns.start;
                // SAFETY: there are `T` rows of `stride` lines each, and `T · T` totals for each tile.
                unsafe {
                    match right.is_none() && side == top {
                        true => tile::<V, P, T, true>(above, beside, lines, first, total),
                        false => tile::<V, P, T, false>(above, beside, lines, first, total),
                    }
                    total = total.add(T * T * P::TOTAL);
                }
            }
        }
    }
    read::<P, T>(left.len(), right.map(<[_]>::len), totals)
}

/// Adds the inner products of `T` rows with `T` others to their totals, which are zero before the `first`
/// block; on the diagonal, those at and below it.
///
/// # Safety
/// The machine must have the instructions of `V`, there must be `T · T` totals, and `T` rows of at least `lines`
/// lines, a stride apart, behind both pointers.
#[inline(always)]
unsafe fn tile<V: Lanes, P: Tiled, const T: usize, const DIAGONAL: bool>(
    above: *const Line,
    beside: *const Line,
    lines: usize,
    first: bool,
    totals: *mut f64,
) {
    let stride = stride::<P>();
    unsafe {
        let mut sums = [[P::zero::<V>(); T]; T];
        for line in 0..lines {
            let mut rows = [P::zero::<V>(); T];
            for (index, row) in rows.iter_mut().enumerate() {
                *row = P::load::<V>(above.add(index * stride + line));
            }
            for column in 0..T {
                let other = match DIAGONAL {
                    true => rows[column],
                    false => P::load::<V>(beside.add(column * stride + line)),
                };
                let first = if DIAGONAL { column } else { 0 };
                for row in first..T {
                    sums[row][column] = P::add::<V>(sums[row][column], rows[row], other);
                }
            }
        }
        for (index, sum) in sums.as_flattened().iter().enumerate() {
            P::total::<V>(*sum, first, totals.add(index * P::TOTAL));
        }
    }
}

/// The totals as numbers, without the rows of zeros.
pub(super) fn read<P: Tiled, const T: usize>(
    left: usize,
    right: Option<usize>,
    totals: &[Line],
) -> Vec<f64> {
    let mut read = Vec::with_capacity(left * right.unwrap_or(left));
    for row in 0..left {
        let (top, before) = (row / T, |top: usize| match right {
            Some(right) => top * right.div_ceil(T),
            None => top * (top + 1) / 2,
        });
        for column in 0..right.unwrap_or(row + 1) {
            let tile = before(top) + column / T;
            let total = (tile * T + row % T) * T + column % T;
            assert!((total + 1) * P::TOTAL <= totals.len() * WIDTH, "a total that there is not");
            // SAFETY: there are so many numbers in the lines, and a total of doubles is one of them.
            read.push(unsafe { P::read(totals.as_ptr().cast::<f64>().add(total * P::TOTAL)) });
        }
    }
    read
}

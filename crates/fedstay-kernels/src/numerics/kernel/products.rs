//! All inner products of two sets of vectors, a square tile of them at a time.
//!
//! The vectors are widened a block of columns at a time; a tile then takes each widened number once
//! for several sums, which stay in registers for the whole block. Sums in single precision are in
//! `singles.rs`.

use super::dot::widen;
use super::few::few;
use super::lanes::{Doubles, Exact, Lanes, Product, Rounded};
use super::{BLOCK, Line, Sums, WIDTH, singles};
use crate::isa::dispatch;
use crate::{Isa, Vector};
use std::cell::RefCell;
use std::ops::Range;

/// Lines between the widened rows; one more than a block has, so that rows do not meet in one set of
/// the cache.
const STRIDE: usize = BLOCK / WIDTH + 1;

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
    let mut rounded = false;
    for vector in left.iter().chain(right.unwrap_or_default()) {
        assert!(columns.end <= vector.len(), "columns that a vector does not have");
        rounded |= matches!(vector, Vector::F64(_));
    }
    let mut room = ROOM.take();
    let in_single = match sums {
        Sums::Single => in_single(isa, &mut room, left, right, &columns),
        Sums::Double if right.is_none() => few(isa, &mut room, left, columns.clone()),
        Sums::Double => None,
    };
    let products = in_single.unwrap_or_else(|| match rounded {
        true => panel::<Rounded>(isa, &mut room, left, right, columns),
        false => panel::<Exact>(isa, &mut room, left, right, columns),
    });
    ROOM.set(room);
    products
}

/// The same in single precision; `None` if some vectors are in another.
fn in_single(
    isa: Isa,
    room: &mut TileRoom,
    left: &[Vector<'_>],
    right: Option<&[Vector<'_>]>,
    columns: &Range<usize>,
) -> Option<Vec<f64>> {
    fn all<'a>(vectors: &[Vector<'a>], columns: &Range<usize>) -> Option<Vec<&'a [f32]>> {
        let single = |vector: &Vector<'a>| match vector {
            Vector::F32(values) => Some(&values[columns.clone()]),
            _ => None,
        };
        vectors.iter().map(single).collect()
    }
    let left = all(left, columns)?;
    match right {
        Some(right) => Some(singles::products(isa, room, &left, Some(&all(right, columns)?))),
        None => Some(singles::products(isa, room, &left, None)),
    }
}

dispatch! {
    fn panel<P: Product>(
        room: &mut TileRoom, left: &[Vector<'_>], right: Option<&[Vector<'_>]>, columns: Range<usize>
    ) -> Vec<f64> = body over Doubles
}

/// # Safety
/// The machine must have the instructions of `V`, and all vectors these columns.
#[inline(always)]
unsafe fn body<V: Lanes, P: Product>(
    room: &mut TileRoom,
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
    // SAFETY: passed on.
    unsafe {
        match best {
            Some(5) if V::TILES.len() > 1 => tiles::<V, P, 5>(room, left, right, columns),
            Some(4) if V::TILES.len() > 1 => tiles::<V, P, 4>(room, left, right, columns),
            _ => tiles::<V, P, 2>(room, left, right, columns),
        }
    }
}

/// TileRoom for the rows and totals of one call. To ask for it every time, and to have it cleared, took as long as the
/// products of a few thousand columns.
#[derive(Default)]
pub(super) struct TileRoom {
    pub(super) rows: Vec<Line>,
    pub(super) others: Vec<Line>,
    pub(super) totals: Vec<Line>,
}

thread_local! {
    static ROOM: RefCell<TileRoom> = RefCell::default();
}

/// This number of lines, with anything in them.
pub(super) fn lines(of: &mut Vec<Line>, count: usize) -> &mut [Line] {
    if of.len() < count {
        of.resize(count, Line::ZERO);
    }
    &mut of[..count]
}

/// # Safety
/// As above.
#[inline(always)]
unsafe fn tiles<V: Lanes, P: Product, const T: usize>(
    room: &mut TileRoom,
    left: &[Vector<'_>],
    right: Option<&[Vector<'_>]>,
    columns: Range<usize>,
) -> Vec<f64> {
    let padded = |count: usize| count.next_multiple_of(T) * STRIDE;
    let rows = lines(&mut room.rows, padded(left.len()));
    rows[left.len() * STRIDE..].fill(Line::ZERO);
    let others = lines(&mut room.others, right.map_or(0, |right| padded(right.len())));
    others[right.map_or(0, |right| right.len() * STRIDE)..].fill(Line::ZERO);
    let down = left.len().div_ceil(T);
    let across = |top: usize| right.map_or(top + 1, |right| right.len().div_ceil(T));
    let count: usize = (0..down).map(across).sum();
    let totals = lines(&mut room.totals, count * T * T);
    if columns.is_empty() {
        totals.fill(Line::ZERO);
    }
    for start in columns.clone().step_by(BLOCK) {
        let block = BLOCK.min(columns.end - start);
        let lines = block.div_ceil(WIDTH);
        // SAFETY: the block lies within the columns that all vectors have, and in a row's lines.
        unsafe {
            for (vector, row) in left.iter().zip(rows.chunks_exact_mut(STRIDE)) {
                widen::<V>(*vector, start, block, row.as_mut_ptr());
            }
            for (vector, row) in right.into_iter().flatten().zip(others.chunks_exact_mut(STRIDE)) {
                widen::<V>(*vector, start, block, row.as_mut_ptr());
            }
        }
        let mut totals = totals.chunks_exact_mut(T * T);
        for top in 0..down {
            let above = rows[top * T * STRIDE..][..T * STRIDE].as_ptr();
            for (side, totals) in (0..across(top)).zip(&mut totals) {
                let beside = if right.is_some() { &*others } else { &*rows };
                let beside = beside[side * T * STRIDE..][..T * STRIDE].as_ptr();
                let first = start == columns.start;
                // SAFETY: there are `T` rows of `STRIDE` lines each.
                unsafe {
                    match right.is_none() && side == top {
                        true => tile::<V, P, T, true>(above, beside, lines, first, totals),
                        false => tile::<V, P, T, false>(above, beside, lines, first, totals),
                    }
                }
            }
        }
    }
    read::<T>(left.len(), right.map(<[_]>::len), totals)
}

/// Adds the inner products of `T` rows with `T` others to their totals, which are zero before the `first`
/// block; on the diagonal, those at and below it.
///
/// # Safety
/// The machine must have the instructions of `V`, and there must be `T` rows of at least `lines`
/// lines, `STRIDE` apart, behind both pointers.
#[inline(always)]
unsafe fn tile<V: Lanes, P: Product, const T: usize, const DIAGONAL: bool>(
    above: *const Line,
    beside: *const Line,
    lines: usize,
    first: bool,
    totals: &mut [Line],
) {
    // SAFETY: by the contract; every line lies within the `lines` behind each row.
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
        add_to(sums.as_flattened(), first, totals);
    }
}

/// Adds the sums of a block to their totals, which are zero before the `first`.
///
/// # Safety
/// The machine must have the instructions of `V`.
#[inline(always)]
pub(super) unsafe fn add_to<V: Lanes>(sums: &[V], first: bool, totals: &mut [Line]) {
    for (total, sum) in totals.iter_mut().zip(sums) {
        let at: *mut f64 = total.0.as_mut_ptr();
        // SAFETY: by the contract; a total is a line, eight doubles.
        unsafe {
            let before = if first { V::zero() } else { V::load_f64(at) };
            before.add(*sum).store(at);
        }
    }
}

/// The totals as numbers, without the rows of zeros.
pub(super) fn read<const T: usize>(left: usize, right: Option<usize>, totals: &[Line]) -> Vec<f64> {
    let mut read = Vec::with_capacity(left * right.unwrap_or(left));
    for row in 0..left {
        let (top, before) = (row / T, |top: usize| match right {
            Some(right) => top * right.div_ceil(T),
            None => top * (top + 1) / 2,
        });
        for column in 0..right.unwrap_or(row + 1) {
            let tile = before(top) + column / T;
            read.push(totals[(tile * T + row % T) * T + column % T].sum());
        }
    }
    read
}

//! All inner products of two sets of vectors in single precision, summed in single precision over a block of
//! columns and in double over blocks.
//!
//! They take three fifths of the time of sums in double and are off by some 1e-7 of the vectors' lengths, and
//! by 4e-6 at most as far as is known. They
//! are good enough to find out which of many constraints bind, where what follows from them is measured
//! in double precision and corrected (`slabs/mod.rs`); nothing else uses them.
//!
//! The vectors on the left are copied so that a register has the same column of sixteen of them: one number of a
//! vector on the right is then multiplied with all sixteen, and no register is ever added up.

use super::Line;
use super::lanes::{Doubles, Lanes, SINGLES, WIDTH};
use super::products::{TileRoom, lines};
use crate::isa::dispatch;

/// The columns over which sums run in single precision.
const COLUMNS: usize = 128;
/// Lines between the copies on the right; one more than a block has, so that rows do not meet in one set of the
/// cache.
const STRIDE: usize = COLUMNS / SINGLES + 1;

dispatch! {
    /// The products of every vector on the left with every one on the right, row by row; without a right side, those
    /// on the left with each other, the lower triangle row by row. All vectors are of one length.
    pub(super) fn products(
        room: &mut TileRoom, left: &[&[f32]], right: Option<&[&[f32]]>
    ) -> Vec<f64> = body over Doubles
}

/// # Safety
/// The machine must have the instructions of `V`.
#[inline(always)]
unsafe fn body<V: Lanes>(
    room: &mut TileRoom,
    left: &[&[f32]],
    right: Option<&[&[f32]]>,
) -> Vec<f64> {
    // A register that is not full costs as much as one that is, so the larger side lies in registers.
    let (across, along) = match right {
        Some(right) if right.len() > left.len() => (right, Some(left)),
        _ => (left, right),
    };
    // SAFETY: by the contract, there are the instructions of `V`; the tiles check the columns.
    let (lanes, totals) = unsafe {
        match V::TILES.len() > 1 {
            true => (2 * SINGLES, tiles::<V, 2, 12>(room, across, along)),
            false => (SINGLES, tiles::<V, 1, 6>(room, across, along)),
        }
    };
    let rows = totals.len() * WIDTH / (across.len().div_ceil(lanes).max(1) * lanes);
    let total = |one: usize, other: usize| {
        let index = ((one / lanes) * rows + other) * lanes + one % lanes;
        totals[index / WIDTH].0[index % WIDTH]
    };
    let mut products = Vec::with_capacity(left.len() * right.map_or(left.len(), <[_]>::len));
    for row in 0..left.len() {
        match right {
            Some(right) if right.len() > left.len() => {
                products.extend((0..right.len()).map(|column| total(column, row)));
            }
            Some(right) => products.extend((0..right.len()).map(|column| total(row, column))),
            None => products.extend((0..=row).map(|column| total(row, column))),
        }
    }
    products
}

/// By tiles of `N` registers of vectors on the left and `C` vectors on the right. For each group of as many vectors on
/// the left, and each vector on the right, the totals of the group side by side; the right side is filled up to a
/// multiple of `C`.
///
/// # Safety
/// As above.
#[inline(always)]
unsafe fn tiles<'a, V: Lanes, const N: usize, const C: usize>(
    room: &'a mut TileRoom,
    left: &[&[f32]],
    right: Option<&[&[f32]]>,
) -> &'a [Line] {
    let beside = right.unwrap_or(left);
    let columns = left.iter().chain(beside).map(|vector| vector.len()).min().unwrap_or(0);
    let (groups, bands) = (left.len().div_ceil(N * SINGLES), beside.len().div_ceil(C));
    let TileRoom { rows, others, totals } = room;
    let rows = lines(rows, groups * COLUMNS * N);
    let others = lines(others, bands * C * STRIDE);
    let totals = lines(totals, groups * bands * C * N * SINGLES / WIDTH);
    // The places of vectors that there are not.
    rows[groups.saturating_sub(1) * COLUMNS * N..].fill(Line::ZERO);
    others[beside.len() * STRIDE..].fill(Line::ZERO);
    totals.fill(Line::ZERO);
    let mut start = 0;
    while start < columns {
        let block = COLUMNS.min(columns - start);
        for (vector, row) in beside.iter().zip(others.chunks_exact_mut(STRIDE)) {
            // SAFETY: there are that many columns, and a line is sixteen such numbers.
            unsafe {
                let from = vector.as_ptr().add(start);
                // The block after this one is wanted next, and too far away to be guessed.
                for line in (0..block).step_by(SINGLES) {
                    V::fetch(from.wrapping_add(block + line).cast());
                }
                std::ptr::copy_nonoverlapping(from, row.as_mut_ptr().cast(), block);
            }
        }
        let groups = rows.chunks_exact_mut(COLUMNS * N).zip(left.chunks(N * SINGLES));
        for (group, (rows, vectors)) in groups.enumerate() {
            // SAFETY: as above, and there are `C` rows in a band.
            unsafe {
                for (place, some) in vectors.chunks(SINGLES).enumerate() {
                    turn::<V>(some, start, block, rows.as_mut_ptr().add(place), N);
                }
                let to = totals.as_mut_ptr().add(group * bands * C * N * SINGLES / WIDTH);
                for band in 0..bands {
                    if right.is_none() && band * C >= (group + 1) * N * SINGLES {
                        break;
                    }
                    let others = others.as_ptr().add(band * C * STRIDE);
                    let to = to.add(band * C * N * SINGLES / WIDTH).cast();
                    tile::<V, N, C>(rows.as_ptr(), others, block, to);
                }
            }
        }
        start += block;
    }
    totals
}

/// Copies a block of up to sixteen vectors so that every line has one column of them; the lines are `apart` from
/// each other.
///
/// # Safety
/// The machine must have the instructions of `V`; the vectors must have these columns, and there must be a line for
/// each.
#[inline(always)]
unsafe fn turn<V: Lanes>(
    vectors: &[&[f32]],
    start: usize,
    block: usize,
    to: *mut Line,
    apart: usize,
) {
    let nothing = [0.0; SINGLES];
    let whole = block - block % SINGLES;
    for square in (0..whole).step_by(SINGLES) {
        // SAFETY: a square lies within the columns that the vectors have, and there is a line for each column.
        unsafe {
            let rows = std::array::from_fn(|row| match vectors.get(row) {
                Some(vector) => {
                    let from = vector.as_ptr().add(start + square);
                    V::fetch(from.wrapping_add(block).cast());
                    V::load_singles(from)
                }
                None => V::load_singles(nothing.as_ptr()),
            });
            for (column, turned) in V::turn_singles(rows).into_iter().enumerate() {
                V::store_singles(turned, to.add((square + column) * apart).cast());
            }
        }
    }
    for (row, vector) in vectors.iter().enumerate() {
        for (column, value) in vector[start..start + block].iter().enumerate().skip(whole) {
            // SAFETY: there is a line for each column, of sixteen numbers, and at most sixteen vectors.
            unsafe { to.add(column * apart).cast::<f32>().add(row).write(*value) };
        }
    }
}

/// Adds the products of `N` registers of vectors with `C` others to their totals.
///
/// # Safety
/// The machine must have the instructions of `V`. There must be `columns` times `N` lines behind the first pointer,
/// `C` rows a stride apart behind the second, and `C` times `N` times sixteen totals.
#[inline(always)]
unsafe fn tile<V: Lanes, const N: usize, const C: usize>(
    rows: *const Line,
    others: *const Line,
    columns: usize,
    totals: *mut f64,
) {
    // SAFETY: by the contract; every index stays within its number of lines, rows and totals.
    unsafe {
        let others: *const f32 = others.cast();
        let mut sums = [[V::no_singles(); N]; C];
        for column in 0..columns {
            let mut here = [V::no_singles(); N];
            for (line, here) in here.iter_mut().enumerate() {
                *here = V::load_singles(rows.add(column * N + line).cast());
            }
            for (other, sums) in sums.iter_mut().enumerate() {
                let times = V::splat_single(*others.add(other * STRIDE * SINGLES + column));
                for (sum, here) in sums.iter_mut().zip(here) {
                    *sum = V::add_singles(*sum, here, times);
                }
            }
        }
        for (index, sum) in sums.as_flattened().iter().enumerate() {
            for (half, sum) in V::widen_singles(*sum).into_iter().enumerate() {
                let to = totals.add(index * SINGLES + half * WIDTH);
                V::load_f64(to).add(sum).store(to);
            }
        }
    }
}

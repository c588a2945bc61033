//! All inner products of a few vectors in one narrow precision, read where they are.
//!
//! Of few vectors every number takes part in few products, so that to write it down widened, and to read it
//! again, takes as long as the products do. Here it is widened each time it is read, which other parts of the
//! processor do meanwhile. The numbers that come out are those of `products.rs`, to the bit.

use super::lanes::{Doubles, Element, Lanes, WIDTH};
use super::products::{TileRoom, add_to, lines, read};
use super::{BLOCK, Line};
use crate::isa::dispatch;
use crate::{Isa, Vector};
use std::ops::Range;

/// The most vectors that are read where they are.
const FEW: usize = 16;
/// The rows of the largest tile.
const MOST: usize = 5;

/// The lower triangle of their Gram matrix over these columns, row by row; `None` if they are too many, or
/// not all of one narrow precision.
pub(super) fn few(
    isa: Isa,
    room: &mut TileRoom,
    vectors: &[Vector<'_>],
    columns: Range<usize>,
) -> Option<Vec<f64>> {
    if vectors.len() > FEW {
        return None;
    }
    macro_rules! all {
        ($precision:ident) => {
            vectors
                .iter()
                .map(|vector| match vector {
                    Vector::$precision(values) => Some(&values[columns.clone()]),
                    _ => None,
                })
                .collect::<Option<Vec<_>>>()
        };
    }
    match vectors.first()? {
        Vector::F32(_) => Some(gram(isa, room, &all!(F32)?)),
        Vector::BF16(_) => Some(gram(isa, room, &all!(BF16)?)),
        Vector::F64(_) => None,
    }
}

dispatch! {
    fn gram<N: Element>(room: &mut TileRoom, vectors: &[&[N]]) -> Vec<f64> = body over Doubles
}

/// # Safety
/// The machine must have the instructions of `V`.
#[inline(always)]
unsafe fn body<V: Lanes, N: Element>(room: &mut TileRoom, vectors: &[&[N]]) -> Vec<f64> {
    // The tile that wastes least on rows of zeros; of two, the larger one.
    let waste = |tile: usize| vectors.len().next_multiple_of(tile) - vectors.len();
    let best = V::TILES.iter().rev().min_by_key(|tile| waste(**tile)).copied();
    // SAFETY: passed on.
    unsafe {
        match best {
            Some(5) if V::TILES.len() > 1 => tiles::<V, N, 5>(room, vectors),
            Some(4) if V::TILES.len() > 1 => tiles::<V, N, 4>(room, vectors),
            _ => tiles::<V, N, 2>(room, vectors),
        }
    }
}

/// # Safety
/// As above.
#[inline(always)]
unsafe fn tiles<V: Lanes, N: Element, const T: usize>(
    room: &mut TileRoom,
    vectors: &[&[N]],
) -> Vec<f64> {
    let columns = vectors.iter().map(|vector| vector.len()).min().unwrap_or(0);
    let down = vectors.len().div_ceil(T);
    let totals = lines(&mut room.totals, down * (down + 1) / 2 * T * T);
    if columns == 0 {
        totals.fill(Line::ZERO);
    }
    let (nothing, mut padded) = ([N::ZERO; BLOCK], [[N::ZERO; BLOCK]; FEW]);
    // Where a block of every row begins; the rows that fill the last tile are zeros.
    let mut rows = [nothing.as_ptr(); FEW + MOST];
    let mut start = 0;
    while start < columns {
        let block = BLOCK.min(columns - start);
        for (index, vector) in vectors.iter().enumerate() {
            rows[index] = vector[start..].as_ptr();
            if block % WIDTH > 0 {
                padded[index][..block].copy_from_slice(&vector[start..start + block]);
                rows[index] = padded[index].as_ptr();
            }
        }
        let mut totals = totals.chunks_exact_mut(T * T);
        for top in 0..down {
            for (side, totals) in (0..=top).zip(&mut totals) {
                let (above, beside) = (&rows[top * T..][..T], &rows[side * T..][..T]);
                let lines = block.div_ceil(WIDTH);
                // SAFETY: there are that many lines behind every pointer.
                unsafe {
                    match side == top {
                        true => tile::<V, N, T, true>(above, beside, lines, start == 0, totals),
                        false => tile::<V, N, T, false>(above, beside, lines, start == 0, totals),
                    }
                }
            }
        }
        start += block;
    }
    read::<T>(vectors.len(), None, totals)
}

/// Adds the inner products of `T` rows with `T` others to their totals, as the tiles of `products.rs` do.
///
/// # Safety
/// The machine must have the instructions of `V`; there must be `T` pointers on both sides, and `lines` times eight
/// numbers behind each.
#[inline(always)]
unsafe fn tile<V: Lanes, N: Element, const T: usize, const DIAGONAL: bool>(
    above: &[*const N],
    beside: &[*const N],
    lines: usize,
    first: bool,
    totals: &mut [Line],
) {
    // SAFETY: by the contract; every line lies within the `lines` behind each pointer.
    unsafe {
        let (mut up, mut side) = ([std::ptr::null(); T], [std::ptr::null(); T]);
        up.copy_from_slice(above);
        side.copy_from_slice(beside);
        let mut sums = [[V::zero(); T]; T];
        for line in 0..lines {
            let mut rows = [V::zero(); T];
            for (row, at) in rows.iter_mut().zip(up) {
                if DIAGONAL {
                    // The block after this one is wanted next, and too far away to be guessed.
                    V::fetch(at.wrapping_add(line * WIDTH + BLOCK).cast());
                }
                *row = N::load(at.add(line * WIDTH));
            }
            for column in 0..T {
                let other = match DIAGONAL {
                    true => rows[column],
                    false => N::load(side[column].add(line * WIDTH)),
                };
                let from = if DIAGONAL { column } else { 0 };
                for row in from..T {
                    sums[row][column] = sums[row][column].add_exact(rows[row], other);
                }
            }
        }
        add_to(sums.as_flattened(), first, totals);
    }
}

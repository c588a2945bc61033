//! Substitution in a triangle, for eight right-hand sides in each register.
//!
//! Every number of a line belongs to another right-hand side, so sums run down the lines and no register is
//! ever added up. A number of the triangle is read once for several lines, and a line once for several rows.

use super::Line;
use super::lanes::{Doubles, Lanes};
use crate::Isa;
use crate::isa::dispatch;

/// Rows that are solved before those below them are told: with the lines of their right-hand sides they
/// stay in the first-level cache.
const BLOCK: usize = 64;

/// Solves `L y = right`, in its place, for the first `size` rows of a triangle `L`, row by row. `block` has a
/// row of `lines` lines for each row of the triangle; every number in a line belongs to another right-hand
/// side.
///
/// Products are rounded, and subtracted one after the other.
pub(in super::super) fn substitute(
    isa: Isa,
    triangle: &[f64],
    size: usize,
    lines: usize,
    block: &mut [Line],
) {
    assert!(triangle.len() >= before(size), "a triangle of fewer rows");
    assert!(block.len() >= size * lines, "fewer lines than rows");
    solve(isa, triangle, size, lines, block);
}

/// Subtracts from every target what its row takes of the lines that are solved: `target_c −= Σ row_c[k] · y_k`,
/// with a row of `lines` lines for each `k` and each `c`. Rows must be at least as long as there are `k`.
///
/// Products are rounded, and subtracted one after the other.
pub(in super::super) fn subtract(
    isa: Isa,
    rows: &[&[f64]],
    lines: usize,
    solved: &[Line],
    targets: &mut [Line],
) {
    assert!(rows.iter().all(|row| row.len() * lines >= solved.len()), "a row that ends early");
    assert!(targets.len() >= rows.len() * lines, "fewer targets than rows");
    take(isa, rows, lines, solved, targets);
}

/// Where a row of the triangle begins.
fn before(row: usize) -> usize {
    row * (row + 1) / 2
}

dispatch! {
    fn solve(triangle: &[f64], size: usize, lines: usize, block: &mut [Line]) = solve_body over Doubles
}

dispatch! {
    fn take(rows: &[&[f64]], lines: usize, solved: &[Line], targets: &mut [Line]) = take_body over Doubles
}

/// Calls a function for all lines, as many at a time as the registers have room for: with the number of lines
/// and of rows whose sums stay in registers, and the first line.
macro_rules! by_lines {
    ($v:ident, $lines:ident, $call:ident, $($arg:expr),*) => {
        let mut first = 0;
        while first < $lines {
            match $lines - first {
                4.. if $v::TILES.len() > 1 => {
                    $call::<$v, 4, 6>(first, $lines, $($arg),*);
                    first += 4;
                }
                2.. if $v::TILES.len() > 1 => {
                    $call::<$v, 2, 10>(first, $lines, $($arg),*);
                    first += 2;
                }
                _ if $v::TILES.len() > 1 => {
                    $call::<$v, 1, 8>(first, $lines, $($arg),*);
                    first += 1;
                }
                _ => {
                    $call::<$v, 1, 4>(first, $lines, $($arg),*);
                    first += 1;
                }
            }
        }
    };
}

/// # Safety
/// The machine must have the instructions of `V`; the triangle `size` rows, and the block as many.
#[inline(always)]
unsafe fn solve_body<V: Lanes>(triangle: &[f64], size: usize, lines: usize, block: &mut [Line]) {
    // SAFETY: passed on.
    unsafe {
        by_lines!(V, lines, solve_some, triangle.as_ptr(), size, block.as_mut_ptr());
    }
}

/// # Safety
/// The machine must have the instructions of `V`; there must be a target for each row, and in each row a number
/// for each line that is solved.
#[inline(always)]
unsafe fn take_body<V: Lanes>(
    rows: &[&[f64]],
    lines: usize,
    solved: &[Line],
    targets: &mut [Line],
) {
    // SAFETY: passed on.
    unsafe {
        by_lines!(V, lines, take_some, rows, solved, targets.as_mut_ptr());
    }
}

/// # Safety
/// As above, with `N` lines from `first` on.
#[inline(always)]
unsafe fn solve_some<V: Lanes, const N: usize, const C: usize>(
    first: usize,
    lines: usize,
    triangle: *const f64,
    size: usize,
    block: *mut Line,
) {
    // SAFETY: by the contract; rows are below `size`, and `N` lines from `first` on are in each.
    unsafe {
        let block = block.add(first);
        for start in (0..size).step_by(BLOCK) {
            let end = size.min(start + BLOCK);
            let solved = block.add(start * lines);
            for row in start..end {
                let numbers = triangle.add(before(row) + start);
                let here = block.add(row * lines);
                tile::<V, N, 1>([numbers], row - start, lines, solved, here);
                let diagonal = V::splat(*numbers.add(row - start));
                for line in 0..N {
                    let at = here.add(line).cast();
                    V::load_f64(at).div(diagonal).store(at);
                }
            }
            let mut row = end;
            while row < size {
                let numbers = |row: usize| triangle.add(before(row) + start);
                let targets = block.add(row * lines);
                if size - row >= C {
                    let numbers = std::array::from_fn(|index| numbers(row + index));
                    tile::<V, N, C>(numbers, end - start, lines, solved, targets);
                    row += C;
                } else {
                    tile::<V, N, 1>([numbers(row)], end - start, lines, solved, targets);
                    row += 1;
                }
            }
        }
    }
}

/// # Safety
/// As above.
#[inline(always)]
unsafe fn take_some<V: Lanes, const N: usize, const C: usize>(
    first: usize,
    lines: usize,
    rows: &[&[f64]],
    solved: &[Line],
    targets: *mut Line,
) {
    let count = solved.len() / lines;
    for start in (0..count).step_by(BLOCK) {
        let columns = BLOCK.min(count - start);
        let mut row = 0;
        // SAFETY: as in `solve_some`; every row has a number for each of the `count` solved rows.
        unsafe {
            let solved = solved.as_ptr().add(start * lines + first);
            while row < rows.len() {
                let targets = targets.add(row * lines + first);
                let numbers = |row: usize| rows[row].as_ptr().add(start);
                if rows.len() - row >= C {
                    let numbers = std::array::from_fn(|index| numbers(row + index));
                    tile::<V, N, C>(numbers, columns, lines, solved, targets);
                    row += C;
                } else {
                    tile::<V, N, 1>([numbers(row)], columns, lines, solved, targets);
                    row += 1;
                }
            }
        }
    }
}

/// Subtracts the products of `C` rows of numbers with `count` rows of `N` solved lines from `C` rows of `N`
/// targets. Rows of lines are `lines` apart.
///
/// # Safety
/// The machine must have the instructions of `V`, and all that must be there.
#[inline(always)]
unsafe fn tile<V: Lanes, const N: usize, const C: usize>(
    rows: [*const f64; C],
    count: usize,
    lines: usize,
    solved: *const Line,
    targets: *mut Line,
) {
    // SAFETY: by the contract; `C` rows have `count` numbers, and every row of lines `N` of them.
    unsafe {
        let mut left = [[V::zero(); N]; C];
        for (row, left) in left.iter_mut().enumerate() {
            for (line, left) in left.iter_mut().enumerate() {
                *left = V::load_f64(targets.add(row * lines + line).cast());
            }
        }
        for column in 0..count {
            let mut here = [V::zero(); N];
            for (line, here) in here.iter_mut().enumerate() {
                *here = V::load_f64(solved.add(column * lines + line).cast());
            }
            for (row, left) in rows.iter().zip(left.iter_mut()) {
                let times = V::splat(*row.add(column));
                for (left, here) in left.iter_mut().zip(here) {
                    *left = left.sub(times.mul(here));
                }
            }
        }
        for (row, left) in left.into_iter().enumerate() {
            for (line, left) in left.into_iter().enumerate() {
                left.store(targets.add(row * lines + line).cast());
            }
        }
    }
}

//! Substitution in a small triangle, for eight right-hand sides in each register.

use super::lanes::Lanes;
use super::{Isa, Line, kernel};

/// Registers of right-hand sides that go through the triangle side by side, so that no sum waits for its last
/// addition.
const TOGETHER: usize = 4;

/// Solves `L y = right`, in its place, for a triangle `L` given by the ends of its rows (at least as many
/// numbers as rows above and the one on the diagonal). `block` has a row of `lines` lines for each row of the
/// triangle; every number in a line belongs to another right-hand side.
///
/// Products are rounded, and subtracted one after the other.
pub(in super::super) fn substitute(isa: Isa, rows: &[&[f64]], lines: usize, block: &mut [Line]) {
    assert!(block.len() >= rows.len() * lines, "fewer lines than rows");
    for (index, row) in rows.iter().enumerate() {
        assert!(row.len() > index, "a row that ends before the diagonal");
    }
    solve(isa, rows, lines, block);
}

kernel! {
    fn solve<>(rows: &[&[f64]], lines: usize, block: &mut [Line]) = body
}

/// # Safety
/// The machine must have the instructions of `V`.
#[inline(always)]
unsafe fn body<V: Lanes>(rows: &[&[f64]], lines: usize, block: &mut [Line]) {
    let whole = lines - lines % TOGETHER;
    unsafe {
        for first in (0..whole).step_by(TOGETHER) {
            some::<V, TOGETHER>(rows, lines, first, block);
        }
        for first in whole..lines {
            some::<V, 1>(rows, lines, first, block);
        }
    }
}

/// # Safety
/// The machine must have the instructions of `V`.
#[inline(always)]
unsafe fn some<V: Lanes, const N: usize>(
    rows: &[&[f64]],
    lines: usize,
    first: usize,
    block: &mut [Line],
) {
    for (index, row) in rows.iter().enumerate() {
        let (above, here) = block.split_at_mut(index * lines);
        let here = &mut here[first..first + N];
        unsafe {
            let mut sums = [V::zero(); N];
            for (sum, line) in sums.iter_mut().zip(here.iter()) {
                *sum = V::load_f64(line.0.as_ptr());
            }
            for (times, above) in row[..index].iter().zip(above.chunks_exact(lines)) {
                let times = V::splat(-times);
                for (sum, line) in sums.iter_mut().zip(&above[first..first + N]) {
                    *sum = sum.add(times.mul(V::load_f64(line.0.as_ptr())));
                }
            }
            let diagonal = V::splat(row[index]);
            for (sum, line) in sums.into_iter().zip(here) {
                sum.div(diagonal).store(line.0.as_mut_ptr());
            }
        }
    }
}

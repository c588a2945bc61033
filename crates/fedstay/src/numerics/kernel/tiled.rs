//! What the tiles of a Gram matrix are computed in: double precision, or single precision whose sums
//! over a block are widened.
//!
//! Sums in single precision take half the time and are off by up to 1e-6 of the vectors' lengths. They
//! are good enough to find out which of many constraints bind, where what follows from them is measured
//! in double precision and corrected (`slabs/mod.rs`); nothing else uses them.

use super::dot::widen;
use super::lanes::{Lanes, Product, SINGLES, WIDTH};
use super::{BLOCK, Line};
use crate::Vector;
use std::marker::PhantomData;

/// How the rows of a tile are held and multiplied.
///
/// # Safety
/// The methods are `unsafe` for the reasons of [`Lanes`].
pub(super) trait Tiled {
    /// The numbers of a row that take the room of a line.
    const WIDTH: usize;
    /// The columns over which sums run before they are added to the totals.
    const COLUMNS: usize;
    type Register<V: Lanes>: Copy;

    /// Copies columns of a vector into lines, with zeros after the last; the vector must have them, and
    /// there must be lines for them.
    unsafe fn take<V: Lanes>(vector: Vector<'_>, start: usize, columns: usize, to: *mut Line);
    unsafe fn zero<V: Lanes>() -> Self::Register<V>;
    unsafe fn load<V: Lanes>(at: *const Line) -> Self::Register<V>;
    /// `sum + a · b`.
    unsafe fn add<V: Lanes>(
        sum: Self::Register<V>,
        a: Self::Register<V>,
        b: Self::Register<V>,
    ) -> Self::Register<V>;
    /// The numbers that a total consists of.
    const TOTAL: usize;
    /// Adds the sums of a block to a total, which is zero before the `first`.
    unsafe fn total<V: Lanes>(sum: Self::Register<V>, first: bool, to: *mut f64);
    /// A total as one number.
    unsafe fn read(total: *const f64) -> f64;
}

/// Vectors of any precision, widened.
pub(super) struct Doubles<P>(PhantomData<P>);

impl<P: Product> Tiled for Doubles<P> {
    const WIDTH: usize = WIDTH;
    const COLUMNS: usize = BLOCK;
    type Register<V: Lanes> = V;

    #[inline(always)]
    unsafe fn take<V: Lanes>(vector: Vector<'_>, start: usize, columns: usize, to: *mut Line) {
        unsafe { widen::<V>(vector, start, columns, to) }
    }

    #[inline(always)]
    unsafe fn zero<V: Lanes>() -> V {
        unsafe { V::zero() }
    }

    #[inline(always)]
    unsafe fn load<V: Lanes>(at: *const Line) -> V {
        unsafe { V::load_f64(at.cast()) }
    }

    #[inline(always)]
    unsafe fn add<V: Lanes>(sum: V, a: V, b: V) -> V {
        unsafe { P::add(sum, a, b) }
    }

    const TOTAL: usize = WIDTH;

    #[inline(always)]
    unsafe fn total<V: Lanes>(sum: V, first: bool, to: *mut f64) {
        unsafe {
            let before = if first { V::zero() } else { V::load_f64(to) };
            before.add(sum).store(to);
        }
    }

    #[inline(always)]
    unsafe fn read(total: *const f64) -> f64 {
        unsafe { *total.cast::<Line>() }.sum()
    }
}

/// Vectors in single precision, as they are.
pub(super) struct Singles;

impl Tiled for Singles {
    const WIDTH: usize = SINGLES;
    const COLUMNS: usize = 2 * BLOCK;
    type Register<V: Lanes> = V::Singles;

    #[inline(always)]
    unsafe fn take<V: Lanes>(vector: Vector<'_>, start: usize, columns: usize, to: *mut Line) {
        let Vector::F32(values) = vector else { unreachable!("`products` gives it no others") };
        let from = &values[start..start + columns];
        unsafe {
            let rest = columns % SINGLES;
            if rest > 0 {
                to.add(columns / SINGLES).write(Line::ZERO);
            }
            // The block after this one is wanted next, and too far away to be guessed.
            for line in (0..columns).step_by(SINGLES) {
                V::fetch(from.as_ptr().wrapping_add(line + columns).cast());
            }
            std::ptr::copy_nonoverlapping(from.as_ptr(), to.cast(), columns);
        }
    }

    #[inline(always)]
    unsafe fn zero<V: Lanes>() -> V::Singles {
        unsafe { V::no_singles() }
    }

    #[inline(always)]
    unsafe fn load<V: Lanes>(at: *const Line) -> V::Singles {
        unsafe { V::load_singles(at.cast()) }
    }

    #[inline(always)]
    unsafe fn add<V: Lanes>(sum: V::Singles, a: V::Singles, b: V::Singles) -> V::Singles {
        unsafe { V::add_singles(sum, a, b) }
    }

    // One number for each product, so that more of them are worked on at once and rows are copied less often.
    const TOTAL: usize = 1;

    #[inline(always)]
    unsafe fn total<V: Lanes>(sum: V::Singles, first: bool, to: *mut f64) {
        unsafe {
            let before = if first { 0.0 } else { *to };
            *to = before + f64::from(V::sum_singles(sum));
        }
    }

    #[inline(always)]
    unsafe fn read(total: *const f64) -> f64 {
        unsafe { *total }
    }
}

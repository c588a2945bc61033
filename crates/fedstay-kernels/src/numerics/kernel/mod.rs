//! Sums over long vectors, written for the registers of each instruction set.
//!
//! | function | what | who needs it |
//! |---|---|---|
//! | [`dot`] | one inner product | lengths, predictions |
//! | [`products`] | all inner products of some vectors, in tiles that stay in registers | projections, half-spaces |
//! | [`combine`] | a sum of vectors, and its inner products with some, in one pass | steps |
//! | [`add_scaled`] | one vector added to another | everything else |
//! | [`substitute`], [`subtract`] | a triangular system for many right-hand sides, and rows below it | factors |
//!
//! **One inner product is one number**, whichever kernel computes it (but for [`Sums::Single`], see `singles.rs`). Eight sums run side by side over
//! [`BLOCK`] columns, and are added to eight totals; the totals of [`SPAN`] columns become one number,
//! and the numbers of all spans are added in order. A tile of a Gram matrix, a fused pass and a single
//! product do this with different loops and the same roundings. So what is measured on the way need
//! not be measured again, spans can be given to several threads, and the length of a vector is the
//! root of its entry on a Gram matrix's diagonal, to the bit.
//!
//! The instruction set does not change a bit either. A product of two numbers in single precision is
//! exact in double, so that fusing it with a sum changes nothing; other products are not fused.
//! Vectors are spelled out by `std::arch`, because what the compiler makes of plain loops depends on
//! what else is in the same unit: a factor of two, as measured before.

mod combine;
mod dot;
mod few;
mod lanes;
#[cfg(target_arch = "x86_64")]
mod lanes_x86;
mod products;
mod singles;
mod triangle;

pub use combine::Combined;
pub(super) use combine::{add_scaled, combine};
pub(super) use dot::{dot, dot_short};
pub(super) use products::products;
pub(super) use triangle::{substitute, subtract};

use lanes::Lanes;
pub(super) use lanes::WIDTH;

/// The columns over which sums run before they are added to the totals: a dozen widened rows of them
/// stay in the first-level cache.
const BLOCK: usize = 256;
/// The columns whose sums become one number.
pub(super) const SPAN: usize = 1 << 15;

/// What sums of products are taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sums {
    /// Double precision: one inner product is one number.
    Double,
    /// Single precision over a block, double over blocks: see `singles.rs`.
    Single,
}

/// Eight doubles in memory, as a register wants them.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub(super) struct Line(pub(super) [f64; WIDTH]);

impl Line {
    pub(super) const ZERO: Self = Self([0.0; WIDTH]);

    /// # Safety
    /// As for [`Lanes`].
    #[inline(always)]
    unsafe fn of<V: Lanes>(lanes: V) -> Self {
        let mut line = Self::ZERO;
        // SAFETY: a line is eight doubles; the rest is the contract.
        unsafe { lanes.store(line.0.as_mut_ptr()) };
        line
    }

    /// The sum, always in the same order.
    #[inline(always)]
    fn sum(mut self) -> f64 {
        let mut width = WIDTH;
        while width > 1 {
            width /= 2;
            for lane in 0..width {
                self.0[lane] += self.0[lane + width];
            }
        }
        self.0[0]
    }
}

#[cfg(test)]
mod tests;

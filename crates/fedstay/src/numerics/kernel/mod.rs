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
//! **One inner product is one number**, whoever computes it (but for [`Sums::Single`], see `singles.rs`). Eight sums run side by side over
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
mod products;
mod singles;
mod triangle;
#[cfg(target_arch = "x86_64")]
mod x86;

pub(super) use combine::{Combined, add_scaled, combine};
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

/// An instruction set that this machine has: there is no other way to come by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Isa(Kind);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Isa {
    /// What every machine of the target has.
    pub const PLAIN: Self = Self(Kind::Plain);

    /// The strongest one that this machine has. The answer is cached by the standard library.
    #[must_use]
    pub fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if Self::has_avx512() {
                return Self(Kind::Avx512);
            }
            if Self::has_avx2() {
                return Self(Kind::Avx2);
            }
        }
        Self::PLAIN
    }

    /// All that this machine has, weakest first.
    #[must_use]
    pub fn available() -> Vec<Self> {
        let mut all = vec![Self::PLAIN];
        #[cfg(target_arch = "x86_64")]
        {
            all.extend(Self::has_avx2().then_some(Self(Kind::Avx2)));
            all.extend(Self::has_avx512().then_some(Self(Kind::Avx512)));
        }
        all
    }

    /// `plain`, `avx2` or `avx512`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self.0 {
            Kind::Plain => "plain",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => "avx512",
        }
    }

    #[cfg(target_arch = "x86_64")]
    fn has_avx2() -> bool {
        is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
    }

    #[cfg(target_arch = "x86_64")]
    fn has_avx512() -> bool {
        Self::has_avx2() && is_x86_feature_detected!("avx512f")
    }
}

/// What sums of products are taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sums {
    /// Double precision: one inner product is one number.
    Double,
    /// Single precision over a block, double over blocks: see `singles.rs`.
    Single,
}

/// Declares a function that is compiled for every instruction set from one generic body.
macro_rules! kernel {
    ($(#[$meta:meta])* $vis:vis fn $name:ident <$($generic:ident: $bound:path),*>
        ($($arg:ident: $type:ty),* $(,)?) $(-> $result:ty)? = $body:ident) => {
        $(#[$meta])*
        #[allow(clippy::too_many_arguments, reason = "the instruction set is one more")]
        $vis fn $name<$($generic: $bound),*>(
            isa: $crate::numerics::kernel::Isa, $($arg: $type),*
        ) $(-> $result)? {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            #[allow(clippy::too_many_arguments, reason = "as above")]
            fn avx2<$($generic: $bound),*>($($arg: $type),*) $(-> $result)? {
                // SAFETY: the instructions are those of this function.
                unsafe { $body::<$crate::numerics::kernel::x86::Avx2, $($generic),*>($($arg),*) }
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma,avx512f")]
            #[allow(clippy::too_many_arguments, reason = "as above")]
            fn avx512<$($generic: $bound),*>($($arg: $type),*) $(-> $result)? {
                // SAFETY: as above.
                unsafe { $body::<$crate::numerics::kernel::x86::Avx512, $($generic),*>($($arg),*) }
            }
            match isa.0 {
                // SAFETY: needs nothing that a machine may lack.
                $crate::numerics::kernel::Kind::Plain => unsafe {
                    $body::<$crate::numerics::kernel::lanes::Plain, $($generic),*>($($arg),*)
                },
                // SAFETY: an `Isa` exists only where it was detected.
                #[cfg(target_arch = "x86_64")]
                $crate::numerics::kernel::Kind::Avx2 => unsafe { avx2::<$($generic),*>($($arg),*) },
                // SAFETY: as above.
                #[cfg(target_arch = "x86_64")]
                $crate::numerics::kernel::Kind::Avx512 => unsafe { avx512::<$($generic),*>($($arg),*) },
            }
        }
    };
}
use kernel;

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

//! Eight doubles side by side, in the registers of each instruction set, and how the precisions in
//! which agents compute are read into them.

use crate::Bf16;
use crate::isa::Family;

/// The doubles of one [`Lanes`].
pub(in super::super) const WIDTH: usize = 8;
/// The numbers in single precision that take the same room.
pub(super) const SINGLES: usize = 2 * WIDTH;

/// Eight doubles. Every operation rounds each of them as `f64` does, so what is computed does not
/// depend on the instruction set.
///
/// # Safety
/// All methods are `unsafe` for one reason: the machine must have the instructions. Methods that take
/// a pointer also need eight numbers behind it, those for singles sixteen, and `fetch` none.
pub(super) trait Lanes: Copy {
    /// The tiles of a Gram matrix whose sums stay in registers, smallest first: 2, or 4 and 5.
    const TILES: &'static [usize];

    unsafe fn zero() -> Self;
    unsafe fn splat(value: f64) -> Self;
    unsafe fn load_f64(at: *const f64) -> Self;
    unsafe fn load_f32(at: *const f32) -> Self;
    unsafe fn load_bf16(at: *const Bf16) -> Self;
    unsafe fn store(self, at: *mut f64);
    unsafe fn add(self, other: Self) -> Self;
    unsafe fn sub(self, other: Self) -> Self;
    unsafe fn mul(self, other: Self) -> Self;
    unsafe fn div(self, other: Self) -> Self;
    /// `self + a · b` where the product has no rounding of its own, so that it does not matter
    /// whether the instruction set fuses it with the sum.
    unsafe fn add_exact(self, a: Self, b: Self) -> Self;
    /// Sixteen numbers in single precision.
    type Singles: Copy;
    unsafe fn no_singles() -> Self::Singles;
    unsafe fn load_singles(at: *const f32) -> Self::Singles;
    /// `sum + a · b`, rounded once.
    unsafe fn add_singles(sum: Self::Singles, a: Self::Singles, b: Self::Singles) -> Self::Singles;
    /// The same number sixteen times.
    unsafe fn splat_single(value: f32) -> Self::Singles;
    /// The first eight and the last eight, widened.
    unsafe fn widen_singles(singles: Self::Singles) -> [Self; 2];
    /// Rows become columns.
    unsafe fn turn_singles(rows: [Self::Singles; SINGLES]) -> [Self::Singles; SINGLES];
    unsafe fn store_singles(singles: Self::Singles, at: *mut f32);
    /// Asks for what is at this address, which need not be anything, to be brought near.
    unsafe fn fetch(_at: *const u8) {}
}

/// Eight doubles, for each instruction set.
pub(super) enum Doubles {}

impl Family for Doubles {
    type Portable = PortableDoubles;
    #[cfg(target_arch = "x86_64")]
    type Avx2 = super::lanes_x86::Avx2Doubles;
    #[cfg(target_arch = "x86_64")]
    type Avx512 = super::lanes_x86::Avx512Doubles;
}

/// A number as an agent sends it.
pub(super) trait Element: Copy {
    /// Whether the product of two such numbers fits into a double without rounding.
    const NARROW: bool;
    const ZERO: Self;

    /// Eight of them, widened.
    ///
    /// # Safety
    /// As for [`Lanes`].
    unsafe fn load<V: Lanes>(at: *const Self) -> V;
}

impl Element for f64 {
    const NARROW: bool = false;
    const ZERO: Self = 0.0;

    #[inline(always)]
    unsafe fn load<V: Lanes>(at: *const Self) -> V {
        // SAFETY: passed on.
        unsafe { V::load_f64(at) }
    }
}

impl Element for f32 {
    const NARROW: bool = true;
    const ZERO: Self = 0.0;

    #[inline(always)]
    unsafe fn load<V: Lanes>(at: *const Self) -> V {
        // SAFETY: passed on.
        unsafe { V::load_f32(at) }
    }
}

impl Element for Bf16 {
    const NARROW: bool = true;
    const ZERO: Self = Bf16::ZERO;

    #[inline(always)]
    unsafe fn load<V: Lanes>(at: *const Self) -> V {
        // SAFETY: passed on.
        unsafe { V::load_bf16(at) }
    }
}

/// Whether products may be fused with the sum they are added to.
pub(super) trait Product {
    /// `sum + a · b`.
    ///
    /// # Safety
    /// As for [`Lanes`].
    unsafe fn add<V: Lanes>(sum: V, a: V, b: V) -> V;
}

/// Products of numbers in single precision or less: they are exact, so fusing changes nothing.
pub(super) struct Exact;
/// Products of doubles: rounded before they are added.
pub(super) struct Rounded;

impl Product for Exact {
    #[inline(always)]
    unsafe fn add<V: Lanes>(sum: V, a: V, b: V) -> V {
        // SAFETY: passed on.
        unsafe { sum.add_exact(a, b) }
    }
}

impl Product for Rounded {
    #[inline(always)]
    unsafe fn add<V: Lanes>(sum: V, a: V, b: V) -> V {
        // SAFETY: passed on.
        unsafe { sum.add(a.mul(b)) }
    }
}

/// `sum + a · b` for numbers that were read as `A` and `B`.
///
/// # Safety
/// As for [`Lanes`].
#[inline(always)]
pub(super) unsafe fn add_product<V: Lanes, A: Element, B: Element>(sum: V, a: V, b: V) -> V {
    // SAFETY: passed on.
    unsafe {
        match A::NARROW && B::NARROW {
            true => Exact::add(sum, a, b),
            false => Rounded::add(sum, a, b),
        }
    }
}

/// A square whose rows have become columns.
#[inline(always)]
pub(super) fn turned(rows: [[f32; SINGLES]; SINGLES]) -> [[f32; SINGLES]; SINGLES] {
    std::array::from_fn(|column| std::array::from_fn(|row| rows[row][column]))
}

/// What every machine has.
#[derive(Clone, Copy)]
pub(super) struct PortableDoubles([f64; WIDTH]);

impl PortableDoubles {
    #[inline(always)]
    fn by(f: impl Fn(usize) -> f64) -> Self {
        let mut lanes = [0.0; WIDTH];
        for (index, lane) in lanes.iter_mut().enumerate() {
            *lane = f(index);
        }
        Self(lanes)
    }
}

impl Lanes for PortableDoubles {
    const TILES: &'static [usize] = &[2];

    #[inline(always)]
    unsafe fn zero() -> Self {
        Self([0.0; WIDTH])
    }

    #[inline(always)]
    unsafe fn splat(value: f64) -> Self {
        Self([value; WIDTH])
    }

    #[inline(always)]
    unsafe fn load_f64(at: *const f64) -> Self {
        // SAFETY: the caller promises eight numbers.
        Self::by(|lane| unsafe { *at.add(lane) })
    }

    #[inline(always)]
    unsafe fn load_f32(at: *const f32) -> Self {
        // SAFETY: as above.
        Self::by(|lane| f64::from(unsafe { *at.add(lane) }))
    }

    #[inline(always)]
    unsafe fn load_bf16(at: *const Bf16) -> Self {
        // SAFETY: as above.
        Self::by(|lane| unsafe { *at.add(lane) }.widen())
    }

    #[inline(always)]
    unsafe fn store(self, at: *mut f64) {
        for (lane, value) in self.0.into_iter().enumerate() {
            // SAFETY: as above.
            unsafe { *at.add(lane) = value };
        }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        Self::by(|lane| self.0[lane] + other.0[lane])
    }

    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        Self::by(|lane| self.0[lane] - other.0[lane])
    }

    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        Self::by(|lane| self.0[lane] * other.0[lane])
    }

    #[inline(always)]
    unsafe fn div(self, other: Self) -> Self {
        Self::by(|lane| self.0[lane] / other.0[lane])
    }

    #[inline(always)]
    unsafe fn add_exact(self, a: Self, b: Self) -> Self {
        Self::by(|lane| self.0[lane] + a.0[lane] * b.0[lane])
    }

    type Singles = [f32; SINGLES];

    #[inline(always)]
    unsafe fn no_singles() -> Self::Singles {
        [0.0; SINGLES]
    }

    #[inline(always)]
    unsafe fn load_singles(at: *const f32) -> Self::Singles {
        let mut singles = [0.0; SINGLES];
        for (lane, single) in singles.iter_mut().enumerate() {
            // SAFETY: the caller promises sixteen numbers.
            *single = unsafe { *at.add(lane) };
        }
        singles
    }

    #[inline(always)]
    unsafe fn add_singles(
        mut sum: Self::Singles,
        a: Self::Singles,
        b: Self::Singles,
    ) -> Self::Singles {
        for ((sum, a), b) in sum.iter_mut().zip(a).zip(b) {
            *sum = a.mul_add(b, *sum);
        }
        sum
    }

    #[inline(always)]
    unsafe fn splat_single(value: f32) -> Self::Singles {
        [value; SINGLES]
    }

    #[inline(always)]
    unsafe fn widen_singles(singles: Self::Singles) -> [Self; 2] {
        [0, WIDTH].map(|first| Self::by(|lane| f64::from(singles[first + lane])))
    }

    #[inline(always)]
    unsafe fn turn_singles(rows: [Self::Singles; SINGLES]) -> [Self::Singles; SINGLES] {
        turned(rows)
    }

    #[inline(always)]
    unsafe fn store_singles(singles: Self::Singles, at: *mut f32) {
        for (lane, single) in singles.into_iter().enumerate() {
            // SAFETY: as above.
            unsafe { *at.add(lane) = single };
        }
    }
}

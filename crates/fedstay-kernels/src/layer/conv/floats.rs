//! What the convolutions ask of a vector of `f32`: one trait, a file's worth of instructions for each
//! instruction set, and plain arrays for machines without any of them.
//!
//! All methods are `unsafe` because they read and write through pointers, and because those of an
//! instruction set may only run where it exists. They are inlined into functions that were compiled
//! for that instruction set (see [`dispatch`](crate::isa::dispatch)), never called by themselves.

/// A vector of `f32` and what convolutions do with it.
///
/// # Safety
/// Every method may only be called where the instruction set of the type exists, and with pointers
/// to as many elements as it says it reads or writes.
pub(super) trait FloatLanes: Copy {
    /// The number of floats.
    const LANES: usize;
    /// The most output channels of a tile in which pixels are the lanes. Each takes four registers.
    const CHANNELS: usize;
    /// The most pixels of a tile in which output channels are the lanes, an even number. Each takes
    /// two registers.
    const PIXELS: usize;

    /// The same number in every lane.
    unsafe fn splat(value: f32) -> Self;

    /// Reads `LANES` floats.
    unsafe fn load(from: *const f32) -> Self;

    /// Writes `LANES` floats.
    unsafe fn store(self, to: *mut f32);

    /// `self + a * b`.
    unsafe fn add_product(self, a: Self, b: Self) -> Self;

    /// The lanes with even and with odd numbers of two vectors, one after the other.
    unsafe fn halves(low: Self, high: Self) -> (Self, Self);

    /// Writes the largest of four in every lane, and which it was; of equal ones the first.
    unsafe fn largest(of: [Self; 4], value: *mut f32, which: *mut u8);

    /// Of `LANES` errors, appends those that are not zero to `values`, and `base + shift[which]` of
    /// each to `places`; returns how many there were. It may write `LANES` elements in any case.
    unsafe fn select(
        errors: *const f32,
        which: *const u8,
        base: *const u32,
        shift: [u32; 4],
        places: *mut u32,
        values: *mut f32,
    ) -> usize;
}

/// [`FloatLanes::select`] one element at a time, without a branch.
#[inline(always)]
unsafe fn select_each<const LANES: usize>(
    errors: *const f32,
    which: *const u8,
    base: *const u32,
    shift: [u32; 4],
    places: *mut u32,
    values: *mut f32,
) -> usize {
    let mut count = 0;
    for lane in 0..LANES {
        // SAFETY: `lane < LANES` and `count <= lane`, which is what the caller promises.
        unsafe {
            let error = *errors.add(lane);
            let which = usize::from(*which.add(lane) & 3);
            *places.add(count) = (*base.add(lane)).wrapping_add(shift[which]);
            *values.add(count) = error;
            count += usize::from(error != 0.0);
        }
    }
    count
}

/// Eight floats without any particular instructions.
#[derive(Clone, Copy)]
pub(super) struct PortableFloats([f32; 8]);

impl FloatLanes for PortableFloats {
    const LANES: usize = 8;
    const CHANNELS: usize = 1;
    const PIXELS: usize = 2;

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        Self([value; 8])
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: the caller promises eight floats; an array has their alignment.
        unsafe { Self(*from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: as in `load`.
        unsafe { *to.cast() = self.0 }
    }

    #[inline(always)]
    unsafe fn add_product(self, a: Self, b: Self) -> Self {
        let mut sum = self.0;
        for (sum, (a, b)) in sum.iter_mut().zip(a.0.iter().zip(&b.0)) {
            *sum += a * b;
        }
        Self(sum)
    }

    #[inline(always)]
    unsafe fn halves(low: Self, high: Self) -> (Self, Self) {
        let (mut even, mut odd) = ([0.0; 8], [0.0; 8]);
        for lane in 0..4 {
            (even[lane], odd[lane]) = (low.0[2 * lane], low.0[2 * lane + 1]);
            (even[lane + 4], odd[lane + 4]) = (high.0[2 * lane], high.0[2 * lane + 1]);
        }
        (Self(even), Self(odd))
    }

    #[inline(always)]
    unsafe fn largest(of: [Self; 4], value: *mut f32, which: *mut u8) {
        for lane in 0..8 {
            let (mut top, mut at) = (of[0].0[lane], 0);
            for (place, candidate) in of.iter().enumerate().skip(1) {
                if candidate.0[lane] > top {
                    (top, at) = (candidate.0[lane], place as u8);
                }
            }
            // SAFETY: the caller promises room for eight of each.
            unsafe {
                *value.add(lane) = top;
                *which.add(lane) = at;
            }
        }
    }

    #[inline(always)]
    unsafe fn select(
        errors: *const f32,
        which: *const u8,
        base: *const u32,
        shift: [u32; 4],
        places: *mut u32,
        values: *mut f32,
    ) -> usize {
        // SAFETY: passed on.
        unsafe { select_each::<8>(errors, which, base, shift, places, values) }
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) use x86::{Avx2Floats, Avx512Floats};

#[cfg(target_arch = "x86_64")]
mod x86 {
    #![expect(
        clippy::undocumented_unsafe_blocks,
        reason = "all for one: the trait's contract, which the callers promise to keep"
    )]
    use std::arch::x86_64::*;

    use super::{FloatLanes, select_each};

    /// Sixteen floats in a 512-bit register.
    #[derive(Clone, Copy)]
    pub(in super::super) struct Avx512Floats(__m512);

    impl FloatLanes for Avx512Floats {
        const LANES: usize = 16;
        const CHANNELS: usize = 3;
        const PIXELS: usize = 10;

        #[inline(always)]
        unsafe fn splat(value: f32) -> Self {
            unsafe { Self(_mm512_set1_ps(value)) }
        }

        #[inline(always)]
        unsafe fn load(from: *const f32) -> Self {
            unsafe { Self(_mm512_loadu_ps(from)) }
        }

        #[inline(always)]
        unsafe fn store(self, to: *mut f32) {
            unsafe { _mm512_storeu_ps(to, self.0) }
        }

        #[inline(always)]
        unsafe fn add_product(self, a: Self, b: Self) -> Self {
            unsafe { Self(_mm512_fmadd_ps(a.0, b.0, self.0)) }
        }

        #[inline(always)]
        unsafe fn halves(low: Self, high: Self) -> (Self, Self) {
            unsafe {
                let even =
                    _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
                let odd = _mm512_or_si512(even, _mm512_set1_epi32(1));
                (
                    Self(_mm512_permutex2var_ps(low.0, even, high.0)),
                    Self(_mm512_permutex2var_ps(low.0, odd, high.0)),
                )
            }
        }

        #[inline(always)]
        unsafe fn largest(of: [Self; 4], value: *mut f32, which: *mut u8) {
            unsafe {
                let (mut top, mut at) = (of[0].0, _mm512_setzero_si512());
                for (place, candidate) in of.iter().enumerate().skip(1) {
                    let above = _mm512_cmp_ps_mask::<_CMP_GT_OQ>(candidate.0, top);
                    top = _mm512_mask_mov_ps(top, above, candidate.0);
                    at = _mm512_mask_mov_epi32(at, above, _mm512_set1_epi32(place as i32));
                }
                _mm512_storeu_ps(value, top);
                _mm_storeu_si128(which.cast(), _mm512_cvtepi32_epi8(at));
            }
        }

        #[inline(always)]
        unsafe fn select(
            errors: *const f32,
            which: *const u8,
            base: *const u32,
            shift: [u32; 4],
            places: *mut u32,
            values: *mut f32,
        ) -> usize {
            unsafe {
                let errors = _mm512_loadu_ps(errors);
                let alive = _mm512_cmp_ps_mask::<_CMP_NEQ_UQ>(errors, _mm512_setzero_ps());
                let which = _mm512_cvtepu8_epi32(_mm_loadu_si128(which.cast()));
                let shift = _mm512_castsi128_si512(_mm_loadu_si128(shift.as_ptr().cast()));
                let shift =
                    _mm512_permutexvar_epi32(_mm512_and_si512(which, _mm512_set1_epi32(3)), shift);
                let place = _mm512_add_epi32(_mm512_loadu_si512(base.cast()), shift);
                _mm512_storeu_si512(places.cast(), _mm512_maskz_compress_epi32(alive, place));
                _mm512_storeu_ps(values, _mm512_maskz_compress_ps(alive, errors));
                alive.count_ones() as usize
            }
        }
    }

    /// Eight floats in a 256-bit register.
    #[derive(Clone, Copy)]
    pub(in super::super) struct Avx2Floats(__m256);

    impl FloatLanes for Avx2Floats {
        const LANES: usize = 8;
        const CHANNELS: usize = 2;
        const PIXELS: usize = 4;

        #[inline(always)]
        unsafe fn splat(value: f32) -> Self {
            unsafe { Self(_mm256_set1_ps(value)) }
        }

        #[inline(always)]
        unsafe fn load(from: *const f32) -> Self {
            unsafe { Self(_mm256_loadu_ps(from)) }
        }

        #[inline(always)]
        unsafe fn store(self, to: *mut f32) {
            unsafe { _mm256_storeu_ps(to, self.0) }
        }

        #[inline(always)]
        unsafe fn add_product(self, a: Self, b: Self) -> Self {
            unsafe { Self(_mm256_fmadd_ps(a.0, b.0, self.0)) }
        }

        #[inline(always)]
        unsafe fn halves(low: Self, high: Self) -> (Self, Self) {
            unsafe {
                // Shuffles stay within 128 bits, so the quarters come out of order.
                let even = _mm256_shuffle_ps::<0b10_00_10_00>(low.0, high.0);
                let odd = _mm256_shuffle_ps::<0b11_01_11_01>(low.0, high.0);
                let sorted = |mixed: __m256| {
                    let mixed = _mm256_castps_pd(mixed);
                    Self(_mm256_castpd_ps(_mm256_permute4x64_pd::<0b11_01_10_00>(mixed)))
                };
                (sorted(even), sorted(odd))
            }
        }

        #[inline(always)]
        unsafe fn largest(of: [Self; 4], value: *mut f32, which: *mut u8) {
            unsafe {
                let (mut top, mut at) = (of[0].0, _mm256_setzero_ps());
                for (place, candidate) in of.iter().enumerate().skip(1) {
                    let above = _mm256_cmp_ps::<_CMP_GT_OQ>(candidate.0, top);
                    top = _mm256_blendv_ps(top, candidate.0, above);
                    let place = _mm256_castsi256_ps(_mm256_set1_epi32(place as i32));
                    at = _mm256_blendv_ps(at, place, above);
                }
                _mm256_storeu_ps(value, top);
                // The lowest byte of every number, next to each other in each half.
                let lowest = _mm256_set1_epi64x(0x0c08_0400);
                let bytes = _mm256_shuffle_epi8(_mm256_castps_si256(at), lowest);
                let halves: [i32; 2] =
                    [_mm256_extract_epi32::<0>(bytes), _mm256_extract_epi32::<4>(bytes)];
                which.cast::<[i32; 2]>().write_unaligned(halves);
            }
        }

        #[inline(always)]
        unsafe fn select(
            errors: *const f32,
            which: *const u8,
            base: *const u32,
            shift: [u32; 4],
            places: *mut u32,
            values: *mut f32,
        ) -> usize {
            unsafe { select_each::<8>(errors, which, base, shift, places, values) }
        }
    }
}

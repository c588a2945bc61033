//! Eight doubles in the vector registers of x86-64: two of 256 bits, or one of 512.

#![expect(
    clippy::undocumented_unsafe_blocks,
    reason = "all for one: the contract of `Lanes`, which the callers promise to keep"
)]

use super::lanes::{Lanes, SINGLES, turned};
use crate::Bf16;
use std::arch::x86_64::*;

/// Two registers of AVX2, with its fused multiply-add.
#[derive(Clone, Copy)]
pub(super) struct Avx2Doubles(__m256d, __m256d);

impl Avx2Doubles {
    /// # Safety
    /// The machine must have AVX2.
    #[inline(always)]
    unsafe fn widen(values: __m256) -> Self {
        unsafe {
            Self(
                _mm256_cvtps_pd(_mm256_castps256_ps128(values)),
                _mm256_cvtps_pd(_mm256_extractf128_ps::<1>(values)),
            )
        }
    }
}

/// The upper halves of eight single-precision numbers, as single precision.
///
/// # Safety
/// The machine must have AVX2, and there must be eight numbers.
#[inline(always)]
unsafe fn singles(at: *const Bf16) -> __m256 {
    unsafe {
        let halves = _mm256_cvtepu16_epi32(_mm_loadu_si128(at.cast()));
        _mm256_castsi256_ps(_mm256_slli_epi32::<16>(halves))
    }
}

impl Lanes for Avx2Doubles {
    const TILES: &'static [usize] = &[2];

    #[inline(always)]
    unsafe fn zero() -> Self {
        unsafe { Self(_mm256_setzero_pd(), _mm256_setzero_pd()) }
    }

    #[inline(always)]
    unsafe fn splat(value: f64) -> Self {
        unsafe { Self(_mm256_set1_pd(value), _mm256_set1_pd(value)) }
    }

    #[inline(always)]
    unsafe fn load_f64(at: *const f64) -> Self {
        unsafe { Self(_mm256_loadu_pd(at), _mm256_loadu_pd(at.add(4))) }
    }

    #[inline(always)]
    unsafe fn load_f32(at: *const f32) -> Self {
        unsafe { Self::widen(_mm256_loadu_ps(at)) }
    }

    #[inline(always)]
    unsafe fn load_bf16(at: *const Bf16) -> Self {
        unsafe { Self::widen(singles(at)) }
    }

    #[inline(always)]
    unsafe fn store(self, at: *mut f64) {
        unsafe {
            _mm256_storeu_pd(at, self.0);
            _mm256_storeu_pd(at.add(4), self.1);
        }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        unsafe { Self(_mm256_add_pd(self.0, other.0), _mm256_add_pd(self.1, other.1)) }
    }

    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        unsafe { Self(_mm256_sub_pd(self.0, other.0), _mm256_sub_pd(self.1, other.1)) }
    }

    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        unsafe { Self(_mm256_mul_pd(self.0, other.0), _mm256_mul_pd(self.1, other.1)) }
    }

    #[inline(always)]
    unsafe fn div(self, other: Self) -> Self {
        unsafe { Self(_mm256_div_pd(self.0, other.0), _mm256_div_pd(self.1, other.1)) }
    }

    #[inline(always)]
    unsafe fn add_exact(self, a: Self, b: Self) -> Self {
        unsafe { Self(_mm256_fmadd_pd(a.0, b.0, self.0), _mm256_fmadd_pd(a.1, b.1, self.1)) }
    }

    type Singles = (__m256, __m256);

    #[inline(always)]
    unsafe fn no_singles() -> Self::Singles {
        unsafe { (_mm256_setzero_ps(), _mm256_setzero_ps()) }
    }

    #[inline(always)]
    unsafe fn load_singles(at: *const f32) -> Self::Singles {
        unsafe { (_mm256_loadu_ps(at), _mm256_loadu_ps(at.add(8))) }
    }

    #[inline(always)]
    unsafe fn add_singles(sum: Self::Singles, a: Self::Singles, b: Self::Singles) -> Self::Singles {
        unsafe { (_mm256_fmadd_ps(a.0, b.0, sum.0), _mm256_fmadd_ps(a.1, b.1, sum.1)) }
    }

    #[inline(always)]
    unsafe fn splat_single(value: f32) -> Self::Singles {
        unsafe { (_mm256_set1_ps(value), _mm256_set1_ps(value)) }
    }

    #[inline(always)]
    unsafe fn widen_singles(singles: Self::Singles) -> [Self; 2] {
        unsafe { [Self::widen(singles.0), Self::widen(singles.1)] }
    }

    #[inline(always)]
    unsafe fn turn_singles(rows: [Self::Singles; SINGLES]) -> [Self::Singles; SINGLES] {
        let mut square = [[0.0; SINGLES]; SINGLES];
        unsafe {
            for (row, singles) in square.iter_mut().zip(rows) {
                Self::store_singles(singles, row.as_mut_ptr());
            }
            turned(square).map(|row| Self::load_singles(row.as_ptr()))
        }
    }

    #[inline(always)]
    unsafe fn store_singles(singles: Self::Singles, at: *mut f32) {
        unsafe {
            _mm256_storeu_ps(at, singles.0);
            _mm256_storeu_ps(at.add(8), singles.1);
        }
    }

    #[inline(always)]
    unsafe fn fetch(at: *const u8) {
        unsafe { _mm_prefetch::<_MM_HINT_T1>(at.cast()) }
    }
}

/// One register of AVX-512.
#[derive(Clone, Copy)]
pub(super) struct Avx512Doubles(__m512d);

impl Lanes for Avx512Doubles {
    const TILES: &'static [usize] = &[4, 5];

    #[inline(always)]
    unsafe fn zero() -> Self {
        unsafe { Self(_mm512_setzero_pd()) }
    }

    #[inline(always)]
    unsafe fn splat(value: f64) -> Self {
        unsafe { Self(_mm512_set1_pd(value)) }
    }

    #[inline(always)]
    unsafe fn load_f64(at: *const f64) -> Self {
        unsafe { Self(_mm512_loadu_pd(at)) }
    }

    #[inline(always)]
    unsafe fn load_f32(at: *const f32) -> Self {
        unsafe { Self(_mm512_cvtps_pd(_mm256_loadu_ps(at))) }
    }

    #[inline(always)]
    unsafe fn load_bf16(at: *const Bf16) -> Self {
        unsafe { Self(_mm512_cvtps_pd(singles(at))) }
    }

    #[inline(always)]
    unsafe fn store(self, at: *mut f64) {
        unsafe { _mm512_storeu_pd(at, self.0) }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        unsafe { Self(_mm512_add_pd(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        unsafe { Self(_mm512_sub_pd(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        unsafe { Self(_mm512_mul_pd(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn div(self, other: Self) -> Self {
        unsafe { Self(_mm512_div_pd(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn add_exact(self, a: Self, b: Self) -> Self {
        unsafe { Self(_mm512_fmadd_pd(a.0, b.0, self.0)) }
    }

    type Singles = __m512;

    #[inline(always)]
    unsafe fn no_singles() -> Self::Singles {
        unsafe { _mm512_setzero_ps() }
    }

    #[inline(always)]
    unsafe fn load_singles(at: *const f32) -> Self::Singles {
        unsafe { _mm512_loadu_ps(at) }
    }

    #[inline(always)]
    unsafe fn add_singles(sum: Self::Singles, a: Self::Singles, b: Self::Singles) -> Self::Singles {
        unsafe { _mm512_fmadd_ps(a, b, sum) }
    }

    #[inline(always)]
    unsafe fn splat_single(value: f32) -> Self::Singles {
        unsafe { _mm512_set1_ps(value) }
    }

    #[inline(always)]
    unsafe fn widen_singles(singles: Self::Singles) -> [Self; 2] {
        unsafe {
            let last = _mm512_extractf64x4_pd::<1>(_mm512_castps_pd(singles));
            let halves = [_mm512_castps512_ps256(singles), _mm256_castpd_ps(last)];
            halves.map(|half| Self(_mm512_cvtps_pd(half)))
        }
    }

    #[inline(always)]
    unsafe fn turn_singles(mut rows: [Self::Singles; SINGLES]) -> [Self::Singles; SINGLES] {
        unsafe {
            // Squares of four by four first: pairs of numbers, then pairs of pairs.
            for four in rows.chunks_exact_mut(4) {
                let [a, b, c, d] = [four[0], four[1], four[2], four[3]];
                let pairs = [
                    _mm512_unpacklo_ps(a, b),
                    _mm512_unpacklo_ps(c, d),
                    _mm512_unpackhi_ps(a, b),
                    _mm512_unpackhi_ps(c, d),
                ];
                let [ab, cd, above_ab, above_cd] = pairs.map(|pair| _mm512_castps_pd(pair));
                let columns = [
                    _mm512_unpacklo_pd(ab, cd),
                    _mm512_unpackhi_pd(ab, cd),
                    _mm512_unpacklo_pd(above_ab, above_cd),
                    _mm512_unpackhi_pd(above_ab, above_cd),
                ];
                four.copy_from_slice(&columns.map(|column| _mm512_castpd_ps(column)));
            }
            // Then the squares themselves.
            let mut columns = rows;
            for column in 0..4 {
                let [a, b, c, d] = std::array::from_fn(|square| rows[4 * square + column]);
                let even = _mm512_shuffle_f32x4::<0x88>(a, b);
                let odd = _mm512_shuffle_f32x4::<0xDD>(a, b);
                let (even_too, odd_too) =
                    (_mm512_shuffle_f32x4::<0x88>(c, d), _mm512_shuffle_f32x4::<0xDD>(c, d));
                columns[column] = _mm512_shuffle_f32x4::<0x88>(even, even_too);
                columns[8 + column] = _mm512_shuffle_f32x4::<0xDD>(even, even_too);
                columns[4 + column] = _mm512_shuffle_f32x4::<0x88>(odd, odd_too);
                columns[12 + column] = _mm512_shuffle_f32x4::<0xDD>(odd, odd_too);
            }
            columns
        }
    }

    #[inline(always)]
    unsafe fn store_singles(singles: Self::Singles, at: *mut f32) {
        unsafe { _mm512_storeu_ps(at, singles) }
    }

    #[inline(always)]
    unsafe fn fetch(at: *const u8) {
        unsafe { _mm_prefetch::<_MM_HINT_T1>(at.cast()) }
    }
}

//! Eight doubles in the vector registers of x86-64: two of 256 bits, or one of 512.

use super::super::bf16::Bf16;
use super::lanes::Lanes;
use std::arch::x86_64::*;

/// Two registers of AVX2, with its fused multiply-add.
#[derive(Clone, Copy)]
pub(super) struct Avx2(__m256d, __m256d);

impl Avx2 {
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

/// The sum of eight numbers: halves are added to halves.
///
/// # Safety
/// The machine must have AVX2.
#[inline(always)]
unsafe fn sum(eight: __m256) -> f32 {
    unsafe {
        let four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
        let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
        _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
    }
}

impl Lanes for Avx2 {
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
    unsafe fn sum_singles(singles: Self::Singles) -> f32 {
        unsafe { sum(_mm256_add_ps(singles.0, singles.1)) }
    }

    #[inline(always)]
    unsafe fn fetch(at: *const u8) {
        unsafe { _mm_prefetch::<_MM_HINT_T1>(at.cast()) }
    }
}

/// One register of AVX-512.
#[derive(Clone, Copy)]
pub(super) struct Avx512(__m512d);

impl Lanes for Avx512 {
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
    unsafe fn sum_singles(singles: Self::Singles) -> f32 {
        unsafe {
            let last = _mm512_extractf64x4_pd::<1>(_mm512_castps_pd(singles));
            sum(_mm256_add_ps(_mm512_castps512_ps256(singles), _mm256_castpd_ps(last)))
        }
    }

    #[inline(always)]
    unsafe fn fetch(at: *const u8) {
        unsafe { _mm_prefetch::<_MM_HINT_T1>(at.cast()) }
    }
}

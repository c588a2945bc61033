//! A 16 by 16 transpose in registers.

use std::arch::x86_64::*;

/// Turns rows into columns.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn transpose(rows: [__m512; 16]) -> [__m512; 16] {
    let mut pairs = rows;
    for i in 0..8 {
        pairs[2 * i] = _mm512_unpacklo_ps(rows[2 * i], rows[2 * i + 1]);
        pairs[2 * i + 1] = _mm512_unpackhi_ps(rows[2 * i], rows[2 * i + 1]);
    }
    let pd = |i: usize| _mm512_castps_pd(pairs[i]);
    // quads[4i + c] holds in its quarter q the column 4q + c of rows 4i to 4i + 3.
    let mut quads = rows;
    for i in 0..4 {
        let [a, b, c, d] = [pd(4 * i), pd(4 * i + 1), pd(4 * i + 2), pd(4 * i + 3)];
        quads[4 * i] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, c));
        quads[4 * i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, c));
        quads[4 * i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(b, d));
        quads[4 * i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(b, d));
    }
    const EVEN: i32 = 0b10_00_10_00;
    const ODD: i32 = 0b11_01_11_01;
    let mut columns = rows;
    for c in 0..4 {
        let [a, b, d, e] = [quads[c], quads[4 + c], quads[8 + c], quads[12 + c]];
        let upper_even = _mm512_shuffle_f32x4::<EVEN>(a, b);
        let upper_odd = _mm512_shuffle_f32x4::<ODD>(a, b);
        let lower_even = _mm512_shuffle_f32x4::<EVEN>(d, e);
        let lower_odd = _mm512_shuffle_f32x4::<ODD>(d, e);
        columns[c] = _mm512_shuffle_f32x4::<EVEN>(upper_even, lower_even);
        columns[4 + c] = _mm512_shuffle_f32x4::<EVEN>(upper_odd, lower_odd);
        columns[8 + c] = _mm512_shuffle_f32x4::<ODD>(upper_even, lower_even);
        columns[12 + c] = _mm512_shuffle_f32x4::<ODD>(upper_odd, lower_odd);
    }
    columns
}

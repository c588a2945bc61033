//! The first layer on 8-bit rows with integer dot products (AVX-512 VNNI): exact sums.
//!
//! The affine map of the data folds into the weights: with feature j meaning `byte_j s_j + t_j`,
//! `Σ_j w_j (byte_j s_j + t_j) + b = Σ_j byte_j (w_j s_j) + (b + Σ_j w_j t_j)`.
//! The folded weights of an output are rounded to 24 bits of their largest, `w_j s_j ≈ unit q_j`,
//! and every `q` is written in balanced base 256, `q = l0 + 256 l1 + 65536 l2` with digits in
//! -128..=127. Products of a byte and a digit are summed exactly in 32 bits, and the three sums
//! combined in `f64`. So the only error is the rounding of the weights, which is that of an `f32`,
//! and the result does not depend on tiles, order, or which machine computes it.

#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "x86-64 only"))]

use super::rows::RowsData;
use crate::Isa;

/// The number of digits of a weight.
const LIMBS: usize = 3;
/// The number of outputs in a vector.
pub const LANES: usize = 16;
/// The number of inputs in a dot product instruction.
const GROUP: usize = 4;
/// Rows of a register tile; with three digits each they fill 24 of the 32 registers.
const ROWS: usize = 8;
/// 255 * 128 * this stays below 2^31.
const MAX_FEATURES: usize = 65_536;
/// The largest |q| that three balanced digits can write: 127 * (1 + 256 + 65536).
const LARGEST: f64 = 8_355_711.0;

/// A cache line of digits: 16 outputs by 4 inputs.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct LimbLine([u32; LANES]);

/// A first layer's weights, quantised for one affine map of the bytes.
#[derive(Debug, Clone)]
pub struct Limbs {
    /// `[outputs / 16][features / 4][digit]`.
    lines: Vec<LimbLine>,
    /// What a combined sum is multiplied by, for every output.
    unit: Vec<f64>,
    /// What is then added.
    offset: Vec<f64>,
    scale: Vec<f32>,
    shift: Vec<f32>,
}

impl Limbs {
    /// Whether rows of this kind can be handled: bytes, in whole groups, not too many.
    pub fn can_read(data: RowsData<'_>) -> bool {
        let features = data.features();
        matches!(data, RowsData::Bytes { .. })
            && features.is_multiple_of(GROUP)
            && (GROUP..=MAX_FEATURES).contains(&features)
    }

    /// Quantises `weights` (`[outputs][features]`, finite) and `bias` for data with this map.
    pub fn new(weights: &[f32], bias: &[f32], scale: &[f32], shift: &[f32]) -> Self {
        let (features, outputs) = (scale.len(), bias.len());
        assert_eq!(weights.len(), features * outputs);
        let groups = features / GROUP;
        let padded = outputs.next_multiple_of(LANES);
        let mut lines = vec![LimbLine([0; LANES]); padded / LANES * groups * LIMBS];
        let mut unit = vec![0.0; padded];
        let mut offset = vec![0.0; padded];
        let mut digits = vec![0i32; features];
        for (output, row) in weights.chunks_exact(features).enumerate() {
            offset[output] = f64::from(bias[output]) + dot(row, shift);
            unit[output] = quantise(row, scale, &mut digits);
            let panel = &mut lines[output / LANES * groups * LIMBS..][..groups * LIMBS];
            for (group, q) in panel.chunks_exact_mut(LIMBS).zip(digits.chunks_exact(GROUP)) {
                // Adding 128 to every digit makes them the bytes of one number.
                let bytes = [q[0], q[1], q[2], q[3]].map(|q| (q + 0x0080_8080) as u32);
                for (limb, line) in group.iter_mut().enumerate() {
                    let [a, b, c, d] = bytes.map(|q| q >> (8 * limb) & 0xff);
                    line.0[output % LANES] = (a | b << 8 | c << 16 | d << 24) ^ 0x8080_8080;
                }
            }
        }
        Self { lines, unit, offset, scale: scale.to_vec(), shift: shift.to_vec() }
    }

    /// Whether these were made for data with this map.
    pub fn fit(&self, data: RowsData<'_>) -> bool {
        matches!(data, RowsData::Bytes { scale, shift, .. } if scale == self.scale && shift == self.shift)
    }

    /// How far apart the rows of the output are.
    pub fn stride(&self) -> usize {
        self.unit.len()
    }

    /// `z = x Wᵀ + b` for the rows of `index`, rows of `z` [`stride`](Self::stride) apart.
    ///
    /// # Panics
    /// Where VNNI is missing, rows have another length, or a row or `z` is out of range: these are
    /// mistakes of the caller. It is for the caller to check, once, that the data
    /// [`fit`](Self::fit).
    pub fn forward(&self, data: RowsData<'_>, index: &[u32], z: &mut [f32]) {
        assert!(Isa::detect().has_vnni(), "no VNNI");
        assert!(Self::can_read(data) && data.features() == self.scale.len(), "other data");
        assert!(z.len() >= index.len() * self.stride());
        assert!(index.iter().all(|row| (*row as usize) < data.len()));
        #[cfg(target_arch = "x86_64")]
        if let RowsData::Bytes { rows, .. } = data {
            // SAFETY: the instructions are available, every row of `index` is inside `rows`, and
            // `z` holds a row for each of them, all checked above.
            unsafe { x86::forward(self, rows, index, z) };
        }
    }
}

/// Σ a b in `f64`, in eight interleaved sums so that it vectorises; a fixed order.
fn dot(a: &[f32], b: &[f32]) -> f64 {
    let mut sums = [0.0; 8];
    for (a, b) in a.chunks(8).zip(b.chunks(8)) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += f64::from(*a) * f64::from(*b);
        }
    }
    sums.iter().sum()
}

/// Rounds `row * scale` to whole multiples of a unit, which it returns.
fn quantise(row: &[f32], scale: &[f32], digits: &mut [i32]) -> f64 {
    let product = |(w, s): (&f32, &f32)| f64::from(*w) * f64::from(*s);
    let mut tops = [0.0f64; 8];
    for (row, scale) in row.chunks(8).zip(scale.chunks(8)) {
        for (top, value) in tops.iter_mut().zip(row.iter().zip(scale).map(product)) {
            *top = if value.abs() > *top { value.abs() } else { *top };
        }
    }
    let top = tops.into_iter().fold(0.0, f64::max);
    // A row of zeros, or one so small that its unit would not be a normal number, is zero.
    if top < f64::MIN_POSITIVE * 2.0 * LARGEST {
        digits.fill(0);
        return 0.0;
    }
    let inverse = LARGEST / top;
    // 1.5 * 2^52: adding it leaves the nearest integer in the low bits.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    for (digit, value) in digits.iter_mut().zip(row.iter().zip(scale).map(product)) {
        *digit = (value * inverse + ROUND).to_bits() as i32;
    }
    top / LARGEST
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{GROUP, LANES, LIMBS, LimbLine, Limbs, ROWS};

    /// # Safety
    /// VNNI is available, every row of `index` lies inside `rows`, and `z` has a row for each.
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    pub(super) unsafe fn forward(limbs: &Limbs, rows: &[u8], index: &[u32], z: &mut [f32]) {
        let features = limbs.scale.len();
        let groups = features / GROUP;
        let stride = limbs.stride();
        for (panel, lines) in limbs.lines.chunks_exact(groups * LIMBS).enumerate() {
            let unit = &limbs.unit[panel * LANES..][..LANES];
            let offset = &limbs.offset[panel * LANES..][..LANES];
            for (tile, index) in index.chunks(ROWS).enumerate() {
                // A short tile repeats its last row; the surplus is computed and dropped.
                let row = |r: usize| {
                    let row = index[r.min(index.len() - 1)] as usize;
                    // SAFETY: the row lies inside `rows`.
                    unsafe { rows.as_ptr().add(row * features) }
                };
                let pointers = std::array::from_fn(row);
                // SAFETY: each pointer is followed by `features` = `GROUP * groups` bytes.
                let sums = unsafe { tile_sums(&pointers, lines) };
                for (r, sums) in sums.iter().enumerate().take(index.len()) {
                    let at = (tile * ROWS + r) * stride + panel * LANES;
                    combine(*sums, unit, offset, &mut z[at..at + LANES]);
                }
            }
        }
    }

    /// Σ byte · digit for eight rows, 16 outputs and three digits. A call of its own, so that what
    /// surrounds it cannot cost the sums their registers.
    ///
    /// # Safety
    /// VNNI is available; each row is followed by four bytes for every three lines.
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    #[inline(never)]
    unsafe fn tile_sums(rows: &[*const u8; ROWS], lines: &[LimbLine]) -> [[__m512i; LIMBS]; ROWS] {
        let mut sums = [[_mm512_setzero_si512(); LIMBS]; ROWS];
        for (group, lines) in lines.chunks_exact(LIMBS).enumerate() {
            let mut digits = [_mm512_setzero_si512(); LIMBS];
            for (digits, line) in digits.iter_mut().zip(lines) {
                // SAFETY: a line is 64 bytes on a 64-byte boundary.
                *digits = unsafe { _mm512_load_si512(line.0.as_ptr().cast()) };
            }
            for (row, sums) in rows.iter().zip(&mut sums) {
                // SAFETY: four bytes from `4 * group` lie inside the row, by the contract.
                let bytes = unsafe { row.add(group * GROUP).cast::<i32>().read_unaligned() };
                let bytes = _mm512_set1_epi32(bytes);
                for (sum, digits) in sums.iter_mut().zip(digits) {
                    *sum = _mm512_dpbusd_epi32(*sum, bytes, digits);
                }
            }
        }
        sums
    }

    /// `z = unit * (s0 + 256 s1 + 65536 s2) + offset`; the bracket is exact in `f64`.
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    #[inline]
    fn combine(sums: [__m512i; LIMBS], unit: &[f64], offset: &[f64], z: &mut [f32]) {
        assert!(unit.len() == LANES && offset.len() == LANES && z.len() == LANES);
        for half in 0..2 {
            let [low, middle, high] = sums.map(|sum| {
                let part = if half == 0 {
                    _mm512_castsi512_si256(sum)
                } else {
                    _mm512_extracti64x4_epi64::<1>(sum)
                };
                _mm512_cvtepi32_pd(part)
            });
            let sum = _mm512_fmadd_pd(high, _mm512_set1_pd(65_536.0), low);
            let sum = _mm512_fmadd_pd(middle, _mm512_set1_pd(256.0), sum);
            let at = half * LANES / 2;
            // SAFETY: eight numbers from `at` lie inside each slice, by the assertion.
            unsafe {
                let unit = _mm512_loadu_pd(unit.as_ptr().add(at));
                let offset = _mm512_loadu_pd(offset.as_ptr().add(at));
                let value = _mm512_cvtpd_ps(_mm512_fmadd_pd(sum, unit, offset));
                _mm256_storeu_ps(z.as_mut_ptr().add(at), value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Layer = (Vec<u8>, Vec<f32>, Vec<f32>, Vec<f32>, Vec<f32>);

    /// Bytes, scale, shift, weights and bias with every extreme in them.
    fn layer(features: usize, outputs: usize, rows: usize) -> Layer {
        let bytes = (0..rows * features).map(|i| [0, 255, (i * 89 % 256) as u8][i % 3]).collect();
        let scale = (0..features).map(|j| 0.01 + (j % 7) as f32 * 0.002).collect();
        let shift = (0..features).map(|j| (j % 11) as f32 * 0.1 - 0.5).collect();
        let weight = |i: usize| match i / features % 4 {
            0 => 0.0,
            1 => 1e-20 * (i % 13) as f32,
            2 => {
                if i.is_multiple_of(2) {
                    1.0
                } else {
                    -1.0
                }
            }
            _ => ((i * 7919 % 2003) as f32 - 1001.0) * 1e-3,
        };
        let weights = (0..outputs * features).map(weight).collect();
        let bias = (0..outputs).map(|o| o as f32 - 3.0).collect();
        (bytes, scale, shift, weights, bias)
    }

    #[test]
    fn agrees_with_f64() {
        if !Isa::detect().has_vnni() {
            return;
        }
        for (features, outputs, rows) in [(4, 1, 1), (64, 16, 9), (260, 37, 17), (65_536, 4, 2)] {
            let (bytes, scale, shift, weights, bias) = layer(features, outputs, rows);
            let limbs = Limbs::new(&weights, &bias, &scale, &shift);
            let data = RowsData::Bytes { rows: &bytes, scale: &scale, shift: &shift };
            assert!(Limbs::can_read(data));
            let index: Vec<u32> = (0..rows as u32).rev().collect();
            let mut z = vec![f32::NAN; rows * limbs.stride()];
            limbs.forward(data, &index, &mut z);
            for (row, z) in index.iter().zip(z.chunks_exact(limbs.stride())) {
                let bytes = &bytes[*row as usize * features..][..features];
                for output in 0..outputs {
                    let weights = &weights[output * features..][..features];
                    let (mut want, mut top, mut size) = (f64::from(bias[output]), 0.0f64, 0.0);
                    for j in 0..features {
                        let w = f64::from(weights[j]);
                        want +=
                            w * (f64::from(bytes[j]) * f64::from(scale[j]) + f64::from(shift[j]));
                        top = top.max((w * f64::from(scale[j])).abs());
                        size += f64::from(bytes[j]);
                    }
                    // Half a unit per weight, and the rounding of the result.
                    let allowed = 0.5001 * top / LARGEST * size + 1e-7 * want.abs() + 1e-12;
                    assert!(
                        (f64::from(z[output]) - want).abs() <= allowed,
                        "{output} {} {want}",
                        z[output]
                    );
                }
            }
        }
    }

    #[test]
    fn digits_write_the_number() {
        for q in [0, 1, -1, 127, 128, -128, -129, 32_639, 32_640, 8_355_711, -8_355_711, 123_456] {
            let limbs = |q: i32| {
                let bytes = (q + 0x0080_8080) as u32;
                [0, 8, 16].map(|shift| i64::from(((bytes >> shift) as u8 ^ 0x80) as i8))
            };
            let [low, middle, high] = limbs(q);
            assert_eq!(low + 256 * middle + 65_536 * high, i64::from(q));
        }
    }

    #[test]
    fn knows_what_it_cannot_read() {
        let (scale, rows) = (vec![1.0; 6], vec![0; 6]);
        assert!(!Limbs::can_read(RowsData::Bytes { rows: &rows, scale: &scale, shift: &scale }));
        assert!(Limbs::can_read(RowsData::Bytes {
            rows: &rows[..4],
            scale: &scale[..4],
            shift: &scale[..4]
        }));
        assert!(!Limbs::can_read(RowsData::Floats { rows: &scale[..4], features: 4 }));
        let (scale, rows) = (vec![1.0; MAX_FEATURES + 4], vec![0; MAX_FEATURES + 4]);
        assert!(!Limbs::can_read(RowsData::Bytes { rows: &rows, scale: &scale, shift: &scale }));
    }
}

//! Sums over long vectors: double accumulation, fixed order, the machine's widest lanes.
//!
//! Every kernel spells out its lanes, and Rust never contracts `a * b + c`, so the baseline, the
//! AVX2 and the AVX-512 version of a kernel give the same bits: the instruction set changes how
//! fast an answer comes, not the answer.

use super::Number;
use crate::Vector;

/// The number of partial sums of one dot product; enough to hide the latency of an addition.
const LANES: usize = 32;

/// Compiles a function for AVX-512, for AVX2 and for the baseline, and calls the best version that
/// the machine supports.
macro_rules! dispatch {
    ($(#[$meta:meta])* $vis:vis fn $name:ident $(<const $c:ident: usize>)?
        ($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? $body:block) => {
        $(#[$meta])*
        $vis fn $name $(<const $c: usize>)? ($($arg: $ty),*) $(-> $ret)? {
            #[inline(always)]
            fn body $(<const $c: usize>)? ($($arg: $ty),*) $(-> $ret)? $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512vl,avx512dq")]
                fn avx512 $(<const $c: usize>)? ($($arg: $ty),*) $(-> $ret)? {
                    body $(::<$c>)? ($($arg),*)
                }
                #[target_feature(enable = "avx2")]
                fn avx2 $(<const $c: usize>)? ($($arg: $ty),*) $(-> $ret)? {
                    body $(::<$c>)? ($($arg),*)
                }
                if is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx512dq")
                {
                    // SAFETY: the features were just detected on this machine.
                    return unsafe { avx512 $(::<$c>)? ($($arg),*) };
                }
                if is_x86_feature_detected!("avx2") {
                    // SAFETY: the feature was just detected on this machine.
                    return unsafe { avx2 $(::<$c>)? ($($arg),*) };
                }
            }
            body $(::<$c>)? ($($arg),*)
        }
    };
}
pub(crate) use dispatch;

#[inline(always)]
fn dot_lanes<A: Number, B: Number>(a: &[A], b: &[B]) -> f64 {
    let mut lanes = [0.0; LANES];
    let (a_chunks, a_rest) = a.as_chunks::<LANES>();
    let (b_chunks, b_rest) = b.as_chunks::<LANES>();
    for (a, b) in a_chunks.iter().zip(b_chunks) {
        for lane in 0..LANES {
            lanes[lane] += a[lane].widen() * b[lane].widen();
        }
    }
    for (lane, (a, b)) in a_rest.iter().zip(b_rest).enumerate() {
        lanes[lane] += a.widen() * b.widen();
    }
    sum_lanes(lanes)
}

/// Adds the lanes pairwise, always in the same order.
#[inline(always)]
pub(crate) fn sum_lanes<const N: usize>(mut lanes: [f64; N]) -> f64 {
    let mut width = N;
    while width > 1 {
        width /= 2;
        for lane in 0..width {
            lanes[lane] += lanes[lane + width];
        }
    }
    lanes[0]
}

dispatch! {
    fn dot_32_32(a: &[f32], b: &[f32]) -> f64 { dot_lanes(a, b) }
}
dispatch! {
    fn dot_32_64(a: &[f32], b: &[f64]) -> f64 { dot_lanes(a, b) }
}
dispatch! {
    fn dot_64_64(a: &[f64], b: &[f64]) -> f64 { dot_lanes(a, b) }
}
dispatch! {
    fn add_scaled_32(target: &mut [f64], scale: f64, vector: &[f32]) {
        for (target, value) in target.iter_mut().zip(vector) {
            *target += scale * f64::from(*value);
        }
    }
}
dispatch! {
    fn add_scaled_64(target: &mut [f64], scale: f64, vector: &[f64]) {
        for (target, value) in target.iter_mut().zip(vector) {
            *target += scale * *value;
        }
    }
}

/// The inner product; components past the shorter vector do not count.
pub fn dot(a: Vector<'_>, b: Vector<'_>) -> f64 {
    match (a, b) {
        (Vector::F32(a), Vector::F32(b)) => dot_32_32(a, b),
        (Vector::F32(a), Vector::F64(b)) | (Vector::F64(b), Vector::F32(a)) => dot_32_64(a, b),
        (Vector::F64(a), Vector::F64(b)) => dot_64_64(a, b),
    }
}

/// The Euclidean length; infinite or NaN if a component is, or if the square overflows.
pub fn norm(vector: Vector<'_>) -> f64 {
    dot(vector, vector).sqrt()
}

/// `target += scale · vector`.
pub(crate) fn add_scaled(target: &mut [f64], scale: f64, vector: Vector<'_>) {
    match vector {
        Vector::F32(vector) => add_scaled_32(target, scale, vector),
        Vector::F64(vector) => add_scaled_64(target, scale, vector),
    }
}

/// `target *= scale`.
pub(crate) fn scale(target: &mut [f64], scale: f64) {
    for value in target {
        *value *= scale;
    }
}

/// The inner products of all pairs, row by row: a symmetric matrix of `vectors.len()` rows.
pub(crate) fn gram(vectors: &[Vector<'_>]) -> Vec<f64> {
    let n = vectors.len();
    let mut gram = vec![0.0; n * n];
    for row in 0..n {
        for column in 0..=row {
            let value = dot(vectors[row], vectors[column]);
            gram[row * n + column] = value;
            gram[column * n + row] = value;
        }
    }
    gram
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn dot_is_the_naive_sum_up_to_rounding(
            pairs in prop::collection::vec((-1e3f32..1e3, -1e3f64..1e3), 0..200)
        ) {
            let (a, b): (Vec<f32>, Vec<f64>) = pairs.into_iter().unzip();
            let naive: f64 = a.iter().zip(&b).map(|(a, b)| f64::from(*a) * b).sum();
            let size: f64 = a.iter().zip(&b).map(|(a, b)| (f64::from(*a) * b).abs()).sum();
            let fast = dot(Vector::F32(&a), Vector::F64(&b));
            prop_assert!((fast - naive).abs() <= 1e-13 * size);
        }

        #[test]
        fn the_instruction_set_does_not_change_the_bits(
            a in prop::collection::vec(-1e3f64..1e3, 0..200)
        ) {
            prop_assert_eq!(dot_64_64(&a, &a).to_bits(), dot_lanes(&a, &a).to_bits());
        }
    }

    #[test]
    fn add_scaled_and_scale() {
        let mut target = [1.0, 2.0];
        add_scaled(&mut target, 2.0, Vector::F32(&[1.0, -1.0]));
        scale(&mut target, 0.5);
        assert_eq!(target, [1.5, 0.0]);
    }
}

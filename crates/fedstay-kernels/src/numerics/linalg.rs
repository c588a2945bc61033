//! Sums over long vectors, for callers with one vector or two: the machine's widest lanes, on the calling
//! thread. How a sum is rounded is said in `kernel`.

use super::Machine;
use super::kernel;
use crate::{Isa, Vector};

/// The inner product of two short vectors: more sums side by side than in [`dot`], and therefore
/// another rounding.
pub fn dot_short(a: &[f64], b: &[f64]) -> f64 {
    kernel::dot_short(Isa::detect(), a, b)
}

/// The inner product; components past the shorter vector do not count.
pub fn dot(a: Vector<'_>, b: Vector<'_>) -> f64 {
    kernel::dot(Isa::detect(), a, b)
}

/// The Euclidean length; infinite or NaN if a component is, or if the square overflows.
pub fn norm(vector: Vector<'_>) -> f64 {
    dot(vector, vector).sqrt()
}

/// `target += scale · vector`.
pub fn add_scaled(target: &mut [f64], scale: f64, vector: Vector<'_>) {
    kernel::add_scaled(Isa::detect(), target, scale, vector);
}

/// `target *= scale`.
pub fn scale(target: &mut [f64], scale: f64) {
    for value in target {
        *value *= scale;
    }
}

/// The inner products of all pairs, row by row: a symmetric matrix of `vectors.len()` rows.
pub fn gram(vectors: &[Vector<'_>]) -> Vec<f64> {
    let n = vectors.len();
    let lower = Machine::default().gram(vectors);
    let mut gram = Vec::with_capacity(n * n);
    for row in 0..n {
        gram.extend((0..n).map(|column| lower.get(row, column)));
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
    }

    #[test]
    fn add_scaled_and_scale() {
        let mut target = [1.0, 2.0];
        add_scaled(&mut target, 2.0, Vector::F32(&[1.0, -1.0]));
        scale(&mut target, 0.5);
        assert_eq!(target, [1.5, 0.0]);
    }
}

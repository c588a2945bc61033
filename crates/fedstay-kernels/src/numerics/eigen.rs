//! Small symmetric systems that may be singular: the shortest solution, by Jacobi rotations.

/// Eigenvalues below this share of the largest count as zero.
const SINGULAR: f64 = 1e-11;
/// Rotations converge quadratically; a matrix that needs more sweeps than this is not symmetric.
const SWEEPS: usize = 60;

/// The shortest x that comes nearest to `A x = b`, for a symmetric matrix of `b.len()` rows with no
/// negative eigenvalue. Rows that are alike have entries that are alike.
pub fn shortest(matrix: &[f64], b: &[f64]) -> Vec<f64> {
    let n = b.len();
    let (values, vectors) = eigen(matrix, n);
    let largest = values.iter().copied().fold(0.0, f64::max);
    let mut x = vec![0.0; n];
    for (k, value) in values.iter().enumerate().filter(|(_, value)| **value > SINGULAR * largest) {
        let along: f64 = (0..n).map(|i| vectors[i * n + k] * b[i]).sum();
        (0..n).for_each(|i| x[i] += vectors[i * n + k] * along / value);
    }
    x
}

/// Eigenvalues, and eigenvectors as columns, of a symmetric matrix of n rows.
fn eigen(matrix: &[f64], n: usize) -> (Vec<f64>, Vec<f64>) {
    let mut a = matrix.to_vec();
    let mut vectors: Vec<f64> =
        (0..n * n).map(|at| if at / n == at % n { 1.0 } else { 0.0 }).collect();
    let scale: f64 = a.iter().map(|value| value * value).sum::<f64>().sqrt();
    for _ in 0..SWEEPS {
        let mut off = 0.0f64;
        for p in 0..n {
            for q in p + 1..n {
                let apq = a[p * n + q];
                off = off.max(apq.abs());
                if apq.abs() <= 1e-17 * scale {
                    continue;
                }
                let theta = (a[q * n + q] - a[p * n + p]) / (2.0 * apq);
                let t = 1.0f64.copysign(theta) / (theta.abs() + theta.hypot(1.0));
                let c = 1.0 / t.hypot(1.0);
                let s = t * c;
                for k in 0..n {
                    let (kp, kq) = (a[k * n + p], a[k * n + q]);
                    (a[k * n + p], a[k * n + q]) = (c * kp - s * kq, s * kp + c * kq);
                }
                for k in 0..n {
                    let (pk, qk) = (a[p * n + k], a[q * n + k]);
                    (a[p * n + k], a[q * n + k]) = (c * pk - s * qk, s * pk + c * qk);
                }
                for k in 0..n {
                    let (kp, kq) = (vectors[k * n + p], vectors[k * n + q]);
                    (vectors[k * n + p], vectors[k * n + q]) = (c * kp - s * kq, s * kp + c * kq);
                }
            }
        }
        if off <= 1e-16 * scale {
            break;
        }
    }
    ((0..n).map(|i| a[i * n + i]).collect(), vectors)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// A = VVᵀ with fewer columns than rows is singular; b = A y has the solution y and many
        /// others. Ours solves the system and is no longer than y.
        #[test]
        fn it_solves_singular_systems_and_is_no_longer_than_any_other_solution(
            n in 1usize..7,
            rank in 1usize..7,
            entries in prop::collection::vec(-1.0..1.0f64, 49),
            y in prop::collection::vec(-1.0..1.0f64, 7),
        ) {
            let v = |i: usize, k: usize| entries[i * 7 + k];
            let a: Vec<f64> = (0..n * n)
                .map(|at| (0..rank).map(|k| v(at / n, k) * v(at % n, k)).sum())
                .collect();
            let times = |x: &[f64]| -> Vec<f64> {
                (0..n).map(|i| (0..n).map(|j| a[i * n + j] * x[j]).sum()).collect()
            };
            let b = times(&y[..n]);
            let x = shortest(&a, &b);
            // Nearly singular directions are left out: what is missing is below their share.
            for (got, expected) in times(&x).iter().zip(&b) {
                prop_assert!((got - expected).abs() < 1e-9, "{got} for {expected}");
            }
            let length = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>().sqrt();
            prop_assert!(length(&x) <= length(&y[..n]) + 1e-4);
        }
    }

    #[test]
    fn equal_rows_have_equal_entries() {
        let a = [2.0, 2.0, 0.5, 2.0, 2.0, 0.5, 0.5, 0.5, 1.0];
        let x = shortest(&a, &[1.0, 1.0, 0.25]);
        assert!((x[0] - x[1]).abs() < 1e-15 && (x[0] - 0.25).abs() < 1e-12, "{x:?}");
        assert_eq!(shortest(&[0.0; 4], &[0.0, 0.0]), [0.0, 0.0]);
    }
}

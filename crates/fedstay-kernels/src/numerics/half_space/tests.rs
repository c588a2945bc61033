//! The nearest point is the nearest one, or there is none.

use super::*;
use proptest::prelude::*;

fn gram(vectors: &[Vec<f64>]) -> Vec<f64> {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    vectors.iter().flat_map(|a| vectors.iter().map(move |b| dot(a, b))).collect()
}

proptest! {
    /// The Karush-Kuhn-Tucker conditions, which are sufficient because the problem is convex.
    #[test]
    fn what_it_returns_is_optimal_or_the_half_spaces_do_not_meet(
        (vectors, b) in (1usize..5, 1usize..7).prop_flat_map(|(dimension, n)| (
            prop::collection::vec(prop::collection::vec(-3.0..3.0f64, dimension), n),
            prop::collection::vec(-2.0..2.0f64, n),
        )),
        twin in any::<bool>(),
    ) {
        let mut vectors = vectors;
        let mut b = b;
        if twin {
            // An exact copy, which makes the Gram matrix singular.
            vectors.push(vectors[0].clone());
            b.push(b[0] + 0.1);
        }
        let n = b.len();
        let g = gram(&vectors);
        match nearest(&g, &b, 0.0) {
            Nearest::Multipliers(x) => {
                let size = 1.0 + x.iter().sum::<f64>();
                for i in 0..n {
                    prop_assert!(x[i] >= 0.0);
                    let slack = (0..n).map(|j| g[i * n + j] * x[j]).sum::<f64>() - b[i];
                    let tolerance = 1e-8 * size * (1.0 + g[i * n + i]);
                    prop_assert!(slack >= -tolerance, "violated by {slack}");
                    prop_assert!(x[i] * slack <= tolerance * size, "not tight: {slack}");
                }
            }
            Nearest::Empty => {
                // A certificate: some combination λ ≥ 0 with Σ λ g = 0 and λᵀb > 0 exists, so a
                // softened problem still violates somebody.
                let Nearest::Multipliers(x) = nearest(&g, &b, 1e-7) else {
                    return Err(TestCaseError::fail("a ridge always has an answer"));
                };
                let worst = (0..n)
                    .map(|i| b[i] - (0..n).map(|j| g[i * n + j] * x[j]).sum::<f64>())
                    .fold(0.0, f64::max);
                prop_assert!(worst > 1e-7, "called empty, but all hold to {worst}");
            }
        }
    }
}

/// Many rows at once, and a factor that is turned where one leaves, find the same nearest point.
#[test]
fn many_half_spaces_are_met_at_their_nearest_point() {
    let mut rng = crate::Seed(7).stream("half-spaces", 0, 0);
    for (n, dimension) in [(80, 120), (150, 100), (200, 260)] {
        let mut vector = || (0..dimension).map(|_| crate::numerics::normal(&mut rng)).collect();
        let vectors: Vec<Vec<f64>> = (0..n).map(|_| vector()).collect();
        let common: Vec<f64> = vector();
        // All meet where a common point is, so that many are tight and none contradict.
        let b: Vec<f64> = vectors
            .iter()
            .enumerate()
            .map(|(i, v)| v.iter().zip(&common).map(|(a, b)| a * b).sum::<f64>() - (i % 3) as f64)
            .collect();
        let g = gram(&vectors);
        let Nearest::Multipliers(x) = nearest(&g, &b, 0.0) else { panic!("they meet") };
        let active = x.iter().filter(|x| **x > 0.0).count();
        assert!(active > MANY, "{active} of {n}");
        for i in 0..n {
            let slack = (0..n).map(|j| g[i * n + j] * x[j]).sum::<f64>() - b[i];
            assert!(x[i] >= 0.0 && slack >= -1e-8, "{i}: {} {slack}", x[i]);
            assert!(x[i] * slack <= 1e-8, "{i}: not tight, {} {slack}", x[i]);
        }
    }
}

/// One pass over the triangle finds the same rows lacking, by as much, as product after product.
#[test]
fn what_many_rows_lack_is_measured_in_either_order() {
    let mut rng = crate::Seed(3).stream("half-spaces", 1, 0);
    let n = LONG + 40;
    let mut vector = || (0..60).map(|_| crate::numerics::normal(&mut rng)).collect();
    let vectors: Vec<Vec<f64>> = (0..n).map(|_| vector()).collect();
    let g = gram(&vectors);
    let mut active = ActiveSet::default();
    for i in 0..n {
        let length = |j: usize| g[j * n + j].sqrt();
        let before = (0..i).map(|j| g[i * n + j] / (length(i) * length(j)));
        active.add(before.collect::<Vec<f64>>(), 1.0, (i % 7) as f64 - 3.0);
    }
    active.passive = (0..n).step_by(3).collect();
    active.passive.iter().for_each(|i| active.x[*i] = 0.01 * (*i as f64 + 1.0));
    let lacking = active.lacking();
    assert!(!lacking.is_empty());
    let mut expected = Vec::new();
    for i in (0..n).filter(|i| i % 3 != 0) {
        let known: f64 = active.passive.iter().map(|j| active.product(i, *j) * active.x[*j]).sum();
        expected.extend((active.b[i] - known > 1e-9).then_some((active.b[i] - known, i)));
    }
    assert_eq!(lacking.len(), expected.len());
    for (found, expected) in lacking.iter().zip(&expected) {
        assert_eq!(found.1, expected.1);
        assert!((found.0 - expected.0).abs() < 1e-10, "{found:?} {expected:?}");
    }
}

#[test]
fn opposite_half_spaces_do_not_meet() {
    let g = gram(&[vec![1.0, 0.0], vec![-1.0, 0.0]]);
    assert_eq!(nearest(&g, &[1.0, 1.0], 0.0), Nearest::Empty);
    assert_eq!(nearest(&g, &[1.0, -2.0], 0.0), Nearest::Multipliers(vec![1.0, 0.0]));
    assert_eq!(nearest(&[], &[], 0.0), Nearest::Multipliers(vec![]));
}

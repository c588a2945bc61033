//! There is one shortest step, wherever the search begins, and it meets the conditions of a maximum.

use super::*;
use crate::numerics::half_space::{Nearest, nearest};
use proptest::prelude::*;

fn solve(vectors: &[Vec<f64>], bounds: &[Priced]) -> (Vec<f64>, Vec<f64>) {
    let views: Vec<Vector<'_>> = vectors.iter().map(|v| Vector::F64(v)).collect();
    let lengths: Vec<f64> = views.iter().map(|v| linalg::norm(*v)).collect();
    let mut step = vec![7.0; vectors[0].len()];
    let multipliers = capped(&Machine::default(), &views, &lengths, bounds, &mut step);
    (step, multipliers)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn price(vectors: &[Vec<f64>], bounds: &[Priced], step: &[f64]) -> f64 {
    let missed =
        |(bound, g): (&Priced, &Vec<f64>)| bound.cap * (bound.lacking + dot(g, step)).max(0.0);
    0.5 * dot(step, step) + bounds.iter().zip(vectors).map(missed).sum::<f64>()
}

prop_compose! {
    fn problem()(dimension in 1usize..7, n in 1usize..40)(
        vectors in prop::collection::vec(prop::collection::vec(-2.0..2.0f64, dimension), n),
        bounds in prop::collection::vec((-0.5..2.0f64, 0.0..1.5f64, 0.0..1.0f64), n),
    ) -> (Vec<Vec<f64>>, Vec<Priced>) {
        let bound = |(lacking, cap, begin)| Priced { lacking, cap, begin };
        (vectors, bounds.into_iter().map(bound).collect())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn multipliers_are_in_their_box_and_whoever_is_between_meets_its_bound(
        (vectors, bounds) in problem(),
    ) {
        let (step, multipliers) = solve(&vectors, &bounds);
        for ((bound, g), multiplier) in bounds.iter().zip(&vectors).zip(&multipliers) {
            let missed = bound.lacking + dot(g, &step);
            let tolerance = 1e-8 * (1.0 + multipliers.iter().sum::<f64>());
            let room = 1e-9 * bound.cap;
            prop_assert!((0.0..=bound.cap * (1.0 + 1e-12)).contains(multiplier));
            prop_assert!(*multiplier >= bound.cap - room || missed <= tolerance, "{missed}");
            prop_assert!(*multiplier <= room || missed >= -tolerance, "{missed}");
        }
        for (index, value) in step.iter().enumerate() {
            let sum: f64 = multipliers.iter().zip(&vectors).map(|(l, g)| l * g[index]).sum();
            prop_assert!((value + sum).abs() < 1e-9 * (1.0 + sum.abs()));
        }
    }

    #[test]
    fn no_other_step_is_cheaper(
        (vectors, bounds) in problem(),
        way in prop::collection::vec(-1.0..1.0f64, 7),
        length in 1e-4..3.0f64,
    ) {
        let (step, _) = solve(&vectors, &bounds);
        let other: Vec<f64> = step.iter().zip(&way).map(|(a, b)| a + length * b).collect();
        let (here, there) = (price(&vectors, &bounds, &step), price(&vectors, &bounds, &other));
        prop_assert!(here <= there + 1e-9 * (1.0 + there), "{here} {there}");
    }

    #[test]
    fn where_the_search_begins_changes_only_rounding((vectors, bounds) in problem()) {
        let (step, _) = solve(&vectors, &bounds);
        for begin in [0.0, 1.0] {
            let bounds: Vec<Priced> = bounds.iter().map(|b| Priced { begin, ..*b }).collect();
            let (other, _) = solve(&vectors, &bounds);
            for (a, b) in step.iter().zip(&other) {
                prop_assert!((a - b).abs() < 1e-7, "{a} {b}");
            }
        }
    }

    /// And with a cap that is too small, it is not.
    #[test]
    fn without_caps_it_is_the_projection(
        vectors in prop::collection::vec(prop::collection::vec(-2.0..2.0f64, 8), 1..6),
        lacking in prop::collection::vec(0.1..1.0f64, 6),
    ) {
        let views: Vec<Vector<'_>> = vectors.iter().map(|v| Vector::F64(v)).collect();
        let n = vectors.len();
        let Nearest::Multipliers(known) = nearest(&linalg::gram(&views), &lacking[..n], 0.0) else {
            return Ok(());
        };
        prop_assume!(known.iter().all(|multiplier| *multiplier < 1e3));
        let with = |cap: f64| {
            let bound = |lacking: &f64| Priced { lacking: *lacking, cap, begin: 0.5 };
            let bounds: Vec<Priced> = lacking[..n].iter().map(bound).collect();
            solve(&vectors, &bounds).1
        };
        let most = known.iter().copied().fold(0.0, f64::max);
        let near = |made: &[f64]| {
            made.iter().zip(&known).all(|(a, b)| (a - b).abs() < 1e-6 * (1.0 + most))
        };
        prop_assert!(near(&with(2.0 * most)) && near(&with(f64::INFINITY)));
        prop_assert!(!near(&with(0.5 * most)));
    }
}

#[test]
fn bounds_that_exclude_each_other_cost_what_they_cost() {
    let bound = |lacking, cap| Priced { lacking, cap, begin: 1.0 };
    let vectors = [vec![1.0], vec![-1.0]];
    let (step, multipliers) = solve(&vectors, &[bound(5.0, 2.0), bound(5.0, 1.0)]);
    assert!((step[0] + 1.0).abs() < 1e-12 && (multipliers[0] - 2.0).abs() < 1e-12);
    let (step, _) = solve(&vectors, &[bound(5.0, 2.0), bound(5.0, 2.0)]);
    assert_eq!(step, [0.0]);
}

/// One of two that are nearly parallel binds; begun far away, at caps that are no caps.
#[test]
fn vectors_that_are_nearly_parallel_are_told_apart() {
    let bound = |lacking| Priced { lacking, cap: 1e8, begin: 1.0 };
    let vectors = [vec![0.0762, 3.3926], vec![0.0507, 3.2410]];
    let (step, multipliers) = solve(&vectors, &[bound(2.9617), bound(2.8284)]);
    assert_eq!(multipliers[1], 0.0);
    assert!((dot(&vectors[0], &step) + 2.9617).abs() < 1e-9, "{step:?}");
}

#[test]
fn hostile_numbers_leave_the_step_finite() {
    let bound = |lacking, cap| Priced { lacking, cap, begin: 1.0 };
    for wild in [1e308, 1e200, 1e-300, 0.0] {
        for lacking in [1e308, -1e308, 0.0] {
            let vectors = [vec![wild, 0.0], vec![1.0, 1.0], vec![1.0, 1.0], vec![-1.0, -1.0]];
            let caps = [1.0 / wild, 0.5, 0.5, 0.7];
            let bounds = caps.map(|cap| bound(lacking, cap));
            let (step, multipliers) = solve(&vectors, &bounds);
            assert!(step.iter().chain(&multipliers).all(|v| v.is_finite()), "{wild} {lacking}");
        }
    }
}

/// More vectors than dimensions, as where many owners share a small model, and many that depend on each other.
#[test]
fn hundreds_of_vectors_in_few_dimensions_are_solved_exactly() {
    let value = |seed: usize| ((seed * 7919 + 13) % 1009) as f64 / 504.5 - 1.0;
    let vectors: Vec<Vec<f64>> =
        (0..400).map(|m| (0..8).map(|i| value(m * 8 + i) + 0.3).collect()).collect();
    let bounds: Vec<Priced> = (0..400)
        .map(|m| Priced { lacking: 0.5 + 0.5 * value(m + 5000), cap: 0.01, begin: 1.0 })
        .collect();
    let (step, multipliers) = solve(&vectors, &bounds);
    let between = multipliers.iter().filter(|l| (1e-9..0.01 - 1e-9).contains(*l)).count();
    assert!((1..=8).contains(&between), "{between}");
    for ((bound, g), multiplier) in bounds.iter().zip(&vectors).zip(&multipliers) {
        let missed = bound.lacking + dot(g, &step);
        assert!(missed < 1e-9 || *multiplier > 0.01 - 1e-12);
        assert!(missed > -1e-9 || *multiplier == 0.0);
    }
}

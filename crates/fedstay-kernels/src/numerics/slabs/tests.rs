//! There is one nearest step, wherever the search begins and whatever the matrix is computed in; or a proof.

use super::*;
use proptest::prelude::*;

fn bundle(vectors: &[Vec<f64>]) -> Bundle<'_> {
    let views: Vec<Vector<'_>> = vectors.iter().map(|v| Vector::F64(v)).collect();
    let lengths = views.iter().map(|v| linalg::norm(*v)).collect();
    Bundle::new(Machine::default(), views, lengths)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Optimal, by the conditions that suffice for a convex problem; or provably empty.
    #[test]
    fn what_it_returns_is_nearest_or_nothing_is_within_the_bounds(
        (vectors, bounds) in (1usize..7, 1usize..60).prop_flat_map(|(dimension, n)| (
            prop::collection::vec(prop::collection::vec(-2.0..2.0f64, dimension), n),
            prop::collection::vec((-1.0..0.3f64, 0.0..1.5f64), n),
        )),
        start in prop::collection::vec(-2.0..2.0f64, 7),
    ) {
        let mut bundle = bundle(&vectors);
        let slabs: Vec<Slab> = bounds
            .iter()
            .map(|(low, width)| Slab { low: *low, high: low + width, give: 0.0 })
            .collect();
        let start = &start[..vectors[0].len()];
        let mut step = start.to_vec();
        match bundle.nearest(&mut step, &slabs, 0.0) {
            Ok(pulls) => {
                let along = bundle.along(&step);
                let size = 1.0 + pulls.iter().map(|pull| pull.abs()).sum::<f64>();
                let tolerance = 1e-7 * size;
                for ((along, slab), pull) in along.iter().zip(&slabs).zip(&pulls) {
                    prop_assert!(*along >= slab.low - tolerance, "{along} {slab:?}");
                    prop_assert!(*along <= slab.high + tolerance, "{along} {slab:?}");
                    let tight = if *pull > 0.0 { along - slab.low } else { slab.high - along };
                    prop_assert!(pull.abs() * tight <= tolerance * size, "not tight: {tight}");
                }
                let mut back = start.to_vec();
                bundle.push(&mut back, &pulls);
                for (a, b) in back.iter().zip(&step) {
                    prop_assert!((a - b).abs() <= tolerance);
                }
            }
            Err(pulls) => {
                // Farkas: they cancel, and ask for more than nothing.
                let mut cancel = vec![0.0; start.len()];
                bundle.push(&mut cancel, &pulls);
                let size: f64 = pulls.iter().map(|pull| pull.abs()).sum();
                prop_assert!(linalg::norm(Vector::F64(&cancel)) <= 1e-5 * size);
                let asked: f64 = pulls
                    .iter()
                    .zip(&slabs)
                    .map(|(pull, slab)| pull * if *pull > 0.0 { slab.low } else { slab.high })
                    .sum();
                prop_assert!(asked > 0.0, "{asked}");
                prop_assert_eq!(&step[..], start, "an error moves nothing");
                let soft = bundle.nearest(&mut step, &slabs, 1e-6);
                let holds = slabs.iter().all(|slab| slab.low <= 0.0);
                prop_assert!(soft.is_ok() || !holds, "upper bounds give way");
            }
        }
    }
}

/// Vectors, and bounds of which many bind together.
fn many(seed: u64, count: usize, dimension: usize) -> (Vec<Vec<f64>>, Vec<Slab>) {
    let mut rng = crate::Seed(seed).stream("slabs", count as u64, dimension as u64);
    let mut draw = || crate::numerics::normal(&mut rng);
    let common: Vec<f64> = (0..dimension).map(|_| draw()).collect();
    let mut vector = || common.iter().map(|c| c + draw()).collect();
    let vectors: Vec<Vec<f64>> = (0..count).map(|_| vector()).collect();
    let mut slab = || {
        let high = -1.0 - draw().abs();
        Slab { low: high - 0.05 * draw().abs(), high, give: 0.0 }
    };
    let slabs = (0..count).map(|_| slab()).collect();
    (vectors, slabs)
}

/// There is one nearest step, wherever the search for it begins: with nothing, with who binds, with
/// who does not, with all at one side, or where it ended for other bounds.
#[test]
fn the_nearest_step_does_not_depend_on_what_was_expected() {
    for (seed, count, dimension) in [(0, 40, 60), (1, 150, 200), (2, 400, 410), (3, 300, 1_000)] {
        let (vectors, slabs) = many(seed, count, dimension);
        let mut cold = vec![0.0; dimension];
        let pulls = bundle(&vectors).nearest(&mut cold, &slabs, 0.0).unwrap();
        let bound = |sign: f64| (0..count).map(|m| (m, sign * pulls[m] > 0.0)).collect();
        let binding = (0..count).filter(|m| pulls[*m] != 0.0).map(|m| (m, pulls[m] > 0.0));
        let starts: Vec<Vec<(usize, bool)>> = vec![
            binding.collect(),
            (0..count).filter(|m| pulls[*m] == 0.0).map(|m| (m, false)).collect(),
            bound(1.0),
            bound(-1.0),
            (0..count).map(|m| (m, true)).collect(),
            (0..count).map(|m| (m, m % 3 == 0)).rev().collect(),
        ];
        let size = 1e-8 * (1.0 + linalg::norm(Vector::F64(&cold)));
        let same = |step: &[f64]| step.iter().zip(&cold).all(|(a, b)| (a - b).abs() < size);
        let mut used = bundle(&vectors);
        for expected in starts {
            let mut fresh = bundle(&vectors);
            fresh.expect(expected.clone());
            let mut step = vec![0.0; dimension];
            fresh.nearest(&mut step, &slabs, 0.0).unwrap();
            assert!(same(&step), "{count}: another step");
            // Other bounds in between, of which some are free.
            let other: Vec<Slab> = slabs
                .iter()
                .enumerate()
                .map(|(m, slab)| match m % 5 {
                    0 => Slab::FREE,
                    _ => Slab { low: f64::NEG_INFINITY, high: 2.0 * slab.high, give: 0.0 },
                })
                .collect();
            used.nearest(&mut vec![0.0; dimension], &other, 0.0).unwrap();
            used.expect(expected.into_iter().filter(|(m, _)| m % 2 == 0));
            let mut step = vec![0.0; dimension];
            used.nearest(&mut step, &slabs, 0.0).unwrap();
            assert!(same(&step), "{count}: another step after other bounds");
        }
    }
}

/// Vectors and bounds like the above, in single precision.
fn many_singles(seed: u64, count: usize, dimension: usize) -> (Vec<Vec<f32>>, Vec<Slab>) {
    let (vectors, slabs) = many(seed, count, dimension);
    let single = |row: Vec<f64>| row.into_iter().map(|value| value as f32).collect();
    (vectors.into_iter().map(single).collect(), slabs)
}

fn singles(vectors: &[Vec<f32>], sums: Sums) -> Bundle<'_> {
    let views: Vec<Vector<'_>> = vectors.iter().map(|v| Vector::F32(v)).collect();
    let lengths = views.iter().map(|v| linalg::norm(*v)).collect();
    Bundle { sums, ..Bundle::new(Machine::default(), views, lengths) }
}

fn apart(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

/// A Gram matrix in single precision leads to the same step, to far more digits than it has itself.
#[test]
fn the_nearest_step_is_the_same_by_a_matrix_in_single_precision() {
    let sizes = [(0, WORTH_SINGLE, 300), (1, 400, 1_000), (2, 600, 700)];
    for ((seed, count, dimension), gives) in sizes.into_iter().zip([false, true, false]) {
        let (vectors, mut slabs) = many_singles(seed, count, dimension);
        if gives {
            slabs.iter_mut().for_each(|slab| slab.give = 1e-9);
        }
        let (mut one, mut other) = (vec![0.0; dimension], vec![0.0; dimension]);
        let mut single = singles(&vectors, Sums::Single);
        let views = vectors.iter().map(|v| Vector::F32(v)).collect();
        let usual = Bundle::new(Machine::default(), views, single.lengths.clone());
        assert_eq!(usual.sums, Sums::Single, "which is how it begins");
        let pulls = single.nearest(&mut one, &slabs, 0.0).unwrap();
        assert_eq!(single.sums, Sums::Single, "{count}: it was not given up");
        assert!(pulls.iter().filter(|pull| **pull != 0.0).count() > 100);
        singles(&vectors, Sums::Double).nearest(&mut other, &slabs, 0.0).unwrap();
        let size = linalg::norm(Vector::F64(&other));
        let found = apart(&one, &other);
        assert!(found < 1e-8 * size, "{count}: {found} of {size}");
        // And again from there, for other bounds.
        let wider: Vec<Slab> =
            slabs.iter().map(|slab| Slab { high: 1.5 * slab.high, ..Slab::FREE }).collect();
        let (mut one, mut other) = (vec![0.0; dimension], vec![0.0; dimension]);
        single.nearest(&mut one, &wider, 0.0).unwrap();
        singles(&vectors, Sums::Double).nearest(&mut other, &wider, 0.0).unwrap();
        let found = apart(&one, &other);
        assert!(found < 1e-8 * linalg::norm(Vector::F64(&other)), "{count}: {found}");
    }
}

/// What single precision cannot tell is decided in double: vectors that are nearly the same, and
/// bounds that contradict each other.
#[test]
fn nearly_the_same_vectors_and_contradictions_are_left_to_double_precision() {
    let (mut vectors, mut slabs) = many_singles(1, 300, 400);
    for index in 0..40 {
        vectors[index + 40] = vectors[index].iter().map(|value| value * 1.000_001).collect();
        slabs[index + 40] = Slab { high: slabs[index].high - 1e-4, ..Slab::FREE };
    }
    let mut single = singles(&vectors, Sums::Single);
    let (mut one, mut other) = (vec![0.0; 400], vec![0.0; 400]);
    single.nearest(&mut one, &slabs, 0.0).unwrap();
    singles(&vectors, Sums::Double).nearest(&mut other, &slabs, 0.0).unwrap();
    assert!(apart(&one, &other) < 1e-8 * linalg::norm(Vector::F64(&other)));

    let (mut vectors, mut slabs) = many_singles(1, 300, 400);
    vectors[299] = vectors[0].iter().map(|value| -value).collect();
    slabs[299] = Slab { high: slabs[0].high, ..Slab::FREE };
    let mut single = singles(&vectors, Sums::Single);
    let mut step = vec![0.0; 400];
    let proof = single.nearest(&mut step, &slabs, 0.0).unwrap_err();
    assert_eq!(single.sums, Sums::Double, "no proof rests on single precision");
    assert!(proof[0] < 0.0 && proof[299] < 0.0);
    assert_eq!(step, vec![0.0; 400]);
}

/// The converse: vectors that nearly cancel pull a million times as hard as the step is long, and are
/// met all the same; and softened bounds may contradict each other, beside a floor at zero.
#[test]
fn hard_pulls_are_not_taken_for_a_contradiction() {
    let tilt = 5e-7;
    let vectors = [vec![0.0, -1.0, 1.0], vec![1.0, tilt, 0.0], vec![-1.0, tilt, 0.0]].to_vec();
    let low = |low| Slab { low, ..Slab::FREE };
    let mut step = vec![0.0; 3];
    let slabs = [low(1.0), low(0.0), low(0.0)];
    let pulls = bundle(&vectors).nearest(&mut step, &slabs, 0.0).unwrap();
    assert!(pulls[1] > 1e5, "{pulls:?}");
    assert!((step[2] - 1.0).abs() < 1e-6 && step[1] > -1e-6, "{step:?}");

    let mut rng = crate::Seed(2).stream("slabs", 0, 0);
    for _ in 0..200 {
        let mut draw =
            || -> Vec<f64> { (0..4).map(|_| crate::numerics::normal(&mut rng)).collect() };
        let (one, third) = (draw(), draw());
        let other = one.iter().map(|value| -value).collect();
        let aim = Slab { high: -1.0, ..Slab::FREE };
        let vectors = [one, other, third].to_vec();
        let mut step = vec![0.0; 4];
        let slabs = [aim, aim, low(0.0)];
        assert!(bundle(&vectors).nearest(&mut step, &slabs, 0.1).is_ok());
        assert!(bundle(&vectors).nearest(&mut step, &slabs, 0.0).is_err());
    }
}

/// Two agents among many, and a third whose vector is minus the sum of theirs, cannot all descend; a hair
/// of rounding in that sum does not hide it.
#[test]
fn a_contradiction_among_many_is_proved() {
    for (count, dimension) in [(40, 60), (120, 200), (200, 210)] {
        let (mut vectors, mut slabs) = many(1, count, dimension);
        let minus = vectors[0].iter().zip(&vectors[1]).map(|(a, b)| -(a + b)).collect();
        vectors.push(minus);
        slabs.push(Slab { high: -1.0, ..Slab::FREE });
        let mut step = vec![0.0; dimension];
        let proof = bundle(&vectors).nearest(&mut step, &slabs, 0.0).unwrap_err();
        let strongest = proof.iter().map(|pull| pull.abs()).fold(0.0, f64::max);
        for line in [0, 1, count] {
            assert!(proof[line] < -0.9 * strongest, "{count}: {} of {strongest}", proof[line]);
        }
        assert_eq!(step, vec![0.0; dimension]);
    }
}

/// Vectors whose products single precision cannot hold are not given to it.
#[test]
fn vectors_out_of_the_range_of_single_precision_are_multiplied_in_double() {
    for length in [1e-20f32, 1e20] {
        let vectors = vec![vec![length; 3]; WORTH_SINGLE];
        let views: Vec<Vector<'_>> = vectors.iter().map(|v| Vector::F32(v)).collect();
        let lengths = views.iter().map(|v| linalg::norm(*v)).collect();
        assert_eq!(Bundle::new(Machine::default(), views, lengths).sums, Sums::Double);
    }
}

/// The converse: with an error in the bounds it is another step.
#[test]
fn other_bounds_have_another_nearest_step() {
    let (vectors, mut slabs) = many(1, 150, 200);
    let (mut one, mut other) = (vec![0.0; 200], vec![0.0; 200]);
    let pulls = bundle(&vectors).nearest(&mut one, &slabs, 0.0).unwrap();
    let binding = pulls.iter().position(|pull| *pull < 0.0).unwrap();
    slabs[binding].high -= 1e-3;
    slabs[binding].low -= 1e-3;
    bundle(&vectors).nearest(&mut other, &slabs, 0.0).unwrap();
    let found = apart(&one, &other);
    assert!(found > 1e-6, "{found}");
}

#[test]
fn of_many_constraints_only_those_that_were_violated_are_looked_at_closely() {
    // 400 vectors in the plane; the aim binds for a few of them.
    let turn = |index: usize| index as f64 * 0.001;
    let vectors: Vec<Vec<f64>> =
        (0..400).map(|index| vec![turn(index).cos(), turn(index).sin()]).collect();
    let mut bundle = bundle(&vectors);
    let slabs = vec![Slab { low: 1.0, ..Slab::FREE }; 400];
    let mut step = vec![0.0; 2];
    bundle.nearest(&mut step, &slabs, 0.0).unwrap();
    assert!(bundle.along(&step).iter().all(|along| *along >= 1.0 - 1e-9));
    assert!(bundle.placed.len() < 100, "{} vectors are in the matrix", bundle.placed.len());
}

/// What another bundle left, of another size or precision, changes no bit.
#[test]
fn memory_of_another_bundle_changes_nothing() {
    let room = Room::default();
    for (seed, agents) in [(1, 150), (2, 300), (3, 40), (2, 300), (4, 90)] {
        let (vectors, slabs) = many(seed, agents, 400);
        let singles: Vec<Vec<f32>> =
            vectors.iter().map(|v| v.iter().map(|value| *value as f32).collect()).collect();
        for single in [true, false] {
            let views = |v: usize| match single {
                true => Vector::F32(&singles[v]),
                false => Vector::F64(&vectors[v]),
            };
            let views: Vec<Vector<'_>> = (0..agents).map(views).collect();
            let lengths: Vec<f64> = views.iter().map(|v| linalg::norm(*v)).collect();
            let mut steps = [vec![0.0; 400], vec![0.0; 400]];
            for (step, furnished) in steps.iter_mut().zip([false, true]) {
                let mut bundle = Bundle::new(Machine::default(), views.clone(), lengths.clone());
                if furnished {
                    bundle.furnish(&room);
                }
                bundle.nearest(step, &slabs, 0.0).unwrap();
                bundle.leave(&room);
            }
            assert!(steps[0].iter().any(|value| *value != 0.0));
            assert_eq!(steps[0], steps[1], "{agents} agents");
        }
    }
}

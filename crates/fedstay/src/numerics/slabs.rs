//! The nearest step between two bounds along each of many vectors, without the Gram matrix of all.
//!
//! ```text
//! minimise ½‖s − s0‖²  subject to  low_m ≤ ⟨g_m, s⟩ ≤ high_m  for every m
//! ```
//!
//! Of many constraints few bind. So the problem is solved for the constraints that were violated so
//! far, all vectors are measured along the solution (one inner product each), the most violated
//! constraints are added, and so on until none is violated. The Gram matrix has only vectors that
//! were violated once; with `k` of those, `n` vectors of `d` components and a number of passes that
//! grows like `log k`, that costs `O((n log k + k²) d)` instead of `O(n² d)`.
//!
//! Where many bind, it helps to know which: a projection begins with the constraints that bound in the
//! one before it, or with those that the caller [expects](Bundle::expect) to bind. There is one nearest
//! step, so where the search begins changes no more than how it is rounded.

use super::half_space::ActiveSet;
use super::kernel::Combined;
use super::{Machine, linalg};
use crate::Vector;

/// A violation below this, relative to the terms it is the difference of, is rounding.
const TOLERANCE: f64 = 1e-12;
/// At least this many constraints are added in a pass, and at least this share of those there are.
const BATCH: usize = 24;
const GROWTH: f64 = 0.5;
/// Fewer constraints than this are found as quickly as they are remembered.
pub(crate) const WORTH_EXPECTING: usize = 32;
/// From this many multiplications on, a second thread computes half of a block of the Gram matrix.
const WORTH_A_THREAD: usize = 20_000_000;

/// The bounds along one vector; infinite where there is none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Slab {
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// How far above `high` is good enough, for bounds that are only aims.
    pub(crate) give: f64,
}

impl Slab {
    /// No bounds.
    pub(crate) const FREE: Self = Self { low: f64::NEG_INFINITY, high: f64::INFINITY, give: 0.0 };
}

/// Vectors with their lengths, and the inner products of those that were needed so far.
#[derive(Debug, Clone)]
pub(crate) struct Bundle<'a> {
    vectors: Vec<Vector<'a>>,
    lengths: Vec<f64>,
    /// The place of every vector in the Gram matrix, if it has one.
    place: Vec<Option<usize>>,
    /// Which vectors have one, in order.
    placed: Vec<usize>,
    /// The lower triangle, row by row.
    gram: Vec<f64>,
    /// The bounds that were looked at so far, and which of them bound last.
    rows: Vec<Row>,
    active: ActiveSet,
    /// The ridge they were looked at with.
    ridge: f64,
    /// The bounds that are expected to bind in the next projection.
    expected: Vec<Row>,
}

/// One bound: the vector, and the side (1 for `low`, −1 for `high`).
#[derive(Debug, Clone, Copy, PartialEq)]
struct Row {
    vector: usize,
    side: f64,
}

/// Rows in the order of their vectors and sides, with their places.
fn known(rows: &[Row]) -> Vec<((usize, bool), usize)> {
    let rows = rows.iter().enumerate();
    let mut known: Vec<_> = rows.map(|(at, row)| ((row.vector, row.side > 0.0), at)).collect();
    known.sort_unstable();
    known
}

/// The place of a row among those that are known.
fn place(known: &[((usize, bool), usize)], row: &Row) -> Option<usize> {
    let found = known.binary_search_by_key(&(row.vector, row.side > 0.0), |(key, _)| *key);
    found.ok().map(|found| known[found].1)
}

impl<'a> Bundle<'a> {
    /// These vectors, with their lengths.
    pub(crate) fn new(vectors: Vec<Vector<'a>>, lengths: Vec<f64>) -> Self {
        let place = vec![None; vectors.len()];
        Self {
            vectors,
            lengths,
            place,
            placed: Vec::new(),
            gram: Vec::new(),
            rows: Vec::new(),
            active: ActiveSet::default(),
            ridge: 0.0,
            expected: Vec::new(),
        }
    }

    /// Expects these vectors to be at their lower (`true`) or upper bounds after the next projection.
    pub(crate) fn expect(&mut self, bound: impl IntoIterator<Item = (usize, bool)>) {
        let side = |low: bool| if low { 1.0 } else { -1.0 };
        self.expected =
            bound.into_iter().map(|(vector, low)| Row { vector, side: side(low) }).collect();
    }

    /// The lengths of the vectors.
    pub(crate) fn lengths(&self) -> &[f64] {
        &self.lengths
    }

    /// The inner products of all vectors with a step.
    pub(crate) fn along(&self, step: &[f64]) -> Vec<f64> {
        self.vectors.iter().map(|vector| linalg::dot(*vector, Vector::F64(step))).collect()
    }

    /// Adds `Σ pull_m g_m`.
    pub(crate) fn push(&self, step: &mut [f64], pulls: &[f64]) {
        for (pull, vector) in pulls.iter().zip(&self.vectors) {
            if *pull != 0.0 {
                linalg::add_scaled(step, *pull, *vector);
            }
        }
    }

    /// Moves the step to the nearest one within all bounds, and returns how hard each vector had to
    /// be pulled: above zero where it is at its lower bound, below zero at its upper one.
    ///
    /// `ridge` softens the upper bounds, relative to the length of the vector. Where nothing is
    /// within all bounds, the step stays as it is and the error holds pulls that prove it: they
    /// cancel, and what they ask for together is more than nothing. A vector of length zero is not
    /// bounded.
    pub(crate) fn nearest(
        &mut self,
        step: &mut [f64],
        slabs: &[Slab],
        ridge: f64,
    ) -> Result<Vec<f64>, Vec<f64>> {
        let start = step.to_vec();
        let still = start.iter().all(|value| *value == 0.0);
        let first = if still { vec![0.0; self.vectors.len()] } else { self.along(&start) };
        let mut pulls = vec![0.0; self.vectors.len()];
        let mut more = self.violated(slabs, &first, linalg::norm(Vector::F64(step)), &[]);
        if more.is_empty() {
            return Ok(pulls);
        }
        if self.recall(slabs, &first, ridge) {
            more.clear();
        }
        let along = loop {
            self.take_in(&more, slabs, &first);
            let solved = self.active.solve();
            if let Err(ray) = solved {
                step.copy_from_slice(&start);
                self.unite(&ray, &mut pulls);
                return Err(pulls);
            }
            self.unite(self.active.multipliers(), &mut pulls);
            let Combined { square, along } = self.moved(&start, &pulls, step, true);
            more = self.violated(slabs, &along, square.sqrt(), &self.rows);
            if more.is_empty() {
                break along;
            }
        };
        // Once more for what rounding left over in a long step.
        let Self { rows, active, lengths, .. } = self;
        let multipliers = active.multipliers().to_vec();
        active.refine(|index| {
            let Row { vector, side } = rows[index];
            let soft = if side < 0.0 { ridge * multipliers[index] } else { 0.0 };
            (need(&slabs[vector], side) - side * along[vector]) / lengths[vector] - soft
        });
        self.unite(self.active.multipliers(), &mut pulls);
        self.moved(&start, &pulls, step, false);
        Ok(pulls)
    }

    /// Begins where the last projection ended, or with what is expected; says whether there was
    /// anything to begin with.
    fn recall(&mut self, slabs: &[Slab], first: &[f64], ridge: f64) -> bool {
        let expected = std::mem::take(&mut self.expected);
        if self.rows.len() < WORTH_EXPECTING || self.ridge != ridge {
            self.rows.clear();
            self.active = ActiveSet::default();
        }
        self.ridge = ridge;
        let Self { rows, active, lengths, .. } = self;
        active.restate(|row| right(&rows[row], slabs, first, lengths));
        let usable =
            |row: &Row| lengths[row.vector] > 0.0 && need(&slabs[row.vector], row.side).is_finite();
        let expected: Vec<Row> = expected.into_iter().filter(usable).collect();
        if expected.len() < WORTH_EXPECTING {
            self.active.resume();
            return !self.rows.is_empty();
        }
        let known = known(&self.rows);
        let new = expected.iter().copied().filter(|row| place(&known, row).is_none());
        self.take_in(&new.collect::<Vec<Row>>(), slabs, first);
        let known = self::known(&self.rows);
        let places: Vec<usize> = expected.iter().filter_map(|row| place(&known, row)).collect();
        self.active.expect(&places);
        true
    }

    /// Takes bounds in that were not looked at so far.
    fn take_in(&mut self, new: &[Row], slabs: &[Slab], first: &[f64]) {
        self.seat_all(new.iter().map(|row| row.vector));
        for row in new {
            let soft = if row.side < 0.0 { self.ridge } else { 0.0 };
            let before: Vec<f64> = self.rows.iter().map(|other| self.cosine(row, other)).collect();
            self.active.add(before, 1.0 + soft, right(row, slabs, first, &self.lengths));
            self.rows.push(*row);
        }
    }

    /// The step from `start` by these pulls, its square, and its inner products with all vectors if
    /// they are asked for.
    fn moved(&self, start: &[f64], pulls: &[f64], step: &mut [f64], measured: bool) -> Combined {
        let terms = pulls.iter().copied().zip(self.vectors.iter().copied());
        let terms: Vec<(f64, Vector<'_>)> = terms.filter(|(pull, _)| *pull != 0.0).collect();
        step.copy_from_slice(start);
        let watched = if measured { &self.vectors[..] } else { &[] };
        Machine::default().combine(true, &terms, 1.0, watched, step)
    }

    /// The bounds that are violated and not among these rows: the worst ones first, and only so
    /// many.
    fn violated(&self, slabs: &[Slab], along: &[f64], length: f64, rows: &[Row]) -> Vec<Row> {
        let mut found = Vec::new();
        for (vector, slab) in slabs.iter().enumerate().filter(|(v, _)| self.lengths[*v] > 0.0) {
            for (side, give) in [(1.0, 0.0), (-1.0, slab.give)] {
                let need = need(slab, side);
                let lacking = need - side * along[vector];
                let size = self.lengths[vector] * length + need.abs();
                if need.is_finite() && lacking > give && lacking > TOLERANCE * size {
                    found.push((lacking / self.lengths[vector], Row { vector, side }));
                }
            }
        }
        if !found.is_empty() && !rows.is_empty() {
            let known = known(rows);
            found.retain(|(_, row)| place(&known, row).is_none());
        }
        // The order among equals is that of the agents, and nothing else.
        found.sort_by(|(a, one), (b, other)| {
            b.total_cmp(a).then_with(|| one.vector.cmp(&other.vector))
        });
        found.truncate(BATCH.max((GROWTH * rows.len() as f64) as usize));
        found.into_iter().map(|(_, row)| row).collect()
    }

    /// Adds up the multipliers of the rows by vector.
    fn unite(&self, multipliers: &[f64], pulls: &mut [f64]) {
        pulls.fill(0.0);
        for (row, multiplier) in self.rows.iter().zip(multipliers) {
            pulls[row.vector] += row.side * multiplier / self.lengths[row.vector];
        }
    }

    /// The cosine of two rows whose vectors both have a place in the Gram matrix.
    fn cosine(&self, a: &Row, b: &Row) -> f64 {
        let seat = |row: &Row| self.place[row.vector].unwrap_or_default();
        let (i, j) = (seat(a), seat(b));
        let (row, column) = (i.max(j), i.min(j));
        let product = self.gram[triangle(row) + column];
        a.side * b.side * product / (self.lengths[a.vector] * self.lengths[b.vector])
    }

    /// Gives these vectors a place in the Gram matrix if they have none. Where that is much work, two
    /// threads share it; every product is the same whoever computes it.
    fn seat_all(&mut self, new: impl IntoIterator<Item = usize>) {
        let first = self.placed.len();
        for vector in new {
            if self.place[vector].is_none() {
                self.place[vector] = Some(self.placed.len());
                self.placed.push(vector);
            }
        }
        let Self { vectors, lengths, placed, gram, .. } = self;
        let chosen: Vec<Vector<'_>> = placed.iter().map(|vector| vectors[*vector]).collect();
        let machine = Machine::default();
        let (rows, cells) = (first..placed.len(), triangle(placed.len()) - triangle(first));
        let dimension = vectors.first().map_or(0, Vector::len);
        if cells * dimension < WORTH_A_THREAD {
            gram.extend(machine.gram_rows(&chosen, first));
        } else {
            // Half of the cells for each.
            let middle = rows.clone().find(|row| 2 * (triangle(*row) - triangle(first)) >= cells);
            let middle = middle.unwrap_or(rows.end);
            let rest = std::thread::scope(|scope| {
                let other = scope.spawn(|| machine.gram_rows(&chosen, middle));
                gram.extend(machine.gram_rows(&chosen[..middle], first));
                other.join()
            });
            match rest {
                Ok(rest) => gram.extend(rest),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        for row in rows {
            gram[triangle(row) + row] = lengths[placed[row]] * lengths[placed[row]];
        }
    }
}

/// The number of cells in the first rows of a lower triangle.
fn triangle(rows: usize) -> usize {
    rows * (rows + 1) / 2
}

/// What a bound asks for beyond what the first step has, for a vector of length one.
fn right(row: &Row, slabs: &[Slab], first: &[f64], lengths: &[f64]) -> f64 {
    let Row { vector, side } = *row;
    (need(&slabs[vector], side) - side * first[vector]) / lengths[vector]
}

/// What a side asks of `side · ⟨g, s⟩`.
fn need(slab: &Slab, side: f64) -> f64 {
    if side > 0.0 { slab.low } else { -slab.high }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bundle(vectors: &[Vec<f64>]) -> Bundle<'_> {
        let views: Vec<Vector<'_>> = vectors.iter().map(|v| Vector::F64(v)).collect();
        let lengths = views.iter().map(|v| linalg::norm(*v)).collect();
        Bundle::new(views, lengths)
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
        for (seed, count, dimension) in [(0, 40, 60), (1, 150, 200), (2, 400, 410), (3, 300, 1_000)]
        {
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
        let apart = one.iter().zip(&other).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(apart > 1e-6, "{apart}");
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
}

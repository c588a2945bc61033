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
//!
//! Of many vectors in single precision the Gram matrix is computed in single precision, in half the time.
//! It then only says where to look: what a solution comes to is measured in double precision anyway, and
//! what it lacks is added to the right-hand sides, until nothing is lacking. With an error `E` of the
//! matrix `G` every such pass leaves a share `‖G⁻¹E‖` of what was lacking, 1e-5 to 0.02 as measured. Where
//! vectors are nearly dependent, where constraints seem to contradict each other, and where passes do not
//! help, the matrix is computed again in double precision; so a proof never rests on single precision.

use super::half_space::ActiveSet;
use super::kernel::{Combined, Sums};
use super::{Machine, linalg};
use crate::Vector;

/// A violation below this, relative to the terms it is the difference of, is rounding.
const TOLERANCE: f64 = 1e-12;
/// At least this many constraints are added in a pass, and at least this share of those there are.
const BATCH: usize = 24;
const GROWTH: f64 = 0.5;
/// Fewer constraints than this are found as quickly as they are remembered.
pub(crate) const WORTH_EXPECTING: usize = 32;
/// From this many vectors on, their Gram matrix is computed in single precision first.
const WORTH_SINGLE: usize = 256;
/// What may be left of a constraint by that matrix, relative to the terms it is the difference of: where
/// bounds are to be met exactly, where aims give and one more correction follows, and where they give and
/// none does.
const EXACT: f64 = 1e-10;
const CORRECTED: f64 = 1e-5;
const HARDLY: f64 = 1e-7;
/// A combination of vectors that is shorter than this share of what it is made of is nothing, a row that lacks
/// more than this share of the most that is asked is not met, and a step that many times longer is out of reach.
const CONTRADICTION: f64 = 1e-6;
/// Passes that correct, after which it is given up.
const CORRECTIONS: usize = 8;

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
    machine: Machine,
    vectors: Vec<Vector<'a>>,
    lengths: Vec<f64>,
    /// The place of every vector in the Gram matrix, if it has one.
    place: Vec<Option<usize>>,
    /// Which vectors have one, in order.
    placed: Vec<usize>,
    /// The cosines of those, the lower triangle row by row.
    gram: Vec<f64>,
    /// What it is computed in.
    sums: Sums,
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

/// Why there is no step.
enum Unmet {
    /// These pulls prove that nothing is within all bounds, as far as the Gram matrix is exact.
    Proved(Vec<f64>),
    /// The Gram matrix is not exact enough.
    GivenUp,
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
    pub(crate) fn new(machine: Machine, vectors: Vec<Vector<'a>>, lengths: Vec<f64>) -> Self {
        let place = vec![None; vectors.len()];
        let single = vectors.iter().all(|vector| matches!(vector, Vector::F32(_)));
        // Products of others are out of the range of single precision, or lose digits at its end.
        let usual = lengths.iter().all(|length| *length == 0.0 || (1e-12..1e12).contains(length));
        let sums = match single && usual && vectors.len() >= WORTH_SINGLE {
            true => Sums::Single,
            false => Sums::Double,
        };
        Self {
            machine,
            vectors,
            lengths,
            place,
            placed: Vec::new(),
            gram: Vec::new(),
            sums,
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
        self.machine.along(&self.vectors, step)
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
        if self.violated(slabs, &first, linalg::norm(Vector::F64(step)), &[]).is_empty() {
            return Ok(vec![0.0; self.vectors.len()]);
        }
        if self.sums == Sums::Single {
            let expected = self.expected.clone();
            if let Ok(pulls) = self.search(&start, &first, slabs, ridge, step) {
                return Ok(pulls);
            }
            self.forget();
            self.expected = expected;
        }
        self.search(&start, &first, slabs, ridge, step).map_err(|unmet| match unmet {
            Unmet::Proved(pulls) => pulls,
            // Sums in double precision are not given up.
            Unmet::GivenUp => vec![0.0; self.vectors.len()],
        })
    }

    /// Adds constraints until none is violated.
    fn search(
        &mut self,
        start: &[f64],
        first: &[f64],
        slabs: &[Slab],
        ridge: f64,
        step: &mut [f64],
    ) -> Result<Vec<f64>, Unmet> {
        let mut pulls = vec![0.0; self.vectors.len()];
        let mut more = Vec::new();
        if !self.recall(slabs, first, ridge) {
            more = self.violated(slabs, first, linalg::norm(Vector::F64(start)), &[]);
        }
        let mut corrections = 0;
        let along = loop {
            self.take_in(&more, slabs, first);
            if let Err(ray) = self.active.solve() {
                step.copy_from_slice(start);
                self.unite(&ray, &mut pulls);
                return Err(Unmet::Proved(pulls));
            }
            self.unite(self.active.multipliers(), &mut pulls);
            let Combined { square, along } = self.moved(start, &pulls, step, true);
            let length = square.sqrt();
            more = self.violated(slabs, &along, length, &self.rows);
            if self.sums == Sums::Double {
                if more.is_empty() {
                    break along;
                }
                continue;
            }
            let lacking = self.lacking(slabs, &along);
            if more.is_empty() && self.is_corrected(slabs, &lacking, length) {
                break along;
            }
            corrections += usize::from(more.is_empty());
            if corrections > CORRECTIONS {
                return Err(Unmet::GivenUp);
            }
            self.active.correct(&lacking);
        };
        let lacking = self.lacking(slabs, &along);
        if self.contradicts(slabs, first, &lacking, &pulls, step, start) {
            step.copy_from_slice(start);
            return Err(Unmet::Proved(pulls));
        }
        // Once more for what rounding left over in a long step.
        self.active.refine(|row| lacking[row]);
        self.unite(self.active.multipliers(), &mut pulls);
        self.moved(start, &pulls, step, false);
        Ok(pulls)
    }

    /// Forgets the Gram matrix, which is computed in double precision from here on.
    fn forget(&mut self) {
        self.sums = Sums::Double;
        self.place.fill(None);
        self.placed.clear();
        self.gram.clear();
        self.rows.clear();
        self.active = ActiveSet::default();
    }

    /// What every row lacks, for a vector of length one, by the inner products of the vectors with the
    /// step.
    fn lacking(&self, slabs: &[Slab], along: &[f64]) -> Vec<f64> {
        let rows = self.rows.iter().zip(self.active.multipliers());
        let lacking = rows.map(|(row, multiplier)| {
            let soft = if row.side < 0.0 { self.ridge * multiplier } else { 0.0 };
            right(row, slabs, along, &self.lengths) - soft
        });
        lacking.collect()
    }

    /// Whether rows that were looked at lack much after all, and the pulls prove why: they cancel, as far as
    /// rounding lets them, and ask for so much that no step would do that is less than a million times as long.
    /// Vectors that depend on each other by a hair less than rounding are not seen to do so in the matrix,
    /// and pull without end. (Where all is met, the pulls ask for the square of the step.)
    fn contradicts(
        &self,
        slabs: &[Slab],
        first: &[f64],
        lacking: &[f64],
        pulls: &[f64],
        step: &[f64],
        start: &[f64],
    ) -> bool {
        // Softened bounds always have an answer, and pulls that cancel are part of it.
        if self.ridge > 0.0 {
            return false;
        }
        let pulled: f64 = pulls.iter().zip(&self.lengths).map(|(pull, l)| pull.abs() * l).sum();
        let asked = self.rows.iter().map(|row| right(row, slabs, first, &self.lengths).abs());
        let most = asked.filter(|asked| asked.is_finite()).fold(0.0, f64::max);
        let lacks = lacking.iter().any(|lacking| *lacking > CONTRADICTION * most);
        if !lacks {
            return false;
        }
        let moved = step.iter().zip(start).map(|(to, from)| (to - from) * (to - from)).sum::<f64>();
        let asked: f64 = pulls
            .iter()
            .zip(slabs)
            .zip(first)
            .filter(|((pull, _), _)| **pull != 0.0)
            .map(|((pull, slab), first)| {
                pull * (if *pull > 0.0 { slab.low } else { slab.high } - first)
            })
            .sum();
        moved.sqrt() <= CONTRADICTION * pulled && CONTRADICTION * asked > moved
    }

    /// Whether no row that was looked at lacks anything, and none that pulls has too much. Where aims may be
    /// missed by more than that anyway, what the last correction takes away is left to it.
    fn is_corrected(&self, slabs: &[Slab], lacking: &[f64], length: f64) -> bool {
        let mut rows = self.rows.iter().zip(self.active.multipliers()).zip(lacking);
        rows.all(|((row, multiplier), lacking)| {
            let (slab, norm) = (&slabs[row.vector], self.lengths[row.vector]);
            let size = length + need(slab, row.side).abs() / norm;
            let pulls = *multiplier > 0.0;
            let most = match slab.give > 0.0 {
                false => EXACT * size,
                true if pulls => CORRECTED * size,
                // The last correction does not see those who do not pull.
                true if row.side < 0.0 => (HARDLY * size).max(slab.give / norm),
                true => HARDLY * size,
            };
            *lacking <= most && (!pulls || *lacking >= -most)
        })
    }

    /// Begins where the last projection ended, or with what is expected; says whether there was
    /// anything to begin with.
    fn recall(&mut self, slabs: &[Slab], first: &[f64], ridge: f64) -> bool {
        let expected = std::mem::take(&mut self.expected);
        if self.rows.len() < WORTH_EXPECTING || self.ridge != ridge {
            self.rows.clear();
            self.active = ActiveSet::new(self.machine.clone(), self.sums == Sums::Single);
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
        let seat = |row: &Row| self.place[row.vector].unwrap_or_default();
        let seats: Vec<usize> = self.rows.iter().chain(new).map(seat).collect();
        for row in new {
            let soft = if row.side < 0.0 { self.ridge } else { 0.0 };
            let seat = seats[self.rows.len()];
            let cosine = |(other, place): (&Row, &usize)| {
                let (one, two) = (seat.max(*place), seat.min(*place));
                row.side * other.side * self.gram[triangle(one) + two]
            };
            let before = self.rows.iter().zip(&seats).map(cosine);
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
        self.machine.combine(true, &terms, 1.0, watched, step)
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

    /// Gives these vectors a place in the Gram matrix if they have none.
    fn seat_all(&mut self, new: impl IntoIterator<Item = usize>) {
        let first = self.placed.len();
        for vector in new {
            if self.place[vector].is_none() {
                self.place[vector] = Some(self.placed.len());
                self.placed.push(vector);
            }
        }
        let Self { vectors, lengths, placed, gram, sums, .. } = self;
        let chosen: Vec<Vector<'_>> = placed.iter().map(|vector| vectors[*vector]).collect();
        gram.extend(self.machine.gram_rows(*sums, &chosen, first));
        let placed: Vec<f64> = placed.iter().map(|vector| lengths[*vector]).collect();
        for row in first..placed.len() {
            let (before, diagonal) = gram[triangle(row)..].split_at_mut(row);
            before.iter_mut().zip(&placed).for_each(|(cell, length)| *cell /= length * placed[row]);
            diagonal[0] = 1.0;
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
}

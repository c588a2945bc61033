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

use super::half_space::ActiveSet;
use super::{Machine, linalg};
use crate::Vector;

/// A violation below this, relative to the terms it is the difference of, is rounding.
const TOLERANCE: f64 = 1e-12;
/// At least this many constraints are added in a pass, and at least this share of those there are.
const BATCH: usize = 24;
const GROWTH: f64 = 0.5;
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
}

/// One bound that was violated: the vector, and the side (1 for `low`, −1 for `high`).
#[derive(Debug, Clone, Copy, PartialEq)]
struct Row {
    vector: usize,
    side: f64,
    violation: f64,
}

impl<'a> Bundle<'a> {
    /// These vectors, with their lengths.
    pub(crate) fn new(vectors: Vec<Vector<'a>>, lengths: Vec<f64>) -> Self {
        let place = vec![None; vectors.len()];
        Self { vectors, lengths, place, placed: Vec::new(), gram: Vec::new() }
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
        let mut along = first.clone();
        let (mut rows, mut active) = (Vec::<Row>::new(), ActiveSet::default());
        let mut pulls = vec![0.0; self.vectors.len()];
        loop {
            let length = linalg::norm(Vector::F64(step));
            let more = self.violated(slabs, &along, length, &rows);
            if more.is_empty() {
                break;
            }
            self.seat_all(more.iter().map(|row| row.vector));
            for row in more {
                let soft = if row.side < 0.0 { ridge } else { 0.0 };
                let need = need(&slabs[row.vector], row.side) - row.side * first[row.vector];
                let before: Vec<f64> = rows.iter().map(|other| self.cosine(&row, other)).collect();
                active.add(before, 1.0 + soft, need / self.lengths[row.vector]);
                rows.push(row);
            }
            let solved = active.solve();
            pulls.fill(0.0);
            if let Err(ray) = solved {
                step.copy_from_slice(&start);
                self.unite(&rows, &ray, &mut pulls);
                return Err(pulls);
            }
            self.unite(&rows, active.multipliers(), &mut pulls);
            step.copy_from_slice(&start);
            self.push(step, &pulls);
            along = self.along(step);
        }
        if !rows.is_empty() {
            // Once more for what rounding left over in a long step.
            let (multipliers, lengths) = (active.multipliers().to_vec(), &self.lengths);
            active.refine(|index| {
                let Row { vector, side, .. } = rows[index];
                let soft = if side < 0.0 { ridge * multipliers[index] } else { 0.0 };
                (need(&slabs[vector], side) - side * along[vector]) / lengths[vector] - soft
            });
            pulls.fill(0.0);
            self.unite(&rows, active.multipliers(), &mut pulls);
            step.copy_from_slice(&start);
            self.push(step, &pulls);
        }
        Ok(pulls)
    }

    /// The bounds that are violated and not yet among the rows: the worst ones first, and only so
    /// many.
    fn violated(&self, slabs: &[Slab], along: &[f64], length: f64, rows: &[Row]) -> Vec<Row> {
        let mut found = Vec::new();
        for (vector, slab) in slabs.iter().enumerate().filter(|(v, _)| self.lengths[*v] > 0.0) {
            for (side, give) in [(1.0, 0.0), (-1.0, slab.give)] {
                let need = need(slab, side);
                let lacking = need - side * along[vector];
                let size = self.lengths[vector] * length + need.abs();
                if need.is_finite() && lacking > give && lacking > TOLERANCE * size {
                    found.push(Row { vector, side, violation: lacking / self.lengths[vector] });
                }
            }
        }
        if !found.is_empty() && !rows.is_empty() {
            let mut known: Vec<(usize, bool)> =
                rows.iter().map(|row| (row.vector, row.side > 0.0)).collect();
            known.sort_unstable();
            found.retain(|row| known.binary_search(&(row.vector, row.side > 0.0)).is_err());
        }
        // The order among equals is that of the agents, and nothing else.
        found.sort_by(|a, b| {
            b.violation.total_cmp(&a.violation).then_with(|| a.vector.cmp(&b.vector))
        });
        found.truncate(BATCH.max((GROWTH * rows.len() as f64) as usize));
        found
    }

    /// Adds up the multipliers of the rows by vector.
    fn unite(&self, rows: &[Row], multipliers: &[f64], pulls: &mut [f64]) {
        for (row, multiplier) in rows.iter().zip(multipliers) {
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

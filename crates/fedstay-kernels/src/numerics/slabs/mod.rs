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
//! Of many vectors in single precision the Gram matrix is computed in single precision, in three fifths of the time.
//! It then only says where to look: what a solution comes to is measured in double precision anyway, and
//! what it lacks is added to the right-hand sides, until nothing is lacking. With an error `E` of the
//! matrix `G` every such pass leaves a share `‖G⁻¹E‖` of what was lacking, 4e-5 to 0.07 (docs/retain.md). Where
//! vectors are nearly dependent, where constraints seem to contradict each other, and where passes do not
//! help, the matrix is computed again in double precision; so a proof never rests on single precision.

mod room;

pub use room::Room;

use super::half_space::ActiveSet;
use super::kernel::{Combined, Sums};
use super::{Machine, linalg};
use crate::Vector;
use room::Memory;

/// A violation below this, relative to the terms it is the difference of, is rounding.
const TOLERANCE: f64 = 1e-12;
/// At least this many constraints are added in a pass, at least this share of those there are, and where
/// products are computed in single precision at least this share of all vectors: a fifth of them is multiplied
/// with each other about as quickly as all are measured once.
const BATCH: usize = 24;
const GROWTH: f64 = 0.5;
const SHARE: f64 = 0.2;
/// Fewer constraints than this are found as quickly as they are remembered.
pub const WORTH_EXPECTING: usize = 32;
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
pub struct Slab {
    /// The lower bound.
    pub low: f64,
    /// The upper bound.
    pub high: f64,
    /// How far above `high` is good enough, for bounds that are only aims.
    pub give: f64,
}

impl Slab {
    /// No bounds.
    pub const FREE: Self = Self { low: f64::NEG_INFINITY, high: f64::INFINITY, give: 0.0 };
}

/// Vectors with their lengths, and the inner products of those that were needed so far.
#[derive(Debug, Clone)]
pub struct Bundle<'a> {
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
    pub fn new(machine: Machine, vectors: Vec<Vector<'a>>, lengths: Vec<f64>) -> Self {
        let place = vec![None; vectors.len()];
        let single = vectors.iter().all(|vector| matches!(vector, Vector::F32(_)));
        // Products of others are out of the range of single precision, or lose digits at its end.
        let usual = lengths.iter().all(|length| *length == 0.0 || (1e-12..1e12).contains(length));
        let sums = match single && usual && vectors.len() >= WORTH_SINGLE {
            true => Sums::Single,
            false => Sums::Double,
        };
        Self {
            active: ActiveSet::default().with_machine(machine.clone()),
            machine,
            vectors,
            lengths,
            place,
            placed: Vec::new(),
            gram: Vec::new(),
            sums,
            rows: Vec::new(),
            ridge: 0.0,
            expected: Vec::new(),
        }
    }

    /// Takes over the memory that another bundle left.
    pub fn furnish(&mut self, room: &Room) {
        let Memory { gram, active } = room.take();
        (self.gram, self.active) = (gram, active.with_machine(self.machine.clone()));
    }

    /// Leaves its memory to another bundle, and nothing else.
    pub fn leave(mut self, room: &Room) {
        self.gram.clear();
        self.active.clear(false);
        room.put(Memory { gram: self.gram, active: self.active.with_machine(Machine::default()) });
    }

    /// Expects these vectors to be at their lower (`true`) or upper bounds after the next projection.
    pub fn expect(&mut self, bound: impl IntoIterator<Item = (usize, bool)>) {
        let side = |low: bool| if low { 1.0 } else { -1.0 };
        self.expected =
            bound.into_iter().map(|(vector, low)| Row { vector, side: side(low) }).collect();
    }

    /// The lengths of the vectors.
    pub fn lengths(&self) -> &[f64] {
        &self.lengths
    }

    /// The inner products of all vectors with a step.
    pub fn along(&self, step: &[f64]) -> Vec<f64> {
        self.machine.along(&self.vectors, step)
    }

    /// Adds `Σ pull_m g_m`.
    pub fn push(&self, step: &mut [f64], pulls: &[f64]) {
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
    pub fn nearest(
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
        self.active.clear(false);
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
            self.active.clear(self.sums == Sums::Single);
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
        let sides: Vec<f64> = self.rows.iter().chain(new).map(|row| row.side).collect();
        // In most cases, rows have the order of their vectors in the matrix, and can be copied.
        let ordered = seats.iter().enumerate().all(|(row, seat)| row == *seat);
        for row in new {
            let soft = if row.side < 0.0 { self.ridge } else { 0.0 };
            let (index, right) = (self.rows.len(), right(row, slabs, first, &self.lengths));
            if ordered {
                let before = self.gram[triangle(index)..].iter().zip(&sides[..index]);
                let before = before.map(|(cosine, side)| row.side * side * cosine);
                self.active.add(before, 1.0 + soft, right);
            } else {
                let seat = seats[index];
                let before = seats[..index].iter().zip(&sides).map(|(place, side)| {
                    let (one, two) = (seat.max(*place), seat.min(*place));
                    row.side * side * self.gram[triangle(one) + two]
                });
                self.active.add(before, 1.0 + soft, right);
            }
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
        let share = if self.sums == Sums::Single { SHARE * slabs.len() as f64 } else { 0.0 };
        found.truncate(BATCH.max((GROWTH * rows.len() as f64).max(share) as usize));
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
        self.machine.gram_onto(*sums, &chosen, first, gram);
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
mod tests;

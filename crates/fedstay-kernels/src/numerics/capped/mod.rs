//! The shortest step where every bound that is missed has a price.
//!
//! ```text
//! minimise ½‖s‖² + Σ cap_m · max(0, lacking_m + ⟨g_m, s⟩)
//! ```
//!
//! has the solution `s = −Σ λ_m g_m` where `0 ≤ λ_m ≤ cap_m` maximise `λᵀ lacking − ½‖Σ λ_m g_m‖²`: the projection
//! of `half_space`, with a box. Without caps every bound is met, whatever that takes; with a cap no vector pulls
//! harder than that, and where bounds exclude each other there is a solution all the same.
//!
//! Of many vectors most are at zero or at their cap. So the problem is solved for a working set, everybody is measured
//! along the solution (one inner product each), those that are not where they should be are taken in, and so on until
//! nobody is left. Only the working set has a Gram matrix. The others pull together as one vector. Every pass also
//! measures the working set anew, so what rounding left in one is taken away in the next.
//!
//! Where the search begins changes no more than how the step is rounded.

mod boxed;
#[cfg(test)]
mod tests;

use super::kernel::Sums;
use super::{Machine, linalg};
use crate::Vector;
use boxed::{Boxed, Side, TOLERANCE};

/// At least so many vectors are taken in by a pass, if so many are not where they should be.
const BATCH: usize = 64;
/// The most passes; each doubles the working set, or corrects what rounding left.
const PASSES: usize = 60;
/// Passes that only correct, after which what is left is left.
const CORRECTIONS: usize = 3;
/// What is lacking for a vector of length one is at most this: products of two such numbers are finite.
const LARGEST: f64 = 1e150;

/// One bound and what missing it costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Priced {
    /// How far above the bound standing still is.
    pub lacking: f64,
    /// What each unit above it costs: the most that its vector may be multiplied by.
    pub cap: f64,
    /// Where the search begins, as a share of the cap.
    pub begin: f64,
}

/// A search, in units of vectors of length one.
struct Search<'a> {
    machine: &'a Machine,
    vectors: &'a [Vector<'a>],
    lengths: &'a [f64],
    b: Vec<f64>,
    most: Vec<f64>,
    x: Vec<f64>,
    /// The working set, in the order of its matrix.
    placed: Vec<usize>,
    is_placed: Vec<bool>,
    /// The lower triangle of its cosines, row by row.
    cosines: Vec<f64>,
}

/// Fills `step` with the solution and returns the multipliers. `lengths` are those of the vectors; one of length zero,
/// or longer than can be computed with, is left out.
pub fn capped(
    machine: &Machine,
    vectors: &[Vector<'_>],
    lengths: &[f64],
    bounds: &[Priced],
    step: &mut [f64],
) -> Vec<f64> {
    let mut search = Search::new(machine, vectors, lengths, bounds);
    search.run(step);
    search
        .x
        .iter()
        .zip(lengths)
        .map(|(x, length)| if *x > 0.0 { x / length } else { 0.0 })
        .collect()
}

impl<'a> Search<'a> {
    fn new(
        machine: &'a Machine,
        vectors: &'a [Vector<'a>],
        lengths: &'a [f64],
        bounds: &[Priced],
    ) -> Self {
        let usable = |length: f64| length > 0.0 && length.is_finite();
        let most = |(bound, length): (&Priced, &f64)| {
            let most = bound.cap * length;
            if usable(*length) && most > 0.0 { most } else { 0.0 }
        };
        let b = |(bound, length): (&Priced, &f64)| {
            let b = bound.lacking / length;
            if usable(*length) && !b.is_nan() { b.clamp(-LARGEST, LARGEST) } else { 0.0 }
        };
        let most: Vec<f64> = bounds.iter().zip(lengths).map(most).collect();
        let begin = bounds.iter().zip(&most).map(|(bound, most)| match *most == 0.0 {
            true => 0.0,
            false if most.is_finite() => (bound.begin.clamp(0.0, 1.0) * most).min(*most),
            false => 0.0,
        });
        Self {
            machine,
            vectors,
            lengths,
            b: bounds.iter().zip(lengths).map(b).collect(),
            x: begin.collect(),
            most,
            placed: Vec::new(),
            is_placed: vec![false; vectors.len()],
            cosines: Vec::new(),
        }
    }

    fn run(&mut self, step: &mut [f64]) {
        let mut corrections = 0;
        for _ in 0..PASSES {
            let rest = self.measure(step);
            let (new, wrong) = self.astray(&rest);
            if new.is_empty() && (!wrong || corrections == CORRECTIONS) {
                return;
            }
            corrections += usize::from(new.is_empty());
            self.take_in(&new);
            self.solve(&rest);
        }
        self.measure(step);
    }

    /// Computes the step, and what everybody has left: `b + ⟨g, s⟩/‖g‖`.
    fn measure(&self, step: &mut [f64]) -> Vec<f64> {
        let terms: Vec<(f64, Vector<'_>)> = (0..self.x.len())
            .filter(|m| self.x[*m] > 0.0)
            .map(|m| (-self.x[m] / self.lengths[m], self.vectors[m]))
            .collect();
        let along = self.machine.combine(false, &terms, 1.0, self.vectors, step).along;
        let rest = |m: usize| match self.most[m] > 0.0 {
            true => self.b[m] + along[m] / self.lengths[m],
            false => 0.0,
        };
        (0..self.b.len()).map(rest).collect()
    }

    /// Who is not where it should be: those outside of the working set, the worst first and only so many; and whether
    /// somebody in it is not.
    fn astray(&self, rest: &[f64]) -> (Vec<usize>, bool) {
        let sizes: f64 = self.x.iter().sum();
        let (mut found, mut wrong) = (Vec::new(), false);
        for (m, rest) in rest.iter().enumerate() {
            let wants = Side::of(self.x[m], self.most[m]).wants(*rest, self.most[m]);
            if wants > TOLERANCE * (self.b[m].abs() + sizes) {
                wrong |= self.is_placed[m];
                if !self.is_placed[m] {
                    found.push((wants, m));
                }
            }
        }
        found.sort_by(|(a, one), (b, other)| b.total_cmp(a).then(one.cmp(other)));
        found.truncate(BATCH.max(self.placed.len()));
        (found.into_iter().map(|(_, m)| m).collect(), wrong)
    }

    /// Adds vectors to the working set.
    fn take_in(&mut self, new: &[usize]) {
        let first = self.placed.len();
        self.placed.extend(new);
        new.iter().for_each(|m| self.is_placed[*m] = true);
        let chosen: Vec<Vector<'_>> = self.placed.iter().map(|m| self.vectors[*m]).collect();
        let before = self.cosines.len();
        self.machine.gram_onto(Sums::Double, &chosen, first, &mut self.cosines);
        let mut rows = &mut self.cosines[before..];
        for row in first..self.placed.len() {
            let (cells, others) = rows.split_at_mut(row + 1);
            rows = others;
            for (cell, other) in cells.iter_mut().zip(&self.placed) {
                *cell /= self.lengths[self.placed[row]] * self.lengths[*other];
            }
            cells[row] = 1.0;
        }
    }

    /// Solves the problem of the working set, the others being where they are.
    fn solve(&mut self, rest: &[f64]) {
        let n = self.placed.len();
        let mut matrix = vec![0.0; n * n];
        let mut rows = &self.cosines[..];
        for i in 0..n {
            let (row, others) = rows.split_at(i + 1);
            rows = others;
            for (j, cosine) in row.iter().enumerate() {
                (matrix[i * n + j], matrix[j * n + i]) = (*cosine, *cosine);
            }
        }
        let of = |values: &[f64]| -> Vec<f64> { self.placed.iter().map(|m| values[*m]).collect() };
        let (x, left, most) = (of(&self.x), of(rest), of(&self.most));
        let given =
            (0..n).map(|i| linalg::dot(Vector::F64(&matrix[i * n..][..n]), Vector::F64(&x)));
        let b = given.zip(&left).map(|(given, left)| given + left).collect();
        let mut boxed = Boxed::new(matrix, b, most, x);
        boxed.solve(self.machine);
        for (m, x) in self.placed.iter().zip(boxed.x) {
            self.x[*m] = x;
        }
    }
}

//! The projection off the span of several gradients, for many parameters and few agents.
//!
//! `Π_P(v)` with `P = span{g_1 … g_k}^⊥` is `v − Σ c_i g_i` where `G c = (⟨g_i, v⟩)` and `G` is the
//! Gram matrix. One pass over the gradients makes `G` and the right-hand side; a second makes the
//! projection, already as long as its caller wants it, and measures what is left along every `g_i`; a
//! third corrects it, only where that measure asks for it. The gradients are read where they are: no
//! copy of them and no factor of their size is ever formed.
//!
//! Where `v` is a sum of few gradients, everything about it is in the Gram matrix of all. Where it is a
//! sum of many, it is formed in a pass of its own: then the Gram matrix of all costs more.
//!
//! Nearly parallel gradients are common in practice. So `G` is normalised to a unit diagonal, the
//! Cholesky factorisation pivots, and the rank ends where the largest remaining pivot is noise.

use super::{Cholesky, Gram, Machine};
use crate::Vector;

/// A pivot of the normalised Gram matrix below this (times its size) is rounding, not direction.
const PIVOT_TOLERANCE: f64 = 1e-14;
/// What may be left along a gradient, relative to both lengths, before a correction pass.
const ORTHOGONAL: f64 = 1e-12;
/// The most correction passes; one is enough unless nearly nothing is left of the target.
const CORRECTIONS: usize = 2;
/// The most gradients of which the Gram matrix is made before it is known which of them are needed:
/// while one is read from memory, its products with this number of others take no longer.
pub const FEW: usize = 16;
/// A length that the Gram matrix predicts is good enough to scale by if its square is not below this
/// share of the terms it is the difference of.
const PREDICTABLE: f64 = 1e-8;
/// How far, relatively, a length may be from what was asked for before all is scaled once more.
const SAME_LENGTH: f64 = 1e-12;

/// What a projection did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Projection {
    /// How many of the gradients' directions are independent, within rounding.
    pub rank: usize,
    /// The number of gradients, not counting zero ones.
    pub of: usize,
    /// The length of the target before the projection.
    pub before: f64,
    /// The length of what is left.
    pub after: f64,
    /// The largest `|⟨p, g_i⟩| / (‖p‖‖g_i‖)` over the independent gradients.
    pub orthogonality: f64,
}

/// Writes the sum of `summands`, projected off the span of `basis`, into `out`.
///
/// All vectors must have `out.len()` components.
pub fn project_sum(summands: &[Vector<'_>], basis: &[Vector<'_>], out: &mut [f64]) -> Projection {
    project_sum_with(&Machine::default(), summands, basis, out)
}

/// The same with this machine, which changes how fast the answer comes and not the answer.
pub fn project_sum_with(
    machine: &Machine,
    summands: &[Vector<'_>],
    basis: &[Vector<'_>],
    out: &mut [f64],
) -> Projection {
    Task { machine, pairs: None, summands, basis }.project(out, |_| 1.0).done
}

/// What is to be projected, and by whom.
#[derive(Debug)]
pub struct Task<'a> {
    /// What computes.
    pub machine: &'a Machine,
    /// The inner products of some gradients, if they are known, and which of them the basis and then
    /// the summands are.
    pub pairs: Option<(&'a Gram, Vec<usize>)>,
    /// The sum of these is projected.
    pub summands: &'a [Vector<'a>],
    /// What the projection is orthogonal to.
    pub basis: &'a [Vector<'a>],
}

/// A projection, and what was measured of what is in `out`.
#[derive(Debug)]
pub struct Projected {
    /// What was done.
    pub done: Projection,
    /// The length of what is in `out`.
    pub length: f64,
    /// Its inner products with the basis.
    pub along: Vec<f64>,
}

impl Task<'_> {
    /// Projects into `out`, times what `scale` says for the length of what is left.
    pub fn project(&self, out: &mut [f64], scale: impl Fn(f64) -> f64) -> Projected {
        let Self { machine, summands, basis, .. } = self;
        let known = self.known(out);
        let factor = Factor::new(|i, j| known.entry(i, j), basis.len());
        let coefficients = factor.solve(&known.along);
        let mut times = 1.0;
        let mut terms = Vec::with_capacity(basis.len() + summands.len());
        if !known.formed {
            let predicted = known.predict(&coefficients).map_or(1.0, &scale);
            times = if predicted.is_normal() { predicted } else { 1.0 };
            terms.extend(summands.iter().map(|vector| (times, *vector)));
        }
        terms.extend(subtracted(&coefficients, times, basis));
        let mut left = machine.combine(known.formed, &terms, 1.0, basis, out);

        let mut done = Projection {
            rank: factor.rank(),
            of: factor.lengths.iter().filter(|length| **length > 0.0).count(),
            before: known.before,
            after: known.before,
            orthogonality: 0.0,
        };
        for correction in 0..=CORRECTIONS {
            let length = left.square.sqrt();
            done.after = length / times.abs();
            done.orthogonality = factor.largest_cosine(&left.along, length);
            // Below this nothing is left but rounding, which no correction can make orthogonal.
            let nothing_left = done.after <= 1e-15 * done.before;
            if done.orthogonality <= ORTHOGONAL || nothing_left || correction == CORRECTIONS {
                break;
            }
            let terms: Vec<_> = subtracted(&factor.solve(&left.along), 1.0, basis).collect();
            left = machine.combine(true, &terms, 1.0, basis, out);
        }
        let mut length = left.square.sqrt();
        let again = scale(done.after) / times;
        if (again - 1.0).abs() > SAME_LENGTH && again.is_finite() {
            super::linalg::scale(out, again);
            left.along.iter_mut().for_each(|along| *along *= again);
            length *= again.abs();
        }
        Projected { done, length, along: left.along }
    }

    /// What is known before anything is subtracted. A target of many summands is then in `out`.
    fn known(&self, out: &mut [f64]) -> Known<'_> {
        let Self { machine, summands, basis, .. } = self;
        let order = || (0..basis.len() + summands.len()).collect();
        let k = basis.len();
        if summands.len() > FEW {
            let terms: Vec<_> = summands.iter().map(|vector| (1.0, *vector)).collect();
            let target = machine.combine(false, &terms, 1.0, basis, out);
            let gram = Entries::Own(machine.gram(basis));
            let (before, along) = (target.square.sqrt(), target.along);
            return Known { gram, order: order(), formed: true, before, along };
        }
        let (gram, order) = match &self.pairs {
            Some((gram, order)) => (Entries::Lent(gram), order.clone()),
            None => {
                let all: Vec<Vector<'_>> = basis.iter().chain(*summands).copied().collect();
                (Entries::Own(machine.gram(&all)), order())
            }
        };
        let mut known = Known { gram, order, formed: false, before: 0.0, along: vec![0.0; k] };
        let all = k..k + summands.len();
        for i in 0..k {
            known.along[i] = all.clone().map(|summand| known.entry(i, summand)).sum();
        }
        let cells = all.clone().flat_map(|i| all.clone().map(move |j| (i, j)));
        let square: f64 = cells.map(|(i, j)| known.entry(i, j)).sum();
        known.before = square.max(0.0).sqrt();
        known
    }
}

/// `−times · Σ c_i g_i`, as terms.
fn subtracted<'a>(
    coefficients: &[f64],
    times: f64,
    basis: &[Vector<'a>],
) -> impl Iterator<Item = (f64, Vector<'a>)> {
    let terms = coefficients.iter().zip(basis).filter(|(c, _)| **c != 0.0);
    terms.map(move |(c, vector)| (-times * c, *vector))
}

/// Inner products, ours or somebody else's.
#[derive(Debug)]
enum Entries<'a> {
    Own(Gram),
    Lent(&'a Gram),
}

/// What inner products tell about a target and a basis.
#[derive(Debug)]
struct Known<'a> {
    gram: Entries<'a>,
    /// Where the basis is in the Gram matrix and, unless the target is formed, the summands after it.
    order: Vec<usize>,
    formed: bool,
    /// The target's length, and its inner products with the basis.
    before: f64,
    along: Vec<f64>,
}

impl Known<'_> {
    fn entry(&self, i: usize, j: usize) -> f64 {
        let gram = match &self.gram {
            Entries::Own(gram) => gram,
            Entries::Lent(gram) => gram,
        };
        gram.get(self.order[i], self.order[j])
    }

    /// The length of the target less the basis times these coefficients, unless it is the small
    /// difference of large terms.
    fn predict(&self, coefficients: &[f64]) -> Option<f64> {
        let mut square = self.before * self.before;
        let mut size = self.before;
        for (i, c) in coefficients.iter().enumerate().filter(|(_, c)| **c != 0.0) {
            size += c.abs() * self.entry(i, i).sqrt();
            square -= 2.0 * c * self.along[i];
            square += (0..coefficients.len())
                .map(|j| c * coefficients[j] * self.entry(i, j))
                .sum::<f64>();
        }
        (square > PREDICTABLE * size * size).then(|| square.sqrt())
    }
}

/// The Gram matrix of the gradients, normalised, factorised and cut at its numerical rank.
struct Factor {
    /// The gradients' lengths.
    lengths: Vec<f64>,
    /// The gradients that span the rest, in the factor's order.
    pivots: Vec<usize>,
    cholesky: Cholesky,
}

impl Factor {
    fn new(entry: impl Fn(usize, usize) -> f64, n: usize) -> Self {
        let lengths: Vec<f64> = (0..n).map(|i| entry(i, i).sqrt()).collect();
        let cosine = |i: usize, j: usize| entry(i, j) / (lengths[i] * lengths[j]);
        let candidates = (0..n).filter(|i| lengths[*i] > 0.0).collect();
        let (cholesky, pivots) = Cholesky::pivoted(candidates, cosine, PIVOT_TOLERANCE * n as f64);
        Self { lengths, pivots, cholesky }
    }

    fn rank(&self) -> usize {
        self.pivots.len()
    }

    /// The coefficients of the gradients whose combination has the given inner products with them.
    fn solve(&self, along: &[f64]) -> Vec<f64> {
        let right = self.pivots.iter().map(|pivot| along[*pivot] / self.lengths[*pivot]);
        let mut coefficients = vec![0.0; self.lengths.len()];
        for (pivot, value) in self.pivots.iter().zip(self.cholesky.solve(right)) {
            coefficients[*pivot] = value / self.lengths[*pivot];
        }
        coefficients
    }

    fn largest_cosine(&self, along: &[f64], length: f64) -> f64 {
        if length == 0.0 {
            return 0.0;
        }
        self.pivots
            .iter()
            .map(|pivot| (along[*pivot] / self.lengths[*pivot] / length).abs())
            .fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Seed;
    use rand::Rng;

    fn random(count: usize, dimension: usize) -> Vec<Vec<f32>> {
        let mut rng = Seed(1).stream("projection", 0, 0);
        let mut draw = || (rng.next_u32() as f32 / u32::MAX as f32) * 2.0 - 1.0;
        (0..count).map(|_| (0..dimension).map(|_| draw()).collect()).collect()
    }

    fn views(vectors: &[Vec<f32>]) -> Vec<Vector<'_>> {
        vectors.iter().map(|vector| Vector::F32(vector)).collect()
    }

    fn worst_cosine(out: &[f64], basis: &[Vector<'_>]) -> f64 {
        let length = crate::linalg::norm(Vector::F64(out));
        basis
            .iter()
            .map(|g| {
                (crate::linalg::dot(*g, Vector::F64(out)) / length / crate::linalg::norm(*g)).abs()
            })
            .fold(0.0, f64::max)
    }

    #[test]
    fn what_is_left_is_orthogonal_and_the_nearest() {
        for (count, dimension) in [(1, 3), (5, 40), (10, 5_000), (33, 1_537)] {
            let vectors = random(count + 2, dimension);
            let (summands, basis) = vectors.split_at(2);
            let mut out = vec![0.0; dimension];
            let done = project_sum(&views(summands), &views(basis), &mut out);
            assert_eq!((done.rank, done.of), (count, count));
            assert!(worst_cosine(&out, &views(basis)) < 1e-12);
            // Pythagoras: the removed part is orthogonal to what is left.
            let mut removed: Vec<f64> = out.iter().map(|value| -value).collect();
            for summand in views(summands) {
                crate::linalg::add_scaled(&mut removed, 1.0, summand);
            }
            let inner = crate::linalg::dot(Vector::F64(&removed), Vector::F64(&out));
            assert!(inner.abs() < 1e-10 * done.before * done.before, "{inner}");
        }
    }

    #[test]
    fn nearly_dependent_gradients_stay_orthogonal() {
        // g_1 = g_0 + 1e-6 · noise: condition about 1e6.
        let mut vectors = random(12, 10_000);
        let noise = vectors.pop().unwrap();
        let last = vectors.len() - 1;
        let widened: Vec<Vec<f64>> = vectors
            .iter()
            .map(|vector| vector.iter().map(|value| f64::from(*value)).collect())
            .collect();
        let mut widened = widened;
        widened[last] =
            widened[1].iter().zip(&noise).map(|(g, n)| g + 1e-6 * f64::from(*n)).collect();
        let views: Vec<Vector<'_>> = widened.iter().map(|vector| Vector::F64(vector)).collect();
        let mut out = vec![0.0; 10_000];
        let done = project_sum(&views[..1], &views[1..], &mut out);
        assert_eq!(done.rank, done.of);
        assert!(worst_cosine(&out, &views[1..]) <= 1e-9);
    }

    #[test]
    fn the_rank_is_cut_where_only_rounding_is_left() {
        let vectors = random(6, 2_000);
        let mut widened: Vec<Vec<f64>> = vectors
            .iter()
            .map(|vector| vector.iter().map(|value| f64::from(*value)).collect())
            .collect();
        widened[5] = widened[1].iter().zip(&widened[2]).map(|(a, b)| a - 2.0 * b).collect();
        for (index, value) in widened[5].iter_mut().enumerate() {
            *value += 1e-10 * f64::from(vectors[3][index]);
        }
        let views: Vec<Vector<'_>> = widened.iter().map(|vector| Vector::F64(vector)).collect();
        let mut out = vec![0.0; 2_000];
        let done = project_sum(&views[..1], &views[1..], &mut out);
        // The noise is along gradient 3, so dependence is exact within span{1, 2, 3}.
        assert_eq!((done.rank, done.of), (4, 5));
        assert!(worst_cosine(&out, &views[1..]) <= 1e-9);
    }

    #[test]
    fn zero_gradients_and_an_empty_basis_change_nothing() {
        let mut out = [0.0; 2];
        let zero = Vector::F64(&[0.0, 0.0]);
        let target = Vector::F64(&[3.0, 4.0]);
        for basis in [&[][..], &[zero][..]] {
            let done = project_sum(&[target], basis, &mut out);
            assert_eq!((out, done.rank, done.after), ([3.0, 4.0], 0, 5.0));
        }
    }

    #[test]
    fn nothing_is_left_inside_the_span() {
        let mut out = [0.0; 2];
        let basis = [Vector::F64(&[1.0, 0.0]), Vector::F64(&[1.0, 1.0])];
        let done = project_sum(&[Vector::F64(&[3.0, 4.0])], &basis, &mut out);
        assert!(done.after <= 1e-15 * done.before);
    }
}

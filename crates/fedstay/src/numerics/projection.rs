//! The projection off the span of several gradients, for many parameters and few agents.
//!
//! `Π_P(v)` with `P = span{g_1 … g_k}^⊥` is `v − Σ c_i g_i` where `G c = (⟨g_i, v⟩)` and `G` is the
//! Gram matrix. One pass over the gradients, a block of columns at a time, makes `G`, `v` and the
//! right-hand side together; a second makes the projection and measures what is left along every
//! `g_i`; a third corrects it, only where that measure asks for it. The gradients are read where
//! they are: no copy of them and no factor of their size is ever formed.
//!
//! Nearly parallel gradients are common in practice. So `G` is normalised to a unit diagonal, the
//! Cholesky factorisation pivots, and the rank ends where the largest remaining pivot is noise.

use super::Cholesky;
use super::linalg::{dispatch, sum_lanes};
use crate::Vector;

/// Columns in a block: a dozen widened rows of it stay in the first-level cache.
const BLOCK: usize = 512;
/// Rows of the Gram matrix that are computed together, so that a loaded row serves several sums.
const TILE: usize = 2;
/// Partial sums of one Gram entry.
const LANES: usize = 8;
/// A pivot of the normalised Gram matrix below this (times its size) is rounding, not direction.
const PIVOT_TOLERANCE: f64 = 1e-14;
/// What may be left along a gradient, relative to both lengths, before a correction pass.
const ORTHOGONAL: f64 = 1e-12;
/// The most correction passes; one is enough unless nearly nothing is left of the target.
const CORRECTIONS: usize = 2;

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
    // Rows of zeros fill the last tile; a zero gradient constrains nothing.
    let n = basis.len().next_multiple_of(TILE);
    let mut rows = vec![0.0; n * BLOCK];
    let mut gram = vec![0.0; n * n];
    let mut along = vec![0.0; n];
    let mut before = 0.0;
    let dimension = out.len();
    for start in (0..dimension).step_by(BLOCK) {
        let columns = start..dimension.min(start + BLOCK);
        let block = &mut out[columns.clone()];
        block.fill(0.0);
        for summand in summands {
            crate::linalg::add_scaled(block, 1.0, slice(*summand, columns.clone()));
        }
        widen_rows(basis, columns, &mut rows);
        add_gram(&rows, n, &mut gram);
        add_dots(&rows, block, &mut along);
        before += crate::linalg::dot(Vector::F64(block), Vector::F64(block));
    }
    let before = before.sqrt();

    let factor = Factor::new(&gram, n);
    let mut remaining = Projection {
        rank: factor.rank(),
        of: factor.lengths.iter().filter(|length| **length > 0.0).count(),
        before,
        after: before,
        orthogonality: 0.0,
    };
    if factor.rank() == 0 {
        return remaining;
    }
    for _ in 0..=CORRECTIONS {
        let coefficients = factor.solve(&along);
        along.fill(0.0);
        let mut after = 0.0;
        for start in (0..dimension).step_by(BLOCK) {
            let columns = start..dimension.min(start + BLOCK);
            let block = &mut out[columns.clone()];
            widen_rows(basis, columns, &mut rows);
            subtract_rows(&rows, &coefficients, block);
            add_dots(&rows, block, &mut along);
            after += crate::linalg::dot(Vector::F64(block), Vector::F64(block));
        }
        remaining.after = after.sqrt();
        remaining.orthogonality = factor.largest_cosine(&along, remaining.after);
        // Below this nothing is left but rounding, which no correction can make orthogonal.
        let nothing_left = remaining.after <= 1e-15 * before;
        if remaining.orthogonality <= ORTHOGONAL || nothing_left {
            break;
        }
    }
    remaining
}

fn slice(vector: Vector<'_>, range: std::ops::Range<usize>) -> Vector<'_> {
    match vector {
        Vector::F32(values) => Vector::F32(&values[range]),
        Vector::F64(values) => Vector::F64(&values[range]),
    }
}

/// Copies the columns of every gradient, widened, into rows of `BLOCK`, zero past the end.
fn widen_rows(basis: &[Vector<'_>], columns: std::ops::Range<usize>, rows: &mut [f64]) {
    for (vector, row) in basis.iter().zip(rows.chunks_exact_mut(BLOCK)) {
        let (values, padding) = row.split_at_mut(columns.len());
        match slice(*vector, columns.clone()) {
            Vector::F32(source) => widen(source, values),
            Vector::F64(source) => values.copy_from_slice(source),
        }
        padding.fill(0.0);
    }
}

dispatch! {
    fn widen(source: &[f32], target: &mut [f64]) {
        for (target, source) in target.iter_mut().zip(source) {
            *target = f64::from(*source);
        }
    }
}

/// Adds the block's share to the Gram matrix, lower triangle; `n` is a multiple of `TILE`.
fn add_gram(rows: &[f64], n: usize, gram: &mut [f64]) {
    let row = |index: usize| &rows[index * BLOCK..][..BLOCK];
    for top in (0..n).step_by(TILE) {
        for left in (0..=top).step_by(TILE) {
            let tile = dots_tile(row(top), row(top + 1), row(left), row(left + 1));
            for (i, line) in tile.iter().enumerate() {
                for (j, value) in line.iter().enumerate() {
                    gram[(top + i) * n + left + j] += value;
                }
            }
        }
    }
}

dispatch! {
    /// The inner products of two rows with two others, all of `BLOCK` columns.
    fn dots_tile(a: &[f64], b: &[f64], c: &[f64], d: &[f64]) -> [[f64; TILE]; TILE] {
        let (mut ac, mut ad) = ([0.0; LANES], [0.0; LANES]);
        let (mut bc, mut bd) = ([0.0; LANES], [0.0; LANES]);
        let (a, b) = (a.as_chunks::<LANES>().0, b.as_chunks::<LANES>().0);
        let (c, d) = (c.as_chunks::<LANES>().0, d.as_chunks::<LANES>().0);
        for ((a, b), (c, d)) in a.iter().zip(b).zip(c.iter().zip(d)) {
            for lane in 0..LANES {
                ac[lane] += a[lane] * c[lane];
            }
            for lane in 0..LANES {
                ad[lane] += a[lane] * d[lane];
            }
            for lane in 0..LANES {
                bc[lane] += b[lane] * c[lane];
            }
            for lane in 0..LANES {
                bd[lane] += b[lane] * d[lane];
            }
        }
        [[sum_lanes(ac), sum_lanes(ad)], [sum_lanes(bc), sum_lanes(bd)]]
    }
}

dispatch! {
    /// `dots[i] += ⟨row i, block⟩`.
    fn add_dots(rows: &[f64], block: &[f64], dots: &mut [f64]) {
        for (row, dot) in rows.chunks_exact(BLOCK).zip(dots) {
            let mut sums = [0.0; LANES * 4];
            let (a, a_rest) = row[..block.len()].as_chunks::<{ LANES * 4 }>();
            let (b, b_rest) = block.as_chunks::<{ LANES * 4 }>();
            for (a, b) in a.iter().zip(b) {
                for lane in 0..LANES * 4 {
                    sums[lane] += a[lane] * b[lane];
                }
            }
            for (lane, (a, b)) in a_rest.iter().zip(b_rest).enumerate() {
                sums[lane] += a * b;
            }
            *dot += sum_lanes(sums);
        }
    }
}

dispatch! {
    /// `block −= Σ coefficients[i] · row i`, a tile of rows at a time.
    fn subtract_rows(rows: &[f64], coefficients: &[f64], block: &mut [f64]) {
        for (tile, c) in rows.chunks_exact(TILE * BLOCK).zip(coefficients.as_chunks::<TILE>().0) {
            let columns = block.len();
            let row = |index: usize| &tile[index * BLOCK..][..columns];
            let (first, second) = (row(0), row(1));
            for column in 0..columns {
                block[column] -= c[0] * first[column] + c[1] * second[column];
            }
        }
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
    fn new(gram: &[f64], n: usize) -> Self {
        let lengths: Vec<f64> = (0..n).map(|i| gram[i * n + i].sqrt()).collect();
        let cosine = |i: usize, j: usize| {
            let (row, column) = (i.max(j), i.min(j));
            gram[row * n + column] / (lengths[i] * lengths[j])
        };
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

//! Cholesky factorisations of small matrices, `A = L Lᵀ`.
//!
//! There are two orders of elimination. [`Cholesky::new`] takes the rows as they come, for sets
//! whose members were tested one by one. [`Cholesky::pivoted`] always takes the row farthest from
//! the span of those before it and stops at the numerical rank, for gradients of which nothing is
//! known. Neither can replace the other, because another order rounds differently; the
//! substitutions are shared.

mod panel;

use super::linalg;
use crate::Vector;

/// From this many terms on a sum is taken by lanes, which is several times as fast; shorter ones are
/// added in order.
const LONG: usize = 32;

/// Rows that are turned side by side when one above them is taken out.
const ABREAST: usize = 4;

/// The factor `L`: row `r` has `r + 1` entries, one row after the other.
#[derive(Debug, Clone, Default)]
pub struct Cholesky {
    entries: Vec<f64>,
    size: usize,
}

impl Cholesky {
    /// Factorises the matrix with `entry(i, j)` at row `i` and column `j`, of which it asks for the
    /// lower triangle. `pivot` is shown what is left of every diagonal entry and returns what to
    /// use instead, or `None` to give up.
    pub fn new(
        size: usize,
        entry: impl Fn(usize, usize) -> f64,
        pivot: impl Fn(f64) -> Option<f64>,
    ) -> Option<Self> {
        let mut factor = Self { entries: Vec::with_capacity(start(size)), size: 0 };
        for i in 0..size {
            let mut refused = false;
            factor.append((0..i).map(|j| entry(i, j)), |known| {
                pivot(entry(i, i) - known).unwrap_or_else(|| {
                    refused = true;
                    1.0
                })
            });
            if refused {
                return None;
            }
        }
        Some(factor)
    }

    /// Adds a row of the matrix: its entries left of the diagonal, and what to take for the square
    /// of the factor's diagonal entry, given the sum of the squares of those before it.
    pub fn append(
        &mut self,
        before: impl IntoIterator<Item = f64>,
        pivot: impl FnOnce(f64) -> f64,
    ) {
        let row = self.forward(before);
        let known: f64 = row.iter().map(|a| a * a).sum();
        self.append_row(row, pivot(known));
    }

    /// Adds a row of the factor: its entries left of the diagonal, and the square of the one on it.
    pub fn append_row(&mut self, mut row: Vec<f64>, square: f64) {
        row.push(square.sqrt());
        self.push(&row);
    }

    /// Takes out one row and column of `A`. The rows below, which then have an entry too many, are
    /// turned back into a triangle by rotations of neighbouring columns.
    pub fn remove(&mut self, place: usize) {
        // (cosine, sine) of the columns (c, c + 1), from `place` on.
        let mut rotations: Vec<(f64, f64)> = Vec::with_capacity(self.size - place);
        let entries = &mut self.entries[..];
        // Every row moves to where the one above it was; no number is written over before it was read. A
        // rotation waits for the one before it in its row, so several rows are turned side by side.
        let mut old = place + 1;
        while old < self.size {
            let rows = ABREAST.min(self.size - old);
            let from: [usize; ABREAST] = std::array::from_fn(|row| start(old + row));
            let to: [usize; ABREAST] = std::array::from_fn(|row| start(old + row - 1));
            let mut left = [0.0; ABREAST];
            for row in 0..rows {
                left[row] = entries[from[row] + place];
            }
            for row in 0..rows {
                entries.copy_within(from[row]..from[row] + place, to[row]);
            }
            let turn = |entries: &mut [f64], left: &mut f64, row: usize, column: usize, by| {
                let ((cosine, sine), right): ((f64, f64), f64) =
                    (by, entries[from[row] + column + 1]);
                entries[to[row] + column] = cosine * *left + sine * right;
                *left = cosine * right - sine * *left;
            };
            for (column, rotation) in (place..).zip(&rotations) {
                for (row, left) in left.iter_mut().enumerate().take(rows) {
                    turn(entries, left, row, column, *rotation);
                }
            }
            let known = rotations.len();
            for (row, left) in left.iter_mut().enumerate().take(rows) {
                for (column, rotation) in (place + known..).zip(&rotations[known..]) {
                    turn(entries, left, row, column, *rotation);
                }
                let last = entries[from[row] + old + row];
                let length = left.hypot(last);
                rotations.push((*left / length, last / length));
                entries[to[row] + old + row - 1] = length;
            }
            old += ABREAST;
        }
        self.truncate(self.size - 1);
    }

    /// The number of rows.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Forgets all rows from `size` on.
    pub fn truncate(&mut self, size: usize) {
        self.size = self.size.min(size);
        self.entries.truncate(start(self.size));
    }

    /// Factorises the rows and columns `candidates` of a matrix with a unit diagonal, always taking
    /// the one farthest from the span of those before it, until none has more than `tolerance`
    /// left. Returns the rows that are in the factor, in its order.
    pub fn pivoted(
        mut candidates: Vec<usize>,
        entry: impl Fn(usize, usize) -> f64,
        tolerance: f64,
    ) -> (Self, Vec<usize>) {
        let n = candidates.iter().max().map_or(0, |largest| largest + 1);
        // What each candidate still has outside the span of the pivots so far, and its row.
        let mut outside = vec![1.0; n];
        let mut partial: Vec<Vec<f64>> = vec![Vec::new(); n];
        let (mut factor, mut pivots) = (Self::default(), Vec::new());
        while let Some(position) = position_of_largest(&candidates, &outside) {
            let pivot = candidates[position];
            if outside[pivot] <= tolerance {
                break;
            }
            candidates.remove(position);
            let diagonal = outside[pivot].sqrt();
            let mut row = std::mem::take(&mut partial[pivot]);
            for &other in &candidates {
                let known: f64 = row.iter().zip(&partial[other]).map(|(a, b)| a * b).sum();
                let entry = (entry(pivot, other) - known) / diagonal;
                outside[other] -= entry * entry;
                partial[other].push(entry);
            }
            row.push(diagonal);
            factor.push(&row);
            pivots.push(pivot);
        }
        (factor, pivots)
    }

    fn push(&mut self, row: &[f64]) {
        self.entries.extend_from_slice(row);
        self.size += 1;
    }

    /// The first `index + 1` entries of a row; the others are zero.
    fn row(&self, index: usize) -> &[f64] {
        &self.entries[start(index)..][..=index]
    }

    /// Solves `L y = right`.
    pub fn forward(&self, right: impl IntoIterator<Item = f64>) -> Vec<f64> {
        let mut y = Vec::with_capacity(self.size);
        for (index, right) in right.into_iter().enumerate().take(self.size) {
            let row = self.row(index);
            y.push((right - dot(&row[..index], &y)) / row[index]);
        }
        y
    }

    /// Solves `L Lᵀ x = right`.
    pub fn solve(&self, right: impl IntoIterator<Item = f64>) -> Vec<f64> {
        let mut x = self.forward(right);
        if self.size >= LONG {
            for index in (0..self.size).rev() {
                let row = self.row(index);
                x[index] /= row[index];
                let value = x[index];
                linalg::add_scaled(&mut x[..index], -value, Vector::F64(&row[..index]));
            }
            return x;
        }
        for index in (0..self.size).rev() {
            let below = index + 1..self.size;
            let known: f64 = below.map(|below| self.row(below)[index] * x[below]).sum();
            x[index] = (x[index] - known) / self.row(index)[index];
        }
        x
    }

    /// The diagonal of the inverse of `A`.
    pub fn inverse_diagonal(&self) -> Vec<f64> {
        let mut column = vec![0.0; self.size];
        let mut diagonal = Vec::with_capacity(self.size);
        for start in 0..self.size {
            for index in start..self.size {
                let row = self.row(index);
                let known: f64 = (start..index).map(|c| row[c] * column[c]).sum();
                let unit = if index == start { 1.0 } else { 0.0 };
                column[index] = (unit - known) / row[index];
            }
            diagonal.push(column[start..].iter().map(|value| value * value).sum());
        }
        diagonal
    }
}

/// Where a row begins.
fn start(row: usize) -> usize {
    row * (row + 1) / 2
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    match a.len() {
        0..LONG => a.iter().zip(b).map(|(a, b)| a * b).sum(),
        _ => linalg::dot_short(a, b),
    }
}

fn position_of_largest(candidates: &[usize], outside: &[f64]) -> Option<usize> {
    // The first of equals, so that the order of the agents decides and nothing else.
    (0..candidates.len()).reduce(|best, next| {
        if outside[candidates[next]] > outside[candidates[best]] { next } else { best }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A well-conditioned matrix with a unit diagonal.
    fn cosines(seeds: &[f64], size: usize) -> Vec<f64> {
        let mut matrix = vec![0.0; size * size];
        for row in 0..size {
            for column in 0..row {
                let value = seeds[row * 6 + column] / size as f64;
                matrix[row * size + column] = value;
                matrix[column * size + row] = value;
            }
            matrix[row * size + row] = 1.0;
        }
        matrix
    }

    proptest! {
        #[test]
        fn both_orders_solve_the_same_system(
            size in 1usize..7,
            seeds in prop::collection::vec(-0.9..0.9f64, 36),
            right in prop::collection::vec(-2.0..2.0f64, 6),
        ) {
            let matrix = cosines(&seeds, size);
            let entry = |i: usize, j: usize| matrix[i * size + j];
            let right = &right[..size];
            let x = Cholesky::new(size, entry, Some).unwrap().solve(right.iter().copied());
            for (i, right) in right.iter().enumerate() {
                let back: f64 = (0..size).map(|j| entry(i, j) * x[j]).sum();
                prop_assert!((back - right).abs() < 1e-9, "{back} for {right}");
            }
            let (factor, pivots) = Cholesky::pivoted((0..size).collect(), entry, 1e-13);
            prop_assert_eq!(pivots.len(), size);
            let turned = factor.solve(pivots.iter().map(|pivot| right[*pivot]));
            for (pivot, value) in pivots.iter().zip(turned) {
                prop_assert!((x[*pivot] - value).abs() < 1e-9);
            }
        }

        /// A row taken out is as if it had never been in.
        #[test]
        fn a_row_that_is_taken_out_leaves_the_factor_of_the_others(
            size in 2usize..20,
            place in 0usize..20,
            seeds in prop::collection::vec(-0.9..0.9f64, 150),
        ) {
            let matrix = cosines(&seeds, size);
            let place = place % size;
            let mut factor = Cholesky::new(size, |i, j| matrix[i * size + j], Some).unwrap();
            factor.remove(place);
            let others: Vec<usize> = (0..size).filter(|i| *i != place).collect();
            let entry = |i: usize, j: usize| matrix[others[i] * size + others[j]];
            let fresh = Cholesky::new(size - 1, entry, Some).unwrap();
            prop_assert_eq!(factor.size(), fresh.size());
            for (a, b) in factor.entries.iter().zip(&fresh.entries) {
                prop_assert!((a - b).abs() < 1e-12, "{} for {}", a, b);
            }
        }

        /// Sums by lanes and sums in order solve the same system.
        #[test]
        fn a_large_system_is_solved_too(
            size in LONG - 2..2 * LONG,
            seeds in prop::collection::vec(-0.9..0.9f64, 36),
        ) {
            let entry = |i: usize, j: usize| match i == j {
                true => 1.0,
                false => seeds[(i * j) % 36] / size as f64,
            };
            let right = |i: usize| seeds[i % 36];
            let factor = Cholesky::new(size, entry, Some).unwrap();
            let x = factor.solve((0..size).map(right));
            for i in 0..size {
                let back: f64 = (0..size).map(|j| entry(i, j) * x[j]).sum();
                prop_assert!((back - right(i)).abs() < 1e-9, "{} for {}", back, right(i));
            }
        }

        #[test]
        fn the_inverse_has_the_diagonal_it_says(
            size in 1usize..7,
            seeds in prop::collection::vec(-0.9..0.9f64, 36),
        ) {
            let matrix = cosines(&seeds, size);
            let factor = Cholesky::new(size, |i, j| matrix[i * size + j], Some).unwrap();
            for (index, value) in factor.inverse_diagonal().into_iter().enumerate() {
                let unit = (0..size).map(|i| if i == index { 1.0 } else { 0.0 });
                prop_assert!((factor.solve(unit)[index] - value).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn a_pivot_may_give_up_or_be_replaced() {
        let ones = |_, _| 1.0;
        assert!(Cholesky::new(2, ones, |left| (left > 0.0).then_some(left)).is_none());
        let patched = Cholesky::new(2, ones, |left| Some(left.max(1e-4))).unwrap();
        assert_eq!(patched.forward([1.0, 1.0]), [1.0, 0.0]);
        let (factor, pivots) = Cholesky::pivoted(vec![0, 1], ones, 1e-14);
        assert_eq!((factor.solve([3.0]), pivots), (vec![3.0], vec![0]));
    }
}

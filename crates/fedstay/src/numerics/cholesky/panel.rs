//! Many rows of a factor at once.
//!
//! A row that enters alone reads the whole factor for one substitution, so it is as fast as memory. A
//! panel of rows goes through the factor a block at a time: what the blocks before it contribute are
//! inner products of rows, for which there are kernels, and only the block on the diagonal is
//! substituted, for all rows of the panel side by side.

use super::{Cholesky, dot};
use crate::Vector;
use crate::numerics::{Machine, linalg};

/// Rows that enter together, and rows of the factor that they are held against at a time.
const PANEL: usize = 64;
/// Fewer rows than this are substituted one after the other: they would not fill a register.
const FEW: usize = 6;

impl Cholesky {
    /// Adds rows `new` of the matrix with `entry(i, j)` at row `i` and column `j`; the factor has its
    /// rows `members`, in their order. `pivot` is shown the square of what each row has outside of the
    /// span of those before it, and returns what to take for it, or `None` to leave the row out. Those
    /// that entered are added to the members.
    pub(crate) fn enter(
        &mut self,
        members: &mut Vec<usize>,
        new: &[usize],
        entry: impl Fn(usize, usize) -> f64,
        pivot: impl Fn(f64) -> Option<f64>,
    ) {
        debug_assert_eq!(members.len(), self.size);
        for panel in new.chunks(PANEL) {
            let begun = self.size;
            let row = |i: &usize| members.iter().map(|j| entry(*i, *j)).collect();
            let mut rows: Vec<Vec<f64>> = panel.iter().map(row).collect();
            self.substitute(&mut rows);
            let views: Vec<Vector<'_>> = rows.iter().map(|row| Vector::F64(row)).collect();
            let products = Machine::default().products(&views, None, begun);
            // Which of the panel entered, by their places in it.
            let mut entered: Vec<usize> = Vec::with_capacity(panel.len());
            for (place, new) in panel.iter().enumerate() {
                let known = &products[place * (place + 1) / 2..][..=place];
                let mut beyond: Vec<f64> = Vec::with_capacity(entered.len());
                for (column, other) in entered.iter().enumerate() {
                    let above = &self.row(begun + column)[begun..];
                    let left = entry(*new, panel[*other]) - known[*other];
                    beyond.push((left - dot(&above[..column], &beyond)) / above[column]);
                }
                let along: f64 = beyond.iter().map(|value| value * value).sum();
                if let Some(square) = pivot(entry(*new, *new) - known[place] - along) {
                    let mut row = std::mem::take(&mut rows[place]);
                    row.extend(beyond);
                    self.append_row(row, square);
                    entered.push(place);
                    members.push(*new);
                }
            }
        }
    }

    /// Solves `L y = right` for each of these right-hand sides, in their place.
    fn substitute(&self, rows: &mut [Vec<f64>]) {
        if rows.len() < FEW {
            rows.iter_mut().for_each(|row| *row = self.forward(row.iter().copied()));
            return;
        }
        let count = rows.len();
        // A block of the solution, column by column.
        let mut block = vec![0.0; PANEL * count];
        for start in (0..self.size).step_by(PANEL) {
            let width = PANEL.min(self.size - start);
            let left: Vec<Vector<'_>> = rows.iter().map(|row| Vector::F64(row)).collect();
            let right = (start..start + width).map(|index| Vector::F64(self.row(index)));
            let right: Vec<Vector<'_>> = right.collect();
            let known = Machine::default().products(&left, Some(&right), start);
            for column in 0..width {
                let (before, here) = block.split_at_mut(column * count);
                let here = &mut here[..count];
                for (index, (value, row)) in here.iter_mut().zip(rows.iter()).enumerate() {
                    *value = row[start + column] - known[index * width + column];
                }
                let factor = &self.row(start + column)[start..];
                for (before, times) in before.chunks_exact(count).zip(factor) {
                    linalg::add_scaled(here, -times, Vector::F64(before));
                }
                here.iter_mut().for_each(|value| *value /= factor[column]);
            }
            for (index, row) in rows.iter_mut().enumerate() {
                for (column, value) in row[start..start + width].iter_mut().enumerate() {
                    *value = block[column * count + index];
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vectors of which every seventh is a combination of two before it.
    fn gram(count: usize) -> Vec<f64> {
        let mut rng = crate::Seed(5).stream("panel", count as u64, 0);
        let mut vectors: Vec<Vec<f64>> = Vec::new();
        for index in 0..count {
            let drawn = (0..300).map(|_| crate::numerics::normal(&mut rng)).collect();
            vectors.push(match index % 7 {
                6 => {
                    vectors[index - 1].iter().zip(&vectors[index - 4]).map(|(a, b)| a - b).collect()
                }
                _ => drawn,
            });
        }
        let length = |v: &[f64]| v.iter().map(|a| a * a).sum::<f64>().sqrt();
        let cosine = |a: &[f64], b: &[f64]| {
            a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>() / (length(a) * length(b))
        };
        vectors.iter().flat_map(|a| vectors.iter().map(move |b| cosine(a, b))).collect()
    }

    #[test]
    fn a_panel_enters_as_its_rows_would_one_by_one() {
        for count in [3, 20, 90, 200] {
            let gram = gram(count);
            let entry = |i: usize, j: usize| gram[i * count + j];
            let independent = |left: f64| (left > 1e-6).then_some(left);
            let (mut together, mut members) = (Cholesky::default(), Vec::new());
            // In three parts, so that panels meet a factor that is there.
            let all: Vec<usize> = (0..count).collect();
            let (first, rest) = all.split_at(count / 3);
            let (second, third) = rest.split_at(1);
            for part in [first, second, third] {
                together.enter(&mut members, part, entry, independent);
            }
            let expected: Vec<usize> = (0..count).filter(|index| index % 7 != 6).collect();
            assert_eq!(members, expected);
            let single =
                Cholesky::new(members.len(), |i, j| entry(members[i], members[j]), Some).unwrap();
            assert_eq!(together.size, single.size);
            for (a, b) in together.entries.iter().zip(&single.entries) {
                assert!((a - b).abs() < 1e-11, "{a} for {b}");
            }
        }
    }
}

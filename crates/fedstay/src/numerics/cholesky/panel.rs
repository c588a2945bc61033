//! Many rows of a factor at once.
//!
//! A row that enters alone reads the whole factor for one substitution, so it is as fast as memory. A
//! panel of rows goes through the factor a block at a time: what the blocks before it contribute are
//! inner products of rows, for which there are kernels, and only the block on the diagonal is
//! substituted, for all rows of the panel side by side.

use super::{Cholesky, dot};
use crate::Vector;
use crate::numerics::Machine;
use crate::numerics::kernel::{self, Line, WIDTH};
use std::sync::{Mutex, PoisonError};

/// Rows that enter together, and rows of the factor that they are held against at a time.
const PANEL: usize = 64;
/// Rows of a panel that one hand substitutes.
const PART: usize = 16;
/// Fewer rows than this are substituted one after the other: they would not fill a register.
const FEW: usize = 6;

impl Cholesky {
    /// Adds rows `new` of the matrix with `entry(i, j)` at row `i` and column `j`; the factor has its
    /// rows `members`, in their order. `pivot` is shown the square of what each row has outside of the
    /// span of those before it, and returns what to take for it, or `None` to leave the row out. Those
    /// that entered are added to the members.
    pub(crate) fn enter(
        &mut self,
        machine: &Machine,
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
            self.substitute_all(machine, &mut rows);
            let views: Vec<Vector<'_>> = rows.iter().map(|row| Vector::F64(row)).collect();
            let products = machine.products(&views, None, begun);
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
    fn substitute_all(&self, machine: &Machine, rows: &mut [Vec<f64>]) {
        let numbers = rows.len() * self.entries.len() / 16;
        let parts: Vec<Mutex<&mut [Vec<f64>]>> = rows.chunks_mut(PART).map(Mutex::new).collect();
        machine.parts(parts.len(), numbers, |part| {
            let mut rows = parts[part].lock().unwrap_or_else(PoisonError::into_inner);
            self.substitute(machine, &mut rows);
        });
    }

    fn substitute(&self, machine: &Machine, rows: &mut [Vec<f64>]) {
        if rows.len() < FEW {
            rows.iter_mut().for_each(|row| *row = self.forward(row.iter().copied()));
            return;
        }
        // A block of the solution: for each of its columns, the rows side by side.
        let lines = rows.len().div_ceil(WIDTH);
        let mut block = vec![Line::ZERO; PANEL * lines];
        for start in (0..self.size).step_by(PANEL) {
            let width = PANEL.min(self.size - start);
            let left: Vec<Vector<'_>> = rows.iter().map(|row| Vector::F64(row)).collect();
            let right = (start..start + width).map(|index| Vector::F64(self.row(index)));
            let right: Vec<Vector<'_>> = right.collect();
            let known = machine.products(&left, Some(&right), start);
            for (index, (row, known)) in rows.iter().zip(known.chunks_exact(width)).enumerate() {
                let (line, lane) = (index / WIDTH, index % WIDTH);
                let columns = row[start..start + width].iter().zip(known);
                for (column, (value, known)) in columns.enumerate() {
                    block[column * lines + line].0[lane] = value - known;
                }
            }
            let ends: Vec<&[f64]> =
                (start..start + width).map(|index| &self.row(index)[start..]).collect();
            kernel::substitute(machine.isa(), &ends, lines, &mut block);
            for (index, row) in rows.iter_mut().enumerate() {
                let (line, lane) = (index / WIDTH, index % WIDTH);
                for (column, value) in row[start..start + width].iter_mut().enumerate() {
                    *value = block[column * lines + line].0[lane];
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
                together.enter(&Machine::default(), &mut members, part, entry, independent);
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

//! Many rows of a factor at once.
//!
//! A row that enters alone reads the whole factor for one substitution, so it is as fast as memory. The rows
//! of a panel are substituted side by side, one in each place of a register, so that what is read of the
//! factor serves all of them; then they are held against each other, and enter in order.

use super::{Cholesky, start};
use crate::numerics::Machine;
use crate::numerics::kernel::{self, Line, WIDTH};
use std::ops::Range;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

/// Rows that enter together.
const PANEL: usize = 64;
/// Rows of a panel that one hand substitutes.
const PART: usize = 16;
/// Products that take as long as a number takes to be read from memory.
const CHEAP: usize = 8;

/// Some rows of a panel.
#[derive(Default)]
struct Part {
    /// Which rows of the panel.
    rows: Range<usize>,
    /// Their columns in the factor, side by side: the same number of lines for each column.
    lines: usize,
    solved: Vec<Line>,
    /// The same, row by row.
    flat: Vec<f64>,
}

impl Part {
    /// Begins with other rows.
    fn take(&mut self, rows: Range<usize>) {
        (self.lines, self.rows) = (rows.len().div_ceil(WIDTH), rows);
    }

    /// A row of the panel, up to where the panel begins.
    fn row(&self, row: usize, columns: usize) -> &[f64] {
        &self.flat[(row - self.rows.start) * columns..][..columns]
    }
}

/// Fills rows of lines with the entries `entry(row, column)` of some rows, side by side.
fn fill(
    block: &mut Vec<Line>,
    rows: Range<usize>,
    columns: usize,
    entry: impl Fn(usize, usize) -> f64,
) {
    let lines = rows.len().div_ceil(WIDTH);
    block.resize(columns * lines, Line::ZERO);
    for (column, lines) in block.chunks_exact_mut(lines).enumerate() {
        for (place, row) in rows.clone().enumerate() {
            lines[place / WIDTH].0[place % WIDTH] = entry(row, column);
        }
    }
}

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
        entry: impl Fn(usize, usize) -> f64 + Sync,
        pivot: impl Fn(f64) -> Option<f64>,
    ) {
        debug_assert_eq!(members.len(), self.size);
        let rows = self.size + new.len();
        self.entries.reserve(start(rows).saturating_sub(self.entries.len()));
        let parts = new.len().min(PANEL).div_ceil(PART);
        let parts: Vec<RwLock<Part>> = (0..parts).map(|_| RwLock::default()).collect();
        let mut left = [[0.0; PANEL]; PANEL];
        for panel in new.chunks(PANEL) {
            let begun = self.size;
            let parts = &parts[..panel.len().div_ceil(PART)];
            self.substitute(machine, members, panel, &entry, parts);
            let parts: Vec<_> = parts.iter().map(read).collect();
            let blocks = self.hold_together(machine, panel, &entry, &parts);
            for (row, left) in left.iter_mut().enumerate().take(panel.len()) {
                let (part, place) = (row / PART, row % PART);
                let lines = blocks[part].chunks_exact(parts[part].lines);
                for (left, lines) in left[..=row].iter_mut().zip(lines) {
                    *left = lines[place / WIDTH].0[place % WIDTH];
                }
            }
            // Which of the panel entered, by their places in it.
            let mut entered: Vec<usize> = Vec::with_capacity(panel.len());
            for place in 0..panel.len() {
                let Some(square) = pivot(left[place][place]) else { continue };
                let diagonal = square.sqrt();
                self.entries.extend_from_slice(parts[place / PART].row(place, begun));
                self.entries.extend(entered.iter().map(|column| left[place][*column]));
                self.entries.push(diagonal);
                self.size += 1;
                entered.push(place);
                members.push(panel[place]);
                // What the rows after it have along it.
                let mut along = [0.0; PANEL];
                for row in place + 1..panel.len() {
                    left[row][place] /= diagonal;
                    along[row] = left[row][place];
                    let (times, cells) = (along[row], &mut left[row][place + 1..=row]);
                    for (cell, along) in cells.iter_mut().zip(&along[place + 1..]) {
                        *cell -= times * along;
                    }
                }
            }
        }
    }

    /// The first columns of each row of a panel.
    fn substitute(
        &self,
        machine: &Machine,
        members: &[usize],
        panel: &[usize],
        entry: &(impl Fn(usize, usize) -> f64 + Sync),
        parts: &[RwLock<Part>],
    ) {
        let size = self.size;
        machine.parts(parts.len(), panel.len() * self.entries.len() / CHEAP, |index| {
            let mut part = parts[index].write().unwrap_or_else(PoisonError::into_inner);
            part.take(index * PART..panel.len().min((index + 1) * PART));
            let Part { rows, lines, solved, flat } = &mut *part;
            fill(solved, rows.clone(), size, |row, column| entry(panel[row], members[column]));
            kernel::substitute(machine.isa(), &self.entries, size, *lines, solved);
            flat.resize(rows.len() * size, 0.0);
            for (place, row) in flat.chunks_exact_mut(size.max(1)).enumerate() {
                for (value, lines) in row.iter_mut().zip(solved.chunks_exact(*lines)) {
                    *value = lines[place / WIDTH].0[place % WIDTH];
                }
            }
        });
    }

    /// What is left of the products of a panel's rows with those before them, the rows of each part side by side.
    fn hold_together(
        &self,
        machine: &Machine,
        panel: &[usize],
        entry: &(impl Fn(usize, usize) -> f64 + Sync),
        parts: &[RwLockReadGuard<'_, Part>],
    ) -> Vec<Vec<Line>> {
        let size = self.size;
        let all: Vec<&Part> = parts.iter().map(|part| &**part).collect();
        machine.parts(all.len(), panel.len() * panel.len() * size / CHEAP, |index| {
            let Part { rows, lines, solved, .. } = all[index];
            let mut left = Vec::new();
            fill(&mut left, rows.clone(), rows.end, |row, column| entry(panel[row], panel[column]));
            let views: Vec<&[f64]> =
                (0..rows.end).map(|row| all[row / PART].row(row, size)).collect();
            kernel::subtract(machine.isa(), &views, *lines, solved, &mut left);
            left
        })
    }
}

fn read(part: &RwLock<Part>) -> RwLockReadGuard<'_, Part> {
    part.read().unwrap_or_else(PoisonError::into_inner)
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

//! Whether one column alone gives the label away.

use std::collections::HashMap;

use super::column::{Role, TableColumn};
use super::findings::bits;
use super::prepared::Prepared;
use super::values::{CellValues, MISSING};

/// As many rows are looked at.
const MOST: usize = 20_000;
/// Fewer say nothing.
const LEAST: usize = 20;
/// What gives this share of each class away, on average, is suspected.
const SHARE: f64 = 0.99;
/// Numbers that go together like this are one.
const CORRELATION: f64 = 0.999;

/// How well a column alone tells the label, if that is suspiciously well.
pub(super) fn tells(prepared: &Prepared, column: &TableColumn) -> Option<String> {
    if prepared.rows.len() < LEAST {
        return None;
    }
    let step = prepared.rows.len().div_ceil(MOST);
    let rows: Vec<usize> = prepared.rows.iter().step_by(step).map(|row| *row as usize).collect();
    let label = prepared.raw.of(Role::Label)?;
    if let (CellValues::Exact(label), CellValues::Numbers(numbers)) =
        (&label.values, &column.values)
    {
        let pairs = rows.iter().map(|row| (label.get(*row), f64::from(numbers.get(*row))));
        let known: Vec<(f64, f64)> = pairs.filter(|(_, number)| !number.is_nan()).collect();
        let correlation = correlation(&known).abs();
        return (known.len() >= LEAST && correlation >= CORRELATION)
            .then(|| format!("their correlation is {correlation:.4}"));
    }
    if prepared.classes.len() < 2 {
        return None;
    }
    let class = |row: usize| usize::from(prepared.class[row]);
    let value = |row: usize| bits(column, row);
    let share = match &column.values {
        CellValues::Numbers(_) if prepared.classes.len() == 2 => {
            let pairs = rows.iter().filter_map(|row| Some((value(*row)?, class(*row) == 1)));
            threshold(pairs.collect())
        }
        CellValues::Numbers(_) | CellValues::Texts(..) => {
            let pairs = rows.iter().filter_map(|row| Some((value(*row)?, class(*row))));
            majority(pairs.collect(), prepared.classes.len(), rows.len())
        }
        _ => 0.0,
    };
    (share >= SHARE).then(|| format!("right about {:.1}% of each class on average", 100.0 * share))
}

/// The share of both classes that the best threshold is right about, with missing at its better side.
fn threshold(mut pairs: Vec<(u32, bool)>) -> f64 {
    let number = |bits: u32| if bits == MISSING { f32::NEG_INFINITY } else { f32::from_bits(bits) };
    let positives = pairs.iter().filter(|(_, second)| *second).count() as f64;
    let negatives = pairs.len() as f64 - positives;
    if positives == 0.0 || negatives == 0.0 {
        return 0.0;
    }
    let mut best = 0.0f64;
    for missing in [f32::NEG_INFINITY, f32::INFINITY] {
        let key = |bits: u32| if bits == MISSING { missing } else { number(bits) };
        pairs.sort_unstable_by(|a, b| key(a.0).total_cmp(&key(b.0)));
        let (mut below, mut wrong) = (0.0, 0.0);
        for (at, (bits, second)) in pairs.iter().enumerate() {
            if *second {
                below += 1.0
            } else {
                wrong += 1.0
            }
            let ends = pairs.get(at + 1).is_none_or(|next| key(next.0) != key(*bits));
            if ends {
                let right = 0.5 * (below / positives + 1.0 - wrong / negatives);
                best = best.max(right).max(1.0 - right);
            }
        }
    }
    best
}

/// The share of each class whose rows have a value that is mostly theirs.
fn majority(pairs: Vec<(u32, usize)>, classes: usize, rows: usize) -> f64 {
    let mut counts: HashMap<u32, Vec<usize>> = HashMap::new();
    let mut all = vec![0usize; classes];
    for (value, class) in pairs {
        counts.entry(value).or_insert_with(|| vec![0; classes])[class] += 1;
        all[class] += 1;
    }
    if counts.len() * 5 > rows {
        // So many values that each has hardly a row tell nothing.
        return 0.0;
    }
    let mut right = vec![0usize; classes];
    for count in counts.values() {
        let most = (0..classes).max_by_key(|class| count[*class]).unwrap_or(0);
        right[most] += count[most];
    }
    let there: Vec<usize> = (0..classes).filter(|class| all[*class] > 0).collect();
    if there.len() < 2 {
        return 0.0;
    }
    there.iter().map(|class| right[*class] as f64 / all[*class] as f64).sum::<f64>()
        / there.len() as f64
}

/// The correlation of two numbers.
fn correlation(pairs: &[(f64, f64)]) -> f64 {
    let count = pairs.len() as f64;
    let mean = |of: &dyn Fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(&|pair| pair.0), mean(&|pair| pair.1));
    let xy = mean(&|pair| (pair.0 - x) * (pair.1 - y));
    let (xx, yy) = (mean(&|pair| (pair.0 - x).powi(2)), mean(&|pair| (pair.1 - y).powi(2)));
    if xx > 0.0 && yy > 0.0 { xy / (xx * yy).sqrt() } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_separates_classes_is_seen() {
        let pairs = |numbers: &[(f32, bool)]| {
            numbers.iter().map(|(n, second)| (n.to_bits(), *second)).collect()
        };
        assert_eq!(threshold(pairs(&[(3.0, true), (1.0, false), (4.0, true), (2.0, false)])), 1.0);
        assert_eq!(threshold(pairs(&[(1.0, true), (1.0, false)])), 0.5);
        assert_eq!(threshold(vec![(MISSING, true), (1f32.to_bits(), false), (MISSING, true)]), 1.0);
        assert_eq!(majority(vec![(0, 0), (0, 0), (1, 1), (1, 1)], 2, 20), 1.0);
        assert_eq!(majority((0..20).map(|at| (at, at as usize % 2)).collect(), 2, 20), 0.0);
        assert!((correlation(&[(1.0, 2.0), (2.0, 4.0), (3.0, 6.0)]) - 1.0).abs() < 1e-12);
        assert_eq!(correlation(&[(1.0, 2.0), (1.0, 4.0)]), 0.0);
    }
}

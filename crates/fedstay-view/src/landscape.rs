//! The losses of a problem with two weights, sampled around the way a run took.

use crate::history::History;
use fedstay::problem::Instance;
use serde::Serialize;

const COLUMNS: usize = 110;
const ROWS: usize = 84;
/// Agents whose losses are drawn; more sets on one map cannot be told apart.
const MOST_AGENTS: usize = 6;
/// Points of the way that are sent.
const MOST_POINTS: usize = 2000;

/// A map: what to draw below the way.
#[derive(Debug, Serialize)]
pub(crate) struct Landscape {
    x: (f64, f64),
    y: (f64, f64),
    columns: usize,
    rows: usize,
    /// For each agent its losses row by row, from `y.0` upwards, to four digits.
    losses: Vec<Vec<f64>>,
    /// The number of the round and the weights.
    path: Vec<(u32, f64, f64)>,
}

/// The map of a run; `None` unless it has two weights and a named problem.
pub(crate) fn landscape(history: &History, instance: &Instance) -> Option<Landscape> {
    let whole = instance.dimension() == 2 && history.path.len() == history.rounds.len();
    if !whole || history.path.is_empty() {
        return None;
    }
    let (x, y) = ranges(&history.path)?;
    let at = |range: (f64, f64), i: usize, n: usize| {
        range.0 + (range.1 - range.0) * i as f64 / (n - 1) as f64
    };
    let sample = |agent: usize| {
        let oracle = &instance.oracles[agent];
        let cells = (0..ROWS).flat_map(|row| (0..COLUMNS).map(move |column| (row, column)));
        cells
            .map(|(row, column)| oracle.loss(&[at(x, column, COLUMNS), at(y, row, ROWS)]))
            .map(digits)
            .collect()
    };
    let agents = instance.oracles.len().min(MOST_AGENTS);
    Some(Landscape {
        x,
        y,
        columns: COLUMNS,
        rows: ROWS,
        losses: (0..agents).map(sample).collect(),
        path: path(history),
    })
}

/// The way, thinned evenly; the last point is always there.
fn path(history: &History) -> Vec<(u32, f64, f64)> {
    let every = history.path.len().div_ceil(MOST_POINTS).max(1);
    let last = history.path.len() - 1;
    let kept = |index: &usize| index.is_multiple_of(every) || *index == last;
    let points = history.rounds.iter().zip(&history.path).enumerate();
    points.filter(|(index, _)| kept(index)).map(|(_, (round, (x, y)))| (*round, *x, *y)).collect()
}

/// A window around the way with some air, in the map's proportions. Its corners are on a coarse
/// lattice, so that a way that grows a little does not move it.
#[allow(clippy::type_complexity)]
fn ranges(path: &[(f64, f64)]) -> Option<((f64, f64), (f64, f64))> {
    let finite = || path.iter().filter(|(x, y)| x.is_finite() && y.is_finite());
    let fold = |pick: fn(&(f64, f64)) -> f64| {
        finite().map(pick).fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        })
    };
    let (x, y) = (fold(|point| point.0), fold(|point| point.1));
    let aspect = (COLUMNS - 1) as f64 / (ROWS - 1) as f64;
    let width = (x.1 - x.0).max(aspect * (y.1 - y.0)).max(0.5);
    let cell = 2f64.powf((width / 4.0).log2().ceil());
    let width = ((width * 1.5) / cell).ceil() * cell;
    let height = width / aspect;
    let centre = |range: (f64, f64)| ((range.0 + range.1) / 2.0 / cell * 4.0).round() * cell / 4.0;
    let (cx, cy) = (centre(x), centre(y));
    let whole = width.is_finite() && cx.is_finite() && cy.is_finite();
    whole.then(|| ((cx - width / 2.0, cx + width / 2.0), (cy - height / 2.0, cy + height / 2.0)))
}

fn digits(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let scale = 10f64.powf(3.0 - value.abs().log10().floor());
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_holds_the_way() {
        for path in [vec![(2.0, 1.0), (-0.5, 0.2)], vec![(0.0, 0.0)], vec![(1e9, 1.0), (1e9, 5.0)]]
        {
            let (x, y) = ranges(&path).unwrap();
            assert!(path.iter().all(|point| x.0 < point.0 && point.0 < x.1), "{x:?}");
            assert!(path.iter().all(|point| y.0 < point.1 && point.1 < y.1), "{y:?}");
        }
        assert_eq!(ranges(&[(f64::NAN, 1.0)]), None);
    }

    #[test]
    fn four_digits() {
        assert_eq!(digits(0.123456), 0.1235);
        assert_eq!(digits(-1234.56), -1235.0);
        assert_eq!(digits(f64::INFINITY), 0.0);
    }
}

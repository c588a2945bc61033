//! The map of a run with two weights: the losses around the path it took.

use crate::history::History;
use fedstay::problem::Instance;
use fedstay_draw::picture::landscape::{Landscape, MOST_AGENTS};
use serde::Serialize;

/// The number of samples across the map.
const COLUMNS: usize = 110;
/// The most points of the path that are sent.
const MOST_POINTS: usize = 2000;

/// What to draw below the path, and the path.
#[derive(Debug, Serialize)]
pub(crate) struct LossMap {
    x: (f64, f64),
    y: (f64, f64),
    columns: usize,
    rows: usize,
    /// The losses of each agent row by row, from `y.0` upwards, to four digits.
    losses: Vec<Vec<f64>>,
    /// The path: for each round its number and the weights.
    path: Vec<(u32, f64, f64)>,
}

impl LossMap {
    /// The map of a run; `None` unless it has two weights and a named problem.
    pub(crate) fn new(history: &History, instance: &Instance) -> Option<Self> {
        let whole = instance.dimension() == 2 && history.path.len() == history.rounds.len();
        if !whole {
            return None;
        }
        let land = Landscape::around(instance, &history.path, COLUMNS)?;
        let agents = instance.oracles.len().min(MOST_AGENTS);
        let grids: Vec<_> = (0..agents).map(|agent| land.loss(agent)).collect();
        let (columns, rows) = grids.first()?.size();
        let losses = grids.iter().map(|grid| grid.values().iter().copied().map(digits).collect());
        let (x, y, losses) = (land.x, land.y, losses.collect());
        Some(Self { x, y, columns, rows, losses, path: path(history) })
    }
}

/// The path, thinned evenly; the last point is always kept.
fn path(history: &History) -> Vec<(u32, f64, f64)> {
    let every = history.path.len().div_ceil(MOST_POINTS).max(1);
    let last = history.path.len() - 1;
    let kept = |index: &usize| index.is_multiple_of(every) || *index == last;
    let points = history.rounds.iter().zip(&history.path).enumerate();
    points.filter(|(index, _)| kept(index)).map(|(_, (round, (x, y)))| (*round, *x, *y)).collect()
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
    fn four_digits() {
        assert_eq!(digits(0.123456), 0.1235);
        assert_eq!(digits(-1234.56), -1235.0);
        assert_eq!(digits(f64::INFINITY), 0.0);
    }
}

//! Level lines and sub-level sets of a function sampled on a grid, by marching squares.
//!
//! Every cell contributes segments with the low side on their left. That makes each crossed grid
//! edge the start of at most one segment and the end of at most one other, so segments join into
//! lines by a plain map lookup, without comparing coordinates.

use std::collections::{BTreeMap, BTreeSet};

/// A polyline or, for sub-level sets, a ring whose last point connects to its first.
pub(super) type Path = Vec<(f64, f64)>;

/// Values of a function of two variables on a regular grid.
#[derive(Clone, Debug)]
pub struct Grid {
    x: (f64, f64),
    y: (f64, f64),
    columns: usize,
    rows: usize,
    /// The samples, row by row, from `y.0` upwards.
    values: Vec<f64>,
}

impl Grid {
    /// Samples `f` at `columns` × `rows` points (at least 2 × 2), the corners included. Sharp
    /// corners of a level set are cut by up to a cell, so for drawing take about one sample for
    /// every two pixels. `f` may return values that are not finite: they belong to no level set.
    pub fn sample(
        x: (f64, f64),
        y: (f64, f64),
        columns: usize,
        rows: usize,
        f: impl Fn(f64, f64) -> f64,
    ) -> Self {
        let (columns, rows) = (columns.max(2), rows.max(2));
        let at = |range: (f64, f64), i: usize, n: usize| {
            range.0 + (range.1 - range.0) * i as f64 / (n - 1) as f64
        };
        let mut values = Vec::with_capacity(columns * rows);
        for j in 0..rows {
            for i in 0..columns {
                values.push(f(at(x, i, columns), at(y, j, rows)));
            }
        }
        Self { x, y, columns, rows, values }
    }

    /// How many samples there are across and upwards.
    pub fn size(&self) -> (usize, usize) {
        (self.columns, self.rows)
    }

    /// The samples, row by row, from the lower end of the y range upwards.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The x and y ranges.
    pub(super) fn ranges(&self) -> ((f64, f64), (f64, f64)) {
        (self.x, self.y)
    }

    /// The lines on which the function equals `level`. They end at the grid's border and at
    /// samples that are not finite.
    pub(super) fn level_lines(&self, level: f64) -> Vec<Path> {
        MarchingSquares { grid: self, level, pad: 0 }.run()
    }

    /// The rings around the set where the function is at most `threshold`, to be filled by the
    /// even-odd rule. Where the set reaches the grid's border the ring follows the border.
    pub(super) fn sublevel_rings(&self, threshold: f64) -> Vec<Path> {
        // A rim of samples that are never inside closes every ring.
        MarchingSquares { grid: self, level: threshold, pad: 1 }.run()
    }
}

/// One pass over the grid, with `pad` rows and columns of outside samples around it.
struct MarchingSquares<'a> {
    grid: &'a Grid,
    level: f64,
    pad: usize,
}

impl MarchingSquares<'_> {
    fn size(&self) -> (usize, usize) {
        (self.grid.columns + 2 * self.pad, self.grid.rows + 2 * self.pad)
    }

    /// The sample at padded indices; `None` on the rim and where the function is not finite.
    fn value(&self, i: usize, j: usize) -> Option<f64> {
        let (i, j) = (i.checked_sub(self.pad)?, j.checked_sub(self.pad)?);
        if i >= self.grid.columns || j >= self.grid.rows {
            return None;
        }
        self.grid.values.get(j * self.grid.columns + i).copied().filter(|v| v.is_finite())
    }

    fn inside(&self, i: usize, j: usize) -> bool {
        self.value(i, j).is_some_and(|v| v <= self.level)
    }

    /// Where the sample lies. The rim lies on the border, so that rings end exactly there.
    fn place(&self, i: usize, j: usize) -> (f64, f64) {
        let along = |range: (f64, f64), k: usize, n: usize| {
            let k = k.saturating_sub(self.pad).min(n - 1);
            range.0 + (range.1 - range.0) * k as f64 / (n - 1) as f64
        };
        (along(self.grid.x, i, self.grid.columns), along(self.grid.y, j, self.grid.rows))
    }

    /// The number of the edge from (i, j) to the right (`up` false) or upwards.
    fn edge(&self, i: usize, j: usize, up: bool) -> usize {
        2 * (j * self.size().0 + i) + usize::from(up)
    }

    /// Where the level crosses an edge: by linear interpolation, or at the only finite end.
    fn crossing(&self, edge: usize) -> (f64, f64) {
        let (i, j) = (edge / 2 % self.size().0, edge / 2 / self.size().0);
        let (k, l) = if edge % 2 == 1 { (i, j + 1) } else { (i + 1, j) };
        let (p, q) = (self.place(i, j), self.place(k, l));
        match (self.value(i, j), self.value(k, l)) {
            (Some(a), Some(b)) if a != b => {
                let t = ((self.level - a) / (b - a)).clamp(0.0, 1.0);
                (p.0 + t * (q.0 - p.0), p.1 + t * (q.1 - p.1))
            }
            (None, _) => q,
            _ => p,
        }
    }

    fn run(&self) -> Vec<Path> {
        let next = self.segments();
        let ends: BTreeSet<usize> = next.values().copied().collect();
        let mut open = next;
        let mut paths = Vec::new();
        // Lines with a free start first; whatever is left then consists of rings.
        let free: Vec<usize> = open.keys().copied().filter(|e| !ends.contains(e)).collect();
        for start in free {
            paths.push(self.follow(&mut open, start));
        }
        while let Some((&start, _)) = open.first_key_value() {
            paths.push(self.follow(&mut open, start));
        }
        paths.retain(|path| path.len() > 1);
        paths
    }

    fn follow(&self, open: &mut BTreeMap<usize, usize>, start: usize) -> Path {
        let mut path = vec![self.crossing(start)];
        let mut edge = start;
        while let Some(next) = open.remove(&edge) {
            let point = self.crossing(next);
            if path.last() != Some(&point) {
                path.push(point);
            }
            edge = next;
        }
        path
    }

    /// For every crossed edge the edge at which its segment ends.
    fn segments(&self) -> BTreeMap<usize, usize> {
        let (width, height) = self.size();
        let mut next = BTreeMap::new();
        for j in 0..height.saturating_sub(1) {
            for i in 0..width.saturating_sub(1) {
                let corners = [(i, j), (i + 1, j), (i + 1, j + 1), (i, j + 1)];
                // A level line has no place beside a sample that is not finite; a filled set
                // treats such a sample as outside instead, or its ring would not close.
                if self.pad == 0 && corners.iter().any(|&(i, j)| self.value(i, j).is_none()) {
                    continue;
                }
                let inside = corners.map(|(i, j)| self.inside(i, j));
                let edges = [
                    self.edge(i, j, false),
                    self.edge(i + 1, j, true),
                    self.edge(i, j + 1, false),
                    self.edge(i, j, true),
                ];
                for (from, to) in self.cell(corners, inside) {
                    next.insert(edges[from], edges[to]);
                }
            }
        }
        next
    }

    /// The segments of one cell, as (from, to) among its edges bottom, right, top, left.
    fn cell(&self, corners: [(usize, usize); 4], inside: [bool; 4]) -> Vec<(usize, usize)> {
        // Walking round the cell anticlockwise, the boundary starts on an edge where the walk
        // leaves the set and ends on an edge where it enters: the set is then on the left.
        let edge =
            |want: (bool, bool)| (0..4).filter(move |&e| (inside[e], inside[(e + 1) % 4]) == want);
        let leaves: Vec<usize> = edge((true, false)).collect();
        let enters: Vec<usize> = edge((false, true)).collect();
        match (leaves.as_slice(), enters.as_slice()) {
            (&[from], &[to]) => vec![(from, to)],
            (&[a, b], &[c, d]) => {
                // A saddle: the mean of the corners decides whether the two inside corners touch.
                // Missing samples count as outside.
                let values = corners.map(|(i, j)| self.value(i, j));
                let joined = values.iter().all(Option::is_some)
                    && values.iter().flatten().sum::<f64>() / 4.0 <= self.level;
                let pick = |from: usize| {
                    // Joined: cut off the outside corner after `from`; else the inside one before.
                    let wanted = if joined { (from + 1) % 4 } else { (from + 3) % 4 };
                    if c == wanted { c } else { d }
                };
                vec![(a, pick(a)), (b, pick(b))]
            }
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::PI;

    use super::*;

    fn area(ring: &Path) -> f64 {
        let pairs = ring.iter().zip(ring.iter().cycle().skip(1));
        pairs.map(|(a, b)| a.0 * b.1 - b.0 * a.1).sum::<f64>() / 2.0
    }

    fn bowl(n: usize) -> Grid {
        Grid::sample((-2.0, 2.0), (-2.0, 2.0), n, n, |x, y| x * x + y * y)
    }

    #[test]
    fn the_level_line_of_a_bowl_is_a_circle() {
        let lines = bowl(101).level_lines(1.0);
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0].first(), lines[0].last(), "it closes");
        assert!(lines[0].iter().all(|(x, y)| (x.hypot(*y) - 1.0).abs() < 1e-3));
        assert!((area(&lines[0]) - PI).abs() < 1e-2, "positive: the low side is on the left");
    }

    #[test]
    fn a_sublevel_set_follows_the_border() {
        let rings = bowl(101).sublevel_rings(1e9);
        assert_eq!(rings.len(), 1);
        assert!((area(&rings[0]) - 16.0).abs() < 1e-12, "the whole square, corners included");
        let strip = Grid::sample((0.0, 1.0), (-1.0, 1.0), 20, 40, |_, y| y.abs());
        let rings = strip.sublevel_rings(0.25);
        assert_eq!(rings.len(), 1);
        assert!((area(&rings[0]) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn holes_turn_the_other_way() {
        let ring =
            Grid::sample((-2.0, 2.0), (-2.0, 2.0), 201, 201, |x, y| (x.hypot(y) - 1.0).abs());
        let rings = ring.sublevel_rings(0.5);
        assert_eq!(rings.len(), 2);
        let total: f64 = rings.iter().map(area).sum();
        assert!((total - PI * (2.25 - 0.25)).abs() < 2e-2, "{total}");
    }

    #[test]
    fn a_saddle_is_split_or_joined_but_never_crossed() {
        let saddle = Grid::sample((-1.0, 1.0), (-1.0, 1.0), 2, 2, |x, y| x * y);
        assert_eq!(saddle.level_lines(-0.5).len(), 2);
        assert_eq!(saddle.level_lines(0.5).len(), 2);
        assert_eq!(saddle.sublevel_rings(-0.5).len(), 2, "split");
        assert_eq!(saddle.sublevel_rings(0.5).len(), 1, "joined");
        let area_of = |t: f64| saddle.sublevel_rings(t).iter().map(area).sum::<f64>();
        assert!((area_of(0.5) + area_of(-0.5) - 4.0).abs() < 1e-12);
    }

    #[test]
    fn values_that_are_not_finite_belong_nowhere() {
        let odd =
            Grid::sample((0.0, 1.0), (0.0, 1.0), 10, 10, |x, y| if x > 0.5 { f64::NAN } else { y });
        assert!(odd.level_lines(0.5).iter().flatten().all(|(x, _)| *x <= 0.5));
        assert!(odd.sublevel_rings(0.5).iter().flatten().all(|(x, _)| *x <= 0.5));
        let none = Grid::sample((0.0, 1.0), (0.0, 1.0), 0, 0, |_, _| f64::NAN);
        assert!(none.sublevel_rings(0.0).is_empty() && none.level_lines(0.0).is_empty());
        assert!(bowl(11).level_lines(f64::NAN).is_empty());
    }
}

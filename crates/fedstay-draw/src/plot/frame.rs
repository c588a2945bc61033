//! The rectangle in which a panel's data are drawn, and what already takes up room in it.

use super::layer::Point;
use super::scale::Axis;

/// An axis-parallel rectangle in pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rect {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Rect {
    pub(super) fn right(&self) -> f64 {
        self.x + self.width
    }

    pub(super) fn bottom(&self) -> f64 {
        self.y + self.height
    }

    pub(super) fn contains(&self, (x, y): (f64, f64)) -> bool {
        (self.x..=self.right()).contains(&x) && (self.y..=self.bottom()).contains(&y)
    }

    pub(super) fn overlaps(&self, other: &Self) -> bool {
        self.x < other.right()
            && other.x < self.right()
            && self.y < other.bottom()
            && other.y < self.bottom()
    }

    pub(super) fn grown(&self, by: f64) -> Self {
        Self {
            x: self.x - by,
            y: self.y - by,
            width: self.width + 2.0 * by,
            height: self.height + 2.0 * by,
        }
    }

    /// The rectangle moved as little as possible so that it lies inside `outer`, if it fits at all.
    pub(super) fn pushed_into(&self, outer: &Self) -> Self {
        let x = self.x.min(outer.right() - self.width).max(outer.x);
        let y = self.y.min(outer.bottom() - self.height).max(outer.y);
        Self { x, y, ..*self }
    }
}

/// The data area with its two axes.
#[derive(Clone, Copy, Debug)]
pub(super) struct DataArea {
    pub(super) area: Rect,
    pub(super) x: Axis,
    pub(super) y: Axis,
}

impl DataArea {
    pub(super) fn px(&self, x: f64) -> Option<f64> {
        self.x.position(x).map(|share| self.area.x + share * self.area.width)
    }

    pub(super) fn py(&self, y: f64) -> Option<f64> {
        self.y.position(y).map(|share| self.area.bottom() - share * self.area.height)
    }

    /// The pixel of a data point; `None` if it has no place on the axes.
    pub(super) fn point(&self, (x, y): Point) -> Option<(f64, f64)> {
        Some((self.px(x)?, self.py(y)?))
    }

    /// The runs of consecutive drawable points, as pixels.
    pub(super) fn runs(&self, points: &[Point]) -> Vec<Vec<(f64, f64)>> {
        let mut runs = vec![Vec::new()];
        for &point in points {
            match self.point(point) {
                Some(pixel) => runs.last_mut().into_iter().for_each(|run| run.push(pixel)),
                None => runs.push(Vec::new()),
            }
        }
        runs.retain(|run| !run.is_empty());
        runs
    }
}

/// Finds free places for labels: never on another text, preferably not on a line.
#[derive(Default)]
pub(super) struct LabelRoom {
    texts: Vec<Rect>,
    ink: Vec<(f64, f64)>,
}

impl LabelRoom {
    pub(super) fn add_text(&mut self, rect: Rect) {
        self.texts.push(rect);
    }

    /// Remembers a drawn line, sampled closely enough that no label slips between the samples.
    pub(super) fn add_line(&mut self, points: &[(f64, f64)]) {
        self.ink.extend(points);
        for pair in points.windows(2) {
            let (dx, dy) = (pair[1].0 - pair[0].0, pair[1].1 - pair[0].1);
            // The bound keeps a point far outside the panel from costing millions of samples.
            let steps = (dx.hypot(dy) / 6.0).min(500.0) as usize;
            self.ink.extend((1..steps).map(|i| {
                let t = i as f64 / steps as f64;
                (pair[0].0 + t * dx, pair[0].1 + t * dy)
            }));
        }
    }

    /// The index of the best of the `candidates` (the first of equals) and whether it is free of
    /// other texts and inside `bounds`; the place then counts as taken.
    pub(super) fn take(&mut self, candidates: &[Rect], bounds: &Rect) -> Option<(usize, bool)> {
        let cost = |rect: &Rect| {
            let outside = usize::from(rect.pushed_into(bounds) != *rect);
            let texts = self.texts.iter().filter(|t| t.overlaps(rect)).count();
            let ink = self.ink.iter().filter(|p| rect.contains(**p)).count();
            (outside + texts, ink)
        };
        let (index, (hard, _)) =
            candidates.iter().map(cost).enumerate().min_by_key(|(_, cost)| *cost)?;
        if hard == 0 {
            self.add_text(candidates[index]);
        }
        Some((index, hard == 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::scale::Scale;

    const AREA: Rect = Rect { x: 10.0, y: 20.0, width: 100.0, height: 50.0 };

    #[test]
    fn y_grows_upwards_and_gaps_split_lines() {
        let axis = Axis::new(Scale::Linear, (0.0, 1.0));
        let frame = DataArea { area: AREA, x: axis, y: axis };
        assert_eq!(frame.point((0.0, 0.0)), Some((10.0, 70.0)));
        assert_eq!(frame.point((1.0, 1.0)), Some((110.0, 20.0)));
        assert_eq!(frame.runs(&[(0.0, 0.0), (0.5, f64::NAN), (1.0, 0.5), (1.0, 1.0)]).len(), 2);
        assert!(frame.runs(&[]).is_empty());
    }

    #[test]
    fn labels_avoid_texts_first_and_lines_second() {
        let at = |x: f64| Rect { x, y: 30.0, width: 20.0, height: 10.0 };
        let mut places = LabelRoom::default();
        places.add_text(at(10.0));
        places.add_line(&[(40.0, 0.0), (40.0, 100.0)]);
        assert_eq!(places.take(&[at(15.0), at(35.0), at(60.0)], &AREA), Some((2, true)));
        assert_eq!(places.take(&[at(15.0), at(35.0), at(60.0)], &AREA), Some((1, true)));
        assert_eq!(places.take(&[at(15.0)], &AREA), Some((0, false)));
        assert_eq!(places.take(&[], &AREA), None);
    }
}

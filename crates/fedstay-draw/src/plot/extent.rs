//! How far the layers of a panel reach, for axes whose range was left open.

use super::layer::{Along, Layer, Point};
use super::scale::Scale;
use super::table::Bars;

/// The smallest interval that holds the drawable values added to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    scale: Scale,
    low: f64,
    high: f64,
}

impl Extent {
    fn new(scale: Scale) -> Self {
        Self { scale, low: f64::INFINITY, high: f64::NEG_INFINITY }
    }

    fn add(&mut self, value: f64) {
        if value.is_finite() && (self.scale == Scale::Linear || value > 0.0) {
            self.low = self.low.min(value);
            self.high = self.high.max(value);
        }
    }

    fn add_pair(&mut self, (a, b): (f64, f64)) {
        self.add(a);
        self.add(b);
    }

    /// The interval; not finite if nothing was added, which an axis takes care of.
    fn exact(&self) -> (f64, f64) {
        (self.low, self.high)
    }

    /// The interval with five per cent of air, except below a zero: losses and counts start there.
    fn aired(&self) -> (f64, f64) {
        if self.scale == Scale::Log {
            return (self.low / 1.2, self.high * 1.2);
        }
        let air = 0.05 * (self.high - self.low);
        (if self.low == 0.0 { 0.0 } else { self.low - air }, self.high + air)
    }
}

/// The x and y ranges that show all of `layers`.
pub(super) fn fit(layers: &[Layer], scales: (Scale, Scale)) -> ((f64, f64), (f64, f64)) {
    let mut x = Extent::new(scales.0);
    let mut y = Extent::new(scales.1);
    let mut rows = None;
    for layer in layers {
        let mut add = |point: &Point| {
            x.add(point.0);
            y.add(point.1);
        };
        match layer {
            Layer::Line(line) => line.points.iter().for_each(add),
            Layer::Points(points) => points.points.iter().for_each(add),
            Layer::Band(band) => band.points.iter().for_each(|&(x, low, high)| {
                add(&(x, low));
                add(&(x, high));
            }),
            Layer::Arrows(arrows) => arrows.arrows.iter().for_each(|(at, _)| add(at)),
            Layer::Note(note) => add(&note.at),
            Layer::Region(region) => add_grid(&mut x, &mut y, region.grid.ranges()),
            Layer::Contours(contours) => add_grid(&mut x, &mut y, contours.grid.ranges()),
            Layer::Guide(guide) => match guide.along {
                Along::Vertical(at) => x.add(at),
                Along::Horizontal(at) => y.add(at),
            },
            Layer::Cells(cells) => {
                let columns = cells.rows.iter().map(Vec::len).max().unwrap_or(0);
                x.add_pair((cells.start, cells.start + columns as f64 * cells.step));
                rows = Some((cells.rows.len() as f64 - 0.5, -0.5));
            }
            Layer::Bars(bars) => add_bars(&mut x, &mut y, bars),
        }
    }
    // Level sets and strips fill the panel to its edges; everything else gets some air.
    let filled = layers.iter().any(|l| matches!(l, Layer::Region(_) | Layer::Contours(_)));
    let fitted = if filled { y.exact() } else { y.aired() };
    (x.exact(), rows.unwrap_or(fitted))
}

fn add_grid(x: &mut Extent, y: &mut Extent, ranges: ((f64, f64), (f64, f64))) {
    x.add_pair(ranges.0);
    y.add_pair(ranges.1);
}

fn add_bars(x: &mut Extent, y: &mut Extent, bars: &Bars) {
    let groups = bars.series.iter().map(|s| s.values.len()).max().unwrap_or(0);
    x.add_pair((-0.6, groups as f64 - 0.4));
    y.add(0.0);
    for group in 0..groups {
        let at = |list: &[f64]| list.get(group).copied().filter(|v| v.is_finite()).unwrap_or(0.0);
        if bars.stacked {
            y.add(bars.series.iter().map(|s| at(&s.values)).sum());
            continue;
        }
        for series in &bars.series {
            let (value, error) = (at(&series.values), at(&series.errors).max(0.0));
            // A tenth more leaves room for the number above the bar.
            let factor = if bars.show_values { 1.1 } else { 1.0 };
            y.add_pair((value.min(0.0) - error * f64::from(value < 0.0), factor * (value + error)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::{BarSeries, Cells, Colour, Line, Style};

    const LINEAR: (Scale, Scale) = (Scale::Linear, Scale::Linear);

    #[test]
    fn points_that_cannot_be_drawn_do_not_count() {
        let points = vec![(1.0, 2.0), (f64::NAN, 3.0), (10.0, f64::INFINITY), (-5.0, 4.0)];
        let layers = [Line::new("", points, Style::of("fedavg")).into()];
        let (x, y) = fit(&layers, LINEAR);
        assert_eq!(x, (-5.0, 10.0));
        assert!((y.0 - 1.9).abs() < 1e-12 && (y.1 - 4.1).abs() < 1e-12);
        assert_eq!(fit(&layers, (Scale::Log, Scale::Linear)).0, (1.0, 10.0));
    }

    #[test]
    fn strips_list_their_rows_from_the_top() {
        let layers = [Cells::new(vec![vec![0; 500]; 10], Vec::new(), 1.0).into()];
        assert_eq!(fit(&layers, LINEAR), ((0.5, 500.5), (9.5, -0.5)));
    }

    #[test]
    fn bars_stand_on_zero_and_stacks_add_up() {
        let series = |v: f64| BarSeries::new("", vec![v, v], Colour::BLUE);
        let bars = Bars::new(vec![series(1.0), series(3.0)]);
        let (x, y) = fit(&[bars.clone().into()], LINEAR);
        assert_eq!(x, (-0.6, 1.6));
        assert!(y.0 == 0.0 && y.1 > 3.0 && y.1 < 4.0);
        let (_, y) = fit(&[Bars { stacked: true, ..bars }.into()], LINEAR);
        assert!(y.1 > 4.0);
    }
}

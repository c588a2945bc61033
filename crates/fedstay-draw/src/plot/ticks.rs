//! Which ticks an axis of a given length has room for, and their labels.

use super::frame::DataArea;
use super::palette::Colour;
use super::scale::{Axis, Tick};
use super::svg::{Anchor, Label, Svg};
use super::text;

const SIZE: f64 = 13.0;
const LEADING: f64 = 1.2 * SIZE;
const LENGTH: f64 = 5.0;
/// How far a label stands off the axis.
const GAP: f64 = LENGTH + 4.0;
/// Names longer than this are shortened: one careless name must not squeeze the whole figure.
const LONGEST: f64 = 190.0;
/// The slant of names that do not fit side by side, in degrees.
const SLANT: f64 = 35.0;

/// The ticks of one axis.
pub(super) struct Ticks {
    ticks: Vec<Tick>,
    /// The room of one label along the axis.
    slot: f64,
    slanted: bool,
}

fn widest<'a>(labels: impl Iterator<Item = &'a str>) -> f64 {
    labels.map(|l| text::width(l, SIZE, false)).fold(0.0, f64::max)
}

/// Ticks at 0, 1, 2, … with the given names, every n-th if there is room for only `room`.
fn named(names: &[String], axis: &Axis, room: f64) -> Vec<Tick> {
    let stride = (names.len() as f64 / room.max(1.0)).ceil().max(1.0) as usize;
    let (low, high) = (axis.low.min(axis.high), axis.low.max(axis.high));
    let tick = |(i, name): (usize, &String)| Tick {
        value: i as f64,
        label: text::shorten(name, SIZE, LONGEST),
    };
    let all = names.iter().enumerate().step_by(stride).map(tick);
    all.filter(|t| (low..=high).contains(&t.value)).collect()
}

impl Ticks {
    /// Ticks of a y axis `height` high; `names`, if any, replace the numbers.
    pub(super) fn vertical(names: &[String], axis: &Axis, height: f64) -> Self {
        let ticks = if names.is_empty() {
            axis.ticks(((height / 50.0) as usize).clamp(2, 8))
        } else {
            named(names, axis, height / (1.1 * SIZE))
        };
        Self { ticks, slot: LONGEST, slanted: false }
    }

    /// Ticks of an x axis `width` wide: as many numbers as fit side by side; names are wrapped
    /// into their slots, or slanted if even single words are too wide.
    pub(super) fn horizontal(names: &[String], axis: &Axis, width: f64) -> Self {
        if !names.is_empty() {
            let ticks = named(names, axis, width / (1.4 * SIZE));
            let slot = width / (axis.high - axis.low).abs().max(1.0) - 6.0;
            let slanted = widest(ticks.iter().flat_map(|t| t.label.split_whitespace())) > slot;
            // A slanted name has one line: where it may be broken it stays whole.
            let whole = |tick: Tick| Tick { label: tick.label.replace('\n', ""), ..tick };
            let ticks = if slanted { ticks.into_iter().map(whole).collect() } else { ticks };
            return Self { ticks, slot, slanted };
        }
        let mut target = ((width / 55.0) as usize).clamp(2, 12);
        loop {
            let ticks = axis.ticks(target);
            let needed = widest(ticks.iter().map(|t| t.label.as_str())) + 12.0;
            if target <= 2 || needed * ticks.len() as f64 <= 1.1 * width {
                return Self { ticks, slot: LONGEST, slanted: false };
            }
            target -= 1;
        }
    }

    pub(super) fn values(&self) -> impl Iterator<Item = f64> {
        self.ticks.iter().map(|t| t.value)
    }

    /// The room the labels of a y axis take beside it.
    pub(super) fn breadth(&self) -> f64 {
        GAP + widest(self.ticks.iter().map(|t| t.label.as_str()))
    }

    /// The room the labels of an x axis take below it.
    pub(super) fn depth(&self) -> f64 {
        if self.slanted {
            let widest = widest(self.ticks.iter().map(|t| t.label.as_str()));
            return GAP + SLANT.to_radians().sin() * widest + SIZE;
        }
        let lines = |t: &Tick| text::wrap(&t.label, SIZE, false, self.slot).len();
        let most = self.ticks.iter().map(lines).max().unwrap_or(0).max(1);
        GAP + SIZE + (most - 1) as f64 * LEADING
    }

    /// Draws the ticks below the frame; slanted labels may reach `left` pixels beyond its left
    /// edge.
    pub(super) fn draw_below(&self, svg: &mut Svg, frame: &DataArea, left: f64) {
        let axis = frame.area.bottom();
        let baseline = axis + GAP + 0.75 * SIZE;
        for tick in &self.ticks {
            let Some(px) = frame.px(tick.value) else { continue };
            svg.line((px, axis), (px, axis + LENGTH), Colour::FRAME, 1.0, &[]);
            if self.slanted {
                let room = (px - frame.area.x + left) / SLANT.to_radians().cos();
                let name = text::shorten(&tick.label, SIZE, room);
                let label = Label::new(px + 0.4 * SIZE, baseline, &name, SIZE);
                svg.text(&Label { anchor: Anchor::End, rotate: -SLANT, ..label });
                continue;
            }
            for (i, line) in text::wrap(&tick.label, SIZE, false, self.slot).iter().enumerate() {
                let label = Label::new(px, baseline + i as f64 * LEADING, line, SIZE);
                svg.text(&Label { anchor: Anchor::Middle, ..label });
            }
        }
    }

    /// Draws the ticks left of the frame.
    pub(super) fn draw_beside(&self, svg: &mut Svg, frame: &DataArea) {
        let axis = frame.area.x;
        for tick in &self.ticks {
            let Some(py) = frame.py(tick.value) else { continue };
            svg.line((axis - LENGTH, py), (axis, py), Colour::FRAME, 1.0, &[]);
            let label = Label::new(axis - GAP, py + 0.36 * SIZE, &tick.label, SIZE);
            svg.text(&Label { anchor: Anchor::End, ..label });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::scale::Scale;

    #[test]
    fn narrow_axes_have_fewer_ticks() {
        let axis = Axis::new(Scale::Linear, (0.0, 100_000.0));
        let count = |width: f64| Ticks::horizontal(&[], &axis, width).ticks.len();
        assert!(count(100.0) <= count(300.0) && count(300.0) < count(900.0));
        assert!(count(0.0) > 0);
    }

    #[test]
    fn names_wrap_before_they_slant() {
        let axis = Axis::new(Scale::Linear, (-0.6, 1.6));
        let names = ["FedAvg with early stop", "ADA-GD"].map(String::from);
        let at = |width: f64| Ticks::horizontal(&names, &axis, width);
        assert!(at(600.0).depth() < at(200.0).depth(), "wrapped");
        assert!(!at(200.0).slanted && at(90.0).slanted);
        let names = ["fedavg\n+never", "ADA-GD"].map(String::from);
        let at = |width: f64| Ticks::horizontal(&names, &axis, width);
        assert_eq!(at(60.0).ticks[0].label, "fedavg+never");
        assert!(at(200.0).depth() > at(200.0).ticks.len() as f64, "two lines");
    }

    #[test]
    fn long_lists_are_thinned_and_long_names_shortened() {
        let names: Vec<String> =
            (0..200).map(|i| format!("agent {i} {}", "x".repeat(300))).collect();
        let axis = Axis::new(Scale::Linear, (199.5, -0.5));
        let ticks = Ticks::vertical(&names, &axis, 300.0);
        assert!(ticks.ticks.len() < 25);
        assert!(ticks.breadth() <= LONGEST + GAP);
    }
}

//! One pair of axes with its layers.

use super::extent;
use super::frame::{DataArea, Rect};
use super::layer::Layer;
use super::paint;
use super::palette::Colour;
use super::scale::{Axis, Scale};
use super::svg::{Anchor, Label, Svg};
use super::text;
use super::ticks::Ticks;

const LABEL_SIZE: f64 = 14.5;
const TITLE_SIZE: f64 = 15.0;

/// A pair of axes. Fields that `new` does not take have useful defaults; change them by struct
/// update: `Panel { equal_aspect: true, ..Panel::new("", "w₁", "w₂") }`.
#[derive(Clone, Debug)]
pub struct Panel {
    /// The title above the axes; wraps if it is long.
    pub title: String,
    /// The label below the x axis.
    pub x_label: String,
    /// The label beside the y axis.
    pub y_label: String,
    /// The x range from left to right (a larger first value turns the axis round); `None` fits the
    /// layers.
    pub x_range: Option<(f64, f64)>,
    /// The y range from bottom to top; `None` fits the layers with a little air.
    pub y_range: Option<(f64, f64)>,
    /// How the x axis spaces its values.
    pub x_scale: Scale,
    /// How the y axis spaces its values.
    pub y_scale: Scale,
    /// Names for x = 0, 1, 2, … instead of numbers.
    pub x_categories: Vec<String>,
    /// Names for y = 0, 1, 2, … instead of numbers.
    pub y_categories: Vec<String>,
    /// Whether one unit is as long on both axes; the height then follows from the width.
    pub equal_aspect: bool,
    /// Whether faint lines continue the ticks across the panel; without them there is a full frame.
    pub grid: bool,
    /// The height of the axes in pixels; `None` chooses one that suits the layers.
    pub height: Option<f64>,
    /// The width of the axes relative to the other panels of its row.
    pub weight: f64,
    /// The layers, from back to front.
    pub layers: Vec<Layer>,
}

impl Panel {
    /// A panel without layers.
    pub fn new(
        title: impl Into<String>,
        x_label: impl Into<String>,
        y_label: impl Into<String>,
    ) -> Self {
        Self {
            title: title.into(),
            x_label: x_label.into(),
            y_label: y_label.into(),
            x_range: None,
            y_range: None,
            x_scale: Scale::Linear,
            y_scale: Scale::Linear,
            x_categories: Vec::new(),
            y_categories: Vec::new(),
            equal_aspect: false,
            grid: true,
            height: None,
            weight: 1.0,
            layers: Vec::new(),
        }
    }

    /// The panel with one more layer on top.
    #[must_use]
    pub fn with(mut self, layer: impl Into<Layer>) -> Self {
        self.layers.push(layer.into());
        self
    }

    /// Width over height of a panel with equal aspect.
    pub(super) fn aspect(&self) -> Option<f64> {
        let (x, y) = self.axes();
        let ratio = (x.high - x.low).abs() / (y.high - y.low).abs();
        let linear = (self.x_scale, self.y_scale) == (Scale::Linear, Scale::Linear);
        // A hair-thin panel helps nobody, whatever the data.
        (self.equal_aspect && linear).then(|| ratio.clamp(0.1, 10.0))
    }

    /// The height of axes that are `width` wide.
    pub(super) fn natural_height(&self, width: f64) -> f64 {
        let rows = self
            .layers
            .iter()
            .filter_map(|l| if let Layer::Cells(c) = l { Some(c.rows.len()) } else { None });
        let height = match (self.aspect(), self.height, rows.max()) {
            (Some(aspect), ..) => width / aspect,
            (_, Some(height), _) if height.is_finite() => height,
            (_, _, Some(rows)) => (rows as f64 * 20.0).clamp(60.0, 500.0),
            _ => (0.62 * width).clamp(180.0, 330.0),
        };
        height.clamp(40.0, 4000.0)
    }

    /// Whether the panel may be made as high as its neighbours.
    pub(super) fn stretches(&self) -> bool {
        let strip = self.layers.iter().any(|l| matches!(l, Layer::Cells(_)));
        self.aspect().is_none() && self.height.is_none() && !strip
    }

    /// The axes after ranges that were left open are fitted to the layers.
    fn axes(&self) -> (Axis, Axis) {
        let (x, y) = extent::fit(&self.layers, (self.x_scale, self.y_scale));
        (
            Axis::new(self.x_scale, self.x_range.unwrap_or(x)),
            Axis::new(self.y_scale, self.y_range.unwrap_or(y)),
        )
    }

    fn y_ticks(&self, height: f64) -> Ticks {
        Ticks::vertical(&self.y_categories, &self.axes().1, height)
    }

    fn x_ticks(&self, width: f64) -> Ticks {
        Ticks::horizontal(&self.x_categories, &self.axes().0, width)
    }

    /// Room left of axes that are `height` high, for tick labels and the y label.
    pub(super) fn left_margin(&self, height: f64) -> f64 {
        let label = if self.y_label.is_empty() { 0.0 } else { 1.6 * LABEL_SIZE };
        self.y_ticks(height).breadth() + label
    }

    /// Room above axes that are `width` wide.
    pub(super) fn top_margin(&self, width: f64) -> f64 {
        let lines = text::wrap(&self.title, TITLE_SIZE, true, width).len() as f64;
        if lines == 0.0 { 6.0 } else { lines * 1.25 * TITLE_SIZE + 7.0 }
    }

    /// Room below axes that are `width` wide.
    pub(super) fn bottom_margin(&self, width: f64) -> f64 {
        let label = if self.x_label.is_empty() { 0.0 } else { 1.5 * LABEL_SIZE };
        self.x_ticks(width).depth() + label
    }

    /// Draws the panel with its axes exactly in `area`; `left` is the room beside it, which may be
    /// more than this panel needs if the panels below it need more.
    pub(super) fn draw(&self, svg: &mut Svg, area: Rect, left: f64) {
        let (x, y) = self.axes();
        let frame = DataArea { area, x, y };
        let title = text::wrap(&self.title, TITLE_SIZE, true, area.width);
        let top = area.y - self.top_margin(area.width);
        for (i, line) in title.iter().enumerate() {
            let baseline = top + (i as f64 + 0.9) * 1.25 * TITLE_SIZE;
            svg.text(&Label { bold: true, ..Label::new(area.x, baseline, line, TITLE_SIZE) });
        }
        let (x_ticks, y_ticks) = (self.x_ticks(area.width), self.y_ticks(area.height));
        // A grid line through named groups would mean nothing.
        if self.grid && self.x_categories.is_empty() {
            for px in x_ticks.values().filter_map(|v| frame.px(v)) {
                svg.line((px, area.y), (px, area.bottom()), Colour::GRID, 1.0, &[]);
            }
        }
        if self.grid && self.y_categories.is_empty() {
            for py in y_ticks.values().filter_map(|v| frame.py(v)) {
                svg.line((area.x, py), (area.right(), py), Colour::GRID, 1.0, &[]);
            }
        }
        paint::layers(svg, &frame, &self.layers);
        self.draw_frame(svg, &area);
        x_ticks.draw_below(svg, &frame, left);
        y_ticks.draw_beside(svg, &frame);
        let middle = (area.x + area.width / 2.0, area.y + area.height / 2.0);
        let below = area.bottom() + x_ticks.depth() + 1.1 * LABEL_SIZE;
        let label = Label::new(middle.0, below, &self.x_label, LABEL_SIZE);
        svg.text(&Label { anchor: Anchor::Middle, ..label });
        let beside = area.x - left.max(self.left_margin(area.height)) + 0.85 * LABEL_SIZE;
        let label = Label::new(beside, middle.1, &self.y_label, LABEL_SIZE);
        svg.text(&Label { anchor: Anchor::Middle, rotate: -90.0, ..label });
    }

    fn draw_frame(&self, svg: &mut Svg, area: &Rect) {
        let (left, right, top, bottom) = (area.x, area.right(), area.y, area.bottom());
        svg.line((left, bottom), (right, bottom), Colour::FRAME, 1.0, &[]);
        svg.line((left, top), (left, bottom), Colour::FRAME, 1.0, &[]);
        if !self.grid {
            svg.line((left, top), (right, top), Colour::FRAME, 1.0, &[]);
            svg.line((right, top), (right, bottom), Colour::FRAME, 1.0, &[]);
        }
    }
}

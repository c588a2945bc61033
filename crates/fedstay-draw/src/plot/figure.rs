//! A page of panels with title, legend and caption.

use super::frame::Rect;
use super::legend::{self, Legend};
use super::palette::Colour;
use super::panel::Panel;
use super::svg::{Label, Svg};
use super::text;

/// The width of a figure across a page or a README. Texts are sized so that, printed 6.75 inches
/// wide, the smallest is above six points.
pub const PAGE_WIDTH: f64 = 1000.0;
/// The width of a figure in one column of a two-column paper; texts come out as large as at
/// [`PAGE_WIDTH`] because 480 pixels are to 3.25 inches what 1000 are to 6.75.
pub const COLUMN_WIDTH: f64 = 480.0;

const PADDING: f64 = 16.0;
const TITLE_SIZE: f64 = 19.0;
const SUBTITLE_SIZE: f64 = 14.5;
const CAPTION_SIZE: f64 = 13.5;
const LINE: f64 = 1.35;
/// The gaps between panels, across and down.
const GUTTER: f64 = 30.0;
/// The room right of the last panel of a row, for the half of its last tick label that sticks out.
const RIGHT_MARGIN: f64 = 10.0;

/// A page of panels.
#[derive(Clone, Debug)]
pub struct Figure {
    /// The title, in large letters at the top; empty for none.
    pub title: String,
    /// What screen readers call a figure whose title stands elsewhere on the page; empty for the
    /// title.
    pub name: String,
    /// The line below the title; empty for none.
    pub subtitle: String,
    /// The caption below everything; empty for none. It is also the description that screen readers
    /// speak.
    pub caption: String,
    /// The panels, from left to right, then from top to bottom.
    pub panels: Vec<Panel>,
    /// How many panels make a row; 0 puts all in one row.
    pub columns: usize,
    /// The width in pixels; see [`PAGE_WIDTH`] and [`COLUMN_WIDTH`]. The height follows.
    pub width: f64,
    /// Where the legend of all panels goes.
    pub legend: Legend,
}

impl Figure {
    /// A page-wide figure without panels.
    pub fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            name: String::new(),
            subtitle: String::new(),
            caption: String::new(),
            panels: Vec::new(),
            columns: 0,
            width: PAGE_WIDTH,
            legend: Legend::Top,
        }
    }

    /// The figure with one more panel.
    #[must_use]
    pub fn with(mut self, panel: Panel) -> Self {
        self.panels.push(panel);
        self
    }

    /// The finished drawing; equal figures give equal text.
    pub fn to_svg(&self) -> String {
        let width =
            if self.width.is_finite() { self.width.clamp(200.0, 10_000.0) } else { PAGE_WIDTH };
        let inner = width - 2.0 * PADDING;
        let mut svg = Svg::default();
        let mut y = PADDING;
        y += paragraph(&mut svg, &self.title, y, inner, TITLE_SIZE, true, Colour::INK);
        y += paragraph(&mut svg, &self.subtitle, y, inner, SUBTITLE_SIZE, false, Colour::FRAME);
        if self.legend == Legend::Top {
            y += self.draw_legend(&mut svg, y, inner);
        }
        y += if y > PADDING { 8.0 } else { 0.0 };
        let columns = if self.columns == 0 { self.panels.len().max(1) } else { self.columns };
        let lefts = left_margins(&self.panels, columns, inner);
        for (i, row) in self.panels.chunks(columns).enumerate() {
            y += if i > 0 { 0.6 * GUTTER } else { 0.0 };
            y += draw_row(&mut svg, row, &lefts, y, inner);
        }
        y += 8.0;
        if self.legend == Legend::Bottom {
            y += self.draw_legend(&mut svg, y, inner);
        }
        y += paragraph(&mut svg, &self.caption, y, inner, CAPTION_SIZE, false, Colour::FRAME);
        let name = if self.name.is_empty() { &self.title } else { &self.name };
        svg.finish(width, (y + PADDING - 8.0).ceil(), name, &self.caption)
    }

    fn draw_legend(&self, svg: &mut Svg, y: f64, width: f64) -> f64 {
        let layers = self.panels.iter().flat_map(|p| &p.layers);
        let height = legend::draw(svg, layers, PADDING, y + 4.0, width);
        if height > 0.0 { height + 8.0 } else { 0.0 }
    }
}

/// Draws wrapped text from `y` downwards; returns its height.
fn paragraph(
    svg: &mut Svg,
    content: &str,
    y: f64,
    width: f64,
    size: f64,
    bold: bool,
    colour: Colour,
) -> f64 {
    let lines = text::wrap_evenly(content, size, bold, width);
    for (i, line) in lines.iter().enumerate() {
        let baseline = y + (i as f64 * LINE + 0.95) * size;
        svg.text(&Label { bold, colour, ..Label::new(PADDING, baseline, line, size) });
    }
    if lines.is_empty() { 0.0 } else { lines.len() as f64 * LINE * size + 4.0 }
}

/// Room left of the axes of each column: what the neediest of its panels takes, so that axes of
/// one column line up. Which tick labels there are depends on the size of the axes, and that on
/// this room; a second pass with the sizes of the first settles it.
fn left_margins(panels: &[Panel], columns: usize, inner: f64) -> Vec<f64> {
    let mut lefts = vec![50.0; columns];
    for _ in 0..2 {
        let mut needed = vec![0.0; columns];
        for row in panels.chunks(columns) {
            let widths = axes_widths(row, &lefts, inner);
            for ((panel, width), left) in row.iter().zip(widths).zip(&mut needed) {
                *left = f64::max(*left, panel.left_margin(panel.natural_height(width)));
            }
        }
        lefts = needed;
    }
    lefts
}

/// How wide the axes of a row become. There may be more columns (`lefts`) than panels: the last row
/// of a grid keeps the column width of the others.
fn axes_widths(row: &[Panel], lefts: &[f64], inner: f64) -> Vec<f64> {
    let columns = lefts.len() as f64;
    let taken = lefts.iter().sum::<f64>() + GUTTER * (columns - 1.0) + RIGHT_MARGIN;
    let room = (inner - taken).max(40.0 * columns);
    // Panels with equal aspect share the room so that all come out equally high.
    let aspects: Option<Vec<f64>> = row.iter().map(Panel::aspect).collect();
    let weights = aspects.unwrap_or_else(|| row.iter().map(|p| positive(p.weight)).collect());
    let total = weights.iter().sum::<f64>() * columns / row.len().max(1) as f64;
    weights.iter().map(|w| room * w / total).collect()
}

/// Draws panels side by side with their axes top-aligned; returns the row's height.
fn draw_row(svg: &mut Svg, row: &[Panel], lefts: &[f64], y: f64, inner: f64) -> f64 {
    let widths = axes_widths(row, lefts, inner);
    // A tall narrow panel would need a page of its own: it gets less width instead.
    let natural =
        |(panel, width): (&Panel, &f64)| panel.natural_height(*width).min(1.3 * width.max(250.0));
    let heights: Vec<f64> = row.iter().zip(&widths).map(natural).collect();
    let highest = heights.iter().copied().fold(0.0, f64::max);
    let top = row.iter().zip(&widths).map(|(p, w)| p.top_margin(*w)).fold(0.0, f64::max);
    let mut bottom = y;
    let mut x = PADDING;
    for (i, panel) in row.iter().enumerate() {
        let height = if panel.stretches() { highest } else { heights[i] };
        let used = panel.aspect().map_or(widths[i], |aspect| widths[i].min(height * aspect));
        let area = Rect { x: x + lefts[i], y: y + top, width: used, height };
        panel.draw(svg, area, lefts[i]);
        bottom = f64::max(bottom, area.bottom() + panel.bottom_margin(used));
        x += lefts[i] + widths[i] + GUTTER;
    }
    bottom - y
}

fn positive(weight: f64) -> f64 {
    if weight.is_finite() && weight > 0.0 { weight } else { 1.0 }
}

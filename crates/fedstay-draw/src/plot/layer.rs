//! What can be put into a panel.
//!
//! Every layer is a plain struct: `new` takes what it cannot do without, the rest has defaults that
//! are changed by struct update, `Line { markers: true, ..Line::new(…) }`. A layer whose `name` is
//! not empty appears in the legend; equal names in several panels share one entry. Points that are
//! not finite are skipped, and a line has a gap there.

use super::field::{Arrows, Contours, Region};
use super::palette::{Colour, Dash, Fill, Marker, Style};
use super::table::{Bars, Cells};

/// A position in data coordinates.
pub type Point = (f64, f64);

/// One layer of a panel; later layers are drawn over earlier ones.
#[derive(Clone, Debug)]
pub enum Layer {
    /// A line through points.
    Line(Line),
    /// An area between two curves.
    Band(Band),
    /// Separate points.
    Points(Points),
    /// A straight line across the panel.
    Guide(Guide),
    /// A filled sub-level set.
    Region(Region),
    /// Level lines.
    Contours(Contours),
    /// A vector field.
    Arrows(Arrows),
    /// A strip of categories.
    Cells(Cells),
    /// Bars.
    Bars(Bars),
    /// Text with a leader.
    Note(Note),
}

macro_rules! layers {
    ($($name:ident),*) => {$(
        impl From<$name> for Layer {
            fn from(layer: $name) -> Self {
                Self::$name(layer)
            }
        }
    )*};
}
layers!(Line, Band, Points, Guide, Region, Contours, Arrows, Cells, Bars, Note);

/// A line through points.
#[derive(Clone, Debug)]
pub struct Line {
    /// The name in the legend.
    pub name: String,
    /// The points, in order.
    pub points: Vec<Point>,
    /// Colour, dash and marker.
    pub style: Style,
    /// The width of the line in pixels.
    pub width: f64,
    /// Whether to draw the style's marker at some of the points, evenly spaced along the line.
    pub markers: bool,
    /// Whether arrow heads show the direction of travel.
    pub arrows: bool,
    /// By how many pixels the drawn line is moved, right and up: where two trajectories coincide, a
    /// nudge of two or three shows both.
    pub nudge: (f64, f64),
}

impl Line {
    /// A line 2.2 pixels wide without markers.
    pub fn new(name: impl Into<String>, points: Vec<Point>, style: Style) -> Self {
        Self {
            name: name.into(),
            points,
            style,
            width: 2.2,
            markers: false,
            arrows: false,
            nudge: (0.0, 0.0),
        }
    }
}

/// The area between two curves, such as a confidence band.
#[derive(Clone, Debug)]
pub struct Band {
    /// The name in the legend; with the name of its line it joins that line's entry.
    pub name: String,
    /// The curves as (x, lower, upper), in order of x.
    pub points: Vec<(f64, f64, f64)>,
    /// How it is filled.
    pub fill: Fill,
}

impl Band {
    /// A pale band.
    pub fn new(name: impl Into<String>, points: Vec<(f64, f64, f64)>, colour: Colour) -> Self {
        Self { name: name.into(), points, fill: Fill::tint(colour, 0.18) }
    }
}

/// Separate points.
#[derive(Clone, Debug)]
pub struct Points {
    /// The name in the legend.
    pub name: String,
    /// The points, in any order.
    pub points: Vec<Point>,
    /// Colour of the marker.
    pub colour: Colour,
    /// Its shape.
    pub marker: Marker,
    /// Its radius in pixels.
    pub size: f64,
}

impl Points {
    /// Points of radius 6.
    pub fn new(
        name: impl Into<String>,
        points: Vec<Point>,
        marker: Marker,
        colour: Colour,
    ) -> Self {
        Self { name: name.into(), points, colour, marker, size: 6.0 }
    }
}

/// Which way a guide runs, and where.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Along {
    /// A vertical line at this x.
    Vertical(f64),
    /// A horizontal line at this y.
    Horizontal(f64),
}

/// A straight line across the panel: a departure, a threshold.
#[derive(Clone, Debug)]
pub struct Guide {
    /// The name in the legend.
    pub name: String,
    /// Where it runs.
    pub along: Along,
    /// Text beside the line; empty for none.
    pub label: String,
    /// Colour of line and label.
    pub colour: Colour,
    /// How the line is broken.
    pub dash: Dash,
    /// The width of the line in pixels.
    pub width: f64,
}

impl Guide {
    /// A dashed vertical line.
    pub fn vertical(x: f64, label: impl Into<String>) -> Self {
        Self::new(Along::Vertical(x), label.into())
    }

    /// A dashed horizontal line.
    pub fn horizontal(y: f64, label: impl Into<String>) -> Self {
        Self::new(Along::Horizontal(y), label.into())
    }

    fn new(along: Along, label: String) -> Self {
        Self {
            name: String::new(),
            along,
            label,
            colour: Colour::GREY,
            dash: Dash::Dashed,
            width: 1.4,
        }
    }
}

/// A text, with or without an arrow to the place it speaks of.
#[derive(Clone, Debug)]
pub struct Note {
    /// The place, in data coordinates.
    pub at: Point,
    /// The text; line breaks are kept.
    pub text: String,
    /// The offset from the place to the text, in pixels: right and up. The text stays inside the
    /// panel, and goes to the mirrored side if there it hides less.
    pub offset: (f64, f64),
    /// Whether an arrow leads from the text to the place.
    pub leader: bool,
    /// Colour of the text.
    pub colour: Colour,
    /// Whether the text is bold.
    pub bold: bool,
}

impl Note {
    /// A text with a leader.
    pub fn new(at: Point, text: impl Into<String>, offset: (f64, f64)) -> Self {
        Self { at, text: text.into(), offset, leader: true, colour: Colour::INK, bold: false }
    }

    /// A text centred on its place, without a leader.
    pub fn label(at: Point, text: impl Into<String>, colour: Colour) -> Self {
        Self { leader: false, colour, bold: true, ..Self::new(at, text, (0.0, 0.0)) }
    }
}

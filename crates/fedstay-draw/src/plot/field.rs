//! Layers that show functions of the plane: sub-level sets, level lines, vector fields.

use super::contour::Grid;
use super::layer::Point;
use super::palette::{Colour, Dash, Fill, Pattern, Style};

/// The set where a function is at most a threshold. Unions and intersections of such sets are
/// sub-level sets of a minimum or a maximum, so a bad region needs no layer of its own.
#[derive(Clone, Debug)]
pub struct Region {
    /// The name in the legend.
    pub name: String,
    /// The function.
    pub grid: Grid,
    /// The set is where it is at most this.
    pub threshold: f64,
    /// How the set is filled.
    pub fill: Fill,
    /// Colour and dash of its edge, if it has one. Two tints may be the same grey in print; the
    /// dashes of their edges still tell them apart.
    pub outline: Option<Style>,
}

impl Region {
    /// A tinted set with an outline.
    pub fn new(name: impl Into<String>, grid: Grid, threshold: f64, style: Style) -> Self {
        let fill = Fill::tint(style.colour, 0.3);
        Self { name: name.into(), grid, threshold, fill, outline: Some(style) }
    }

    /// A dotted set that lets everything below it show.
    pub fn dotted(name: impl Into<String>, grid: Grid, threshold: f64, ink: Colour) -> Self {
        let fill = Fill::texture(Pattern::Dots, ink);
        Self { name: name.into(), grid, threshold, fill, outline: None }
    }
}

/// Level lines of a function.
#[derive(Clone, Debug)]
pub struct Contours {
    /// The name in the legend.
    pub name: String,
    /// The function.
    pub grid: Grid,
    /// The levels.
    pub levels: Vec<f64>,
    /// Colour of the lines.
    pub colour: Colour,
    /// How the lines are broken.
    pub dash: Dash,
    /// The width of the lines in pixels.
    pub width: f64,
    /// Whether each level is written on its longest line, where there is room.
    pub labels: bool,
}

impl Contours {
    /// Thin labelled lines.
    pub fn new(name: impl Into<String>, grid: Grid, levels: Vec<f64>, style: Style) -> Self {
        let Style { colour, dash, .. } = style;
        Self { name: name.into(), grid, levels, colour, dash, width: 1.1, labels: true }
    }
}

/// A vector field.
#[derive(Clone, Debug)]
pub struct Arrows {
    /// The name in the legend.
    pub name: String,
    /// The arrows as (place, direction), in data coordinates.
    pub arrows: Vec<(Point, Point)>,
    /// Colour of the arrows.
    pub colour: Colour,
    /// The length of the longest arrow in pixels; the others are in proportion.
    pub length: f64,
}

impl Arrows {
    /// Grey arrows up to 18 pixels long.
    pub fn new(name: impl Into<String>, arrows: Vec<(Point, Point)>) -> Self {
        Self { name: name.into(), arrows, colour: Colour::GREY, length: 18.0 }
    }
}

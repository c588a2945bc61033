//! The paths of runs in the plane of two weights.

use super::trace::Trace;
use fedstay_draw::picture::landscape::Landscape;
use fedstay_draw::plot::{Colour, Layer, Line, Marker, Note, Point, Points, Style};

/// Points of a path closer than this share of the panel's width look like one.
const FINEST: f64 = 0.004;

/// The paths of runs, with the points where they begin and where agents leave.
pub(super) fn paths(land: &Landscape<'_>, runs: &[DrawnRun<'_>]) -> Vec<Layer> {
    let mut layers: Vec<Layer> = Vec::new();
    for DrawnRun { name, trace, nudge } in runs {
        let points = trace.thinned(FINEST * (land.x.1 - land.x.0));
        let line = Line::new(*name, points, Style::of(name));
        layers.push(Line { arrows: true, nudge: *nudge, ..line }.into());
    }
    let starts = runs.iter().map(|run| run.trace.start()).collect();
    let left = runs.iter().flat_map(|run| run.trace.left.iter().map(|left| left.at)).collect();
    layers.push(Points::new("start w₀", starts, Marker::Ring, Colour::INK).into());
    layers.push(Points::new("an agent leaves", left, Marker::Cross, Colour::INK).into());
    layers
}

/// A run to be drawn.
pub(super) struct DrawnRun<'a> {
    /// The rule's name, which decides the style.
    pub(super) name: &'static str,
    pub(super) trace: &'a Trace,
    /// An offset in pixels, right and up, for paths that coincide.
    pub(super) nudge: (f64, f64),
}

/// The points where a rule stops on its own.
pub(super) fn stops(name: &str, rule: &str, places: Vec<Point>) -> Points {
    let style = Style::of(rule);
    Points::new(name, places, style.marker, style.colour)
}

/// A label on an agent's set.
pub(super) fn set_name(agent: usize, at: Point, text: &str) -> Note {
    Note::label(at, text, Style::agent(agent).colour.darker(0.5))
}

//! The plane of two weights: level lines, sub-level sets and the paths of runs in it.

use super::trace::Trace;
use crate::draw::{
    Colour, Contours, Grid, Layer, Line, Marker, Note, Panel, Point, Points, Region, Style,
};
use fedstay::problem::Instance;

/// Points of a path nearer than this share of the panel's width are one point to the eye.
const FINEST: f64 = 0.004;

/// A piece of the plane, and the problem whose losses are drawn on it.
pub(crate) struct Landscape<'a> {
    pub(crate) instance: &'a Instance,
    pub(crate) x: (f64, f64),
    pub(crate) y: (f64, f64),
    /// Samples across; as many a unit upwards.
    pub(crate) samples: usize,
}

impl Landscape<'_> {
    /// Empty axes in which a unit is as long upwards as sideways.
    pub(crate) fn panel(&self, title: &str) -> Panel {
        Panel {
            equal_aspect: true,
            grid: false,
            x_range: Some(self.x),
            y_range: Some(self.y),
            ..Panel::new(title, "w₁", "w₂")
        }
    }

    /// A function, sampled.
    pub(crate) fn grid(&self, f: impl Fn(f64, f64) -> f64) -> Grid {
        let share = (self.y.1 - self.y.0) / (self.x.1 - self.x.0);
        let rows = (self.samples as f64 * share).ceil() as usize;
        Grid::sample(self.x, self.y, self.samples, rows, f)
    }

    /// An agent's loss, sampled; agents are counted from 0.
    pub(crate) fn loss(&self, agent: usize) -> Grid {
        self.grid(|x, y| self.instance.oracles[agent].loss(&[x, y]))
    }

    /// Every agent's ε-sub-level set, with level lines of its loss above it.
    pub(crate) fn content(&self, levels: &[f64]) -> Vec<Layer> {
        let mut layers = Vec::new();
        for agent in 0..self.instance.oracles.len() {
            let (style, grid) = (Style::agent(agent), self.loss(agent));
            let sub = subscript(agent);
            let name = format!("S{sub}*: agent {} is content, F{sub} ≤ ε", agent + 1);
            layers.push(Region::new(name, grid.clone(), self.instance.epsilon, style).into());
            layers.push(Contours::new("", grid, levels.to_vec(), style).into());
        }
        layers
    }

    /// The paths of runs, with where they begin and where agents leave them.
    pub(super) fn paths(&self, runs: &[Run<'_>]) -> Vec<Layer> {
        let mut layers: Vec<Layer> = Vec::new();
        for Run { name, trace, nudge } in runs {
            let points = trace.thinned(FINEST * (self.x.1 - self.x.0));
            let line = Line::new(*name, points, Style::of(name));
            layers.push(Line { arrows: true, nudge: *nudge, ..line }.into());
        }
        let starts = runs.iter().map(|run| run.trace.start()).collect();
        let left = runs.iter().flat_map(|run| run.trace.left.iter().map(|left| left.at)).collect();
        layers.push(Points::new("start w₀", starts, Marker::Ring, Colour::INK).into());
        layers.push(Points::new("an agent leaves", left, Marker::Cross, Colour::INK).into());
        layers
    }
}

/// A run to be drawn.
pub(super) struct Run<'a> {
    /// The rule's name, which decides the look.
    pub(super) name: &'static str,
    pub(super) trace: &'a Trace,
    /// In pixels, right and up, for paths that coincide.
    pub(super) nudge: (f64, f64),
}

/// Where a rule stops by itself.
pub(super) fn stops(name: &str, rule: &str, places: Vec<Point>) -> Points {
    let style = Style::of(rule);
    Points::new(name, places, style.marker, style.colour)
}

/// A name on an agent's set.
pub(super) fn set_name(agent: usize, at: Point, text: &str) -> Note {
    Note::label(at, text, Style::agent(agent).colour.darker(0.5))
}

/// The subscript of agent number `agent` (from 0), counted from 1.
pub(super) fn subscript(agent: usize) -> char {
    ['₁', '₂', '₃', '₄', '₅', '₆', '₇', '₈', '₉'].get(agent).copied().unwrap_or('ₘ')
}

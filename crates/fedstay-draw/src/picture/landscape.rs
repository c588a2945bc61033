//! The plane of two weights: level lines and sub-level sets of the agents' losses.

use crate::plot::{Contours, Grid, Layer, Panel, Region, Style};
use fedstay::problem::Instance;

/// A piece of the plane, and the problem whose losses are drawn on it.
pub struct Landscape<'a> {
    /// The problem.
    pub instance: &'a Instance,
    /// The range of the first weight.
    pub x: (f64, f64),
    /// The range of the second weight.
    pub y: (f64, f64),
    /// Samples across; as many per unit upwards.
    pub samples: usize,
}

impl Landscape<'_> {
    /// Empty axes in which a unit is as long upwards as sideways.
    pub fn panel(&self, title: &str) -> Panel {
        Panel {
            equal_aspect: true,
            grid: false,
            x_range: Some(self.x),
            y_range: Some(self.y),
            ..Panel::new(title, "w₁", "w₂")
        }
    }

    /// A function, sampled.
    pub fn grid(&self, f: impl Fn(f64, f64) -> f64) -> Grid {
        let share = (self.y.1 - self.y.0) / (self.x.1 - self.x.0);
        let rows = (self.samples as f64 * share).ceil() as usize;
        Grid::sample(self.x, self.y, self.samples, rows, f)
    }

    /// An agent's loss, sampled; agents are counted from 0.
    pub fn loss(&self, agent: usize) -> Grid {
        self.grid(|x, y| self.instance.oracles[agent].loss(&[x, y]))
    }

    /// Every agent's ε-sub-level set, with level lines of its loss above it.
    pub fn content(&self, levels: &[f64]) -> Vec<Layer> {
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
}

/// The subscript of agent number `agent` (from 0), counted from 1.
pub fn subscript(agent: usize) -> char {
    ['₁', '₂', '₃', '₄', '₅', '₆', '₇', '₈', '₉'].get(agent).copied().unwrap_or('ₘ')
}

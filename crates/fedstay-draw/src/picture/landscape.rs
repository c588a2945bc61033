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

/// The most agents whose losses are drawn: more sets on one map cannot be told apart.
pub const MOST_AGENTS: usize = 6;
/// The most terms of losses that a map adds up, about a second's work: where losses have more, it has
/// fewer samples.
const MOST_TERMS: usize = 200_000_000;
/// The fewest samples across that still show something.
const FEWEST: usize = 24;

/// How much wider than high a window around a path is.
const ASPECT: f64 = 4.0 / 3.0;
/// The least that a window shows of a path that hardly moves.
const NARROWEST: f64 = 0.5;

impl<'a> Landscape<'a> {
    /// A window around a path with some air, four units wide for three high, with this many samples
    /// across or as many as can be afforded; `None` unless the path has a finite point. Its corners are on a coarse lattice, so that a path that grows a little while
    /// somebody watches does not move it.
    pub fn around(instance: &'a Instance, path: &[(f64, f64)], samples: usize) -> Option<Self> {
        let range = |pick: fn(&(f64, f64)) -> f64| {
            let finite = path.iter().filter(|(x, y)| x.is_finite() && y.is_finite());
            finite.map(pick).fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
                (low.min(value), high.max(value))
            })
        };
        let (x, y) = (range(|point| point.0), range(|point| point.1));
        let width = (x.1 - x.0).max(ASPECT * (y.1 - y.0)).max(NARROWEST);
        let cell = 2f64.powf((width / 4.0).log2().ceil());
        let width = ((width * 1.5) / cell).ceil() * cell;
        let around = |range: (f64, f64), size: f64| {
            let centre = ((range.0 + range.1) / 2.0 / cell * 4.0).round() * cell / 4.0;
            (centre - size / 2.0, centre + size / 2.0)
        };
        let (x, y) = (around(x, width), around(y, width / ASPECT));
        let finite = [x.0, x.1, y.0, y.1].iter().all(|corner| corner.is_finite());
        finite.then(|| Self { instance, x, y, samples: samples.min(affordable(instance)) })
    }

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

    /// Every agent's ε-sub-level set, with level lines of its loss above it; the first few agents',
    /// where there are many. Agents are counted from 1, as in the paper.
    pub fn content(&self, levels: &[f64]) -> Vec<Layer> {
        self.content_named(levels, |agent| {
            let sub = subscript(agent);
            format!("S{sub}*: agent {} is content, F{sub} ≤ ε", agent + 1)
        })
    }

    /// The same, with a name for every set.
    pub fn content_named(&self, levels: &[f64], name: impl Fn(usize) -> String) -> Vec<Layer> {
        let mut layers = Vec::new();
        for agent in 0..self.instance.oracles.len().min(MOST_AGENTS) {
            let (style, grid) = (Style::agent(agent), self.loss(agent));
            layers
                .push(Region::new(name(agent), grid.clone(), self.instance.epsilon, style).into());
            layers.push(Contours::new("", grid, levels.to_vec(), style).into());
        }
        layers
    }
}

/// How many samples across can be afforded of losses with this number of terms.
fn affordable(instance: &Instance) -> usize {
    let drawn = instance.oracles.iter().take(MOST_AGENTS);
    let terms: usize = drawn.map(|oracle| oracle.terms()).sum();
    let samples = ASPECT * MOST_TERMS as f64 / terms.max(1) as f64;
    (samples.sqrt() as usize).max(FEWEST)
}

/// The subscript of agent number `agent` (from 0), counted from 1.
pub fn subscript(agent: usize) -> char {
    ['₁', '₂', '₃', '₄', '₅', '₆', '₇', '₈', '₉'].get(agent).copied().unwrap_or('ₘ')
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedstay::Seed;
    use fedstay::problem::{Observation3, Problem};

    /// Counts how often losses are asked for.
    struct Counted(std::sync::atomic::AtomicUsize);

    impl fedstay::problem::Oracle for Counted {
        fn loss(&self, weights: &[f64]) -> f64 {
            self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            weights[0].abs()
        }
        fn loss_and_gradient(&self, weights: &[f64], gradient: &mut [f64]) -> f64 {
            gradient.fill(0.0);
            self.loss(weights)
        }
        fn terms(&self) -> usize {
            100_000
        }
    }

    #[test]
    fn a_map_of_many_agents_with_many_samples_costs_no_more_than_one_of_few() {
        let one = Problem::Observation3(Observation3::default()).build(Seed(0)).unwrap();
        let counted = std::sync::Arc::new(Counted(0.into()));
        let oracles = (0..50_000)
            .map(|_| counted.clone() as std::sync::Arc<dyn fedstay::problem::Oracle>)
            .collect();
        let instance = Instance { oracles, ..one };
        let land = Landscape::around(&instance, &[(0.0, 0.0), (1.0, 1.0)], 240).unwrap();
        assert_eq!(land.content(&[1.0]).len(), 2 * MOST_AGENTS);
        let asked = counted.0.load(std::sync::atomic::Ordering::Relaxed);
        assert!(asked * 100_000 <= 2 * MOST_TERMS && asked > 500, "{asked}");
        // Usual ones have all the samples that are asked for.
        let huber = Problem::Huber(fedstay::problem::Huber { dim: 2, ..Default::default() });
        let huber = huber.build(Seed(0)).unwrap();
        assert_eq!(Landscape::around(&huber, &[(0.0, 0.0)], 240).unwrap().samples, 240);
    }

    #[test]
    fn the_window_holds_the_path() {
        let instance = Problem::Observation3(Observation3::default()).build(Seed(0)).unwrap();
        let window = |path: &[(f64, f64)]| {
            Landscape::around(&instance, path, 100).map(|land| (land.x, land.y))
        };
        for path in [vec![(2.0, 1.0), (-0.5, 0.2)], vec![(0.0, 0.0)], vec![(1e9, 1.0), (1e9, 5.0)]]
        {
            let (x, y) = window(&path).unwrap();
            assert!(path.iter().all(|point| x.0 < point.0 && point.0 < x.1), "{x:?}");
            assert!(path.iter().all(|point| y.0 < point.1 && point.1 < y.1), "{y:?}");
        }
        assert_eq!(window(&[(f64::NAN, 1.0)]), None);
        assert_eq!(window(&[(2.0, 1.0), (-0.5, 0.2)]), window(&[(2.0, 1.0), (-0.55, 0.2)]));
    }
}

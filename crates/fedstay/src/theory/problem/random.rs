//! What the random families share: unit rows, agents' tables, and a start that nobody is content
//! with.

use super::{Instance, Oracle};
use crate::{Error, Seed};
use fedstay_kernels::numerics::polar;
use rand::Rng;
use std::sync::Arc;

/// A standard normal draw. Unlike [`numerics::normal`](fedstay_kernels::numerics::normal) it puts the uniform
/// numbers in the middle of their cells: the random problems have always been drawn this way, and
/// other draws would be other problems.
pub(super) fn normal(rng: &mut impl Rng) -> f64 {
    let uniform = |bits: u64| ((bits >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
    let (u, v) = (uniform(rng.next_u64()), uniform(rng.next_u64()));
    let (radius, angle) = polar(u, v);
    radius * angle.cos()
}

/// A direction, uniform on the sphere.
pub(super) fn unit(rng: &mut impl Rng, dimension: usize) -> Vec<f64> {
    let mut vector: Vec<f64> = (0..dimension).map(|_| normal(rng)).collect();
    let length = vector.iter().map(|value| value * value).sum::<f64>().sqrt();
    vector.iter_mut().for_each(|value| *value /= length);
    vector
}

pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The mean of `φ_i(⟨a_i, w⟩)` over the rows of a table, where `φ_i` is the family's loss.
pub(super) struct Table<Phi> {
    pub(super) rows: Vec<Vec<f64>>,
    pub(super) targets: Vec<f64>,
    /// Value and derivative at `(⟨a_i, w⟩, target_i)`.
    pub(super) phi: Phi,
    /// Whether a prediction counts as correct, where that means something.
    pub(super) correct: Option<fn(f64, f64) -> bool>,
}

impl<Phi: Fn(f64, f64) -> (f64, f64) + Send + Sync> Oracle for Table<Phi> {
    fn loss(&self, weights: &[f64]) -> f64 {
        let samples = self.rows.iter().zip(&self.targets);
        let total: f64 =
            samples.map(|(row, target)| (self.phi)(dot(row, weights), *target).0).sum();
        total / self.rows.len() as f64
    }

    fn loss_and_gradient(&self, weights: &[f64], gradient: &mut [f64]) -> f64 {
        gradient.fill(0.0);
        let count = self.rows.len() as f64;
        let mut total = 0.0;
        for (row, target) in self.rows.iter().zip(&self.targets) {
            let (value, slope) = (self.phi)(dot(row, weights), *target);
            total += value;
            for (entry, component) in gradient.iter_mut().zip(row) {
                *entry += slope / count * component;
            }
        }
        total / count
    }

    fn terms(&self) -> usize {
        self.rows.len()
    }

    fn accuracy(&self, weights: &[f64]) -> Option<f64> {
        let correct = self.correct?;
        let samples = self.rows.iter().zip(&self.targets);
        let right = samples.filter(|(row, target)| correct(dot(row, weights), **target)).count();
        Some(right as f64 / self.rows.len() as f64)
    }
}

/// A bound on the largest eigenvalue of `(1/n) AᵀA` by Gershgorin's circles on `(1/n) AAᵀ`: with
/// losses whose second derivative is at most 1, the table's smoothness.
pub(super) fn smoothness(rows: &[Vec<f64>]) -> f64 {
    let circle = |row: &Vec<f64>| rows.iter().map(|other| dot(row, other).abs()).sum::<f64>();
    rows.iter().map(circle).fold(0.0, f64::max) / rows.len() as f64
}

/// What the bound on the smoothness may cost: about a second.
const MOST_PRODUCTS: u128 = 1_000_000_000;

/// Checks the sizes that every random family has.
pub(super) fn check_sizes(agents: usize, dim: usize, samples: usize) -> Result<(), Error> {
    for (name, value) in
        [("problem.agents", agents), ("problem.dim", dim), ("problem.samples", samples)]
    {
        if !(1..=100_000).contains(&value) {
            return Err(Error::bad_parameter(name, value, "between 1 and 100000"));
        }
    }
    if agents.saturating_mul(dim).saturating_mul(samples) > 100_000_000 {
        let value = format!("{agents} × {dim} × {samples} numbers");
        let must = "at most 10⁸ numbers; lower problem.agents, problem.dim or problem.samples";
        return Err(Error::bad_parameter("the problem's size", value, must));
    }
    // The bound on the smoothness multiplies every row of an agent by every other.
    let pairs = (samples as u128).pow(2) * dim as u128 * agents as u128;
    if pairs > MOST_PRODUCTS {
        let value = format!("{agents} × {dim} × {samples}² products");
        let must = "at most 10⁹ products; lower problem.samples";
        return Err(Error::bad_parameter("the problem's size", value, must));
    }
    Ok(())
}

/// An instance whose start is far enough from `optimum` that no agent's loss is below `floor`.
pub(super) fn instance(
    oracles: Vec<Arc<dyn Oracle>>,
    optimum: &[f64],
    seed: Seed,
    (lipschitz, smoothness): (f64, f64),
    floor: f64,
) -> Instance {
    let away = unit(&mut seed.stream("start", 0, 0), optimum.len());
    let mut distance = 1.0;
    let start = loop {
        let start: Vec<f64> =
            optimum.iter().zip(&away).map(|(w, direction)| w + distance * direction).collect();
        // A direction that some agent's loss does not see would never do; give up far out.
        if distance > 1e6 || oracles.iter().all(|oracle| oracle.loss(&start) > floor) {
            break start;
        }
        distance *= 1.5;
    };
    Instance {
        oracles,
        start,
        lipschitz: Some(lipschitz),
        smoothness: Some(smoothness),
        epsilon: 0.1,
        step_size: 0.1,
        delta: 0.02,
    }
}

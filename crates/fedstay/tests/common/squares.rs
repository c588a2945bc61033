//! Least-squares agents whose losses one model common to all brings to zero, in fewer rows than weights
//! each.

#![allow(unreachable_pub, dead_code)]

use fedstay::Seed;

pub const EPSILON: f64 = 0.05;
pub const DELTA: f64 = 0.02;
pub const DIMENSION: usize = 30;
const ROWS: usize = 10;

/// An honest agent: a least-squares loss that one model common to all brings to zero.
pub struct Squares {
    rows: Vec<Vec<f64>>,
    targets: Vec<f64>,
}

impl Squares {
    /// Their number, and the model.
    pub fn some(seed: u64, agents: usize) -> (Vec<Self>, Vec<f64>) {
        let mut rng = Seed(seed).stream("liar", 0, 0);
        let mut draw = || fedstay::numerics::normal(&mut rng);
        let best: Vec<f64> = (0..DIMENSION).map(|_| draw()).collect();
        let scale = (DIMENSION as f64).sqrt();
        let agent = |_| {
            let rows: Vec<Vec<f64>> =
                (0..ROWS).map(|_| (0..DIMENSION).map(|_| draw() / scale).collect()).collect();
            let targets = rows.iter().map(|row: &Vec<f64>| dot(row, &best)).collect();
            Self { rows, targets }
        };
        ((0..agents).map(agent).collect(), best)
    }

    /// Its loss and its gradient.
    pub fn look(&self, w: &[f64]) -> (f64, Vec<f64>) {
        let scale = DIMENSION as f64 / 3.0 / ROWS as f64;
        let (mut loss, mut gradient) = (0.0, vec![0.0; DIMENSION]);
        for (row, target) in self.rows.iter().zip(&self.targets) {
            let miss = dot(row, w) - target;
            loss += 0.5 * scale * miss * miss;
            gradient.iter_mut().zip(row).for_each(|(g, x)| *g += scale * miss * x);
        }
        (loss, gradient)
    }
}

pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

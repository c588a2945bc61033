//! Landing: the nearest model that provably satisfies everybody.
//!
//! A report of loss L and gradient g at `w̃ = w + o` proves for H-smooth losses, at `w + s`,
//!
//! ```text
//! F(w + s) ≤ L + ⟨g, s − o⟩ + ½H‖s − o‖² = [L − ⟨g, o⟩ + ½H‖o‖²] + ⟨g − H·o, s⟩ + ½H‖s‖²
//! ```
//!
//! so the models that are proven good enough for an agent are a ball around `w̃ − g/H`. Nothing is
//! proven about models far inside, because no agent may be shown one. The server's weights may well be
//! there: then they are taken back to where all the balls meet, or, if they do not meet yet, some of
//! the way, from where the next reports prove more.

use crate::{Vector, linalg};
use fedstay_kernels::numerics::half_space::{Nearest, nearest};

/// How far constraints that do not meet are softened.
const RIDGE: f64 = 1e-2;
/// How often the way back is halved.
const HALVINGS: u32 = 10;

/// What is proven about everybody's loss at `w + s`: `above + ⟨slope, s⟩ + ½H‖s‖²` over ε.
pub(super) struct Balls<'a> {
    smoothness: f64,
    above: Vec<f64>,
    slopes: Vec<Vec<f64>>,
    /// The gradients as reported, and by how much the cuts made from them are above ε.
    cuts: Vec<(Vector<'a>, f64)>,
}

impl<'a> Balls<'a> {
    pub(super) fn new(smoothness: f64) -> Self {
        Self { smoothness, above: Vec::new(), slopes: Vec::new(), cuts: Vec::new() }
    }

    /// Adds a report of `loss` and `gradient`, made at `way` before the server's new weights.
    pub(super) fn add(&mut self, loss: f64, epsilon: f64, gradient: Vector<'a>, way: &[f64]) {
        let way = Vector::F64(way);
        let bend = 0.5 * self.smoothness * linalg::dot(way, way);
        let mut slope = vec![0.0; way.len()];
        linalg::add_scaled(&mut slope, 1.0, gradient);
        linalg::add_scaled(&mut slope, self.smoothness, way);
        let cut = loss + linalg::dot(gradient, way) - epsilon;
        self.cuts.push((gradient, cut));
        self.above.push(cut + bend);
        self.slopes.push(slope);
    }

    /// The shortest way from the server's new weights to where everybody provably is content, and
    /// true; or some of the way to there, and false.
    pub(super) fn step(&self) -> (Vec<f64>, bool) {
        let slopes: Vec<Vector<'_>> = self.slopes.iter().map(|slope| Vector::F64(slope)).collect();
        let gram = linalg::gram(&slopes);
        let mut step = vec![0.0; self.slopes.first().map_or(0, Vec::len)];
        let met = match self.multipliers(&gram, 0.0) {
            Some(multipliers) => (multipliers, true),
            None => (self.multipliers(&gram, RIDGE).unwrap_or_default(), false),
        };
        for (multiplier, slope) in met.0.iter().zip(&slopes) {
            linalg::add_scaled(&mut step, -multiplier, *slope);
        }
        let met = met.1 && self.proves(&step);
        // On the way back nobody may be carried out again.
        for _ in 0..HALVINGS {
            if met || self.stays_in(&step) {
                return (step, met);
            }
            linalg::scale(&mut step, 0.5);
        }
        step.fill(0.0);
        (step, met)
    }

    /// Whether every cut is still below ε after the step.
    fn stays_in(&self, step: &[f64]) -> bool {
        let step = Vector::F64(step);
        self.cuts.iter().all(|(gradient, cut)| cut + linalg::dot(*gradient, step) <= 0.0)
    }

    /// Finds the nearest point for a length, then for that point's length, until it stops growing.
    fn multipliers(&self, gram: &[f64], ridge: f64) -> Option<Vec<f64>> {
        let n = self.above.len();
        let mut square = 0.0;
        for _ in 0..60 {
            let bend = 0.5 * self.smoothness * square;
            // A hair more, so that rounding leaves nobody above.
            let need = |above: &f64| above + bend + 1e-9 * (above.abs() + bend) + 1e-12;
            let b: Vec<f64> = self.above.iter().map(need).collect();
            let Nearest::Multipliers(multipliers) = nearest(gram, &b, ridge) else { return None };
            let row = |i: usize| (0..n).map(|j| gram[i * n + j] * multipliers[j]).sum::<f64>();
            let length: f64 = (0..n).map(|i| multipliers[i] * row(i)).sum();
            if length <= square || ridge > 0.0 {
                return Some(multipliers);
            }
            if !length.is_finite() || 0.5 * self.smoothness * length > 1e6 {
                return None;
            }
            square = 1.02 * length;
        }
        None
    }

    /// Whether everybody provably is content with the server's new weights as they are.
    pub(super) fn prove_here(&self) -> bool {
        self.above.iter().all(|above| *above < 0.0)
    }

    /// Whether a step provably leaves everybody content, from the step itself.
    fn proves(&self, step: &[f64]) -> bool {
        let step = Vector::F64(step);
        let bend = 0.5 * self.smoothness * linalg::dot(step, step);
        self.above.iter().zip(&self.slopes).all(|(above, slope)| {
            let along = linalg::dot(Vector::F64(slope), step);
            let rounding = 1e-12 * (above.abs() + along.abs() + bend);
            above + along + bend + rounding <= 0.0
        })
    }
}

//! Whether some model can satisfy everybody: the proof that none near can, and the least that is left.
//!
//! Where losses are convex and reports exact, every report is a cut, `F_m(w) ≥ L + ⟨g, w − w_then⟩`.
//! A combination `λ ≥ 0` of cuts bounds what a step s can reach:
//!
//! ```text
//! Σ λ_m (F_m(w + s) − ε_m − t)  ≥  Σ λ_m (L_m − ε_m − t) + ⟨Σ λ_m g_m, s⟩  ≥  A − ‖s‖·‖Σ λ_m g_m‖
//! ```
//!
//! With A > 0 nobody can be served everybody's `ε_m + t` by a step shorter than the *radius*
//! `A / ‖Σ λ_m g_m‖` (Farkas). It is infinite where the gradients cancel. From floating-point numbers that
//! cannot be told: gradients that nearly cancel, and all but cancel, look the same. So what rounding may
//! have hidden is added to the denominator, and the radius is said along with the result. It counts if it
//! is a million times longer than anything here.

use crate::rule::floors::Floors;
use crate::{Vector, linalg};

/// How many times farther than the weights' own length the proof must reach.
const FAR: f64 = 1e6;
/// Halvings of the interval in which the least level is.
const HALVINGS: usize = 48;

/// That not everybody can be served, as far as it is proved.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Unrealizable {
    /// The largest `t` for which it is proved that no model as near as [`FAR`] asks brings every agent to
    /// its target loss plus `t`.
    pub(super) least: f64,
    /// The distance from the present weights within which no model brings every agent to its target loss,
    /// raised by what was proved before; infinite where none does anywhere.
    pub(super) within: f64,
}

/// The proof that no model near brings every agent to its target loss plus `from`, if there is one.
pub(super) fn prove(floors: &mut Floors<'_>, weights: &[f64], from: f64) -> Option<Unrealizable> {
    if floors.exact.contains(&false) {
        return None;
    }
    let within = radius(floors, weights.len(), from);
    let enough = FAR * (1.0 + linalg::norm(Vector::F64(weights)));
    if within <= enough {
        return None;
    }
    // Where everybody stands is possible.
    let above = floors.loss.iter().zip(&floors.precision).map(|(loss, epsilon)| loss - epsilon);
    let (mut low, mut high) = (from, above.fold(from, f64::max));
    for _ in 0..HALVINGS {
        let middle = 0.5 * (low + high);
        match radius(floors, weights.len(), middle) > enough {
            true => low = middle,
            false => high = middle,
        }
    }
    Some(Unrealizable { least: low, within })
}

/// How long a step must be, at least, to bring every agent to its target loss plus `above`; zero where
/// one was found, infinite where there is none of any length.
fn radius(floors: &mut Floors<'_>, dimension: usize, above: f64) -> f64 {
    if floors.is_stuck(above) {
        return f64::INFINITY;
    }
    let mut step = vec![0.0; dimension];
    let Err(pulls) = floors.reach(&mut step, above) else { return 0.0 };
    let mut left = vec![0.0; dimension];
    floors.bundle.push(&mut left, &pulls);
    // Sums of this number of terms are rounded by this share of their terms' size.
    let rounding = (pulls.len() + 2) as f64 * f64::EPSILON;
    let (mut asked, mut size, mut length) = (0.0, 0.0, 0.0);
    for (line, pull) in pulls.iter().enumerate() {
        let (loss, epsilon) = (floors.loss[line], floors.precision[line]);
        asked += pull * (epsilon + above - loss);
        size += pull.abs() * (epsilon.abs() + above.abs() + loss.abs());
        length += pull.abs() * floors.bundle.lengths()[line];
    }
    let sure = asked - rounding * size;
    if sure > 0.0 { sure / (linalg::norm(Vector::F64(&left)) + rounding * length) } else { 0.0 }
}

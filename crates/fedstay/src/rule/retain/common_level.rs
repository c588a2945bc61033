//! Whether some model can satisfy everybody: the proof that none can, and the least that is left.
//!
//! Where losses are convex and reports exact, every report is a cut, `F_m(w) ≥ L + ⟨g, w − w_then⟩`.
//! If no step brings all cuts to their target losses, no model satisfies everybody. The proof is a
//! combination `λ ≥ 0` of the cuts whose gradients cancel and whose losses exceed their targets
//! together (Farkas). In floating point they nearly cancel, so what is proved is that there is no
//! such model within a distance; it counts if that is a million times farther than anything here.

use crate::rule::floors::Floors;
use crate::{Vector, linalg};

/// How many times farther than the weights' own length the proof must reach.
const FAR: f64 = 1e6;
/// Halvings of the interval in which the least level is.
const HALVINGS: usize = 48;

/// The largest `t` for which it is proved that no model brings every agent to its target loss plus
/// `t`, if that is above `from`.
pub(super) fn least(floors: &mut Floors<'_>, weights: &[f64], from: f64) -> Option<f64> {
    if floors.exact.contains(&false) || !impossible(floors, weights, from) {
        return None;
    }
    // Where everybody stands is possible.
    let above = floors.loss.iter().zip(&floors.precision).map(|(loss, epsilon)| loss - epsilon);
    let (mut low, mut high) = (from, above.fold(from, f64::max));
    for _ in 0..HALVINGS {
        let middle = 0.5 * (low + high);
        match impossible(floors, weights, middle) {
            true => low = middle,
            false => high = middle,
        }
    }
    Some(low)
}

fn impossible(floors: &mut Floors<'_>, weights: &[f64], above: f64) -> bool {
    if floors.is_stuck(above) {
        return true;
    }
    let mut step = vec![0.0; weights.len()];
    let Err(pulls) = floors.reach(&mut step, above) else { return false };
    let mut left = vec![0.0; weights.len()];
    floors.bundle.push(&mut left, &pulls);
    let lines = floors.loss.iter().zip(&floors.precision).zip(&pulls);
    let asked: f64 = lines.map(|((loss, epsilon), pull)| pull * (epsilon + above - loss)).sum();
    let reach = FAR * (1.0 + linalg::norm(Vector::F64(weights)));
    asked > reach * linalg::norm(Vector::F64(&left))
}

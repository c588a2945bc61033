//! Landing: one step after which everybody is content at once.
//!
//! ```text
//! minimise ‖s‖²  subject to  F_m + ⟨g_m, s⟩ + ½H‖s‖² ≤ ε_m  for every agent m still in
//! ```

use crate::linalg;
use crate::numerics::half_space::{Nearest, nearest};
use crate::rule::floors::Floors;

/// Fills `step` with the shortest landing and returns true, if the curvature allows one.
pub(super) fn step(floors: &Floors<'_>, smoothness: f64, step: &mut [f64]) -> bool {
    let Some(multipliers) = multipliers(floors, smoothness) else { return false };
    for (multiplier, slope) in multipliers.iter().zip(&floors.slopes) {
        linalg::add_scaled(step, -multiplier, *slope);
    }
    true
}

/// Finds the nearest point of the half-spaces for a length, then for that point's length, and so on
/// until it stops growing.
fn multipliers(floors: &Floors<'_>, smoothness: f64) -> Option<Vec<f64>> {
    let (gram, n) = (&floors.gram, floors.loss.len());
    let mut square = 0.0;
    for _ in 0..60 {
        // ⟨−g_m, s⟩ ≥ F_m − ε_m + ½H‖s‖², with the length found so far; a hair more, so that
        // rounding leaves nobody above.
        let bend = 0.5 * smoothness * square;
        let above = floors.loss.iter().zip(&floors.precision).map(|(loss, epsilon)| {
            let above = loss - epsilon + bend;
            above + 1e-9 * above.abs().max(1e-3 * epsilon.abs())
        });
        let b: Vec<f64> = above.collect();
        let Nearest::Multipliers(multipliers) = nearest(gram, &b, 0.0) else { return None };
        let row = |i: usize| (0..n).map(|j| gram[i * n + j] * multipliers[j]).sum::<f64>();
        let length: f64 = (0..n).map(|i| multipliers[i] * row(i)).sum();
        if length <= square {
            return Some(multipliers);
        }
        if !length.is_finite() || 0.5 * smoothness * length > 1e6 {
            return None;
        }
        square = 1.02 * length;
    }
    None
}

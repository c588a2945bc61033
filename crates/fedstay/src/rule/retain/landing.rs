//! Landing: one step after which everybody is content at once.
//!
//! ```text
//! minimise ‖s‖²  subject to  F_m + ⟨g_m, s⟩ + ½H‖s‖² ≤ ε_m  for every agent m still in
//! ```
//!
//! An agent that was not heard in this round is covered by its last report if that is enough: with
//! its cut `c` at the present weights and the length ℓ of the path since,
//! `c + ⟨g, s⟩ + ½H(ℓ + ‖s‖)² ≤ ε`. Whatever the solver says, the inequalities are checked for
//! everybody from the step itself: only that is a landing.

use crate::numerics::slabs::Slab;
use crate::rule::floors::{Floors, Source};
use crate::{Vector, linalg};

/// What rounding may do to an inner product, relative to the lengths of its two vectors.
const ROUNDING: f64 = 1e-13;

/// Fills `step` with the shortest landing and returns true, if the curvature allows one.
pub(super) fn step(floors: &mut Floors<'_>, smoothness: f64, step: &mut [f64]) -> bool {
    let found = shortest(floors, smoothness, step) && lands(floors, smoothness, step);
    if !found {
        step.fill(0.0);
    }
    found
}

/// Finds the nearest point of the half-spaces for a length, then for that point's length, and so on
/// until it stops growing.
fn shortest(floors: &mut Floors<'_>, smoothness: f64, step: &mut [f64]) -> bool {
    let mut square = 0.0f64;
    for _ in 0..60 {
        // ⟨g_m, s⟩ ≤ ε_m − F_m − ½H‖s‖², with the length found so far; a hair less, so that
        // rounding leaves nobody above.
        let bound = |line: usize| {
            let bend = bend(smoothness, floors.since[line] + square.sqrt());
            let above = floors.upper[line] - floors.precision[line] + bend;
            -(above + 1e-9 * above.abs().max(1e-3 * floors.precision[line].abs()))
        };
        let slabs = (0..floors.loss.len()).map(|line| match floors.source[line] {
            Source::Earlier => Slab::FREE,
            _ => Slab { high: bound(line), ..Slab::FREE },
        });
        let slabs: Vec<Slab> = slabs.collect();
        step.fill(0.0);
        if floors.bundle.nearest(step, &slabs, 0.0).is_err() {
            return false;
        }
        let found = linalg::dot(Vector::F64(step), Vector::F64(step));
        if found <= square {
            return true;
        }
        if !found.is_finite() || bend(smoothness, found.sqrt()) > 1e6 {
            return false;
        }
        square = 1.02 * found;
    }
    false
}

/// Whether the step brings everybody to their target loss, by the bound from the smoothness.
fn lands(floors: &Floors<'_>, smoothness: f64, step: &[f64]) -> bool {
    let length = linalg::norm(Vector::F64(step));
    let along = floors.bundle.along(step);
    (0..floors.loss.len()).filter(|line| floors.source[*line] != Source::Earlier).all(|line| {
        let rounding = ROUNDING * floors.bundle.lengths()[line] * length;
        let bend = bend(smoothness, floors.since[line] + length);
        floors.upper[line] + along[line] + rounding + bend <= floors.precision[line]
    })
}

fn bend(smoothness: f64, length: f64) -> f64 {
    0.5 * smoothness * length * length
}

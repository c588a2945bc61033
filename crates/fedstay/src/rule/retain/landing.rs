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

use crate::rule::floors::{Floors, Source};
use crate::{Vector, linalg};
use fedstay_kernels::numerics::slabs::Slab;

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
        let Ok(pulls) = floors.bundle.nearest(step, &slabs, 0.0) else { return false };
        let found = linalg::dot(Vector::F64(step), Vector::F64(step));
        if found <= square {
            return true;
        }
        if !found.is_finite()
            || bend(smoothness, found.sqrt()) > 1e6
            || outruns(found, square, smoothness, &pulls, &slabs)
        {
            return false;
        }
        square = 1.02 * found;
    }
    false
}

/// Whether the nearest point for every longer length is longer still, so that there is no landing.
///
/// The pulls `−λ` make up the nearest point for the squared length `q`, whose square is `S`, and ask for `A = λᵀb` where
/// `b` is what the bounds ask for. For `q + t` every bound asks for `½Ht` more, or more than that; so by duality,
/// with the same `λ`, the square of the nearest point is `(A + vt)² / S` or more, where `v = ½H Σ λ`. That is
/// above `q + t` for all `t ≥ 0` if it is for `t = 0` and rises faster from there on (`2vA ≥ S`), or is where they are
/// nearest (`4vA − S > 4v²q`).
fn outruns(found: f64, square: f64, smoothness: f64, pulls: &[f64], slabs: &[Slab]) -> bool {
    let pulled = || pulls.iter().zip(slabs).filter(|(pull, _)| **pull < 0.0);
    // A hair less: rounding does not decide.
    let asked = (1.0 - 1e-6) * pulled().map(|(pull, slab)| pull * slab.high).sum::<f64>();
    let deeper = -0.5 * smoothness * pulled().map(|(pull, _)| pull).sum::<f64>();
    asked > 0.0
        && asked * asked > found * square
        && (2.0 * deeper * asked >= found
            || 4.0 * deeper * asked - found > 4.0 * deeper * deeper * square)
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

#[cfg(test)]
mod tests {
    use super::*;
    use fedstay_kernels::numerics::Machine;
    use fedstay_kernels::numerics::slabs::Bundle;
    use proptest::prelude::*;

    proptest! {
        /// Where it says that there is no landing, no length is its own; where there is one, it does not say so.
        #[test]
        fn a_length_that_outruns_itself_has_no_landing(
            vectors in prop::collection::vec(prop::collection::vec(-1.0..1.0f64, 4), 1..4),
            above in prop::collection::vec(0.01..1.0f64, 4),
            smoothness in 0.01..4.0f64,
        ) {
            let views: Vec<Vector<'_>> = vectors.iter().map(|v| Vector::F64(v)).collect();
            let lengths = views.iter().map(|v| linalg::norm(*v)).collect();
            let mut bundle = Bundle::new(Machine::default(), views, lengths);
            let mut nearest = |square: f64| {
                let bend = bend(smoothness, square.sqrt());
                let slab = |above: &f64| Slab { high: -above - bend, ..Slab::FREE };
                let slabs: Vec<Slab> = above[..vectors.len()].iter().map(slab).collect();
                let mut step = vec![0.0; 4];
                let pulls = bundle.nearest(&mut step, &slabs, 0.0).ok()?;
                let found = linalg::dot(Vector::F64(&step), Vector::F64(&step));
                Some((found, outruns(found, square, smoothness, &pulls, &slabs)))
            };
            let mut square = 0.0;
            for _ in 0..20 {
                let Some((found, hopeless)) = nearest(square) else { break };
                if found <= square {
                    break;
                }
                if hopeless {
                    for longer in (1..60).map(|power| square + found * 1.2f64.powi(power - 20)) {
                        if let Some((found, _)) = nearest(longer) {
                            prop_assert!(found > longer, "{found} for {longer}, from {square}");
                        }
                    }
                    break;
                }
                square = 1.02 * found;
            }
        }
    }

    #[test]
    fn one_agent_alone_has_a_landing_until_its_loss_bends_too_much() {
        // ⟨g, s⟩ ≤ −a − ½H‖s‖² with ‖g‖ = 1 has an answer while 2Ha ≤ 1; the first s is −a g.
        for (above, bends, none) in [(1.0, 0.49, false), (1.0, 0.52, true), (0.1, 4.9, false)] {
            let slabs = [Slab { high: -above, ..Slab::FREE }];
            let found = outruns(above * above, 0.0, bends, &[-above], &slabs);
            assert_eq!(found, none, "{above} {bends}");
        }
    }
}

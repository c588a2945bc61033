//! The step within a radius that lowers most what everybody lacks to its level, as far as the cuts tell.
//!
//! ```text
//! minimise Σ h_m² (F_m + ⟨g_m, s⟩ − level_m)²  over the lines above their level, subject to  ‖s‖ ≤ ρ
//! ```
//!
//! By conjugate gradients, ended at the radius (T. Steihaug, *SIAM J. Numer. Anal.* 20, 1983): two products with all
//! gradients for each of a few turns. The projection onto all levels shortened to the radius is no such step: where
//! gradients nearly cancel it points somewhere else.

use super::best::Lacking;
use crate::rule::floors::Floors;
use crate::{Vector, linalg};

/// The most turns.
const TURNS: usize = 12;
/// A gradient of this share of the first is none.
const NOTHING: f64 = 1e-9;

/// Fills `step`; says whether there is such a step.
pub(super) fn within(
    floors: &Floors<'_>,
    lacking: &Lacking,
    radius: f64,
    step: &mut [f64],
) -> bool {
    step.fill(0.0);
    let lacks: Vec<f64> =
        floors.loss.iter().enumerate().map(|(line, loss)| lacking.at(line, *loss)).collect();
    // By how much a line pulls that is to change by so much.
    let pull = |(by, heed): (&f64, &f64)| -by * heed * heed;
    let mut down = vec![0.0; step.len()];
    floors.bundle.push(&mut down, &lacks.iter().zip(&lacking.heed).map(pull).collect::<Vec<f64>>());
    let square = |v: &[f64]| linalg::dot(Vector::F64(v), Vector::F64(v));
    let (mut way, mut steep) = (down.clone(), square(&down));
    let first = steep;
    for _ in 0..TURNS {
        let mut along = floors.bundle.along(&way);
        let free = along.iter_mut().zip(&lacks).filter(|(_, lacks)| **lacks == 0.0);
        free.for_each(|(along, _)| *along = 0.0);
        let bends = along.iter().zip(&lacking.heed).map(|(along, heed)| (along * heed).powi(2));
        let bend: f64 = bends.sum();
        let share = steep / bend;
        if !(share.is_finite() && share > 0.0) {
            break;
        }
        let to_edge = to_edge(step, &way, radius);
        linalg::add_scaled(step, share.min(to_edge), Vector::F64(&way));
        if share >= to_edge {
            break;
        }
        along.iter_mut().for_each(|along| *along *= share);
        let pulls: Vec<f64> = along.iter().zip(&lacking.heed).map(pull).collect();
        floors.bundle.push(&mut down, &pulls);
        let next = square(&down);
        if next <= NOTHING * NOTHING * first {
            break;
        }
        linalg::scale(&mut way, next / steep);
        linalg::add_scaled(&mut way, 1.0, Vector::F64(&down));
        steep = next;
    }
    let length = linalg::norm(Vector::F64(step));
    length > 0.0 && length.is_finite()
}

/// How many times a way leads from a point within the radius to its edge.
fn to_edge(from: &[f64], way: &[f64], radius: f64) -> f64 {
    let dot = |a: &[f64], b: &[f64]| linalg::dot(Vector::F64(a), Vector::F64(b));
    let (square, along) = (dot(way, way), dot(from, way));
    let room = (radius * radius - dot(from, from)).max(0.0);
    room / (along + (along * along + square * room).sqrt())
}

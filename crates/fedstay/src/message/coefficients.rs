//! How much of the step came from whom: the c with `s = −Σ c_i d_i`.
//!
//! Every rule of the list takes a step in the span of the directions (a law), so such c exist. Where
//! the plain mean of the displacements is the step, they are those of the mean. Otherwise they are
//! the shortest ones: agents that sent the same have the same, and one that sent nothing has zero. An
//! optimiser such as `adam` leaves the span; c then belongs to the nearest point in it, and what is
//! left over is told.

use crate::{Report, Vector, linalg};
use fedstay_kernels::numerics::eigen::shortest;

/// A step counts as the mean if it is within this share of its length.
const SAME: f64 = 1e-9;

/// The coefficients for these reports; `gram` has the inner products of their directions.
pub(crate) fn of(reports: &[Report<'_>], gram: &[f64], step: &[f64], step_size: f64) -> Vec<f64> {
    let n = reports.len();
    let length = linalg::norm(Vector::F64(step));
    if length == 0.0 {
        return vec![0.0; n];
    }
    let reach = |report: &Report<'_>| report.reach.unwrap_or(step_size);
    let mean: Vec<f64> = reports.iter().map(|report| reach(report) / n as f64).collect();
    let mut rest = step.to_vec();
    for (report, c) in reports.iter().zip(&mean) {
        linalg::add_scaled(&mut rest, *c, report.direction);
    }
    if linalg::norm(Vector::F64(&rest)) <= SAME * length {
        return mean;
    }
    // Of unit directions, so that a short one is not taken for rounding.
    let norms: Vec<f64> = (0..n).map(|i| gram[i * n + i].sqrt()).collect();
    let over = |value: f64, by: f64| if by > 0.0 { value / by } else { 0.0 };
    let cosines: Vec<f64> =
        (0..n * n).map(|at| over(gram[at], norms[at / n] * norms[at % n])).collect();
    let along = reports
        .iter()
        .zip(&norms)
        .map(|(report, norm)| over(-linalg::dot(report.direction, Vector::F64(step)), *norm));
    let unit = shortest(&cosines, &along.collect::<Vec<f64>>());
    unit.iter().zip(&norms).map(|(c, norm)| over(*c, *norm)).collect()
}

//! The largest step size at which nobody leaves, found by bisection, from runs made on the spot.
//!
//! The scale is logarithmic. Starting from a given step size, it is doubled while nobody leaves, or
//! halved while somebody does, and then the gap between the two is bisected until both ends are
//! within [`TOLERANCE`] of each other. Whether somebody leaves need not be monotone in the step size,
//! so the result is a safe step size with an unsafe one just above it, not a proof about all others.

use super::training::{Arm, Asked};
use anyhow::Result;
use fedstay::{Book, Error, RoundRecord};
use fedstay_sim::experiment::Experiment;
use fedstay_sim::run::Trial;
use fedstay_terminal::Progress;
use serde_json::{Value, json};
use std::ops::ControlFlow;

/// The search ends when the unsafe step size is at most this factor above the safe one.
pub(super) const TOLERANCE: f64 = 1.02;
/// How often the first step size is doubled or halved at most.
const MOST_DOUBLINGS: usize = 10;

/// Where the search ended.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Found {
    /// The largest step size that was seen to lose nobody; `None` if all lost somebody.
    pub(super) safe: Option<f64>,
    /// The smallest step size that was seen to lose somebody; `None` if none did.
    pub(super) unsafe_above: Option<f64>,
    /// Every step size that was tried, in that order, and whether somebody left.
    pub(super) tried: Vec<(f64, bool)>,
}

impl Found {
    /// How the step size was found, in a sentence.
    pub(super) fn sentence(&self, seeds: &[u64]) -> String {
        let tried = self.tried.len();
        let seeds: Vec<String> = seeds.iter().map(u64::to_string).collect();
        let plural = if seeds.len() == 1 { "" } else { "s" };
        let on = format!("seed{plural} {}", fedstay_draw::words::list(&seeds));
        let percent = (100.0 * (TOLERANCE - 1.0)).round();
        match (self.safe, self.unsafe_above) {
            (Some(safe), Some(lost)) => format!(
                "Averaging's largest safe step size was found by bisection to {percent}%: of {tried} tried, \
                 {safe:e} loses nobody on {on} and {lost:e} loses somebody."
            ),
            (Some(safe), None) => {
                format!("No step size up to {safe:e} loses anybody on {on} ({tried} tried).")
            }
            (None, _) => format!("All {tried} step sizes tried lose somebody on {on}."),
        }
    }

    /// Everything as JSON.
    pub(super) fn numbers(&self) -> Value {
        json!({
            "largest_safe_step_size": self.safe,
            "smallest_unsafe_step_size": self.unsafe_above,
            "tolerance": TOLERANCE,
            "tried_columns": ["step_size", "somebody_leaves"],
            "tried": self.tried,
        })
    }
}

/// Searches for the largest step size that is not `lost`, starting at `start`.
///
/// # Errors
/// If `lost` fails.
pub(super) fn largest_safe(start: f64, mut lost: impl FnMut(f64) -> Result<bool>) -> Result<Found> {
    let mut found = Found { safe: None, unsafe_above: None, tried: Vec::new() };
    let mut next = Some(rounded(start));
    while let Some(step_size) = next {
        let is_lost = lost(step_size)?;
        found.tried.push((step_size, is_lost));
        *(if is_lost { &mut found.unsafe_above } else { &mut found.safe }) = Some(step_size);
        next = match (found.safe, found.unsafe_above) {
            (Some(low), Some(high)) => between(low, high),
            _ if found.tried.len() > MOST_DOUBLINGS => None,
            (Some(low), None) => Some(rounded(2.0 * low)),
            (None, Some(high)) => Some(rounded(high / 2.0)),
            (None, None) => None,
        };
    }
    Ok(found)
}

/// The middle on a logarithmic scale; `None` if the two are close enough.
fn between(low: f64, high: f64) -> Option<f64> {
    let middle = rounded((low * high).sqrt());
    (high / low > TOLERANCE && low < middle && middle < high).then_some(middle)
}

/// Rounds to three digits, so that what is printed is what was run.
fn rounded(step_size: f64) -> f64 {
    format!("{step_size:.2e}").parse().unwrap_or(step_size)
}

/// The largest step size at which an arm of a figure loses nobody on any seed.
///
/// # Errors
/// When the experiment cannot be read or its data are missing.
pub(super) fn largest_safe_step(
    arm: &Arm,
    text: &str,
    asked: &Asked,
    seeds: &[u64],
) -> Result<Found> {
    let experiments: Vec<Experiment> =
        seeds.iter().map(|seed| arm.experiment(text, asked, *seed)).collect::<Result<_>>()?;
    let start = experiments.first().map_or(1.0, |experiment| experiment.step_size);
    largest_safe(start, |step_size| {
        for experiment in &experiments {
            if somebody_leaves(Experiment { step_size, ..experiment.clone() }, asked.quiet)? {
                return Ok(true);
            }
        }
        Ok(false)
    })
}

/// Whether a run loses somebody; it is not continued after that. One that leaves the floating-point
/// range keeps nobody either.
fn somebody_leaves(experiment: Experiment, quiet: bool) -> Result<bool> {
    let name =
        format!("looking for a safe step: {:e}, seed {}", experiment.step_size, experiment.seed);
    let mut trial = Trial::new(experiment)?;
    let mut progress = Progress::shown(&trial, &name, !quiet);
    let ended = trial.run(&mut [&mut UntilSomebodyLeaves, &mut progress]);
    progress.finish();
    Ok(!matches!(ended, Ok(Some(_))))
}

struct UntilSomebodyLeaves;

impl Book for UntilSomebodyLeaves {
    fn round(&mut self, record: &RoundRecord<'_>) -> Result<ControlFlow<()>, Error> {
        // Nothing more has to be known.
        let left = !record.line.left.is_empty();
        Ok(if left { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(start: f64, limit: f64) -> Found {
        largest_safe(start, |step_size| Ok(step_size > limit)).unwrap()
    }

    #[test]
    fn the_largest_safe_step_is_bracketed_to_the_tolerance_from_either_side() {
        for start in [2e-5, 2e-4, 1.71e-4] {
            let found = search(start, 1.717e-4);
            let (safe, lost) = (found.safe.unwrap(), found.unsafe_above.unwrap());
            assert!(safe <= 1.717e-4 && lost > 1.717e-4, "{found:?}");
            assert!(lost / safe <= TOLERANCE, "{found:?}");
            assert!(found.tried.len() <= 12, "{found:?}");
            assert_eq!(found, search(start, 1.717e-4));
        }
    }

    #[test]
    fn a_search_ends_where_no_step_or_every_step_is_safe() {
        let never = search(1e-3, 0.0);
        assert_eq!((never.safe, never.tried.len()), (None, MOST_DOUBLINGS + 1));
        assert!(
            never.sentence(&[0]).starts_with("All 11 step sizes tried lose somebody on seed 0")
        );
        let always = search(1e-3, f64::INFINITY);
        assert_eq!((always.unsafe_above, always.tried.len()), (None, MOST_DOUBLINGS + 1));
        assert!(always.sentence(&[0, 1]).contains("on seeds 0 and 1"));
    }

    #[test]
    fn what_is_said_is_what_was_run() {
        let found = search(2e-4, 1.717e-4);
        let said = found.sentence(&[0, 1, 2]);
        for step_size in [found.safe, found.unsafe_above].into_iter().flatten() {
            assert!(said.contains(&format!("{step_size:e}")), "{said}");
            assert!(found.tried.iter().any(|(tried, _)| *tried == step_size));
        }
    }
}

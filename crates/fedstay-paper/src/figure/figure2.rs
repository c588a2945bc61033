//! Figure 2: what departures do to averaging on CIFAR-10, ten agents with one class each.
//!
//! Reference: arXiv 2311.16459, Figure 2: about 46% average accuracy before the first departure,
//! about 22% after 500 rounds, and similar population accuracy.

use super::training::{Arm, Asked, numbers, study};
use super::{Drawing, page, words};
use serde_json::json;

/// The experiment.
pub(super) const TEXT: &str = include_str!("../../../../experiments/fig2.toml");

/// Averaging on every seed; the controls, and the rule as the paper prints it.
fn arms() -> Vec<Arm> {
    let mut arms = vec![Arm::main("FedAvg", "fedavg")];
    arms.extend(Arm::controls());
    arms.extend([
        Arm::control("ADA-GD", "ada-gd"),
        Arm::control("ADA-GD unprojected", "ada-gd+no-projection"),
        Arm::control("ADA-GD halving", "ada-gd+halve"),
        Arm::as_printed(),
    ]);
    arms
}

/// Makes the figure.
pub(super) fn make(asked: &Asked) -> anyhow::Result<Drawing> {
    let done = study(TEXT, arms(), asked, &asked.seeds(3))?;
    let printed = done.last().map(|done| words::ends(&[done])).unwrap_or_default();
    let notes = vec![
        format!("{}.", words::outcome(&done[0])),
        "The paper: about 46% before the first departure, about 22% after 500 rounds.".to_owned(),
        words::controls(&done[..done.len() - 1]),
        format!(
            "As the paper prints the rule (agents decide on the model they receive, local steps of η/K), with \
             the same data and rounds: {printed}."
        ),
    ];
    let paper = json!({
        "accuracy_before_first_departure": 0.46, "accuracy_at_end": 0.22, "rounds": 500,
    });
    Ok(Drawing {
        name: "figure-2".into(),
        figure: page::figure(&words::what_departures_cost(&done[0]), &done),
        notes,
        numbers: numbers(&done, paper),
    })
}

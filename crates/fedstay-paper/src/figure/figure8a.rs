//! Figure 8a: averaging against ADA-GD at the same step size, two agents with one class each.
//!
//! Reference: arXiv 2311.16459, Figure 8a: averaging loses an agent around round 130 and its
//! accuracy decays; ADA-GD loses nobody and keeps improving.

use super::training::{Arm, Asked, numbers, study};
use super::{Drawing, page, words};
use serde_json::json;

/// The experiment.
pub(super) const TEXT: &str = include_str!("../../../../experiments/fig5a.toml");

fn arms() -> Vec<Arm> {
    let mut arms = vec![Arm::main("FedAvg", "fedavg"), Arm::main("ADA-GD", "ada-gd")];
    arms.extend(Arm::controls());
    arms.extend([
        Arm::control("ADA-GD unprojected", "ada-gd+no-projection"),
        Arm::control("ADA-GD halving", "ada-gd+halve"),
        Arm::control("as printed", "fedavg").with("last_stays", false),
    ]);
    arms
}

/// Makes the figure.
pub(super) fn make(asked: &Asked) -> anyhow::Result<Drawing> {
    let done = study(TEXT, arms(), asked, &asked.seeds(3))?;
    let printed = done.last().map(|done| words::ends(&[done])).unwrap_or_default();
    let notes = vec![
        format!("{}. The paper: a departure around round 130.", words::outcome(&done[0])),
        format!("{}. The paper: nobody leaves.", words::outcome(&done[1])),
        words::controls(&done[..done.len() - 1]),
        format!(
            "As the paper prints the rule the last agent may leave too: {printed}; the decay of the figure \
             needs the last one to go on training."
        ),
    ];
    let paper = json!({ "first_departure": { "fedavg": 130, "ada-gd": null } });
    Ok(Drawing {
        name: "figure-8a".into(),
        figure: page::figure(&words::who_loses(&done[0], &done[1]), &done),
        notes,
        numbers: numbers(&done, paper),
    })
}

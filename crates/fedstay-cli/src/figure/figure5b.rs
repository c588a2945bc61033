//! Figure 5b: averaging and ADA-GD, each with the largest step size at which nobody leaves.
//!
//! Reference: arXiv 2311.16459, Figure 5b: ε = 0.5, η = 2e-5 for averaging and 2e-4 for ADA-GD,
//! which ends with the better model.

use super::training::{Arm, Asked, numbers, study};
use super::{Drawing, page, words};
use serde_json::json;

/// The experiment.
pub(super) const TEXT: &str = include_str!("../../../../experiments/fig5b.toml");

/// The paper's step size for averaging; the experiment's own is ADA-GD's.
const SMALL: &str = "2e-5";

fn arms() -> Vec<Arm> {
    let mut arms = vec![
        Arm::main("FedAvg 2e-5", "fedavg").with("step_size", SMALL),
        Arm::main("ADA-GD 2e-4", "ada-gd"),
        Arm::main("FedAvg 2e-4", "fedavg"),
    ];
    arms.extend(Arm::averaging_controls());
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
        format!(
            "{}. {}. The paper: nobody leaves either, and ADA-GD ends with the better model.",
            words::outcome(&done[0]),
            words::outcome(&done[1])
        ),
        format!("At ADA-GD's step size: {}.", words::outcome(&done[2])),
        words::controls(&done[..done.len() - 1]),
        format!("As the paper prints the rule the last agent may leave too: {printed}."),
    ];
    let paper = json!({
        "departures": { "fedavg at 2e-5": 0, "ada-gd at 2e-4": 0 }, "better": "ada-gd",
    });
    let title = "The largest step size at which nobody leaves";
    Ok(Drawing {
        name: "figure-5b".into(),
        figure: page::figure(title, &done),
        notes,
        numbers: numbers(&done, paper),
    })
}

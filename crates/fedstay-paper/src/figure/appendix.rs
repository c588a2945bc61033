//! Figure 13, the appendix's comparison on ten agents: averaging and ADA-GD at η = 0.08, and averaging at
//! η = 0.01, at which the paper says that nobody leaves.
//!
//! Reference: arXiv 2311.16459, appendix, "Additional findings on the performance of our method".

use super::training::{Arm, Asked, Done, numbers, study};
use super::{Drawing, page, words};
use serde_json::json;

/// The experiment.
pub(super) const TEXT: &str = include_str!("../../../../experiments/appendix.toml");

fn arms() -> Vec<Arm> {
    let mut arms = vec![
        Arm::main("FedAvg 0.08", "fedavg"),
        Arm::main("FedAvg 0.01", "fedavg").with("step_size", 0.01),
        Arm::main("ADA-GD 0.08", "ada-gd"),
        Arm::main("ADA-GD halving", "ada-gd+halve"),
    ];
    arms.extend(Arm::controls());
    arms.extend([Arm::control("ADA-GD unprojected", "ada-gd+no-projection"), Arm::as_printed()]);
    arms
}

/// Makes the figure.
pub(super) fn make(asked: &Asked) -> anyhow::Result<Drawing> {
    let done = study(TEXT, arms(), asked, &asked.seeds(3))?;
    let printed = done.last().map(|done| words::ends(&[done])).unwrap_or_default();
    let kept = done.iter().find(|done| done.arm.label == "ada-gd+no-projection");
    let kept = kept.is_some_and(|done| done.first().left.is_empty());
    let evidence = match kept {
        true => {
            " Without its projection ADA-GD loses nobody either: that nobody leaves is no evidence for it."
        }
        false => "",
    };
    let notes = vec![
        format!("{}. {}.", words::outcome(&done[0]), words::outcome(&done[1])),
        format!(
            "{}. {}. The paper: averaging loses agents at 0.08 and none at 0.01, ADA-GD none.",
            words::outcome(&done[2]),
            words::outcome(&done[3])
        ),
        format!("{}{evidence}", words::controls(&done[..done.len() - 1])),
        format!(
            "As the paper prints the rule (agents decide on the model they receive, local steps of η/K): \
             {printed}."
        ),
    ];
    let paper = json!({
        "departures": { "fedavg at 0.08": "some", "fedavg at 0.01": 0, "ada-gd at 0.08": 0 },
    });
    Ok(Drawing {
        name: "figure-13".into(),
        figure: page::figure(&title(&done), &done),
        notes,
        numbers: numbers(&done, paper),
    })
}

/// Whom averaging and ADA-GD lost at the same step size, with as many agents as there were.
fn title(done: &[Done]) -> String {
    let found = words::who_loses(&done[0], &done[2]);
    // After a colon; it begins with a letter of ASCII.
    let found = found[..1].to_lowercase() + &found[1..];
    match done[0].first().agents {
        10 => format!("Ten agents: {found}"),
        agents => format!("{agents} agents: {found}"),
    }
}

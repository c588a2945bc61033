//! Figure 8b: averaging at the largest step size at which nobody leaves it, against ADA-GD.
//!
//! The paper's averaging has η = 2e-5, at which nobody leaves, but nobody leaves at larger ones
//! either. So averaging's largest safe step size is searched for here, by bisection, and shown
//! beside the paper's.
//!
//! Reference: arXiv 2311.16459, Figure 8b: ε = 0.5, η = 2e-5 for averaging and 2e-4 for ADA-GD,
//! which ends with the better model.

use super::search::largest_safe_step;
use super::training::{Arm, Asked, Done, numbers, study};
use super::{Drawing, page, words};
use fedstay_terminal::Usage;
use serde_json::json;

/// The experiment.
pub(super) const TEXT: &str = include_str!("../../../../experiments/fig5b.toml");

/// The paper's step size for averaging; the experiment's own is ADA-GD's.
const SMALL: &str = "2e-5";

fn arms(safe: Option<f64>) -> Vec<Arm> {
    let mut arms = vec![
        Arm::main("FedAvg 2e-5", "fedavg").with("step_size", SMALL),
        Arm::main("ADA-GD 2e-4", "ada-gd"),
    ];
    if let Some(safe) = safe {
        arms.push(Arm::main(format!("FedAvg {safe:e}"), "fedavg").with("step_size", safe));
    }
    arms.push(Arm::main("FedAvg 2e-4", "fedavg"));
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
    if asked.set.iter().any(|(key, _)| key == "step_size") {
        let why = "`step_size` cannot be set for figure 8b: it searches for averaging's by itself";
        return Err(Usage(why.into()).into());
    }
    let seeds = asked.seeds(3);
    let found = largest_safe_step(&Arm::main("FedAvg", "fedavg"), TEXT, asked, &seeds)?;
    let done = study(TEXT, arms(found.safe), asked, &seeds)?;
    let printed = done.last().map(|done| words::ends(&[done])).unwrap_or_default();
    let (small, ada_gd) = (&done[0], &done[1]);
    let safe = found.safe.map(|_| &done[2]);
    let same = &done[2 + usize::from(safe.is_some())];
    let search = found.sentence(&seeds);
    let notes = vec![
        format!(
            "{}. {}. The paper: nobody leaves either, and ADA-GD ends with the better model.",
            words::outcome(small),
            words::outcome(ada_gd)
        ),
        format!("{search}{}", safe.map(|safe| against(safe, ada_gd)).unwrap_or_default()),
        format!("At ADA-GD's step size: {}.", words::outcome(same)),
        format!(
            "{} As the paper prints the rule the last agent may leave too: {printed}.",
            words::controls(&done[..done.len() - 1])
        ),
    ];
    let paper = json!({
        "departures": { "fedavg at 2e-5": 0, "ada-gd at 2e-4": 0 }, "better": "ada-gd",
    });
    let title = match safe.filter(|_| found.unsafe_above.is_some()) {
        Some(safe) => words::how_far(ada_gd, safe, "averaging at its largest safe step size"),
        None => words::who_loses(same, ada_gd),
    };
    let mut figure = page::figure(&title, &done);
    figure.caption = format!("{} {search}", figure.caption);
    let mut numbers = numbers(&done, paper);
    numbers["search"] = found.numbers();
    Ok(Drawing { name: "figure-8b".into(), figure, notes, numbers })
}

/// How averaging at its largest safe step size compares with ADA-GD, seed by seed.
fn against(safe: &Done, ada_gd: &Done) -> String {
    let points: Vec<String> =
        words::points(ada_gd, safe).iter().map(|points| format!("{points:+.1}")).collect();
    format!(
        " {}; ADA-GD against that: {} points.",
        words::outcome(safe),
        fedstay_draw::words::list(&points)
    )
}

#[cfg(test)]
mod tests {
    use super::super::search::TOLERANCE;
    use super::super::training::run;
    use super::*;

    /// Two agents on the built-in digits, one of which averaging loses.
    fn digits() -> Asked {
        let set = [
            ("data.kind", "digits"),
            ("data.per_agent", "60"),
            ("data.classes", "[0, 1]"),
            ("model.hidden", "[8]"),
            ("rounds", "40"),
            ("eval_every", "10"),
        ];
        let set = set.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
        Asked { seeds: Some(vec![0, 1]), set, ..Asked::default() }
    }

    #[test]
    fn averaging_is_shown_at_the_largest_step_size_that_loses_nobody() {
        let asked = digits();
        let drawing = make(&asked).unwrap();
        let search = &drawing.numbers["search"];
        let safe = search["largest_safe_step_size"].as_f64().unwrap();
        let lost = search["smallest_unsafe_step_size"].as_f64().unwrap();
        assert!(lost > safe && lost / safe <= TOLERANCE, "{search}");
        assert!(safe > 2e-5, "the paper's step size is not the largest");
        let leavers = |step_size: f64| -> usize {
            let arm = Arm::main("", "fedavg").with("step_size", step_size);
            let of = |seed| {
                let experiment = arm.experiment(TEXT, &asked, seed).unwrap();
                run(experiment, "", true).unwrap().unwrap().left.len()
            };
            of(0) + of(1)
        };
        assert_eq!(leavers(safe), 0);
        assert!(leavers(lost) > 0);
        let title = &drawing.figure.title;
        assert!(
            title.starts_with("ADA-GD ends ") && title.ends_with("largest safe step size"),
            "{title}"
        );
        let name = format!("FedAvg {safe:e}");
        let arms = drawing.numbers["arms"].as_array().unwrap();
        let arm = arms.iter().find(|arm| arm["name"] == name.as_str()).unwrap();
        assert_eq!(arm["experiment"]["step_size"], safe);
        for said in [&drawing.figure.caption, &drawing.notes[1]] {
            assert!(said.contains("bisection") && said.contains(&format!("{safe:e}")), "{said}");
        }
    }

    #[test]
    fn a_step_size_from_outside_is_refused() {
        let mut asked = digits();
        asked.set.push(("step_size".into(), "0.1".into()));
        assert!(make(&asked).unwrap_err().to_string().contains("step_size"));
    }
}

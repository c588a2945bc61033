//! A tournament as a sweep: the grid of rules, behaviours and seeds over an experiment.

use anyhow::Result;
use fedstay_sim::experiment::{SpecError, read_table};
use fedstay_sim::sweep::Plan;
use fedstay_terminal::Usage;
use std::path::Path;
use toml::{Table, Value};

/// The sweep that is meant when no file is named. A file without a grid gets this one.
pub(super) const TOURNAMENT: &str = include_str!("../../../../experiments/tournament.toml");

/// What a tournament's table tells apart, and averages over.
const AXES: [&str; 4] = ["behaviour.kind", "label", "schedule.kind", "seed"];

/// The plan over an experiment's or a sweep's text; keys in `set` replace an axis or set a key of every
/// run.
pub(super) fn plan(text: &str, folder: &Path, set: &[(String, String)]) -> Result<Plan> {
    let table = read_table(text)?;
    let is_problem = |key: &str| key.split('.').next() == Some("problem");
    if table.contains_key("problem") || set.iter().any(|(key, _)| is_problem(key)) {
        return Err(needs_data());
    }
    let table = with_grid(table)?;
    let mut set = set.to_vec();
    set.push(("compare_alone".to_owned(), "true".to_owned()));
    let plan = Plan::parse(&toml::to_string(&table)?, folder, &set)?;
    if let Some(axis) = plan.axes.iter().find(|axis| !AXES.contains(&axis.key.as_str())) {
        let why = format!(
            "[grid]: a tournament has the axes {}, not `{}`; use `fedstay sweep` for others",
            AXES.join(", "),
            axis.key
        );
        return Err(Usage(why).into());
    }
    if plan.runs.iter().any(|run| run.experiment.training().is_none()) {
        return Err(needs_data());
    }
    Ok(plan)
}

fn needs_data() -> anyhow::Error {
    let why = "a tournament needs data to train on, not a [problem]; use `fedstay compare` for named \
               problems";
    Usage(why.into()).into()
}

/// The table with the axes that it does not name itself. What it says about its own behaviour holds for
/// runs with that behaviour.
fn with_grid(mut table: Table) -> Result<Table, SpecError> {
    let mut ours = read_table(TOURNAMENT)?;
    let mut whens = match (ours.remove("when"), table.remove("when")) {
        (ours, theirs) if ours == theirs => list(ours),
        (ours, theirs) => [list(ours), list(theirs)].concat(),
    };
    if let Some(Value::Table(behaviour)) = table.get("behaviour")
        && behaviour.contains_key("kind")
        && let Some(Value::Table(mut behaviour)) = table.remove("behaviour")
    {
        let kind = behaviour.remove("kind").into_iter().map(|kind| ("kind".to_owned(), kind));
        let under = |inner: Table| {
            Value::Table(Table::from_iter([("behaviour".to_owned(), Value::Table(inner))]))
        };
        whens.push(Value::Table(Table::from_iter([
            ("match".to_owned(), under(kind.collect())),
            ("set".to_owned(), under(behaviour)),
        ])));
    }
    if table.contains_key("schedule") {
        // A schedule of one's own has a file of its own.
        whens.retain(|when| when.get("match").and_then(|on| on.get("schedule")).is_none());
    }
    table.insert("when".to_owned(), Value::Array(whens));
    // The rules of the list are to find what they need: `fairfed` asks for groups, the others do not look.
    let own_rules = table.get("grid").is_some_and(|grid| grid.get("label").is_some());
    if !own_rules
        && let Value::Table(data) =
            table.entry("data").or_insert_with(|| Value::Table(Table::new()))
    {
        data.entry("group").or_insert_with(|| Value::from("brightness"));
    }
    // A schedule of one's own holds for every run.
    let names =
        |grid: &Value| grid.as_table().is_some_and(|grid| grid.contains_key("schedule.kind"));
    let scheduled = table.contains_key("schedule") || table.get("grid").is_some_and(names);
    let own_axis = table.get("grid").is_some_and(|grid| grid.get("schedule").is_some());
    if !scheduled && !own_axis {
        let skips = [list(table.remove("skip")), list(ours.remove("skip"))].concat();
        table.insert("skip".to_owned(), Value::Array(skips));
    }
    let grid = table.entry("grid").or_insert_with(|| Value::Table(Table::new()));
    if let (Value::Table(grid), Some(Value::Table(ours))) = (grid, ours.remove("grid")) {
        for (axis, values) in ours.into_iter().filter(|(axis, _)| !scheduled || axis != "schedule")
        {
            // The same key can be spelled `behaviour.kind` or `"behaviour.kind"`.
            let quoted = |(key, _): (&String, &Value)| {
                key.split_once('.').is_some_and(|(section, _)| section == axis)
            };
            if !grid.iter().any(quoted) {
                grid.entry(axis).or_insert(values);
            }
        }
    }
    Ok(table)
}

fn list(whens: Option<Value>) -> Vec<Value> {
    match whens {
        Some(Value::Array(list)) => list,
        other => other.into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedstay::{Behaviour, Rule, Schedule};

    fn planned(text: &str, set: &[(&str, &str)]) -> Result<Plan> {
        let set: Vec<_> = set.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        plan(text, Path::new("."), &set)
    }

    #[test]
    fn every_behaviour_takes_part() {
        let plan = planned(TOURNAMENT, &[("label", "[\"fedavg\"]"), ("seed", "0")]).unwrap();
        let always = |run: &&std::sync::Arc<fedstay_sim::sweep::Planned>| {
            run.experiment.schedule.is_always()
        };
        let names = plan.runs.iter().filter(always).map(|run| run.experiment.behaviour.name());
        assert!(names.eq(Behaviour::LIST.iter().map(|entry| entry.name)));
        // Every schedule, with the paper's agents.
        let schedules: Vec<&str> = plan
            .runs
            .iter()
            .filter(|run| matches!(run.experiment.behaviour, Behaviour::Threshold(_)))
            .map(|run| run.experiment.schedule.name())
            .collect();
        assert!(schedules.iter().copied().eq(Schedule::LIST.iter().map(|entry| entry.name)));
        // Every rule but `level`, which is a part of `retain`, and `stay`, which has a document of its own.
        let whole = planned(TOURNAMENT, &[("seed", "0"), ("behaviour.kind", "never")]).unwrap();
        for entry in Rule::LIST.iter().filter(|entry| !["level", "stay"].contains(&entry.name)) {
            assert!(
                whole.runs.iter().any(|run| run.experiment.rule.name() == entry.name),
                "{}",
                entry.name
            );
        }
        // The file by itself is the same sweep.
        let whole = planned(TOURNAMENT, &[]).unwrap();
        let alone = Plan::parse(TOURNAMENT, Path::new("."), &[]).unwrap();
        let keys = |plan: &Plan| plan.runs.iter().map(|run| run.key.clone()).collect::<Vec<_>>();
        assert_eq!(keys(&whole), keys(&alone));
        assert_eq!(whole.runs.len(), 30 * (16 + 6) * 3);
    }

    #[test]
    fn what_a_file_says_about_its_behaviour_holds_for_that_one() {
        let text = "rounds = 5\n[behaviour]\nkind = \"foresight\"\nsteps = 9\n[grid]\nseed = 4\n\
                    \"behaviour.kind\" = [\"threshold\", \"foresight\"]";
        let plan = planned(text, &[("label", "[\"retain\", \"fedavg+guard\"]")]).unwrap();
        let (always, scheduled): (Vec<_>, Vec<_>) =
            plan.runs.iter().partition(|run| run.experiment.schedule.is_always());
        let steps: Vec<_> = always.iter().map(|run| run.setting("behaviour.steps")).collect();
        let nine = serde_json::json!(9);
        assert_eq!(steps, [None, None, Some(&nine), Some(&nine)]);
        // The schedules are played with the paper's agents alone.
        assert_eq!(scheduled.len(), 2 * 6);
        assert!(scheduled.iter().all(|run| run.setting("behaviour.steps").is_none()));
        assert!(plan.runs.iter().all(|run| run.experiment.seed == 4 && run.experiment.rounds == 5));
        // A population of one's own.
        let mixed = "[behaviour]\nkind = \"mixed\"\nof = [{ kind = \"lying\", share = 1.0 }]";
        let set = [("behaviour.kind", "[\"mixed\"]"), ("label", "retain"), ("seed", "0")];
        let of =
            |text: &str| planned(text, &set).unwrap().runs[0].config["behaviour"]["of"].clone();
        assert_eq!((of(mixed).as_array().unwrap().len(), of("").as_array().unwrap().len()), (1, 5));
    }

    #[test]
    fn a_trace_of_ones_own_is_the_one_that_is_played() {
        let text = "[schedule]\nkind = \"trace\"\npath = \"mine.csv\"\n[grid]\nseed = 0";
        let plan = planned(text, &[("label", "fedavg"), ("behaviour.kind", "threshold")]).unwrap();
        let paths: Vec<_> = plan.runs.iter().map(|run| &run.config["schedule"]["path"]).collect();
        assert_eq!(paths, ["mine.csv"]);
    }

    #[test]
    fn what_cannot_be_averaged_over_is_refused() {
        for (text, expected) in [
            ("[grid]\nepsilon = [0.1, 0.2]", "not `epsilon`"),
            ("[problem]\nkind = \"huber\"", "fedstay compare"),
        ] {
            let error = planned(text, &[]).unwrap_err();
            assert!(error.is::<Usage>() && error.to_string().contains(expected), "{error}");
        }
    }
}

//! A sweep's runs from a table that `fedstay sweep export` wrote: enough to draw a figure again
//! where the store is not at hand.

use anyhow::{Context, Result, ensure};
use fedstay::record::Summary;
use fedstay_sim::sweep::{Finished, Frame, Outcome, Plan, Planned, Record, Series, same_value};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// The settings that a row has besides the axes of its sweep.
const SETTINGS: [&str; 3] = ["rule.kind", "step_size", "seed"];

/// One row, by the names of its columns.
type Row = BTreeMap<String, String>;

/// Reads the runs of a plan from a table, in the plan's order.
///
/// # Errors
/// When the file is not such a table, or a row of it is not one of the plan's runs.
pub(super) fn read(plan: &Plan, path: &Path) -> Result<Frame> {
    let name = path.display();
    let mut reader = csv::Reader::from_path(path).with_context(|| format!("cannot read {name}"))?;
    let mut found: Vec<Option<Record>> = vec![None; plan.runs.len()];
    for (number, row) in reader.deserialize::<Row>().enumerate() {
        let line = number + 2;
        let row = row.with_context(|| format!("{name}, line {line} cannot be read"))?;
        let at = plan.runs.iter().position(|run| is_of(&row, run, plan));
        let why = || format!("{name}, line {line} is not a run of this sweep");
        let at = at.with_context(why)?;
        let outcome = outcome(&row).with_context(|| format!("{name}, line {line}"))?;
        found[at] = Some(record(&plan.runs[at], outcome));
    }
    let records: Vec<Record> = found.into_iter().flatten().collect();
    ensure!(!records.is_empty(), "{name} has no rows; `fedstay sweep export` writes such a table");
    Ok(Frame { records })
}

/// Whether a row is about this run: it has the same value on every axis.
fn is_of(row: &Row, run: &Planned, plan: &Plan) -> bool {
    let axes = plan.axes.iter().map(|axis| axis.key.as_str());
    axes.chain(SETTINGS).all(|key| {
        let told = row.get(key).map(|text| value(text));
        run.setting(key).zip(told).is_some_and(|(wanted, told)| same_value(wanted, &told))
    })
}

/// A cell as a setting: a number where it is one.
fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
}

fn record(run: &Planned, outcome: Outcome) -> Record {
    let Planned { key, config, label, .. } = run.clone();
    let run = Finished { key, build: String::new(), config, outcome, series: Series::default() };
    Record { run, label }
}

/// What came of a run, as far as a table says it: not which agents left, and nothing about each.
fn outcome(row: &Row) -> Result<Outcome> {
    let text = |name: &str| row.get(name).map_or("", String::as_str);
    if text("outcome") == "diverged" {
        return Ok(Outcome::Diverged("as the table says".to_owned()));
    }
    let number = |name: &str| -> Result<Value> {
        let cell = text(name);
        let number: f64 = cell.parse().with_context(|| format!("`{name}` is `{cell}`"))?;
        Ok(json!(number))
    };
    let whole = |name: &str| -> Result<u32> {
        let cell = text(name);
        cell.parse().with_context(|| format!("`{name}` is `{cell}`"))
    };
    let spread = |of: &str| -> Result<Value> {
        let [min, mean, max] = ["min", "mean", "max"].map(|part| number(&format!("{of}.{part}")));
        Ok(json!({ "min": min?, "mean": mean?, "max": max? }))
    };
    let first = whole("first_departure").unwrap_or(0);
    let left: Vec<Value> =
        (0..whole("left")?).map(|agent| json!({ "agent": agent, "round": first })).collect();
    let summary = json!({
        "schema": Summary::SCHEMA, "version": "", "rule": text("rule.kind"), "policy": "none",
        "behaviour": "", "on": "", "seed": whole("seed")?, "rounds": whole("rounds")?,
        "stop": text("stop"), "verdict": text("verdict"), "everybody_content": false,
        "left": left, "agents": [], "loss": spread("loss")?, "accuracy": spread("accuracy")?,
        "population": { "loss": number("population.loss")?,
                        "accuracy": number("population.accuracy")? },
        "landed": null, "prediction": { "left": 0, "left_foreseen": 0, "in_d": 0, "in_d_left": 0 },
        "notes": [], "warnings": [], "weights": null,
    });
    Ok(Outcome::Finished(serde_json::from_value(summary)?))
}

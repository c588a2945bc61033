//! `fedstay sweep query`: results as a table in the terminal.

use super::{Study, told, wheres};
use crate::command::Usage;
use crate::table;
use anyhow::{Context, Result};
use fedstay_sim::sweep::stats::Mean;
use fedstay_sim::sweep::{Field, Frame, Store};
use fedstay_sim::text::printable;
use serde_json::Value;
use std::io::Write;
use std::path::Path;

const EXAMPLES: &str = "\
Examples:
  fedstay sweep query study.toml                                       every cell
  fedstay sweep query study.toml --by epsilon --of accuracy.mean,left
  fedstay sweep query study.toml --where local.steps=5 --by epsilon --against epsilon=0.2
  fedstay sweep query study.toml --sql \"SELECT rule, avg(accuracy_mean) FROM runs GROUP BY rule\"

Results: accuracy.mean, accuracy.min, accuracy.max, accuracy.spread, population.accuracy, loss.mean,
loss.max, population.loss, left, first_departure, rounds, or any other number of a run's summary.";

/// Results as a table in the terminal.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Query {
    #[command(flatten)]
    study: Study,
    /// The settings that tell rows apart; by default, every axis but the seed
    #[arg(long, value_delimiter = ',', value_name = "KEYS")]
    by: Vec<String>,
    /// The results to show
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "RESULTS",
        default_value = "accuracy.mean,accuracy.min,population.accuracy,left"
    )]
    of: Vec<String>,
    /// Only runs with this setting: `--where local.steps=5`
    #[arg(long = "where", value_name = "KEY=VALUE")]
    wheres: Vec<String>,
    /// Differences to the runs with this setting, paired by seed: `--against epsilon=0.2`
    #[arg(long, value_name = "KEY=VALUE")]
    against: Option<String>,
    /// An SQL query of your own on the store's tables runs, series and work
    #[arg(long, conflicts_with_all = ["by", "wheres", "against"])]
    sql: Option<String>,
}

impl Query {
    pub(super) fn run(self) -> Result<()> {
        if let Some(sql) = &self.sql {
            return ask(&self.store()?, sql);
        }
        let plan = self.study.plan()?;
        let frame = Frame::of_plan(&plan, &self.study.read()?)?.with(&wheres(&self.wheres)?);
        if frame.records.is_empty() {
            let why = "no finished run matches; see what is there with `fedstay sweep status`";
            return Err(Usage(why.into()).into());
        }
        let by = match self.by.is_empty() {
            true => plan
                .cell_axes()
                .iter()
                .filter(|axis| frame.values(&axis.key).len() > 1)
                .map(|axis| axis.key.clone())
                .collect(),
            false => self.by.clone(),
        };
        if let Some(key) = by.iter().find(|key| frame.values(key).is_empty()) {
            let axes: Vec<&str> = plan.axes.iter().map(|axis| axis.key.as_str()).collect();
            let why = format!("--by {key}: no run has it; the grid has {}", axes.join(", "));
            return Err(Usage(why).into());
        }
        for name in &self.of {
            if frame.records.iter().all(|record| record.result(name).is_none()) {
                let why = format!("--of {name}: no run has it; see `fedstay sweep query --help`");
                return Err(Usage(why).into());
            }
        }
        let text = match &self.against {
            None => means(&frame, &by, &self.of),
            Some(pair) => effects(&frame, &by, &self.of, pair)?,
        };
        Ok(std::io::stdout().lock().write_all(printable(&text).as_bytes())?)
    }

    fn store(&self) -> Result<Store> {
        let path = self.study.store_path()?;
        Store::read(Path::new(&path)).map_err(told)
    }
}

/// A setting as a cell of a table.
fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The factor and the decimals of a result: shares in percent, everything else as it is.
fn scale(name: &str) -> (f64, usize) {
    if name.contains("accuracy") { (100.0, 1) } else { (1.0, 3) }
}

fn with_interval(name: &str, mean: &Mean) -> String {
    let (factor, digits) = scale(name);
    let (middle, half) = (factor * mean.mean, factor * mean.half_width);
    if half.is_nan() {
        format!("{middle:.digits$}")
    } else {
        format!("{middle:.digits$} ± {half:.digits$}")
    }
}

fn heading(name: &str) -> String {
    if scale(name).0 == 100.0 { format!("{name} %") } else { name.to_owned() }
}

/// Means over the seeds with Student's 95% intervals.
fn means(frame: &Frame, by: &[String], of: &[String]) -> String {
    let headings = by.iter().cloned().chain(["runs".to_owned()]);
    let headings: Vec<String> = headings.chain(of.iter().map(|name| heading(name))).collect();
    let rows: Vec<Vec<String>> = frame
        .by(by)
        .into_iter()
        .map(|(settings, cell)| {
            let mut row: Vec<String> = settings.iter().map(|(_, value)| shown(value)).collect();
            row.push(cell.records.len().to_string());
            for name in of {
                let mean = cell.mean(name);
                row.push(mean.map_or("–".to_owned(), |mean| with_interval(name, &mean)));
            }
            row
        })
        .collect();
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    let note = "mean ± half of the 95% interval (Student's t) over the runs of a row";
    format!("{}\n{note}\n", table::table(&headings, &rows))
}

/// Differences to a baseline, paired by seed.
fn effects(frame: &Frame, by: &[String], of: &[String], against: &str) -> Result<String> {
    let wanted = wheres(&[against.to_owned()])?;
    let (key, base) = wanted.first().context("--against needs KEY=VALUE")?;
    if frame.with(&wanted).records.is_empty() {
        let values: Vec<String> = frame.values(key).iter().map(shown).collect();
        let why = format!("--against {against}: no run has it; there are {}", values.join(", "));
        return Err(Usage(why).into());
    }
    let mut by = by.to_vec();
    if !by.contains(key) {
        by.push(key.clone());
    }
    let mut rows = Vec::new();
    for (settings, cell) in frame.by(&by) {
        if settings.iter().any(|(k, value)| k == key && value == base) {
            continue;
        }
        let partner: Vec<(String, Value)> = settings
            .iter()
            .map(|(k, value)| (k.clone(), if k == key { base.clone() } else { value.clone() }))
            .collect();
        let partner = frame.with(&partner);
        for name in of {
            let Some(difference) = cell.difference(&partner, name) else { continue };
            let (_, digits) = scale(name);
            let number = |value: f64, digits: usize| match value.is_finite() {
                true => format!("{value:.digits$}"),
                false => "–".to_owned(),
            };
            let mut row: Vec<String> = settings.iter().map(|(_, value)| shown(value)).collect();
            row.extend([
                heading(name),
                difference.mean.n.to_string(),
                with_interval(name, &difference.mean),
                number(difference.effect, digits.max(2)),
                number(difference.p, 4),
            ]);
            rows.push(row);
        }
    }
    let headings = by.iter().map(String::as_str);
    let headings: Vec<&str> =
        headings.chain(["result", "pairs", "difference", "effect", "p"]).collect();
    Ok(format!(
        "{}\ndifferences to {against}, paired by seed: mean ± half of the 95% interval (Student's t); \
         effect: the mean in units of its standard deviation\n",
        table::table(&headings, &rows)
    ))
}

/// Asks the store an SQL query.
fn ask(store: &Store, sql: &str) -> Result<()> {
    store.verify()?;
    let told = store.ask(sql).map_err(|error| Usage(format!("--sql: {}", error.why())))?;
    let headings: Vec<&str> = told.columns.iter().map(String::as_str).collect();
    let cells: Vec<Vec<String>> =
        told.rows.iter().map(|row| row.iter().map(field).collect()).collect();
    let text = printable(&table::table(&headings, &cells));
    Ok(std::io::stdout().lock().write_all(text.as_bytes())?)
}

/// A value of the store as a cell of a table.
fn field(value: &Field) -> String {
    match value {
        Field::Nothing => "–".to_owned(),
        Field::Whole(value) => value.to_string(),
        Field::Real(value) => format!("{value:.6}"),
        Field::Text(text) => text.clone(),
        Field::Bytes(bytes) => format!("{} bytes", bytes.len()),
    }
}

//! `fedstay sweep query`: results as a table in the terminal.

use super::{Study, told, wheres};
use anyhow::{Context, Result};
use fedstay::{Better, Measure};
use fedstay_sim::sweep::stats::Mean;
use fedstay_sim::sweep::{Field, Frame, Store};
use fedstay_terminal::{Column, Screen, Table, Usage};
use serde_json::{Map, Value, json};
use std::path::Path;

const EXAMPLES: &str = "\
Examples:
  # every cell; then some settings and some results
  fedstay sweep query study.toml
  fedstay sweep query study.toml --by epsilon --of accuracy.mean,left
  # differences, paired by seed
  fedstay sweep query study.toml --where local.steps=5 --against epsilon=0.2
  # a question of your own
  fedstay sweep query study.toml --sql \"SELECT count(*) FROM runs\"

Results: MEASURE.mean, .min, .max, .median, .spread and population.MEASURE, where MEASURE is loss, accuracy \
or what the sweep measures (fedstay list measures); held_back.MEASURE.mean and so on, of agents' own \
held-back rows; left, first_departure, rounds, or any other number of a run's summary.";

/// Results as a table in the terminal.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Query {
    #[command(flatten)]
    study: Study,
    /// The settings that tell rows apart; by default, every axis but the seed
    #[arg(long, value_delimiter = ',', value_name = "KEYS")]
    by: Vec<String>,
    /// The results to show; by default the mean and the worst of the first measure, the
    /// population's, and how many left
    #[arg(long, value_delimiter = ',', value_name = "RESULTS")]
    of: Vec<String>,
    /// Only runs with this setting: `--where local.steps=5`
    #[arg(long = "where", value_name = "KEY=VALUE")]
    wheres: Vec<String>,
    /// Differences to the runs with this setting, paired by seed: `--against epsilon=0.2`
    #[arg(long, value_name = "KEY=VALUE")]
    against: Option<String>,
    /// An SQL query of your own on the store's tables runs, series, work and measures
    #[arg(long, conflicts_with_all = ["by", "wheres", "against"])]
    sql: Option<String>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

impl Query {
    pub(super) fn run(self, screen: &Screen) -> Result<()> {
        if let Some(sql) = &self.sql {
            return self.ask(&self.store()?, sql, screen);
        }
        let plan = self.study.plan()?;
        let frame = Frame::of_plan(&plan, &self.study.read()?)?.with(&wheres(&self.wheres)?);
        if frame.records.is_empty() {
            let why = "no finished run matches; see what is there with `fedstay sweep status`";
            return Err(Usage(why.into()).into());
        }
        let of = if self.of.is_empty() { usual(&frame) } else { self.of.clone() };
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
        for name in &of {
            if frame.records.iter().all(|record| record.result(name).is_none()) {
                let why = format!("--of {name}: no run has it; see `fedstay sweep query --help`");
                return Err(Usage(why).into());
            }
        }
        let rows = match &self.against {
            None => means(&frame, &by, &of),
            Some(pair) => effects(&frame, by, &of, pair)?,
        };
        let headings: Vec<String> =
            of.iter().map(|name| heading(name, frame.measure_of(name).as_ref())).collect();
        if self.json {
            let rows: Vec<Value> = rows.iter().map(Row::json).collect();
            return screen.print(&format!("{}\n", serde_json::to_string_pretty(&rows)?));
        }
        screen.print(&screen.table(&table(&rows, &headings, self.against.is_some())))?;
        screen.mention(&match &self.against {
            None => "\nmean ± half of the 95% interval (Student's t) over the runs of a row".to_owned(),
            Some(against) => format!(
                "\ndifferences to {against}, paired by seed: mean ± half of the 95% interval (Student's t); \
                 effect: the mean in units of its standard deviation"
            ),
        })
    }

    fn store(&self) -> Result<Store> {
        let path = self.study.store_path()?;
        Store::read(Path::new(&path)).map_err(told)
    }

    /// Asks the store an SQL query.
    fn ask(&self, store: &Store, sql: &str, screen: &Screen) -> Result<()> {
        store.verify()?;
        let told = store.ask(sql).map_err(|error| Usage(format!("--sql: {}", error.why())))?;
        if self.json {
            let row = |row: &Vec<Field>| {
                let values = told.columns.iter().cloned().zip(row.iter().map(value));
                Value::Object(values.collect())
            };
            let rows: Vec<Value> = told.rows.iter().map(row).collect();
            return screen.print(&format!("{}\n", serde_json::to_string_pretty(&rows)?));
        }
        let mut table = Table::new(told.columns.iter().enumerate().map(|(place, name)| {
            // What was asked for last can be spared first.
            match place {
                0 => Column::kept(name.clone()),
                place => Column::dispensable(name.clone(), place.min(255) as u8),
            }
        }));
        told.rows.iter().for_each(|row| table.row(row.iter().map(field)));
        screen.print(&screen.table(&table))
    }
}

/// The results that are shown unless somebody asks for others.
fn usual(frame: &Frame) -> Vec<String> {
    let has = |name: &String| frame.records.iter().any(|record| record.result(name).is_some());
    let measures = frame.measures();
    let measured = measures.into_iter().find(|measure| has(&format!("{}.mean", measure.name)));
    let measure = measured.unwrap_or(Measure::LOSS);
    let (name, worst) = match measure.better {
        Better::Higher => (&measure.name, "min"),
        Better::Lower => (&measure.name, "max"),
    };
    let over = [format!("{name}.mean"), format!("{name}.{worst}"), format!("population.{name}")];
    over.into_iter().filter(has).chain(["left".to_owned()]).collect()
}

/// A row of the answer: settings, and results over the runs that have them.
struct Row {
    settings: Vec<(String, Value)>,
    results: Vec<Measured>,
    runs: usize,
}

/// One result of a row.
struct Measured {
    name: String,
    /// What it says something about, if that is a measure.
    measure: Option<Measure>,
    mean: Option<Mean>,
    /// Effect and p, for differences.
    test: Option<(f64, f64)>,
}

impl Row {
    fn json(&self) -> Value {
        let number = |value: f64| if value.is_finite() { json!(value) } else { Value::Null };
        let result = |result: &Measured| {
            let mut told = json!({
                "mean": result.mean.map_or(Value::Null, |mean| number(mean.mean)),
                "half_width": result.mean.map_or(Value::Null, |mean| number(mean.half_width)),
                "n": result.mean.map_or(0, |mean| mean.n),
            });
            if let Some((effect, p)) = result.test {
                told["effect"] = number(effect);
                told["p"] = number(p);
            }
            (result.name.clone(), told)
        };
        let settings: Map<String, Value> = self.settings.iter().cloned().collect();
        let results: Map<String, Value> = self.results.iter().map(result).collect();
        json!({ "settings": settings, "runs": self.runs, "results": results })
    }
}

/// The answer as a table: one line per row, or one per difference.
fn table(rows: &[Row], of: &[String], differences: bool) -> Table {
    let keys = rows.first().map_or(&[][..], |row| &row.settings);
    let mut columns: Vec<Column> = keys.iter().map(|(key, _)| Column::kept(key.clone())).collect();
    if differences {
        columns.extend(["result", "difference"].map(Column::kept));
        columns.push(Column::kept("p"));
        columns.extend([Column::dispensable("effect", 1), Column::dispensable("pairs", 2)]);
    } else {
        columns.push(Column::dispensable("runs", 1));
        // The first result is always shown, the last can be spared first.
        columns.extend(of.iter().enumerate().map(|(place, name)| match place {
            0 => Column::kept(name.clone()),
            place => Column::dispensable(name.clone(), (1 + place).min(255) as u8),
        }));
    }
    let mut table = Table::new(columns);
    for row in rows {
        let settings = row.settings.iter().map(|(_, value)| shown(value));
        if !differences {
            let results = row.results.iter().map(|result| result.interval());
            table.row(settings.chain([row.runs.to_string()]).chain(results));
            continue;
        }
        for result in &row.results {
            let (effect, p) = result.test.unwrap_or((f64::NAN, f64::NAN));
            let pairs = result.mean.map_or(0, |mean| mean.n);
            let told = [
                heading(&result.name, result.measure.as_ref()),
                result.interval(),
                probability(p),
                number(effect, scale(result.measure.as_ref()).1.max(2)),
                pairs.to_string(),
            ];
            table.row(settings.clone().chain(told));
        }
    }
    table
}

/// A setting as a cell of a table.
fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The factor and the decimals of a result: shares in percent, everything else as it is.
fn scale(measure: Option<&Measure>) -> (f64, usize) {
    if measure.is_some_and(Measure::is_share) { (100.0, 1) } else { (1.0, 3) }
}

impl Measured {
    fn interval(&self) -> String {
        let Some(mean) = &self.mean else { return "–".to_owned() };
        let (factor, digits) = scale(self.measure.as_ref());
        let (middle, half) = (factor * mean.mean, factor * mean.half_width);
        // Where all runs agree on a whole number, its decimals say nothing.
        let digits = if half == 0.0 && middle.fract() == 0.0 { 0 } else { digits };
        let (low, high) = (middle - half, middle + half);
        // A share is never below nothing or above everything; its interval then is not around its middle.
        let share = factor == 100.0 && self.test.is_none();
        if half.is_nan() {
            format!("{middle:.digits$}")
        } else if share && (low < 0.0 || high > factor) {
            let (low, high) = (low.max(0.0), high.min(factor));
            format!("{middle:.digits$} ({low:.digits$} to {high:.digits$})")
        } else {
            format!("{middle:.digits$} ± {half:.digits$}")
        }
    }
}

fn number(value: f64, digits: usize) -> String {
    if value.is_finite() { format!("{value:.digits$}") } else { "–".to_owned() }
}

/// A probability; what is rounded to nothing is not nothing.
fn probability(p: f64) -> String {
    if p < 0.00005 { "<0.0001".to_owned() } else { number(p, 4) }
}

fn heading(name: &str, measure: Option<&Measure>) -> String {
    if scale(measure).0 == 100.0 { format!("{name} %") } else { name.to_owned() }
}

/// Means over the seeds with Student's 95% intervals.
fn means(frame: &Frame, by: &[String], of: &[String]) -> Vec<Row> {
    let row = |(settings, cell): (Vec<(String, Value)>, Frame)| Row {
        settings,
        runs: cell.records.len(),
        results: of
            .iter()
            .map(|name| {
                let (name, measure) = (name.clone(), frame.measure_of(name));
                Measured { mean: cell.mean(&name), name, measure, test: None }
            })
            .collect(),
    };
    frame.by(by).into_iter().map(row).collect()
}

/// Differences to a baseline, paired by seed.
fn effects(frame: &Frame, mut by: Vec<String>, of: &[String], against: &str) -> Result<Vec<Row>> {
    let wanted = wheres(&[against.to_owned()])?;
    let (key, base) = wanted.first().context("--against needs KEY=VALUE")?;
    if frame.with(&wanted).records.is_empty() {
        let values: Vec<String> = frame.values(key).iter().map(shown).collect();
        let why = format!("--against {against}: no run has it; there are {}", values.join(", "));
        return Err(Usage(why).into());
    }
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
        let result = |name: &String| {
            let difference = cell.difference(&partner, name)?;
            let test = Some((difference.effect, difference.p));
            let (name, measure) = (name.clone(), frame.measure_of(name));
            Some(Measured { name, measure, mean: Some(difference.mean), test })
        };
        let results = of.iter().filter_map(result).collect();
        rows.push(Row { settings, results, runs: cell.records.len() });
    }
    Ok(rows)
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

/// A value of the store as JSON.
fn value(field: &Field) -> Value {
    match field {
        Field::Nothing => Value::Null,
        Field::Whole(value) => json!(value),
        Field::Real(value) => json!(value),
        Field::Text(text) => json!(text),
        Field::Bytes(bytes) => json!(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(name: &str, mean: f64, half_width: f64, test: Option<(f64, f64)>) -> String {
        let mean = Some(Mean { mean, half_width, deviation: half_width, n: 3 });
        let measure = name.starts_with("accuracy").then_some(Measure::ACCURACY);
        Measured { name: name.to_owned(), measure, mean, test }.interval()
    }

    #[test]
    fn an_interval_of_shares_stays_between_nothing_and_everything() {
        assert_eq!(interval("accuracy_mean", 0.82, 0.353, None), "82.0 (46.7 to 100.0)");
        assert_eq!(interval("accuracy_worst", 0.1, 0.2, None), "10.0 (0.0 to 30.0)");
        assert_eq!(interval("accuracy_mean", 0.82, 0.1, None), "82.0 ± 10.0");
        // Differences and losses have no such ends.
        assert_eq!(interval("accuracy_mean", -0.1, 0.2, Some((1.0, 0.5))), "-10.0 ± 20.0");
        assert_eq!(interval("loss_mean", 0.1, 0.2, None), "0.100 ± 0.200");
    }
}

//! Results as columns, for other programs.

use super::frame::HELD_BACK;
use crate::sweep::plan::in_words;
use crate::sweep::{Frame, Outcome, Plan, Point, Record};
use fedstay::record::Summary;
use fedstay::{Measure, MeasureName};
use serde_json::Value;

/// One column of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// One a row.
    pub values: Values,
}

/// A column's values; `None` where a row has none.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Whole numbers.
    Whole(Vec<Option<i64>>),
    /// Numbers.
    Number(Vec<Option<f64>>),
    /// Texts.
    Text(Vec<Option<String>>),
}

impl Values {
    /// How many rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Whole(values) => values.len(),
            Self::Number(values) => values.len(),
            Self::Text(values) => values.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One of them as text; nothing where there is none.
    pub fn cell(&self, row: usize) -> String {
        match self {
            Self::Whole(values) => values[row].map_or(String::new(), |value| value.to_string()),
            Self::Number(values) => values[row].map_or(String::new(), |value| value.to_string()),
            Self::Text(values) => values[row].clone().unwrap_or_default(),
        }
    }
}

/// A column of the narrowest kind that holds all its values.
fn column(name: &str, values: Vec<Option<Value>>) -> Column {
    let all = |fits: fn(&Value) -> bool| values.iter().flatten().all(fits);
    let values = if all(Value::is_i64) {
        Values::Whole(values.iter().map(|value| value.as_ref().and_then(Value::as_i64)).collect())
    } else if all(Value::is_number) {
        Values::Number(values.iter().map(|value| value.as_ref().and_then(Value::as_f64)).collect())
    } else {
        Values::Text(values.iter().map(|value| value.as_ref().map(in_words)).collect())
    };
    Column { name: name.to_owned(), values }
}

/// The settings that tell runs apart: the axes, and whatever else differs.
fn settings(plan: &Plan) -> Vec<String> {
    let mut keys: Vec<String> = vec!["rule.kind".into(), "step_size".into(), "seed".into()];
    for axis in &plan.axes {
        if !keys.contains(&axis.key) {
            keys.push(axis.key.clone());
        }
    }
    keys
}

/// Only runs with `compare_alone` have it, so only their tables have the column.
const BETTER_THAN_ALONE: &str = "better_than_alone";

const WHOLE: [&str; 5] = ["rounds", "left", "first_departure", "content", BETTER_THAN_ALONE];

/// The usual measures, the loss, then the others: so columns keep their places.
fn measures(others: impl IntoIterator<Item = MeasureName>) -> Vec<MeasureName> {
    let usual = [Measure::ACCURACY.name, Measure::LOSS.name];
    let others = others.into_iter().filter(|name| !usual.contains(name));
    let mut all = usual.to_vec();
    all.extend(others);
    all
}

/// What is told of a measure, by the names of results.
fn results_of(measure: &str) -> [String; 4] {
    let over = ["mean", "min", "max"].map(|part| format!("{measure}.{part}"));
    let [mean, min, max] = over;
    [mean, min, max, format!("population.{measure}")]
}

impl Frame {
    /// One row a run: its settings and what came of it.
    pub fn columns(&self, plan: &Plan) -> Vec<Column> {
        let each =
            |of: &dyn Fn(&Record) -> Option<Value>| self.records.iter().map(of).collect::<Vec<_>>();
        let mut columns = vec![column("key", each(&|record| Some(record.run.key.clone().into())))];
        for key in settings(plan) {
            columns.push(column(&key, each(&|record| record.setting(&key).cloned())));
        }
        let outcome = |record: &Record| match record.run.outcome {
            Outcome::Finished(_) => "finished",
            Outcome::Diverged(_) => "diverged",
        };
        columns.push(column("outcome", each(&|record| Some(outcome(record).into()))));
        let summary = |record: &Record, of: fn(&Summary) -> &str| {
            record.run.summary().map(|summary| Value::from(of(summary)))
        };
        columns
            .push(column("stop", each(&|record| summary(record, |summary| summary.stop.name()))));
        columns.push(column("verdict", each(&|record| summary(record, |s| s.verdict.name()))));
        let known = measures(self.measures().into_iter().map(|measure| measure.name));
        let known = known.iter().flat_map(|measure| results_of(measure));
        for name in WHOLE.map(str::to_owned).into_iter().chain(known) {
            let whole = WHOLE.contains(&name.as_str());
            let value = |record: &Record| {
                let value = record.result(&name)?;
                Some(if whole { Value::from(value as i64) } else { Value::from(value) })
            };
            let values = each(&value);
            if name != BETTER_THAN_ALONE || values.iter().any(Option::is_some) {
                columns.push(column(&name, values));
            }
        }
        for measure in measures(self.measures().into_iter().map(|measure| measure.name)) {
            // Only runs whose agents have rows of their own that nobody trained on have them.
            for part in ["mean", "min", "max"] {
                let name = format!("{HELD_BACK}.{measure}.{part}");
                let values = each(&|record| record.result(&name).map(Value::from));
                if values.iter().any(Option::is_some) {
                    columns.push(column(&name, values));
                }
            }
        }
        columns
    }

    /// One row a measured round.
    pub fn series_columns(&self, plan: &Plan) -> Vec<Column> {
        let points: Vec<_> = self
            .records
            .iter()
            .flat_map(|record| record.run.series.0.iter().map(move |point| (record, point)))
            .collect();
        let mut columns = Vec::new();
        let key = points.iter().map(|(record, _)| Some(record.run.key.clone().into()));
        columns.push(column("key", key.collect()));
        for key in settings(plan) {
            let values = points.iter().map(|(record, _)| record.setting(&key).cloned());
            columns.push(column(&key, values.collect()));
        }
        for (name, of) in [("round", 0), ("present", 1)] {
            let of = |point: &Point| i64::from([point.round, point.present][of]);
            let values = points.iter().map(|(_, point)| Some(of(point))).collect();
            columns.push(Column { name: name.to_owned(), values: Values::Whole(values) });
        }
        let others = self.records.iter().flat_map(|record| record.run.series.measures());
        let mut known: Vec<MeasureName> = Vec::new();
        others.for_each(|name| {
            if !known.contains(&name) {
                known.push(name)
            }
        });
        for measure in measures(known) {
            for (place, name) in results_of(&measure).into_iter().enumerate() {
                let of = |point: &Point| Some(point.numbers(&measure)[place]);
                let values = points.iter().map(|(_, point)| of(point).filter(|v| !v.is_nan()));
                columns.push(Column { name, values: Values::Number(values.collect()) });
            }
        }
        columns
    }
}

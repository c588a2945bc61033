//! Results as a table: one record a run, with its settings and what came of it.

use crate::experiment::table::{look_up, same};
use crate::sweep::plan::LABEL;
use crate::sweep::results::stats::{Difference, Mean};
use crate::sweep::{Finished, Plan, Store, StoreError};
use fedstay::Measure;
use fedstay::record::Summary;
use serde_json::Value;

/// One run: where it stands in the grid, and its results.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// The run, as stored.
    pub run: Finished,
    /// Its value on the axis `label` of the plan it was read for, where that has one.
    pub label: Option<Value>,
}

impl Record {
    /// A setting by its key, such as `partition.q`, or the run's `label`.
    pub fn setting(&self, key: &str) -> Option<&Value> {
        match key {
            LABEL => self.label.as_ref(),
            _ => look_up(&self.run.config, key),
        }
    }

    /// A result by its name: a path in the summary such as `accuracy.mean` or
    /// `population.accuracy`, the `.spread` or `.median` of a measure or of the loss, the same of
    /// agents' own held-back rows as `held_back.accuracy.mean`, or `left` and `first_departure`. `None`
    /// for a run that diverged.
    pub fn result(&self, name: &str) -> Option<f64> {
        let summary = self.run.summary()?;
        match (name, name.split_once('.')) {
            ("left", _) => Some(summary.left.len() as f64),
            ("first_departure", _) => summary.left.first().map(|left| f64::from(left.round)),
            (_, Some((HELD_BACK, of))) => held_back(summary, of),
            (_, Some((of, "spread"))) => {
                summary.score.get(of).map(|spread| spread.max - spread.min)
            }
            (_, Some((of, "median"))) => summary.median(of),
            _ => {
                let summary = serde_json::to_value(summary).ok()?;
                look_up(&summary, name)?.as_f64()
            }
        }
    }
}

/// What results of agents' own held-back rows begin with.
pub(super) const HELD_BACK: &str = "held_back";

/// A result of agents' own held-back rows: `auroc.min`.
fn held_back(summary: &Summary, name: &str) -> Option<f64> {
    let (of, part) = name.rsplit_once('.')?;
    let spread = summary.held_back.as_ref()?.get(of)?;
    match part {
        "min" => Some(spread.min),
        "mean" => Some(spread.mean),
        "max" => Some(spread.max),
        "spread" => Some(spread.max - spread.min),
        "median" => summary.median_held_back(of),
        _ => None,
    }
}

/// Whether two settings are equal as a reader sees them: 1 and 1.0 are.
pub fn same_value(a: &Value, b: &Value) -> bool {
    same(a, b)
}

/// The runs of a plan that are in a store, in the plan's order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Frame {
    /// One a run.
    pub records: Vec<Record>,
}

impl Frame {
    /// Reads them.
    ///
    /// # Errors
    /// When the store cannot be read, or is damaged.
    pub fn of_plan(plan: &Plan, store: &Store) -> Result<Self, StoreError> {
        store.check_file()?;
        let mut records = Vec::new();
        for planned in &plan.runs {
            let label = planned.label.clone();
            records.extend(store.get(&planned.key)?.map(|run| Record { run, label }));
        }
        Ok(Self { records })
    }

    /// All runs of a store, by key.
    ///
    /// # Errors
    /// When the store cannot be read, or is damaged.
    pub fn of_store(store: &Store) -> Result<Self, StoreError> {
        store.check_file()?;
        let mut keys: Vec<String> = store.keys()?.into_iter().collect();
        keys.sort();
        let mut records = Vec::new();
        for key in keys {
            records.extend(store.get(&key)?.map(|run| Record { run, label: None }));
        }
        Ok(Self { records })
    }

    /// What was measured besides the loss in some run, each once, the headline first.
    pub fn measures(&self) -> Vec<Measure> {
        let mut measures: Vec<Measure> = Vec::new();
        let summaries = self.records.iter().filter_map(|record| record.run.summary());
        for measure in summaries.flat_map(|summary| &summary.measures) {
            if !measures.contains(measure) {
                measures.push(measure.clone());
            }
        }
        measures
    }

    /// What a result says something about: a measure, or the loss; `None` for other numbers.
    pub fn measure_of(&self, result: &str) -> Option<Measure> {
        let (first, last) = result.split_once('.')?;
        let name = match first {
            "population" => last,
            HELD_BACK => last.split_once('.')?.0,
            _ => first,
        };
        let known = self.measures().into_iter().find(|measure| measure.name == name);
        known.or_else(|| (name == Measure::LOSS.name).then_some(Measure::LOSS))
    }

    /// The runs with these settings.
    #[must_use]
    pub fn with(&self, settings: &[(String, Value)]) -> Self {
        let fits = |record: &&Record| {
            settings.iter().all(|(key, wanted)| {
                record.setting(key).is_some_and(|value| same_value(value, wanted))
            })
        };
        Self { records: self.records.iter().filter(fits).cloned().collect() }
    }

    /// The values a setting has, each once, numbers in order.
    pub fn values(&self, key: &str) -> Vec<Value> {
        let mut values: Vec<Value> = Vec::new();
        for value in self.records.iter().filter_map(|record| record.setting(key)) {
            if !values.iter().any(|known| same_value(known, value)) {
                values.push(value.clone());
            }
        }
        if values.iter().all(Value::is_number) {
            let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
            values.sort_by(|a, b| number(a).total_cmp(&number(b)));
        }
        values
    }

    /// The runs by the values of some settings: one group a combination that is there, in order.
    pub fn by(&self, keys: &[String]) -> Vec<(Vec<(String, Value)>, Self)> {
        let Some((key, rest)) = keys.split_first() else {
            return vec![(Vec::new(), self.clone())];
        };
        let mut groups = Vec::new();
        for value in self.values(key) {
            let setting = (key.clone(), value);
            let part = self.with(std::slice::from_ref(&setting));
            for (mut settings, group) in part.by(rest) {
                settings.insert(0, setting.clone());
                groups.push((settings, group));
            }
        }
        groups
    }

    /// A result's mean over the runs that have it.
    pub fn mean(&self, name: &str) -> Option<Mean> {
        let values: Vec<f64> =
            self.records.iter().filter_map(|record| record.result(name)).collect();
        Mean::of(&values)
    }

    /// The paired difference of a result: this minus `other`, seed by seed. Seeds that only one of
    /// them has are left out.
    pub fn difference(&self, other: &Self, name: &str) -> Option<Difference> {
        let mut pairs = Vec::new();
        for record in &self.records {
            let same_seed = |partner: &&Record| partner.setting("seed") == record.setting("seed");
            let partner = other.records.iter().find(same_seed);
            if let Some((mine, theirs)) =
                record.result(name).zip(partner.and_then(|partner| partner.result(name)))
            {
                pairs.push((theirs, mine));
            }
        }
        Difference::of(&pairs)
    }
}

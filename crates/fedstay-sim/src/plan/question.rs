//! What a plan is asked: an experiment, the ways to run it, and the seeds. In a file it is a sweep over `label`
//! and `seed`, so `fedstay sweep` understands it too.

use super::answer::{AVERAGING, CEILING};
use super::error::QuestionError;
use super::recommend::PREFERRED;
use crate::experiment::table::{look_up, put};
use crate::experiment::{Experiment, read_table, set_keys, under};
use std::path::Path;
use toml::{Table, Value};

/// The seeds of a plan that says none.
pub const USUAL_SEEDS: u64 = 5;
/// More seeds than anybody would wait for.
const MOST_SEEDS: u64 = 1_000;

/// What a plan is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The experiment, without a rule of its own.
    pub(super) table: Table,
    /// The ways to run it, the ceiling and averaging first.
    pub(super) labels: Vec<String>,
    /// The seeds; each draws its own held-back rows.
    pub(super) seeds: Vec<u64>,
}

impl Question {
    /// Reads a file's text, with keys set from outside on top. `labels` and `seeds` take the place of those
    /// in the file, where they are given.
    ///
    /// # Errors
    /// When the file does not say an experiment, or a grid of other things than ways and seeds.
    pub fn parse(
        text: &str,
        set: &[(String, String)],
        labels: Option<&[String]>,
        seeds: Option<u64>,
    ) -> Result<Self, QuestionError> {
        let mut table = read_table(text)?;
        let grid = match table.remove("grid") {
            None => Table::new(),
            Some(Value::Table(grid)) => grid,
            Some(_) => return Err(QuestionError::Grid { key: "grid".to_owned() }),
        };
        if let Some(key) = grid.keys().find(|key| !["label", "seed"].contains(&key.as_str())) {
            return Err(QuestionError::Grid { key: format!("grid.{key}") });
        }
        set_keys(&mut table, set)?;
        let of_file = grid.get("label").map(texts).transpose()?;
        let labels = labels.map(<[String]>::to_vec).or(of_file).unwrap_or_else(usual);
        let seeds = match (seeds, grid.get("seed")) {
            (Some(count), _) => numbered(count)?,
            (None, Some(listed)) => seeds_of(listed)?,
            (None, None) => numbered(USUAL_SEEDS)?,
        };
        table.remove("seed");
        let mut ways = vec![CEILING.to_owned(), AVERAGING.to_owned()];
        for label in labels {
            let label = label.trim().to_owned();
            if !ways.contains(&label) {
                ways.push(label);
            }
        }
        let question = Self { table, labels: ways, seeds };
        // Whatever is wrong with a label or a key shows before anything is computed.
        question.labels.iter().try_for_each(|label| question.experiment(label, 0).map(drop))?;
        Ok(question)
    }

    /// Reads the file at `path`.
    ///
    /// # Errors
    /// As [`parse`](Self::parse), and when it cannot be read.
    pub fn read(
        path: &Path,
        set: &[(String, String)],
        labels: Option<&[String]>,
        seeds: Option<u64>,
    ) -> Result<Self, QuestionError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| QuestionError::Io { path: path.to_owned(), source })?;
        Self::parse(&text, set, labels, seeds)
            .map_err(|error| QuestionError::In { path: path.to_owned(), error: Box::new(error) })
    }

    /// The experiment of one way on one seed.
    pub(super) fn experiment(&self, label: &str, seed: u64) -> Result<Experiment, QuestionError> {
        let mut table = under(self.table.clone(), label)?;
        put(&mut table, "seed", Value::Integer(seed as i64))?;
        // Averaging as it is usually done: an owner counts by its rows, or a dozen of them would pull as hard as
        // thousands.
        let of_rule =
            |table: &Table, key: &str| look_up(&Value::Table(table.clone()), key).cloned();
        let averages =
            of_rule(&table, "rule.kind").is_some_and(|kind| kind.as_str() == Some("fedavg"));
        if averages && of_rule(&table, "rule.weigh").is_none() {
            put(&mut table, "rule.weigh", Value::from("samples"))?;
        }
        Ok(Experiment::from_table(table)?)
    }

    /// The text of a file that asks the same.
    ///
    /// # Errors
    /// Never, for a question that was parsed.
    pub fn to_toml(&self) -> Result<String, QuestionError> {
        let mut table = self.table.clone();
        let mut grid = Table::new();
        let list =
            |texts: &[String]| Value::Array(texts.iter().cloned().map(Value::from).collect());
        grid.insert("label".to_owned(), list(&self.labels));
        let seeds = self.seeds.iter().map(|seed| Value::Integer(*seed as i64));
        grid.insert("seed".to_owned(), Value::Array(seeds.collect()));
        table.insert("grid".to_owned(), Value::Table(grid));
        let text = toml::to_string(&table).map_err(crate::experiment::SpecError::from)?;
        Ok(format!(
            "# fedstay {}: a plan. Ask it again: fedstay plan plan.toml\n\n{text}",
            env!("CARGO_PKG_VERSION")
        ))
    }

    /// The ways, the ceiling and averaging first.
    pub fn labels(&self) -> &[String] {
        &self.labels
    }

    /// The seeds.
    pub fn seeds(&self) -> &[u64] {
        &self.seeds
    }
}

/// The ways that are tried beside the ceiling and averaging.
fn usual() -> Vec<String> {
    [PREFERRED, "fedavg+preview", "retain"].map(str::to_owned).to_vec()
}

fn numbered(count: u64) -> Result<Vec<u64>, QuestionError> {
    match (1..=MOST_SEEDS).contains(&count) {
        true => Ok((0..count).collect()),
        false => Err(QuestionError::Seeds { asked: count.to_string(), most: MOST_SEEDS }),
    }
}

/// The seeds that a file lists, or a range `"0..5"`.
fn seeds_of(value: &Value) -> Result<Vec<u64>, QuestionError> {
    let wrong = || QuestionError::Seeds { asked: value.to_string(), most: MOST_SEEDS };
    let one = |value: &Value| value.as_integer().and_then(|seed| u64::try_from(seed).ok());
    let seeds: Vec<u64> = match value {
        Value::Array(list) => list.iter().map(one).collect::<Option<_>>().ok_or_else(wrong)?,
        Value::String(range) => {
            let ends = range.split_once("..").ok_or_else(wrong)?;
            let end = |text: &str| text.trim().parse::<u64>().map_err(|_| wrong());
            let (from, to) = (end(ends.0)?, end(ends.1)?);
            if to.saturating_sub(from) > MOST_SEEDS {
                return Err(wrong());
            }
            (from..to).collect()
        }
        value => vec![one(value).ok_or_else(wrong)?],
    };
    let many = seeds.len() as u64 > MOST_SEEDS;
    if seeds.is_empty() || many { Err(wrong()) } else { Ok(seeds) }
}

fn texts(value: &Value) -> Result<Vec<String>, QuestionError> {
    let list = match value {
        Value::Array(list) => list.clone(),
        value => vec![value.clone()],
    };
    let text = |value: &Value| value.as_str().map(str::to_owned);
    list.iter().map(text).collect::<Option<_>>().ok_or(QuestionError::Label)
}

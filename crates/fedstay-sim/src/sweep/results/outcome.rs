//! What is kept of a finished run.

use crate::experiment::{Experiment, SpecError};
use crate::sweep::Series;
use crate::sweep::plan::key::{BUILD, config, hash};
use fedstay::record::Summary;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It has a summary, as `fedstay run` writes it.
    Finished(Box<Summary>),
    /// Training left the floating-point range, as it does when a step size is far too large.
    Diverged(String),
}

/// A finished run.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    /// The run's name.
    pub key: String,
    /// Which build computed it; of no influence on anything.
    pub build: String,
    /// Its whole configuration.
    pub config: Value,
    /// How it ended.
    pub outcome: Outcome,
    /// What it was like on the way.
    pub series: Series,
}

impl Finished {
    pub(in crate::sweep) fn new(
        experiment: &Experiment,
        outcome: Outcome,
        series: Series,
    ) -> Result<Self, SpecError> {
        let config = config(experiment)?;
        Ok(Self { key: hash(&config), build: BUILD.to_owned(), config, outcome, series })
    }

    /// The summary, if there is one.
    pub fn summary(&self) -> Option<&Summary> {
        match &self.outcome {
            Outcome::Finished(summary) => Some(summary),
            Outcome::Diverged(_) => None,
        }
    }
}

//! The smallest, the mean and the largest of what was measured over the agents.

use super::or_unknown;
use crate::message::score::{Score, ScorePart};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The smallest, the mean and the largest of a number over the agents.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The smallest.
    #[serde(deserialize_with = "or_unknown")]
    pub min: f64,
    /// The mean.
    #[serde(deserialize_with = "or_unknown")]
    pub mean: f64,
    /// The largest.
    #[serde(deserialize_with = "or_unknown")]
    pub max: f64,
}

impl Spread {
    /// What is said of agents of which nothing is known.
    pub const UNKNOWN: Self = Self { min: f64::NAN, mean: f64::NAN, max: f64::NAN };

    /// The spread of some numbers; `None` if there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let values: Vec<f64> = values.into_iter().collect();
        (!values.is_empty()).then(|| Self {
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            mean: values.iter().sum::<f64>() / values.len() as f64,
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        })
    }
}

impl ScorePart for Spread {
    fn unknown() -> Self {
        Self::UNKNOWN
    }

    fn from_table(table: Map<String, Value>) -> Option<Self> {
        serde_json::from_value(Value::Object(table)).ok()
    }
}

impl Score<Vec<f64>> {
    /// How each column is spread, over the agents that have a value; `None` without agents.
    pub fn spread(&self) -> Option<Score<Spread>> {
        let mut spread = Score::new(Spread::of(self.loss.iter().copied())?);
        for (name, column) in self.measures.named() {
            let known = column.iter().copied().filter(|value| !value.is_nan());
            spread = spread.with(name.clone(), Spread::of(known));
        }
        Some(spread)
    }
}

impl Score<Spread> {
    /// How scores are spread; `None` if there are none.
    pub fn over<'a>(scores: impl ExactSizeIterator<Item = &'a Score>) -> Option<Self> {
        Score::columns(scores).spread()
    }

    /// The means.
    pub fn means(&self) -> Score {
        self.map(|spread| spread.mean)
    }
}

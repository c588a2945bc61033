//! How good weights are for one agent on rows of its own that nobody trained on.

use super::{or_unknown, unknown};
use crate::message::score::{Interval, Measures, Score};
use serde::{Deserialize, Serialize};

/// How good the delivered weights are for an agent on its own held-back rows and, where that was
/// asked for, how good the model is that it ends with, and the one that it would have made alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeldBack {
    /// How many rows are held back.
    pub rows: u32,
    /// The loss of the delivered weights on them.
    #[serde(default = "unknown", deserialize_with = "or_unknown")]
    pub loss: f64,
    /// What else was measured of them, each with its 95% interval over rows.
    #[serde(default)]
    pub measures: Measures<Interval>,
    /// The same of the model that the agent ends with: the delivered one or, for an agent that left,
    /// the one it took away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_with: Option<Estimate>,
    /// The same of the model that it would have made alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone: Option<Estimate>,
}

/// A score whose measures have intervals.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The loss.
    #[serde(default = "unknown", deserialize_with = "or_unknown")]
    pub loss: f64,
    /// What else was measured, each with its 95% interval over rows.
    #[serde(default)]
    pub measures: Measures<Interval>,
}

impl HeldBack {
    /// What is known of so many rows.
    pub fn new(rows: usize, delivered: Estimate) -> Self {
        let Estimate { loss, measures } = delivered;
        Self { rows: rows as u32, loss, measures, ends_with: None, alone: None }
    }

    /// What the agent ends with and what it would have made alone, where both are known.
    pub fn against_alone(&self) -> Option<(&Estimate, &Estimate)> {
        self.ends_with.as_ref().zip(self.alone.as_ref())
    }

    /// The score of the delivered weights, without the intervals.
    pub fn score(&self) -> Score {
        score(self.loss, &self.measures)
    }
}

impl Estimate {
    /// The score, without the intervals.
    pub fn score(&self) -> Score {
        score(self.loss, &self.measures)
    }
}

fn score(loss: f64, measures: &Measures<Interval>) -> Score {
    let mut score = Score::new(loss);
    for (name, interval) in measures.named() {
        score.measures.set(name.clone(), interval.value);
    }
    score
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn it_survives_its_file_with_the_measures_in_their_order() {
        let file = json!({
            "rows": 60,
            "loss": 0.5,
            "measures": {
                "brier": { "value": 0.2, "low": 0.1, "high": 0.3 },
                "accuracy": { "value": 0.75, "low": 0.5, "high": 1.0 },
            },
            "alone": { "loss": null, "measures": {} },
        });
        let text = r#"{"rows":60,"loss":0.5,"measures":{"brier":{"value":0.2,"low":0.1,"high":0.3},
            "accuracy":{"value":0.75,"low":0.5,"high":1.0}},"alone":{"loss":null,"measures":{}}}"#;
        let read: HeldBack = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), file);
        let names: Vec<&str> = read.measures.iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["brier", "accuracy"]);
        assert_eq!(read.score().of("accuracy"), Some(0.75));
        assert!(read.ends_with.is_none() && read.alone.unwrap().loss.is_nan());
    }
}

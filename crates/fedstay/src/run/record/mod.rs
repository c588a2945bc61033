//! What a run leaves behind, as data: the lines of `rounds.jsonl` and `gram.jsonl`, and
//! `summary.json`.
//!
//! These files are the interface of everything that looks at a run: drawings, the live view,
//! Python. Every file names its schema; a field may be added under the same schema, never changed.

mod agent;
mod assessment;
pub(crate) mod flag;
mod gram;
mod header;
mod held_back;
mod otherwise;
mod round;
mod rows;
mod spread;
mod summary;
pub(crate) mod worth;

pub use crate::message::{
    as_written, briefly, called, called_briefly, called_together, decimals, is_default, told_apart,
};
pub use agent::{AgentSummary, Arrival, Departure, Forgotten, Return};
pub use assessment::{AssessmentLine, Constant};
pub use gram::GramLine;
pub use header::{Header, HeaderAgent};
pub use held_back::{Estimate, HeldBack};
pub use otherwise::{Counterfactual, Difference, Extra, Without};
pub use round::RoundLine;
pub use rows::{DataRows, UnusedRows};
pub use spread::Spread;
pub use summary::{Guarantee, Prediction, Summary};

use serde::{Deserialize, Deserializer};

/// What a run's files hold as JSON: whole files, or lines of them.
///
/// Reading and writing is compiled here, once, and not again in every crate that does.
pub trait AsJson: Sized {
    /// Reads the text of a file, or of a line.
    ///
    /// # Errors
    /// When it is something else.
    fn from_json(text: &[u8]) -> serde_json::Result<Self>;

    /// The text, in one line.
    ///
    /// # Errors
    /// Never, for what a run left behind.
    fn to_json(&self) -> serde_json::Result<String>;
}

macro_rules! json {
    ($($type:ty),*) => {$(
        impl AsJson for $type {
            fn from_json(text: &[u8]) -> serde_json::Result<Self> {
                serde_json::from_slice(text)
            }

            fn to_json(&self) -> serde_json::Result<String> {
                serde_json::to_string(self)
            }
        }
    )*};
}
json!(Header, RoundLine, GramLine, Summary);

/// Weights of at most this many components are written out, for drawings and for people.
const SMALL: usize = 16;

/// Of more agents than this, a header, an assessment and a summary do not list everybody: only those
/// to whom something happened, and how many are not listed.
pub const MOST_LISTED: usize = 10_000;

/// Weights as a line holds them: only if they are few.
pub(crate) fn few(weights: &[f64]) -> Option<Vec<f64>> {
    (weights.len() <= SMALL).then(|| weights.to_vec())
}

/// JSON has no NaN: an unknown number is written as null, and read back as NaN.
fn or_unknown<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(from)?.unwrap_or(f64::NAN))
}

fn unknown() -> f64 {
    f64::NAN
}

/// Whether a file of a run has no other use for a name, so that a measure can have it.
pub fn is_free(name: &str) -> bool {
    let agent = format!(r#"{{"id":0,"left":null,"{name}":0.5}}"#);
    let agent: Option<AgentSummary> = serde_json::from_str(&agent).ok();
    let line = format!(r#"{{"agents":[],"population":null,"{name}":[0.5]}}"#);
    let line: Option<AssessmentLine> = serde_json::from_str(&line).ok();
    let spread = r#"{"min":0.5,"mean":0.5,"max":0.5}"#;
    let summary = format!(
        r#"{{"schema":"","version":"","rule":"","policy":"","behaviour":"","on":"","seed":0,"rounds":0,
            "stop":"settled","verdict":"retained","everybody_content":true,"left":[],"agents":[],
            "prediction":{{"left":0,"left_foreseen":0,"in_d":0,"in_d_left":0}},"notes":[],"warnings":[],
            "{name}":{spread}}}"#
    );
    let summary: Option<Summary> = serde_json::from_str(&summary).ok();
    agent.is_some_and(|agent| agent.score.measures.get(name) == Some(&0.5))
        && line.is_some_and(|line| line.score.measures.get(name).is_some())
        && summary.is_some_and(|summary| summary.score.measures.get(name).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measure_cannot_have_a_name_that_files_use_for_something_else() {
        for free in ["accuracy", "balanced", "f1", "mean"] {
            assert!(is_free(free), "{free}");
        }
        let used = [
            "loss",
            "id",
            "epsilon",
            "reports",
            "absent",
            "first_loss",
            "idle",
            "alone",
            "held_back",
            "agents",
            "population",
            "over",
            "verdict",
            "measures",
            "fairness",
            "seed",
            "landed",
            "weights",
        ];
        for used in used {
            assert!(!is_free(used), "{used}");
        }
    }
}

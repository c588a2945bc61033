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
mod number;
mod otherwise;
mod round;
mod rows;
mod summary;
pub(crate) mod worth;

pub use crate::message::{called, called_briefly, called_together};
pub use agent::{AgentSummary, Arrival, Departure, Forgotten, Return, Score};
pub use assessment::{AssessmentLine, Constant, Population, Spread};
pub use gram::GramLine;
pub use header::{Header, HeaderAgent};
pub use number::{as_written, briefly, decimals, told_apart};
pub use otherwise::{Change, Counterfactual, Extra, Without};
pub use round::RoundLine;
pub use rows::{DataRows, UnusedRows};
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

fn is_none(count: &usize) -> bool {
    *count == 0
}

/// JSON has no NaN: an unknown number is written as null, and read back as NaN.
fn or_unknown<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(from)?.unwrap_or(f64::NAN))
}

fn unknown() -> f64 {
    f64::NAN
}

/// Reads a column of numbers in which an unknown one is null.
fn or_unknowns<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<f64>, D::Error> {
    let column = Vec::<Option<f64>>::deserialize(from)?;
    Ok(column.into_iter().map(|value| value.unwrap_or(f64::NAN)).collect())
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

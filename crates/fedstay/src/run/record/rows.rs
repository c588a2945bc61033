//! What became of the rows of a data set: every one of them is in exactly one place.

use super::is_default;
use serde::{Deserialize, Serialize};

/// Where the rows of a data set are. `dealt`, `held_out`, `test` and those of `unused` add up to `read`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataRows {
    /// How many were read.
    pub read: usize,
    /// How many the agents that take part hold; where they draw, how many they draw from.
    pub dealt: usize,
    /// Whether agents draw their rows with replacement instead of holding some each.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub drawn: bool,
    /// How many are held by devices that do not take part.
    #[serde(default, skip_serializing_if = "is_default")]
    pub held_out: usize,
    /// How many are kept for testing.
    pub test: usize,
    /// Those that nobody trains on and nobody is tested with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unused: Vec<UnusedRows>,
}

/// Rows that are not used, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnusedRows {
    /// How many.
    pub rows: usize,
    /// Why.
    pub why: String,
    /// Whether the experiment states it, as `data.per_agent` does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asked: bool,
}

impl DataRows {
    /// How many rows are not used.
    pub fn unused(&self) -> usize {
        self.unused.iter().map(|part| part.rows).sum()
    }
}

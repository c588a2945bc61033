//! The verdict: what the departures of a run did to its result.

use serde::{Deserialize, Serialize};

/// What the departures did to the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Nobody left, and the final weights satisfy at least somebody.
    Retained,
    /// Nobody left, and the final weights satisfy nobody: keeping everybody is not enough.
    Unsatisfied,
    /// Somebody left, and the final weights satisfy everybody even so.
    Benign,
    /// Somebody left, and the final weights fail somebody.
    Harmful,
    /// Somebody left and could not be asked about the final weights, which satisfy everybody else;
    /// nobody left, but some agents were not measured, and nobody else is satisfied; or nobody took
    /// part.
    Unknown,
}

impl Verdict {
    /// Every verdict.
    pub const ALL: [Self; 5] =
        [Self::Retained, Self::Unsatisfied, Self::Benign, Self::Harmful, Self::Unknown];

    /// Whether every agent stayed, whatever the model is worth to them.
    pub fn kept_everybody(self) -> bool {
        matches!(self, Self::Retained | Self::Unsatisfied)
    }

    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Retained => "retained",
            Self::Unsatisfied => "unsatisfied",
            Self::Benign => "benign",
            Self::Harmful => "harmful",
            Self::Unknown => "unknown",
        }
    }
}

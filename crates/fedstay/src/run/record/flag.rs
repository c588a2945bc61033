//! What files say about reports that cannot be true.

use crate::AgentId;
use serde::{Deserialize, Serialize};

/// Why an agent is flagged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlagReason {
    /// Its loss fell below the tangent it had reported.
    BelowTangent,
    /// Its loss rose above what its gradient allows.
    AboveTangent,
    /// Its loss is too large for so small a gradient.
    Implausible,
}

impl FlagReason {
    /// The doubt in words.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::BelowTangent => "its loss fell below its own tangent",
            Self::AboveTangent => "its loss rose above what its own gradient allows",
            Self::Implausible => "its loss is implausible for so small a gradient",
        }
    }
}

/// One doubt about one agent in one round.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Flag {
    /// The agent in question.
    pub agent: AgentId,
    /// Why the agent is flagged.
    pub doubt: FlagReason,
    /// By how much: in units of the loss or, for an implausible loss, how many times too far.
    pub by: f64,
}

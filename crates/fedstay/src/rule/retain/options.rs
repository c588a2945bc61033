//! What `retain` may be told to do otherwise.

use serde::{Deserialize, Serialize};

/// Where to go if no floor is in the way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Base {
    /// The shortest step after which everybody is predicted to be near their target loss, whatever
    /// η.
    #[default]
    Level,
    /// Down the mean direction of the agents that are far from their target loss, by η.
    Descent,
}

/// What to do once it is proved that no model satisfies everybody.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnUnrealizable {
    /// Stop, and say how near to their target losses everybody could be brought at most.
    #[default]
    Stop,
    /// Go there, and stop then.
    Least,
}

/// When the step is kept within a radius in which predictions have held.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trust {
    /// For gradients in single precision, which nets and samples have.
    #[default]
    Auto,
    /// Always, whatever the gradients.
    Region,
    /// Never: for convex losses with exact gradients, where the constraint is a proof.
    Proof,
}

//! What an experiment says about training beside data, partition and model: the agents' local work, on
//! which loss they decide, which rows they see in a round, whose rows are measured, and which models
//! are kept for newcomers. The [simulator](crate::simulator) does what is said here.

mod eval_agents;
mod local;
mod stream;

pub use eval_agents::EvalAgents;
pub use local::{BatchSize, ExactGradient, Local, StepSize};
pub use stream::{Arrive, Kind, Moves, Stream};

use serde::{Deserialize, Serialize};

/// On which loss an agent decides. It reports the same loss.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DecidesOn {
    /// The loss of the model it received: the paper's rule.
    #[default]
    Received,
    /// The loss of its own model, after its local work: the choice that reproduces the paper's
    /// Figure 2.
    Own,
}

/// On which rows the loss is measured on which an agent decides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DecidesOnRows {
    /// On those it trains on: the paper's rule.
    #[default]
    Training,
    /// On its own test rows, which it trains on never.
    HeldBack,
}

/// The `[library]` table of an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Shelf {
    /// How many models are kept; none if zero.
    pub keep: usize,
    /// Every how many rounds one is kept.
    pub every: u32,
}

impl Default for Shelf {
    fn default() -> Self {
        Self { keep: 0, every: 25 }
    }
}

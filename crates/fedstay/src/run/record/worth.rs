//! What files say about what agents are worth.

use crate::AgentId;
use crate::message::is_default;
use serde::{Deserialize, Serialize};

/// A way to say what an agent is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Who helped whom.
    Help,
    /// Leave-one-out.
    Loo,
    /// The Shapley value of every round.
    Shapley,
    /// The same from a sample of orders.
    Gtg,
    /// How well its direction agrees with everybody's.
    Cgsv,
    /// How much its direction differs from the others'.
    Fedce,
    /// How often its direction agreed with the step.
    Reputation,
    /// The least core: a division of what everybody made that no group complains much about.
    Core,
}

impl Method {
    /// Every method.
    pub const ALL: [Self; 8] = [
        Self::Help,
        Self::Loo,
        Self::Shapley,
        Self::Gtg,
        Self::Cgsv,
        Self::Fedce,
        Self::Reputation,
        Self::Core,
    ];

    /// Whether it asks for the loss of models that were never sent out.
    pub fn needs_judge(self) -> bool {
        matches!(self, Self::Loo | Self::Shapley | Self::Gtg | Self::Core)
    }
}

/// What an agent is worth, by the methods that were asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentWorth {
    /// By how much its directions lowered the others' losses.
    #[serde(skip_serializing_if = "is_default")]
    pub given: Option<f64>,
    /// By how much the others' directions lowered its loss.
    #[serde(skip_serializing_if = "is_default")]
    pub got: Option<f64>,
    /// By how much its own directions lowered its own loss.
    #[serde(skip_serializing_if = "is_default")]
    pub own: Option<f64>,
    /// The part of the fall of its loss that no direction explains.
    #[serde(skip_serializing_if = "is_default")]
    pub unexplained: Option<f64>,
    /// Leave-one-out, summed over the rounds.
    #[serde(skip_serializing_if = "is_default")]
    pub loo: Option<f64>,
    /// Its Shapley values, summed over the rounds.
    #[serde(skip_serializing_if = "is_default")]
    pub shapley: Option<f64>,
    /// The same, estimated.
    #[serde(skip_serializing_if = "is_default")]
    pub gtg: Option<f64>,
    /// The mean cosine with everybody's direction.
    #[serde(skip_serializing_if = "is_default")]
    pub cgsv: Option<f64>,
    /// One minus the mean cosine with what the others did.
    #[serde(skip_serializing_if = "is_default")]
    pub fedce: Option<f64>,
    /// Its reputation, between 0 and 1.
    #[serde(skip_serializing_if = "is_default")]
    pub reputation: Option<f64>,
    /// Its part in the least core of the whole run.
    #[serde(skip_serializing_if = "is_default")]
    pub core: Option<f64>,
}

/// Who helped whom, over the whole run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WorthSummary {
    /// The methods that were asked for.
    pub methods: Vec<Method>,
    /// Who is in the matrix, by id.
    pub agents: Vec<AgentId>,
    /// By how much each agent (a row) was helped by each (a column).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub help: Vec<Vec<f64>>,
    /// Over how many steps each agent's row is booked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<u32>,
    /// Whether a group would gain by leaving together, in runs that ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core: Option<Core>,
}

/// What a round says about worth. Columns run over `agents`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WorthLine {
    /// The agents that reported, by id.
    pub agents: Vec<AgentId>,
    /// What each gave to the others with the step before, as far as they judged it in this round.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub given: Vec<f64>,
    /// What each got from the others by that step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub got: Vec<f64>,
    /// Who took part in that step: the columns of `help`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by: Vec<AgentId>,
    /// By how much each of `agents` (a row) was helped by each of `by` (a column), where those are at
    /// most 16: over the rounds, these sum to the matrix of the summary.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub help: Vec<Vec<f64>>,
    /// Leave-one-out, for this round's step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loo: Vec<f64>,
    /// The Shapley value, for this round's step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shapley: Vec<f64>,
    /// The same, estimated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gtg: Vec<f64>,
    /// The cosine with everybody's direction.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cgsv: Vec<f64>,
    /// One minus the cosine with what the others did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fedce: Vec<f64>,
}

/// Whether a group would gain by leaving together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Core {
    /// What the group that complains most lacks, however everything is divided; not above zero where no
    /// group would gain by leaving.
    pub excess: f64,
    /// A group that complains most under the division of the least core.
    pub group: Vec<AgentId>,
}

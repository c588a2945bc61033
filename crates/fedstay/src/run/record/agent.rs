//! What became of one agent: how it ended, when it came and went, and what came of being forgotten.

use super::worth::AgentWorth;
use super::{HeldBack, called, called_briefly, is_default, or_unknown, unknown};
use crate::AgentId;
use crate::message::score::{Measure, Score};
use crate::run::ledger::AgentEntry;
use serde::{Deserialize, Serialize};

/// What became of one agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentSummary {
    /// Its id.
    pub id: AgentId,
    /// Its display name, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its target loss.
    #[serde(default = "unknown", deserialize_with = "or_unknown")]
    pub epsilon: f64,
    /// The round in which it last reported a loss, if it could not be asked about the delivered
    /// weights; that of `score` is then this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_of_round: Option<u32>,
    /// What the ledger counted about it: when it left, how often it reported, and the like.
    #[serde(flatten)]
    pub entry: AgentEntry,
    /// How good the delivered weights are on its own data. After `entry`, so that what is left of a
    /// file is read as measures.
    #[serde(flatten)]
    pub score: Score,
    /// How good models are on rows of its own that nobody trained on, where there are some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_back: Option<HeldBack>,
    /// How it behaves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behaviour: Option<String>,
    /// How good the model it ends with is for it: the delivered one or, for an agent that left, the
    /// one it took away, of which `score` says nothing. Given if that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_with: Option<Score>,
    /// How good a model it would have made alone, where that was asked for: with the same work, in as
    /// many rounds as the experiment allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone: Option<Score>,
    /// What it gave and got, in runs that ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worth: Option<AgentWorth>,
    /// In how many of its reports it repeated itself without having worked, where that was asked for.
    #[serde(default, skip_serializing_if = "is_default")]
    pub idle: u32,
}

impl AgentSummary {
    /// What it is called in a sentence: its name, or `agent 3`.
    pub fn called(&self) -> String {
        called(self.id, self.name.as_deref())
    }

    /// What it is called under a heading that says that it is an agent: its name, or `3`.
    pub fn called_briefly(&self) -> String {
        called_briefly(self.id, self.name.as_deref())
    }

    /// Whether it was measured, at the delivered weights or, if it could not be asked, at earlier
    /// ones.
    pub fn is_measured(&self) -> bool {
        self.loss_of_round.is_some() || !self.score.loss.is_nan()
    }

    /// Whether its loss at the delivered weights is known.
    pub fn is_asked(&self) -> bool {
        self.loss_of_round.is_none() && !self.score.loss.is_nan()
    }

    /// Whether the delivered weights are known to satisfy it.
    pub fn is_content(&self) -> bool {
        self.loss_of_round.is_none() && self.score.loss <= self.epsilon
    }

    /// Whether what it ends with is better than what it would have made alone, where both are known: by
    /// the accuracy on unseen rows if there is one, else by the loss, on held-back rows of its own if it
    /// has some.
    pub fn is_better_than_alone(&self) -> Option<bool> {
        let (ends, alone) = (self.ends_with.as_ref()?, self.alone.as_ref()?);
        let unseen = |score: &Score| score.of(&Measure::UNSEEN.name);
        Some(match (unseen(ends), unseen(alone)) {
            (Some(own), Some(other)) => own > other,
            _ => match self.held_back.as_ref().and_then(HeldBack::against_alone) {
                Some((ends, alone)) => ends.loss < alone.loss,
                None => ends.loss < alone.loss,
            },
        })
    }
}

/// One agent that left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Departure {
    /// The agent that left.
    pub agent: AgentId,
    /// The round whose weights it left on.
    pub round: u32,
}

/// One agent that came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Return {
    /// The agent that came back.
    pub agent: AgentId,
    /// The round whose weights it came back on.
    pub round: u32,
}

/// What an agent found that came after the first round, where models are kept for newcomers: its loss
/// on its own data.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Arrival {
    /// The agent.
    pub agent: AgentId,
    /// The round in which it came.
    pub round: u32,
    /// Under the model of that round.
    pub last: f64,
    /// Under the best of the models that were kept; null where none was.
    pub best: Option<f64>,
    /// The round of that model.
    pub of_round: Option<u32>,
    /// Under a mixture of the models that were kept and the last one.
    pub mixture: f64,
    /// Of how many models that mixture is.
    pub mixed: u32,
}

/// An agent that left and asked to be forgotten, and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Forgotten {
    /// The agent.
    pub agent: AgentId,
    /// The round in which it asked.
    pub round: u32,
    /// What the server did about it.
    #[serde(default)]
    pub how: String,
    /// The mean loss that the others told in that round.
    pub rest: Option<f64>,
    /// After how many rounds the others were back at that loss, if they were.
    pub recovered: Option<u32>,
    /// Its loss under the delivered weights.
    #[serde(default)]
    pub loss: Option<f64>,
    /// How well its rows can be told from unseen ones of the same classes by their loss under the
    /// delivered weights: ½ if not at all, 1 if always (the area under the curve of an attack on
    /// membership).
    #[serde(default)]
    pub membership: Option<f64>,
}

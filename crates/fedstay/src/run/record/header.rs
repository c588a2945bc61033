//! The first line of `rounds.jsonl`: what the run is, and who takes part.

use super::{DataRows, called, called_briefly, is_default, or_unknown, unknown};
use crate::AgentId;
use crate::message::score::Measure;
use crate::run::About;
use serde::{Deserialize, Serialize};

/// The first line of `rounds.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The schema of this file.
    pub schema: String,
    /// The program's version.
    pub version: String,
    /// The rule's name, with its policy.
    pub rule: String,
    /// What is trained: the problem's or the data set's name.
    pub on: String,
    /// The seed.
    pub seed: u64,
    /// The rounds asked for.
    pub rounds: u32,
    /// Every agent that takes part, but for those that are not listed.
    pub agents: Vec<HeaderAgent>,
    /// How many more agents take part, where they are too many to be listed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unlisted: usize,
    /// Whether only some rounds are here, without the agents' losses: a run from a sweep's store.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sketch: bool,
    /// Whether agents decide on, and report, the loss of their own model after their local work,
    /// instead of that of the model they received.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own: bool,
    /// Whether agents may be shown other weights than the server's. They report the loss of what they
    /// were shown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub previews: bool,
    /// What is measured besides the loss, the headline first.
    #[serde(default = "Measure::usual", skip_serializing_if = "Measure::are_usual")]
    pub measures: Vec<Measure>,
    /// What became of the rows of the data set, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<DataRows>,
}

impl Header {
    /// The schema of `rounds.jsonl`.
    pub const SCHEMA: &'static str = "fedstay.rounds/1";

    /// The header of a run.
    pub fn new(about: &About, rounds: u32, agents: Vec<HeaderAgent>) -> Self {
        Self {
            schema: Self::SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            rule: about.label.clone(),
            on: about.on.clone(),
            seed: about.seed,
            rounds,
            agents,
            unlisted: 0,
            sketch: false,
            own: about.own,
            previews: false,
            measures: Measure::usual(),
            rows: about.rows.clone(),
        }
    }

    /// The agent with this id, if it is listed.
    pub fn agent(&self, id: AgentId) -> Option<&HeaderAgent> {
        // Ids usually are the places in the list.
        let place = usize::try_from(id.0).ok().and_then(|place| self.agents.get(place));
        let found = place.filter(|agent| agent.id == id);
        found.or_else(|| self.agents.iter().find(|agent| agent.id == id))
    }

    /// An agent's name, if it has one.
    pub fn name(&self, id: AgentId) -> Option<&str> {
        self.agent(id)?.name.as_deref()
    }

    /// How many agents take part, listed or not.
    pub fn count(&self) -> usize {
        self.agents.len() + self.unlisted
    }
}

/// One agent that takes part, as the header lists it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeaderAgent {
    /// Its id.
    pub id: AgentId,
    /// Its target loss.
    #[serde(default = "unknown", deserialize_with = "or_unknown")]
    pub epsilon: f64,
    /// Its display name, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl HeaderAgent {
    /// What it is called in a sentence: its name, or `agent 3`.
    pub fn called(&self) -> String {
        called(self.id, self.name.as_deref())
    }

    /// What it is called under a heading that says that it is an agent: its name, or `3`.
    pub fn called_briefly(&self) -> String {
        called_briefly(self.id, self.name.as_deref())
    }
}

//! What would have been otherwise: with nobody leaving, or without one of the agents.

use super::{AgentSummary, Population, Spread, Summary};
use crate::{AgentId, StopReason};
use serde::{Deserialize, Serialize};

/// The same run with nobody leaving: what it would have delivered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Counterfactual {
    /// The number of its rounds.
    pub rounds: u32,
    /// Why that run ended.
    pub stop: StopReason,
    /// Its delivered weights' loss over the agents.
    pub loss: Spread,
    /// Their accuracy over the agents, where that means something.
    pub accuracy: Option<Spread>,
    /// Loss and accuracy on the population, where there is one.
    pub population: Option<Population>,
    /// In how many rounds each agent reported, by id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reports: Vec<u32>,
    /// How many bytes go to an agent and back for one report, in single precision.
    #[serde(default)]
    pub bytes_per_report: u64,
}

/// What departures cost those who stay: what they do and send beyond what they would have, had nobody
/// left. Until the first departure both runs are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extra {
    /// How many never left.
    pub stayers: u32,
    /// How many more rounds they worked, all together; negative if fewer.
    pub rounds: i64,
    /// How many more bytes went to them and back.
    pub bytes: i64,
}

/// What it would have changed for the others if an agent had never taken part.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Without {
    /// The agent.
    pub agent: AgentId,
    /// The mean loss of the others.
    pub loss: Change,
    /// The largest loss among them.
    pub worst: Change,
    /// Their mean accuracy, where that means something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<Change>,
    /// The loss on the population, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub population: Option<Change>,
    /// How many of the others left.
    pub left: Change,
}

/// A number in the run as it was, and in the same run without an agent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// In the run as it was.
    pub with: f64,
    /// Without the agent.
    pub without: f64,
}

impl Change {
    /// By how much it is more without the agent.
    pub fn by(&self) -> f64 {
        self.without - self.with
    }
}

impl Without {
    /// Compares a run with the same run without the agent.
    pub fn of(agent: AgentId, with: &Summary, without: &Summary) -> Self {
        let others = |summary: &Summary| -> Vec<AgentSummary> {
            summary.agents.iter().filter(|other| other.id != agent).cloned().collect()
        };
        let (now, then) = (others(with), others(without));
        let change =
            |of: &dyn Fn(&[AgentSummary]) -> f64| Change { with: of(&now), without: of(&then) };
        let measured = |agent: &&AgentSummary| agent.is_measured();
        let losses = |agents: &[AgentSummary]| {
            Spread::of(agents.iter().filter(measured).map(|agent| agent.loss))
        };
        let accuracy = |agents: &[AgentSummary]| {
            let of = agents.iter().filter(measured).map(|agent| agent.accuracy);
            let each: Option<Vec<f64>> = of.collect();
            Spread::of(each?).map(|spread| spread.mean)
        };
        let both = |with: Option<f64>, without: Option<f64>| {
            with.zip(without).map(|(with, without)| Change { with, without })
        };
        let population = |summary: &Summary| summary.population.map(|population| population.loss);
        let left = |agents: &[AgentSummary]| {
            agents.iter().filter(|agent| agent.entry.left.is_some()).count() as f64
        };
        Self {
            agent,
            loss: change(&|agents| losses(agents).map_or(f64::NAN, |spread| spread.mean)),
            worst: change(&|agents| losses(agents).map_or(f64::NAN, |spread| spread.max)),
            accuracy: both(accuracy(&now), accuracy(&then)),
            population: both(population(with), population(without)),
            left: change(&left),
        }
    }
}

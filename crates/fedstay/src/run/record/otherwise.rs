//! What would have been otherwise: with nobody leaving, or without one of the agents.

use super::{AgentSummary, Spread, Summary};
use crate::message::score::{Score, ScorePart};
use crate::{AgentId, StopReason};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The same run with nobody leaving: what it would have delivered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Counterfactual {
    /// The number of its rounds.
    pub rounds: u32,
    /// Why that run ended.
    pub stop: StopReason,
    /// How good its delivered weights are over the agents.
    #[serde(flatten)]
    pub score: Score<Spread>,
    /// How good they are on the population, where there is one.
    pub population: Option<Score>,
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Without {
    /// The agent.
    pub agent: AgentId,
    /// The mean score of the others.
    #[serde(flatten)]
    pub score: Score<Difference>,
    /// The largest loss among them.
    pub worst: Difference,
    /// The loss on the population, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub population: Option<Difference>,
    /// How many of the others left.
    pub left: Difference,
}

/// A number in the run as it was, and in the same run without an agent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// In the run as it was.
    pub with: f64,
    /// Without the agent.
    pub without: f64,
}

impl ScorePart for Difference {
    fn unknown() -> Self {
        Self { with: f64::NAN, without: f64::NAN }
    }

    fn from_table(table: Map<String, Value>) -> Option<Self> {
        let part = |name: &str| Some(table.get(name)?.as_f64().unwrap_or(f64::NAN));
        Some(Self { with: part("with")?, without: part("without")? })
    }
}

impl Difference {
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
        let over = |agents: &[AgentSummary]| {
            let measured = agents.iter().filter(|agent| agent.is_measured());
            let scores: Vec<&Score> = measured.map(|agent| &agent.score).collect();
            // A measure that somebody lacks cannot be compared.
            let common = |name: &str| scores.iter().all(|score| score.get(name).is_some());
            let spread =
                Score::over(scores.iter().copied()).unwrap_or_else(|| Score::new(Spread::UNKNOWN));
            let names = spread.measures.iter().map(|(name, _)| name);
            let gaps: Vec<String> = names.filter(|name| !common(name)).map(str::to_owned).collect();
            (spread, gaps)
        };
        let ((now_over, gaps), (then_over, more)) = (over(&now), over(&then));
        let change = |name: &str| {
            let (with, without) = (now_over.get(name)?.mean, then_over.get(name)?.mean);
            let gap = gaps.iter().chain(&more).any(|gap| gap == name);
            Some(Difference { with, without }).filter(|_| !gap)
        };
        let both = |with: Option<f64>, without: Option<f64>| {
            with.zip(without).map(|(with, without)| Difference { with, without })
        };
        let population = |summary: &Summary| Some(summary.population.as_ref()?.loss);
        let left = |agents: &[AgentSummary]| {
            agents.iter().filter(|agent| agent.entry.left.is_some()).count() as f64
        };
        let mut score = Score::new(change("loss").unwrap_or(Difference::unknown()));
        for (name, _) in now_over.measures.named() {
            score = score.with(name.clone(), change(name));
        }
        Self {
            agent,
            score,
            worst: Difference { with: now_over.loss.max, without: then_over.loss.max },
            population: both(population(with), population(without)),
            left: Difference { with: left(&now), without: left(&then) },
        }
    }
}

//! One round of `gram.jsonl`.

use crate::run::RoundRecord;
use crate::{AgentId, Vector, linalg};
use serde::{Deserialize, Serialize};

/// One round of `gram.jsonl`: how the agents' gradients lie relative to each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GramLine {
    /// The round, from 1.
    pub round: u32,
    /// The agents that reported, by id.
    pub agents: Vec<AgentId>,
    /// Their losses; null unless exact.
    pub loss: Vec<Option<f64>>,
    /// The inner products of their gradients: the lower triangle, row by row.
    pub gram: Vec<f64>,
    /// The inner products of their gradients with the step.
    pub slope: Vec<f64>,
    /// The length of the step.
    pub step_norm: f64,
}

impl GramLine {
    /// The schema of `gram.jsonl`.
    pub const SCHEMA: &'static str = "fedstay.gram/1";

    /// Checks that its columns have matching lengths.
    ///
    /// # Errors
    /// Says what is wrong with a line that something else wrote.
    pub fn check(&self) -> Result<(), String> {
        let n = self.agents.len();
        let whole = self.loss.len() == n && self.slope.len() == n;
        match whole && self.gram.len() == n * (n + 1) / 2 {
            true => Ok(()),
            false => Err(format!("its columns do not fit {n} agents")),
        }
    }

    /// The line of a round.
    pub fn new(record: &RoundRecord<'_>) -> Self {
        let slopes: Vec<Vector<'_>> = record.reports.iter().map(|report| report.slope()).collect();
        let full = linalg::gram(&slopes);
        let n = slopes.len();
        let step = Vector::F64(record.step);
        Self {
            round: record.line.round,
            agents: record.reports.iter().map(|report| report.agent).collect(),
            loss: record.reports.iter().map(|report| report.exact_loss("").ok()).collect(),
            gram: (0..n).flat_map(|row| full[row * n..=row * n + row].to_vec()).collect(),
            slope: slopes.iter().map(|slope| linalg::dot(*slope, step)).collect(),
            step_norm: linalg::norm(step),
        }
    }
}

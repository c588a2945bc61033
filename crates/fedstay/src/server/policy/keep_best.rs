//! `keep-best`: follow the rule, but return the best weights seen, not the last.

use super::Wrap;
use crate::list::Origin;
use crate::message::is_default;
use crate::packed;
use crate::rule::{Decision, Round};
use crate::{AgentId, Error};
use serde::{Deserialize, Serialize};

pub(super) const ORIGIN: Origin = Origin {
    about: "follow the rule, but return the best weights seen for everybody",
    reference: "",
};

/// Return the weights with the lowest mean loss over all agents.
///
/// The server can judge weights only by what agents report about them. Once somebody has left,
/// nothing newer can be judged for everybody, so the best weights come from the rounds up to the
/// first departure; in that round itself, the agents that leave are content and count with their ε.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct KeepBest {
    #[serde(skip_serializing_if = "is_default")]
    memory: Seen,
}

/// What keep-best remembers: the best weights so far, and what it takes to judge the next ones.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Seen {
    best: Option<Best>,
    epsilons: Vec<(AgentId, f64)>,
    somebody_left: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Best {
    loss: f64,
    round: u32,
    #[serde(with = "packed")]
    weights: Vec<f64>,
}

impl Wrap for KeepBest {
    fn apply(&mut self, round: &Round<'_>, _: &mut [f64], _: &mut Decision) -> Result<(), Error> {
        self.memory.consider(round)
    }

    fn heard_nobody(&mut self, round: &Round<'_>) -> Result<(), Error> {
        self.memory.consider(round)
    }

    fn deliver(&self) -> Option<&[f64]> {
        self.memory.best.as_ref().map(|best| best.weights.as_slice())
    }
}

impl Seen {
    fn consider(&mut self, round: &Round<'_>) -> Result<(), Error> {
        if self.somebody_left {
            return Ok(());
        }
        let mut total = 0.0;
        let mut count = 0usize;
        for report in round.reports.iter() {
            total += report.exact_loss("keep-best")?;
            count += 1;
        }
        for (agent, epsilon) in &self.epsilons {
            if round.reports.goodbyes().contains(agent) {
                total += epsilon;
                count += 1;
            }
        }
        self.epsilons = round
            .reports
            .iter()
            .filter_map(|report| report.epsilon().map(|epsilon| (report.agent, epsilon)))
            .collect();
        self.somebody_left = !round.reports.goodbyes().is_empty();
        let loss = total / count.max(1) as f64;
        if count > 0 && self.best.as_ref().is_none_or(|best| loss < best.loss) {
            self.best = Some(Best { loss, round: round.number, weights: round.weights.to_vec() });
        }
        Ok(())
    }
}

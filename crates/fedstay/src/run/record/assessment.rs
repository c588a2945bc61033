//! How good the weights of a round are: for every agent, over all of them, and on the population.

use super::{Header, MOST_LISTED, or_unknown, or_unknowns};
use crate::AgentId;
use crate::run::Assessment;
use serde::{Deserialize, Serialize};

/// How good the weights of a round are. Columns run over the header's agents, including those that
/// left, or over those that were measured, where these are others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AssessmentLine {
    /// The agents that were measured, by id, where these are not the header's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentId>,
    /// Every agent's loss.
    #[serde(default, deserialize_with = "or_unknowns")]
    pub loss: Vec<f64>,
    /// Every agent's accuracy; empty where that means nothing.
    #[serde(default, deserialize_with = "or_unknowns")]
    pub accuracy: Vec<f64>,
    /// Loss and accuracy on the population, where there is one.
    pub population: Option<Population>,
    /// Loss and accuracy over all agents, if only that was kept, as in a sketch or of very many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<(Option<Spread>, Option<Spread>)>,
}

impl AssessmentLine {
    pub(super) fn new(assessment: &Assessment) -> Self {
        let loss: Vec<f64> = assessment.agents.iter().map(|agent| agent.loss).collect();
        let accuracy: Vec<f64> =
            assessment.agents.iter().filter_map(|agent| agent.accuracy).collect();
        let (agents, population) = (Vec::new(), assessment.population);
        if loss.len() > MOST_LISTED {
            let over = Some((Spread::of(loss), Spread::of(accuracy)));
            return Self { agents, loss: Vec::new(), accuracy: Vec::new(), population, over };
        }
        Self { agents, loss, accuracy, population, over: None }
    }

    /// Names the agents of the columns, if these are not all that the header lists.
    pub(crate) fn name_agents(&mut self, header: &Header, assessment: &Assessment) {
        let listed = header.agents.iter().map(|agent| agent.id);
        if self.over.is_none() && !listed.eq(assessment.agents.iter().map(|agent| agent.id)) {
            self.agents = assessment.agents.iter().map(|agent| agent.id).collect();
        }
    }

    /// The place of an agent in the columns, given its place in the header.
    fn place(&self, in_header: usize, agent: AgentId) -> Option<usize> {
        match self.agents.is_empty() {
            true => Some(in_header),
            false => self.agents.binary_search(&agent).ok(),
        }
    }

    /// The loss of an agent, given its place in the header, if it was measured.
    pub fn loss_of(&self, in_header: usize, agent: AgentId) -> Option<f64> {
        self.loss.get(self.place(in_header, agent)?).copied()
    }

    /// The accuracy of an agent, given its place in the header, if it was measured.
    pub fn accuracy_of(&self, in_header: usize, agent: AgentId) -> Option<f64> {
        self.accuracy.get(self.place(in_header, agent)?).copied()
    }

    /// The losses over the agents that were measured.
    pub fn losses(&self) -> Option<Spread> {
        self.over.map_or_else(|| Spread::of(self.loss.iter().copied()), |over| over.0)
    }

    /// The accuracies over the agents that were measured.
    pub fn accuracies(&self) -> Option<Spread> {
        self.over.map_or_else(|| Spread::of(self.accuracy.iter().copied()), |over| over.1)
    }
}

/// The smallest, the mean and the largest of a number over the agents.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The smallest.
    #[serde(deserialize_with = "or_unknown")]
    pub min: f64,
    /// The mean.
    #[serde(deserialize_with = "or_unknown")]
    pub mean: f64,
    /// The largest.
    #[serde(deserialize_with = "or_unknown")]
    pub max: f64,
}

impl Spread {
    /// The spread of some numbers; `None` if there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let values: Vec<f64> = values.into_iter().collect();
        (!values.is_empty()).then(|| Self {
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            mean: values.iter().sum::<f64>() / values.len() as f64,
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        })
    }
}

/// Loss and accuracy on data that no participant trained on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Population {
    /// The mean loss.
    pub loss: f64,
    /// The share of correct predictions.
    pub accuracy: Option<f64>,
}

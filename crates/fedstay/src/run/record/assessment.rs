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

/// How good the best constant prediction is for the agents that were measured, on average: a model
/// that gives everybody the shares which the classes have among all their rows. A model that is no
/// better has learnt nothing from the rows but these shares.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Constant {
    /// The mean loss.
    pub loss: f64,
    /// The mean accuracy of always answering the most frequent class, where that means something.
    #[serde(default)]
    pub accuracy: Option<f64>,
}

impl Constant {
    /// A gain over the constant prediction of at most this share is rounding.
    const NONE: f64 = 1e-9;
    /// A gain over it of less than this share may be chance.
    const SLIGHT: f64 = 0.02;
    /// A gain over it of less than this share is hardly one.
    const HARDLY: f64 = 0.1;

    /// Whether a model with this mean loss and accuracy is no better: in one of the two it gains
    /// nothing at all and in the other hardly anything, or it gains next to nothing in both. One
    /// measure alone would not do, for rows of which nearly all are of one class leave the accuracy no
    /// room, and a model that is too sure of itself may be right often at a large loss.
    pub fn is_as_good_as(&self, loss: f64, accuracy: Option<f64>) -> bool {
        let gain = |share: f64| if share.is_nan() { 0.0 } else { share };
        let by_loss = gain(1.0 - loss / self.loss);
        let by_accuracy = match (accuracy, self.accuracy) {
            (Some(own), Some(constant)) => gain((own - constant) / (1.0 - constant)),
            _ => by_loss,
        };
        let (less, more) = (by_loss.min(by_accuracy), by_loss.max(by_accuracy));
        less <= Self::NONE && more < Self::HARDLY || more < Self::SLIGHT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_no_better_than_a_constant_one_if_it_gains_next_to_nothing() {
        let digits = Constant { loss: 10f64.ln(), accuracy: Some(0.101) };
        assert!(digits.is_as_good_as(2.36, Some(0.116)), "untrained");
        assert!(digits.is_as_good_as(f64::INFINITY, Some(0.101)), "diverged");
        assert!(digits.is_as_good_as(f64::NAN, None), "diverged");
        assert!(!digits.is_as_good_as(50.0, Some(0.6)), "too sure of itself, but often right");
        assert!(!digits.is_as_good_as(2.25, Some(0.3)), "on its way");
        let rare = Constant { loss: 0.408, accuracy: Some(0.858) };
        assert!(rare.is_as_good_as(0.4, Some(0.858)), "it never names the rare class");
        assert!(rare.is_as_good_as(0.404, Some(0.859)), "a row or two by chance");
        assert!(!rare.is_as_good_as(0.33, Some(0.858)), "it ranks well");
        assert!(!rare.is_as_good_as(0.39, Some(0.87)), "a weak signal is one");
        let one_class = Constant { loss: 0.0, accuracy: Some(1.0) };
        assert!(one_class.is_as_good_as(0.0, Some(1.0)) && one_class.is_as_good_as(0.3, Some(1.0)));
    }
}

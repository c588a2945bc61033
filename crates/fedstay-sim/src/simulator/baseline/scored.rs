//! How good the baselines are for every agent.

use super::{Baseline, Baselines, Restraint};
use crate::experiment::SpecError;
use crate::simulator::Made;
use fedstay::AgentId;

/// A baseline by its name, and how good it is for each agent.
#[derive(Debug, Clone, PartialEq)]
pub struct BaselineScores {
    /// `constant`, `alone` or `pooled`.
    pub name: &'static str,
    /// One entry per agent: on its own rows and, where it has some, on those it holds back.
    pub of: Vec<Made>,
    /// What restrained each agent's model.
    pub restraints: Vec<Restraint>,
}

impl Baselines<'_> {
    /// How good the constant, what everybody makes alone, and the pooled model are for each agent.
    ///
    /// # Errors
    /// As [`alone`](Self::alone).
    pub fn scored(&self) -> Result<Vec<BaselineScores>, SpecError> {
        let (constant, alone, pooled) = (self.constant(), self.alone()?, self.pooled()?);
        let agents = self.simulator.population.agents();
        Ok(vec![
            self.score("constant", &vec![&constant; agents])?,
            self.score("alone", &alone.iter().collect::<Vec<_>>())?,
            self.score("pooled", &vec![&pooled; agents])?,
        ])
    }

    /// A model for each agent.
    fn score(&self, name: &'static str, models: &[&Baseline]) -> Result<BaselineScores, SpecError> {
        let weights: Vec<(AgentId, &[f64])> =
            (0..).map(AgentId).zip(models.iter().map(|model| &model.weights[..])).collect();
        let restraints = models.iter().map(|model| model.restraint).collect();
        Ok(BaselineScores { name, of: self.simulator.scores(&weights)?, restraints })
    }
}

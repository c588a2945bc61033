//! How good weights are for each agent on rows of its own that nobody trained on.
//!
//! Where the data say who owns a test row, these are an owner's own test rows; where rows are dealt
//! out, the test rows are everybody's, and no agent has any of its own.

use super::{Simulator, rows};
use crate::experiment::SpecError;
use crate::measure::Draws;
use crate::model::{Loaded, Reads, Said, Workspace};
use fedstay::record::{Estimate, HeldBack};
use fedstay::{AgentId, Score};
use rayon::prelude::*;

/// How good a model is for an agent: on the rows that it sees, and on rows that nobody trained on.
#[derive(Debug, Clone, PartialEq)]
pub struct Made {
    /// On its own rows, with what is known of unseen ones.
    pub score: Score,
    /// On its own held-back rows, where there are some, with intervals.
    pub held_back: Option<Estimate>,
}

impl Simulator {
    /// What weights say of every agent's own held-back rows, classes with all their probabilities;
    /// `None` for an agent that has no such rows. One entry per agent.
    ///
    /// # Errors
    /// When the weights do not fit this model.
    pub fn said_held_back(&self, weights: &[f64]) -> Result<Vec<Option<Said>>, SpecError> {
        let weights = self.network.load(weights)?;
        let said = |agent| self.workspaces.with(|work| self.said_of(agent, &weights, work));
        let said = (0..self.roster.len()).into_par_iter().map(said);
        Ok(said.collect::<Result<_, _>>()?)
    }

    /// The same for some agents, with their own vector of weights for each.
    ///
    /// # Errors
    /// When a vector does not fit this model.
    pub fn said_held_back_each(
        &self,
        weights: &[(AgentId, &[f64])],
    ) -> Result<Vec<Option<Said>>, SpecError> {
        let said = |(agent, weights): &(AgentId, &[f64])| {
            let weights = self.network.load(weights)?;
            self.workspaces.with(|work| self.said_of(agent.0 as usize, &weights, work))
        };
        Ok(weights.par_iter().map(said).collect::<Result<_, crate::model::Error>>()?)
    }

    /// Which rows of an agent are drawn for its intervals.
    pub fn draws(&self, agent: AgentId) -> Draws {
        Draws { seed: self.seed, agent: agent.0 }
    }

    /// What weights say of an agent's own held-back rows.
    pub(super) fn said_of(
        &self,
        agent: usize,
        weights: &Loaded,
        work: &mut Workspace,
    ) -> Result<Option<Said>, crate::model::Error> {
        let Some(range) = self.population.held_back(agent) else { return Ok(None) };
        let rows = rows(self.population.data(), range)?;
        let (_, said) = self.network.listen(weights, &rows, Reads::Probabilities, work)?;
        Ok(Some(said))
    }

    /// The loss and the measures that are asked for, of what was said of an agent's rows.
    pub(super) fn estimate(&self, agent: usize, said: &Said) -> Estimate {
        self.training.measure.estimate(said, self.draws(AgentId(agent as u64)))
    }

    /// How good weights are for an agent on its own held-back rows, with intervals.
    pub(super) fn on_held_back(
        &self,
        agent: usize,
        weights: &Loaded,
    ) -> Result<Option<HeldBack>, crate::model::Error> {
        let said = self.workspaces.with(|work| self.said_of(agent, weights, work))?;
        Ok(said.map(|said| HeldBack::new(said.len(), self.estimate(agent, &said))))
    }
}

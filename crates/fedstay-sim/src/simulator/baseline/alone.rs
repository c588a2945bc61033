//! The best model that an agent makes of its own rows: what it has if there is no federation.

use super::restraint::restrained;
use super::{Baseline, Baselines};
use crate::experiment::SpecError;
use rayon::prelude::*;

impl Baselines<'_> {
    /// The best model of every agent's own training rows.
    ///
    /// # Errors
    /// When rows are not what the model reads, which is found out when a simulator is made.
    pub fn alone(&self) -> Result<Vec<Baseline>, SpecError> {
        let simulator = self.simulator;
        let start = simulator.initial_weights();
        let own = |agent| {
            let rows = simulator.population.agent(agent);
            let rows = rows.view()?;
            simulator.workspaces.with(|work| restrained(&simulator.network, &start, &rows, work))
        };
        let models = (0..simulator.population.agents()).into_par_iter().map(own);
        Ok(models.collect::<Result<_, crate::model::Error>>()?)
    }
}

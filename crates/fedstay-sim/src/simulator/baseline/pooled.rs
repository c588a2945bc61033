//! The model of all agents' rows in one place: what a federation would have without its reason to be
//! one.

use super::restraint::restrained;
use super::{Baseline, Baselines};
use crate::experiment::SpecError;
use crate::simulator::rows;

impl Baselines<'_> {
    /// The best model of all agents' training rows together; every row counts as much as any other.
    ///
    /// # Errors
    /// As [`alone`](Self::alone).
    pub fn pooled(&self) -> Result<Baseline, SpecError> {
        let simulator = self.simulator;
        let population = &simulator.population;
        let rows = rows(population.data(), population.training())?;
        let start = simulator.initial_weights();
        let fit = |work: &mut _| restrained(&simulator.network, &start, &rows, work);
        Ok(simulator.workspaces.with(fit)?)
    }
}

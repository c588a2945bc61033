//! What target losses are measured by: the losses of models that no run makes.

use super::Simulator;
use crate::experiment::{Members, SpecError, Yardstick};
use std::cell::RefCell;

/// The losses of a federation by every yardstick that is asked for, each found out once.
pub(crate) struct Yardsticks<'a> {
    simulator: &'a Simulator,
    /// How an agent works alone, for those that work as in the federation.
    step_size: f64,
    rounds: u32,
    found: RefCell<Vec<(Yardstick, Vec<f64>)>>,
}

impl<'a> Yardsticks<'a> {
    pub(crate) fn new(simulator: &'a Simulator, step_size: f64, rounds: u32) -> Self {
        Self { simulator, step_size, rounds, found: RefCell::default() }
    }

    fn find(&self, by: Yardstick) -> Result<Vec<f64>, SpecError> {
        let Self { simulator, step_size, rounds, .. } = *self;
        match by {
            Yardstick::Local => simulator.alone(step_size, rounds),
            Yardstick::Alone => {
                let models = simulator.baselines().alone()?;
                let weights: Vec<&[f64]> = models.iter().map(|model| &model.weights[..]).collect();
                simulator.decided_losses(&weights, rounds)
            }
            Yardstick::Pooled => {
                let pooled = simulator.baselines().pooled()?;
                let agents = simulator.population.agents();
                simulator.decided_losses(&vec![&pooled.weights[..]; agents], rounds)
            }
        }
    }
}

impl Members for Yardsticks<'_> {
    fn count(&self) -> usize {
        self.simulator.population.agents()
    }

    fn name(&self, agent: usize) -> Option<&str> {
        self.simulator.population.name(agent)
    }

    fn losses(&self, by: Yardstick) -> Result<Vec<f64>, SpecError> {
        let known = self.found.borrow().iter().find(|(of, _)| *of == by).map(|(_, of)| of.clone());
        if let Some(known) = known {
            return Ok(known);
        }
        let found = self.find(by)?;
        self.found.borrow_mut().push((by, found.clone()));
        Ok(found)
    }
}

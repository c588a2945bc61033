//! The rows by whose loss agents decide: those they train on, or those they hold back.
//!
//! An agent that asks whether a model is good enough for it asks about patients it will see, not about
//! those the model was fitted to. With `decides_on_rows = "held-back"` its loss is measured on its own test rows,
//! wherever it decides or is judged by its decision: in the round, ahead of it, at the end. Gradients stay those of
//! its training rows, since nobody may train on what it judges by. So a report's loss and gradient are of different
//! rows: the loss is what decides, and what follows from the gradient is an estimate. Reports say so by
//! calling the loss sampled, with a standard error of 0.

use super::population::AgentRows;
use super::{Simulator, Worked};
use crate::data::DataError;
use crate::experiment::SpecError;
use crate::model::{Error, Loaded, Workspace};
use crate::training::DecidesOnRows;
use fedstay::record::{Constant, called};
use fedstay::{AgentId, Score};
use rayon::prelude::*;

impl Simulator {
    /// Whether agents decide by rows that they hold back.
    pub(super) fn decides_held_back(&self) -> bool {
        self.training.decides_on_rows == DecidesOnRows::HeldBack
    }

    /// The rows that an agent holds back to decide by, if it does.
    pub(super) fn decides_by(&self, agent: usize) -> Option<AgentRows<'_>> {
        self.decides_held_back().then(|| self.population.kept_back(agent)).flatten()
    }

    /// Refuses agents that are to decide by rows that they do not have.
    pub(super) fn check_held_back(&self) -> Result<(), DataError> {
        if !self.decides_held_back() {
            return Ok(());
        }
        let without = |agent: &usize| self.population.held_back(*agent).is_none();
        let agents = self.population.agents();
        let without: Vec<usize> = (0..agents).filter(without).collect();
        let Some(first) = without.first() else { return Ok(()) };
        let why = if without.len() == agents {
            "nobody has rows of its own that are held back: that takes rows with owners (data.owner) and a \
             share of them to hold back (data.test_share above 0); or set it to \"training\""
                .to_owned()
        } else {
            let name = called(AgentId(*first as u64), self.population.name(*first));
            let others = match without.len() {
                1 => String::new(),
                several => format!(", and so {} more", several - 1),
            };
            format!(
                "{name} has no rows that are held back{others}: hold back a larger share \
                 (data.test_share), leave it out, or set this to \"training\""
            )
        };
        Err(DataError::setting("decides_on_rows", why))
    }

    /// Puts the loss that an agent decides by in the place of that on its training rows.
    pub(super) fn as_decided(
        &self,
        agent: usize,
        weights: &Loaded,
        score: &mut Score,
        work: &mut Workspace,
    ) -> Worked {
        if let Some(rows) = self.decides_by(agent) {
            score.loss = self.network.evaluate(weights, &rows.view()?, None, work)?.loss;
        }
        Ok(())
    }

    /// The loss by which an agent decides about weights in a round.
    fn decided_loss(
        &self,
        (agent, round): (usize, u32),
        weights: &Loaded,
        work: &mut Workspace,
    ) -> Result<f64, Error> {
        let rows = self.decides_by(agent).unwrap_or_else(|| self.seen(agent, round));
        Ok(self.network.evaluate(weights, &rows.view()?, None, work)?.loss)
    }

    /// The losses by which agents decide about weights in a round: a vector of weights for each.
    pub(super) fn decided_losses(
        &self,
        weights: &[&[f64]],
        round: u32,
    ) -> Result<Vec<f64>, SpecError> {
        let loss = |(agent, weights): (usize, &&[f64])| {
            let weights = self.network.load(weights)?;
            self.workspaces.with(|work| self.decided_loss((agent, round), &weights, work))
        };
        let losses = weights.par_iter().enumerate().map(loss);
        Ok(losses.collect::<Result<_, Error>>()?)
    }

    /// The best constant prediction as agents decide about it: on average over those that are measured.
    pub(super) fn constant_as_decided(&self, mut constant: Constant) -> Constant {
        if !self.decides_held_back() {
            return constant;
        }
        let weights = self.network.load(&self.baselines().constant().weights);
        let Ok(weights) = weights else { return constant };
        let loss = |place: usize| {
            let who = (self.measured_agent(place), self.round);
            self.workspaces.with(|work| self.decided_loss(who, &weights, work))
        };
        let losses = (0..self.measured()).into_par_iter().map(loss);
        if let Ok(losses) = losses.collect::<Result<Vec<f64>, Error>>() {
            constant.0.loss = losses.iter().sum::<f64>() / losses.len().max(1) as f64;
        }
        constant
    }
}

//! Server optimisers: what becomes of a rule's step before it moves the weights.
//!
//! A rule's step `Δ` is taken as if it were a negative gradient. The optimiser stands between the
//! rule and the policy, so a policy keeps, shows and judges the step that is really taken. The
//! plain one, `sgd` with a rate of 1, changes no bit of it.
//!
//! `Δ` is the displacement itself, as in the reference. Dividing it by the step size first would
//! only rescale τ and the rate of `sgd` and `momentum`.
//!
//! A step that ends the run is taken as it is: where a rule stops nothing moves, and a landing was
//! computed for the very point at which it ends. In a round without reports nothing moves either.
//!
//! Reference: Reddi, Charles, Zaheer, Garrett, Rush, Konečný, Kumar, McMahan, *Adaptive Federated
//! Optimization*, ICLR 2021, Algorithm 2.

mod adaptive;
mod linear;

pub use adaptive::{Adagrad, Adam, Yogi};
pub use linear::{Momentum, Sgd};

use crate::Error;
use crate::list::{Origin, listed};
use crate::rule::{Decision, Facts, Round, forecast};

/// What an optimiser does with a rule's step.
trait Optimise {
    /// Checks the parameters, once, before the first round.
    fn check(&self) -> Result<(), Error>;

    /// Replaces the rule's step by its own, and remembers what it needs for the next.
    fn apply(&mut self, step: &mut [f64]);

    /// The vectors it remembers: none before the first round.
    fn vectors(&self) -> Vec<&[f64]> {
        Vec::new()
    }
}

listed! {
    /// Every server optimiser, under the name it has in a configuration.
    pub enum Optimiser: mut Optimise, "optimiser", Sgd {
        /// The rule's step, times a rate.
        Sgd(Sgd) = "sgd", linear::SGD;
        /// FedAvgM: steps add up and fade.
        Momentum(Momentum) = "momentum", linear::MOMENTUM;
        /// FedAdagrad: every weight slows down with the way it has come.
        Adagrad(Adagrad) = "adagrad", adaptive::ADAGRAD;
        /// FedAdam: every weight moves by about the rate.
        Adam(Adam) = "adam", adaptive::ADAM;
        /// FedYogi: the same, where steps may shrink faster than they are forgotten.
        Yogi(Yogi) = "yogi", adaptive::YOGI;
    }
}

impl Optimiser {
    /// Whether it leaves every step as it is.
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }

    /// Checks the parameters, once, before the first round.
    pub fn check(&self) -> Result<(), Error> {
        self.inner().check()
    }

    /// Rejects a memory of another length than the weights have.
    pub(super) fn check_dimension(&self, dimension: usize) -> Result<(), Error> {
        match self.inner().vectors().iter().find(|vector| vector.len() != dimension) {
            None => Ok(()),
            Some(vector) => {
                let (name, got) = (self.name(), vector.len());
                let why = format!("{name} remembers {got} numbers, the weights have {dimension}");
                Err(Error::BadState { why })
            }
        }
    }

    /// Replaces the rule's step, and what the decision says about it.
    ///
    /// What a rule promises, it promises about its own step: the server asks the new one whether
    /// everybody is kept. Predictions of losses after a step that was not taken are no misses.
    pub(super) fn apply(
        &mut self,
        round: &Round<'_>,
        facts: &Facts,
        step: &mut [f64],
        decision: &mut Decision,
    ) -> Result<(), Error> {
        if self.is_plain() || decision.stop.is_some() {
            return Ok(());
        }
        self.inner_mut().apply(step);
        for vector in self.inner().vectors() {
            if let Some(index) = vector.iter().position(|value| !value.is_finite()) {
                let (value, step_size) = (vector[index], round.step_size);
                return Err(Error::StepOverflow { index, value, step_size });
            }
        }
        decision.kept = None;
        if facts.slack.is_none() {
            decision.split = forecast(round.reports, step, facts.margin);
        }
        decision.missed = None;
        Ok(())
    }
}

/// Checks the rate at which the server moves.
fn check_lr(lr: f64) -> Result<(), Error> {
    match lr.is_finite() && lr > 0.0 {
        true => Ok(()),
        false => Err(Error::bad_parameter("server.lr", lr, "a number above zero")),
    }
}

/// Checks how much of the past is remembered.
fn check_beta(name: &str, beta: f64) -> Result<(), Error> {
    match (0.0..1.0).contains(&beta) {
        true => Ok(()),
        false => Err(Error::bad_parameter(name, beta, "zero or more, and below one")),
    }
}

#[cfg(test)]
mod laws;

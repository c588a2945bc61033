//! What a federation is measured against: models that need no federation, or no secrecy.
//!
//! | baseline | what it is |
//! |---|---|
//! | constant | the best prediction that reads no feature: base rates, or the mean |
//! | alone | the best model an agent makes of its own rows |
//! | pooled | the same model on all agents' rows together, which nobody may put in one place |
//!
//! They say what the network can do with these rows, not what the run's step size and rounds make of
//! it: an outside option is what an owner *would* have, and no owner trains its own model by a federation's
//! schedule. So a proper optimiser trains them until nothing is left to gain.
//!
//! To be fitted as well as possible is not to be good: 40 rows of 30 columns can be explained by heart. A baseline
//! that does so has a terrible loss on other rows, and everything would look like a gain beside it. So models are
//! restrained, and how much is decided by training rows alone (`fit`): test rows judge baselines, so they must not
//! choose them. A model of one layer has a ridge worth one row, scikit-learn's default, unless cross-validation
//! says clearly that a stronger one predicts better; any other stops early.
//!
//! One thread trains one model from start to end, so the number of threads changes nothing.

mod alone;
mod constant;
mod fit;
mod folds;
mod lbfgs;
mod pooled;
mod restraint;
mod scored;
#[cfg(test)]
pub(super) mod tests;
mod units;

pub use scored::BaselineScores;

use super::Simulator;
use crate::model::Network;

/// A model that was made for comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Baseline {
    /// Its weights.
    pub weights: Vec<f64>,
    /// What kept it from learning its rows by heart.
    pub restraint: Restraint,
}

/// What keeps a model from learning its rows by heart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Restraint {
    /// There is nothing to restrain: it reads no feature.
    Constant,
    /// A ridge of this strength: ½ strength · ‖weights‖² is added to the sum of the rows' losses (of
    /// squared losses, strength · ‖weights‖²). 1 is the default of scikit-learn's `LogisticRegression` (its `C` is the
    /// inverse) and `Ridge` (`alpha`).
    Ridge(f64),
    /// It was stopped after so many steps.
    Steps(u32),
}

/// The baselines of a federation.
#[derive(Clone, Copy)]
pub struct Baselines<'a> {
    simulator: &'a Simulator,
}

impl Simulator {
    /// What this federation is measured against. Nothing is computed until it is asked for.
    pub fn baselines(&self) -> Baselines<'_> {
        Baselines { simulator: self }
    }
}

impl Baselines<'_> {
    /// About how many multiplications and additions `pooled` and `alone` take together, to decide
    /// whether they are worth it. One core does some 10⁹ to 10¹⁰ of them in a second.
    pub fn work(&self) -> f64 {
        let simulator = self.simulator;
        let rows = simulator.population.training().len() as f64;
        // Forwards and backwards; filters are used once for every pixel.
        let each = match &simulator.network.front {
            Some(_) => 60.0 * simulator.network.layout().parameters() as f64,
            None => 4.0 * simulator.network.layout().parameters() as f64,
        };
        let folds = folds::MOST as f64;
        let steps = match is_linear(&simulator.network) {
            true => 60.0 * (1.0 + restraint::LADDER.len() as f64 / 4.0 * folds),
            false => f64::from(restraint::MOST_STEPS) * (1.0 + folds),
        };
        2.0 * rows * each * steps
    }
}

/// Whether a network is one linear layer, so that its loss is convex.
fn is_linear(network: &Network) -> bool {
    network.front.is_none() && network.layers() == 1
}

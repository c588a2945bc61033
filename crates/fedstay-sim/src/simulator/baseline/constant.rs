//! The best prediction that reads no feature: the classes' shares among the rows, or the mean of their
//! numbers.
//!
//! It is a model like any other: everything is zero but the last layer's bias. So what measures a model
//! measures it, too, and a delivered model that is no better has learnt nothing.

use super::{Baseline, Baselines, Restraint};
use crate::model::{Network, Output, RowTargets};

impl Baselines<'_> {
    /// The constant of all agents' rows together.
    pub fn constant(&self) -> Baseline {
        let population = &self.simulator.population;
        let targets = population.data().targets.rows(population.training());
        Self::always(&self.simulator.network, targets)
    }

    /// The constant of each agent's own rows.
    pub fn constants(&self) -> Vec<Baseline> {
        let population = &self.simulator.population;
        let own = |agent| Self::always(&self.simulator.network, population.agent(agent).targets());
        (0..population.agents()).map(own).collect()
    }

    fn always(network: &Network, targets: RowTargets<'_>) -> Baseline {
        Baseline { weights: constant(network, targets), restraint: Restraint::Constant }
    }
}

/// The weights with which a network says of every row what is best for these without looking at them.
pub(super) fn constant(network: &Network, targets: RowTargets<'_>) -> Vec<f64> {
    let mut weights = vec![0.0; network.layout().parameters()];
    let (_, bias) = network.layout().layer(network.layers() - 1);
    weights[bias].copy_from_slice(&says(network, targets));
    weights
}

/// What the last layer puts out for every row.
fn says(network: &Network, targets: RowTargets<'_>) -> Vec<f64> {
    let Output::Classes(classes) = network.output() else {
        let RowTargets::Numbers(numbers) = targets else { return vec![0.0] };
        let sum: f64 = numbers.iter().copied().map(f64::from).sum();
        return vec![sum / numbers.len().max(1) as f64];
    };
    let counts: Vec<f64> = targets.counts(classes).into_iter().map(|count| count as f64).collect();
    // That a class was not seen is no proof that there is none: as if half a row of each had been.
    let unseen = if counts.contains(&0.0) { 0.5 } else { 0.0 };
    let all: f64 = counts.iter().map(|count| count + unseen).sum();
    let logs: Vec<f64> = counts.iter().map(|count| ((count + unseen) / all).ln()).collect();
    match *logs {
        [first, second] if network.is_logistic() => vec![second - first],
        _ => logs,
    }
}

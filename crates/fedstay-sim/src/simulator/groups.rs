//! How well a model serves two groups among every agent's rows.
//!
//! Equal opportunity asks how often a model is right about the positive rows of either group. Where
//! no class is called positive, all rows count. A copy of the agents' rows, sorted by what is counted,
//! serves the question; only runs whose rule asks it have one.

use super::population::Population;
use super::rows;
use crate::data::Dataset;
use crate::model::{Error, Loaded, Network, Workspace};
use fedstay::Rates;
use std::sync::Arc;

/// Every agent's rows: those of group 0 that count, those of group 1 that count, the others.
pub(super) struct GroupedRows {
    data: Arc<Dataset>,
    /// Where each of the three begins, and where the last ends.
    bounds: Vec<[usize; 4]>,
}

impl GroupedRows {
    /// `None` where rows have no groups.
    pub(super) fn new(population: &Population) -> Option<Self> {
        let data = population.data();
        let groups = data.groups.as_ref()?;
        let classes = data.targets.classes()?;
        let kind = |row: &usize| match groups.counts(classes.of[*row]) {
            true => usize::from(groups.second[*row]),
            false => 2,
        };
        let (mut order, mut bounds) = (Vec::new(), Vec::new());
        for agent in 0..population.agents() {
            let mut own: Vec<usize> = population.place(agent)?.collect();
            own.sort_by_key(kind);
            let from = order.len();
            let until = |last: usize| from + own.partition_point(|row| kind(row) < last);
            bounds.push([from, until(1), until(2), from + own.len()]);
            order.extend(own);
        }
        let mut sorted = Dataset::clone(data);
        sorted.arrange(&order);
        Some(Self { data: Arc::new(sorted), bounds })
    }

    /// How well weights serve an agent's groups.
    pub(super) fn rates(
        &self,
        agent: usize,
        network: &Network,
        weights: &Loaded,
        work: &mut Workspace,
    ) -> Result<Rates, Error> {
        let bounds = self.bounds[agent];
        let mut right = [0; 3];
        for (part, right) in right.iter_mut().enumerate() {
            let range = bounds[part]..bounds[part + 1];
            if !range.is_empty() {
                let rows = rows(&self.data, range)?;
                *right = network.evaluate(weights, &rows, None, work)?.correct.unwrap_or(0) as u64;
            }
        }
        let of = [0, 1].map(|group| (bounds[group + 1] - bounds[group]) as u64);
        let (correct, all) = (right.iter().sum(), (bounds[3] - bounds[0]) as u64);
        Ok(Rates { right: [right[0], right[1]], of, correct, rows: all })
    }
}

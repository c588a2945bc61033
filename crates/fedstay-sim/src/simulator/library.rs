//! A library of models for agents that come later.
//!
//! A model that is trained on may forget what it knew about agents that have left, so the last one need
//! not be the best for a newcomer. With `library.keep` the server keeps models: one every
//! `library.every` rounds, and in every round in which an agent leaves for the first time the one it
//! left with. When there are more than `keep`, the oldest that was kept for no departure goes first.
//!
//! A newcomer evaluates what is offered on its own data: the model of the round, the best of those that
//! were kept, and a mixture of both kinds, a *greedy soup*: beginning with the best model, each of the
//! others in the order of its loss is averaged into the weights if that lowers the newcomer's loss. By
//! construction the mixture is never worse than the best of all; by how much it is better is what is
//! measured. What the newcomer then does is up to its behaviour and the model of the round.
//!
//! Reference: the open question of arXiv 2311.16459 about agents that join later. Greedy soups:
//! Wortsman et al., *Model soups: averaging weights of multiple fine-tuned models improves accuracy
//! without increasing inference time*, ICML 2022.

use crate::model::{Error, Network, Rows, Workspace};
use crate::training::Shelf;
use fedstay::AgentId;
use fedstay::packed;
use fedstay::record::Arrival;
use serde::{Deserialize, Serialize};

/// The models that are kept.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Library {
    kept: Vec<Kept>,
    /// The agents that have left at least once.
    leavers: Vec<AgentId>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Kept {
    round: u32,
    /// Whether somebody left with it.
    departure: bool,
    #[serde(with = "packed")]
    weights: Vec<f64>,
}

impl Library {
    /// Keeps the model of a round if it is due, given who left on receipt of it.
    pub(crate) fn note(&mut self, shelf: Shelf, round: u32, weights: &[f64], leaving: &[AgentId]) {
        if shelf.keep == 0 {
            return;
        }
        let first = leaving.iter().any(|agent| !self.leavers.contains(agent));
        let new = leaving.iter().filter(|agent| !self.leavers.contains(agent)).copied();
        let new: Vec<AgentId> = new.collect();
        self.leavers.extend(new);
        if !first && !round.is_multiple_of(shelf.every.max(1)) {
            return;
        }
        self.kept.push(Kept { round, departure: first, weights: weights.to_vec() });
        if self.kept.len() > shelf.keep {
            let oldest = self.kept.iter().position(|kept| !kept.departure).unwrap_or(0);
            self.kept.remove(oldest);
        }
    }

    /// What a newcomer finds on its own rows.
    pub(crate) fn offer(
        &self,
        (agent, round): (AgentId, u32),
        last: &[f64],
        (network, rows): (&Network, &Rows<'_>),
        work: &mut Workspace,
    ) -> Result<Arrival, Error> {
        let mut loss = |weights: &[f64]| -> Result<f64, Error> {
            let weights = network.load(weights)?;
            Ok(network.evaluate(&weights, rows, None, work)?.loss)
        };
        let of_last = loss(last)?;
        let mut models: Vec<(f64, Option<u32>, &[f64])> = vec![(of_last, None, last)];
        for kept in &self.kept {
            models.push((loss(&kept.weights)?, Some(kept.round), &kept.weights));
        }
        models.sort_by(|a, b| a.0.total_cmp(&b.0));
        let best = models.iter().find(|model| model.1.is_some()).copied();

        let (mut soup, mut mixed) = (models[0].2.to_vec(), 1u32);
        let mut mixture = models[0].0;
        for (_, _, weights) in &models[1..] {
            let share = 1.0 / f64::from(mixed + 1);
            let mean = |(old, new): (&f64, &f64)| old + share * (new - old);
            let tried: Vec<f64> = soup.iter().zip(*weights).map(mean).collect();
            let loss = loss(&tried)?;
            if loss < mixture {
                (soup, mixture, mixed) = (tried, loss, mixed + 1);
            }
        }
        Ok(Arrival {
            agent,
            round,
            last: of_last,
            best: best.map(|best| best.0),
            of_round: best.and_then(|best| best.1),
            mixture,
            mixed,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_keeps_every_so_often_and_before_first_departures_and_those_longest() {
        let (shelf, mut library) = (Shelf { keep: 3, every: 5 }, Library::default());
        let rounds = |library: &Library| -> Vec<u32> {
            library.kept.iter().map(|kept| kept.round).collect()
        };
        for round in 1..=9 {
            let leaving = if round == 3 || round == 7 { vec![AgentId(4)] } else { vec![] };
            library.note(shelf, round, &[f64::from(round)], &leaving);
        }
        assert_eq!(rounds(&library), [3, 5], "its second departure is not kept");
        for round in 10..=21 {
            let leaving = if round == 12 { vec![AgentId(1)] } else { vec![] };
            library.note(shelf, round, &[f64::from(round)], &leaving);
        }
        assert_eq!(rounds(&library), [3, 12, 20], "those of departures stay longest");
        let mut none = Library::default();
        none.note(Shelf::default(), 25, &[0.0], &[AgentId(0)]);
        assert_eq!(none, Library::default());
    }
}

//! `utility`: stay while the expected gain pays.
//!
//! A model under `ε_m` is worth `V` to the agent and every further round costs it `C`. With `b` the
//! best loss it has seen and `p` how much that fell per round over the last `P` rounds, it expects
//! `(b − ε_m)/p` more rounds and
//!
//! ```text
//! leaves  iff  F_m ≤ ε_m,  or  C · (b − ε_m)/p > V   after P rounds
//! ```
//!
//! Past costs do not count. After `P` rounds without progress (`p = 0`) no value pays and the agent
//! leaves unsatisfied: so a rule that holds an agent just above its target loss for long loses it
//! in another way than averaging does.
//!
//! Reference: the utilities of arXiv 2311.16459, Section 2, without its assumption that any cost is
//! worth paying until the model is good enough.

use super::{Choice, Decide, Origin, View};
use crate::Error;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

pub(super) const ORIGIN: Origin = Origin {
    about: "stays while the expected gain pays for the rounds; leaves unsatisfied without progress",
    reference: "after arXiv 2311.16459, Section 2",
};

/// Stays while the expected gain pays.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Utility {
    /// What a model under its target loss is worth. Larger: waits longer for slow progress.
    pub value: f64,
    /// What a round costs.
    pub cost: f64,
    /// The rounds over which progress is judged; also how long it stays without any.
    pub patience: u32,
    /// The best loss after each of the last `patience` rounds.
    #[serde(skip_serializing_if = "super::is_default")]
    memory: VecDeque<f64>,
}

impl Default for Utility {
    fn default() -> Self {
        Self { value: 1.0, cost: 0.001, patience: 50, memory: VecDeque::new() }
    }
}

impl Decide for Utility {
    fn decide(&mut self, view: &mut View<'_>) -> Choice {
        let loss = view.evidence.loss();
        if loss <= view.epsilon {
            return Choice::Leave;
        }
        let best = self.memory.back().map_or(loss, |best| best.min(loss));
        self.memory.push_back(best);
        if self.memory.len() <= self.patience as usize {
            return Choice::Stay;
        }
        let before = self.memory.pop_front().unwrap_or(best);
        let progress = (before - best) / f64::from(self.patience);
        // Compared without the division, so that no progress needs no special case.
        let pays = self.cost * (best - view.epsilon) <= self.value * progress;
        if pays && progress > 0.0 { Choice::Stay } else { Choice::Leave }
    }

    fn check(&self) -> Result<(), Error> {
        super::check_not_negative("behaviour.value", self.value)?;
        super::check_not_negative("behaviour.cost", self.cost)?;
        super::check_patience(self.patience)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::choices;
    use super::*;

    fn left(behaviour: Utility, losses: &[f64]) -> Option<usize> {
        choices(behaviour, losses).iter().position(|choice| *choice == Choice::Leave)
    }

    #[test]
    fn it_leaves_content_or_when_the_rounds_to_come_cost_more_than_the_model_is_worth() {
        let falls: Vec<f64> = (0..100).map(|round| 1.0 - 0.01 * f64::from(round)).collect();
        // ε = 0.2 is reached after 80 rounds at 0.01 per round; 75 to go when first judged.
        let agent = |cost| Utility { value: 1.0, cost, patience: 5, ..Utility::default() };
        assert_eq!(left(agent(0.001), &falls), Some(80));
        assert_eq!(left(agent(0.1), &falls), Some(5));
    }

    #[test]
    fn without_progress_it_leaves_unsatisfied_after_its_patience() {
        let held: Vec<f64> = (0..100).map(|round| f64::from(20 - round.min(15)) / 20.0).collect();
        let agent = Utility { cost: 0.0, patience: 7, ..Utility::default() };
        assert_eq!(left(agent, &held), Some(15 + 7));
    }
}

//! `competitor`: stay while the lead over the others grows.
//!
//! A firm that sells what the model does gains by a better model of its own and loses by better ones of
//! the others. Its lead is
//!
//! ```text
//! u = rivalry · F̄_others − F_m
//! ```
//!
//! with the mean of the losses that the others told last, which the server publishes. It leaves
//!
//! ```text
//! iff  F_m ≤ ε_m,  or  u has not grown over the last P rounds
//! ```
//!
//! With `rivalry = 0` it only wants progress of its own; with 1 it leaves when the others catch up as
//! fast as it advances. While nobody else has told a loss it stays.
//!
//! Reference: after Mariel Werner, Sai Praneeth Karimireddy, Michael I. Jordan, *Defection-Free
//! Collaboration between Competitors in a Learning System*, arXiv 2406.15898, 2024.

use super::{Choice, Decide, Origin, View, check_not_negative, check_patience};
use crate::Error;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

pub(super) const ORIGIN: Origin = Origin {
    about: "leaves content, or when its lead over the others has not grown for a while",
    reference: "after Werner, Karimireddy, Jordan, Defection-Free Collaboration between Competitors in a Learning System, arXiv 2406.15898",
};

/// Stays while its lead over the others grows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Competitor {
    /// How much the others' losses are worth to it. 0: nothing, 1: as much as its own.
    pub rivalry: f64,
    /// The rounds over which its lead must grow.
    pub patience: u32,
    /// Its lead in each of the last `patience` rounds.
    #[serde(skip_serializing_if = "super::is_default")]
    memory: VecDeque<f64>,
}

impl Default for Competitor {
    fn default() -> Self {
        Self { rivalry: 1.0, patience: 50, memory: VecDeque::new() }
    }
}

impl Decide for Competitor {
    fn decide(&mut self, view: &mut View<'_>) -> Choice {
        let loss = view.evidence.loss();
        if loss <= view.epsilon {
            return Choice::Leave;
        }
        let Some(others) = view.evidence.others() else { return Choice::Stay };
        // Kept as a number that survives a checkpoint, however far training has diverged.
        let lead = (self.rivalry * others - loss).clamp(f64::MIN, f64::MAX);
        self.memory.push_back(lead);
        if self.memory.len() <= self.patience as usize {
            return Choice::Stay;
        }
        let before = self.memory.pop_front().unwrap_or(lead);
        if lead > before { Choice::Stay } else { Choice::Leave }
    }

    fn compares(&self) -> bool {
        true
    }

    fn check(&self) -> Result<(), Error> {
        check_not_negative("behaviour.rivalry", self.rivalry)?;
        check_patience(self.patience)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::among;
    use super::*;

    #[test]
    fn it_leaves_when_the_others_catch_up_unless_they_are_nothing_to_it() {
        // It gets better by 0.01 in every round, the others by 0.02.
        let left = |rivalry: f64| {
            let mut agent = Competitor { rivalry, patience: 5, ..Competitor::default() };
            (0..40).find(|round| {
                let (own, others) =
                    (0.9 - 0.01 * f64::from(*round), 0.9 - 0.02 * f64::from(*round));
                among(&mut agent, own, 0.0, Some(others)) == Choice::Leave
            })
        };
        assert_eq!((left(1.0), left(0.0)), (Some(5), None));
        let mut alone = Competitor { patience: 1, ..Competitor::default() };
        assert!((0..9).all(|_| among(&mut alone, 0.9, 0.0, None) == Choice::Stay));
    }
}

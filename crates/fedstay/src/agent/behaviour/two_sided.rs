//! `two-sided`: leave content, or disappointed.
//!
//! The agent knows what it can do by itself: the loss `A_m` of the model it makes from the first
//! one it receives, in `alone` rounds of local work. It leaves
//!
//! ```text
//! iff  F_m ≤ ε_m,  or  F_m > A_m  in each of the last P rounds
//! ```
//!
//! Participation constraints of this kind are what MaxFL (Cho et al., TMLR 2024) counts as a
//! model's appeal: whether it is better than the agent's own.

use super::{Choice, Decide, Origin, View};
use crate::Error;
use serde::{Deserialize, Serialize};

pub(super) const ORIGIN: Origin = Origin {
    about: "leaves content, or when the model stays worse than its own local one",
    reference: "after Cho et al., Maximizing Global Model Appeal in Federated Learning, TMLR 2024",
};

/// The most rounds of work alone: each costs as much as one of the run, and all of them fall in its
/// first round.
const MOST_ALONE: u32 = 100_000;

/// Checks a number of rounds of work alone.
pub(super) fn check_alone(alone: u32) -> Result<(), Error> {
    if alone > MOST_ALONE {
        let must = format!("at most {MOST_ALONE}");
        return Err(Error::bad_parameter("behaviour.alone", alone, must));
    }
    Ok(())
}

/// Leaves once content, or when the model stays worse than its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TwoSided {
    /// For how many rounds the model may be worse than its own.
    pub patience: u32,
    /// How many rounds of local work go into its own model.
    pub alone: u32,
    #[serde(skip_serializing_if = "super::is_default")]
    memory: OwnModel,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct OwnModel {
    /// The loss of its own model, once it has one.
    own: Option<f64>,
    /// For how many rounds in a row the received model has been worse.
    worse: u32,
}

impl Default for TwoSided {
    fn default() -> Self {
        Self { patience: 50, alone: 10, memory: OwnModel::default() }
    }
}

impl Decide for TwoSided {
    fn decide(&mut self, view: &mut View<'_>) -> Choice {
        if view.evidence.at_most(view.epsilon) {
            return Choice::Leave;
        }
        // A diverged model is as bad as can be, and its loss must be a number that survives a
        // checkpoint.
        let alone = || view.evidence.alone(self.alone).min(f64::MAX);
        let own = *self.memory.own.get_or_insert_with(alone);
        if view.evidence.at_most(own) {
            self.memory.worse = 0;
            return Choice::Stay;
        }
        self.memory.worse += 1;
        if self.memory.worse > self.patience { Choice::Leave } else { Choice::Stay }
    }

    fn check(&self) -> Result<(), Error> {
        check_alone(self.alone)?;
        super::check_patience(self.patience)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::choices;
    use super::*;

    #[test]
    fn rounds_alone_without_end_are_refused_by_name() {
        let alone = |alone| TwoSided { alone, ..TwoSided::default() }.check();
        alone(MOST_ALONE).unwrap();
        let error = alone(u32::MAX).unwrap_err().to_string();
        assert!(error.contains("behaviour.alone") && error.contains("at most 100000"), "{error}");
    }

    #[test]
    fn it_bears_a_worse_model_for_its_patience_and_no_longer() {
        // Alone it reaches 0.5 (see `Fixed`); ε is 0.2.
        let agent = TwoSided { patience: 3, ..TwoSided::default() };
        let left = |losses: &[f64]| {
            choices(agent.clone(), losses).iter().position(|choice| *choice == Choice::Leave)
        };
        assert_eq!(left(&[0.9; 10]), Some(3));
        assert_eq!(left(&[0.9, 0.9, 0.9, 0.4, 0.9, 0.9, 0.9, 0.5, 0.3]), None);
        assert_eq!(left(&[0.9, 0.2]), Some(1));
    }
}

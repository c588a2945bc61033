//! `opt-out`: decide in every round whether taking part is worth it.
//!
//! The agent knows the loss `A_m` of the model it makes alone, in `alone` rounds of local work from the
//! first model it receives. After `grace` rounds it takes part in a round
//!
//! ```text
//! iff  A_m − F_m ≥ gain
//! ```
//!
//! that is, iff the received model is better than its own by enough to pay for the round. Otherwise it
//! sits the round out: it sends nothing, says no goodbye, and looks at the next model again. So it is
//! absent and has not left; the record says so. Where everybody sits out the model does not move, and
//! nobody comes back.
//!
//! Reference: after Cho, Jhunjhunwala, Li, Smith, Joshi, *Maximizing Global Model Appeal in Federated
//! Learning*, TMLR 2024, whose clients are flexible in the first rounds and opt out where the model does
//! not appeal to them.

use super::two_sided::check_alone;
use super::{Choice, Decide, Origin, View, check_not_negative};
use crate::Error;
use serde::{Deserialize, Serialize};

pub(super) const ORIGIN: Origin = Origin {
    about: "never leaves; sits out every round in which the model is not better than its own",
    reference: "after Cho et al., Maximizing Global Model Appeal in Federated Learning, TMLR 2024",
};

/// Sits out rounds that are not worth it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OptOut {
    /// By how much the model must be better than its own.
    pub gain: f64,
    /// In how many rounds it takes part whatever the model.
    pub grace: u32,
    /// How many rounds of local work go into its own model.
    pub alone: u32,
    #[serde(skip_serializing_if = "super::is_default")]
    memory: OptOutMemory,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct OptOutMemory {
    /// The loss of its own model, once it has one.
    own: Option<f64>,
    /// In how many rounds it has decided.
    rounds: u32,
}

impl Default for OptOut {
    fn default() -> Self {
        Self { gain: 0.0, grace: 10, alone: 10, memory: OptOutMemory::default() }
    }
}

impl Decide for OptOut {
    fn decide(&mut self, view: &mut View<'_>) -> Choice {
        let alone = || view.evidence.alone(self.alone).min(f64::MAX);
        let own = *self.memory.own.get_or_insert_with(alone);
        self.memory.rounds = self.memory.rounds.saturating_add(1);
        let pays = self.memory.rounds <= self.grace || view.evidence.at_most(own - self.gain);
        if pays { Choice::Stay } else { Choice::SitOut }
    }

    fn needs_simulator(&self) -> bool {
        true
    }

    fn check(&self) -> Result<(), Error> {
        check_alone(self.alone)?;
        check_not_negative("behaviour.gain", self.gain)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::choices;
    use super::*;

    #[test]
    fn it_takes_part_while_the_model_beats_its_own_and_in_its_first_rounds() {
        // Alone it reaches 0.5 (see `Fixed`).
        let agent = OptOut { grace: 2, gain: 0.1, ..OptOut::default() };
        let losses = [0.9, 0.9, 0.9, 0.45, 0.4, 0.1, 0.6];
        use Choice::{SitOut, Stay};
        assert_eq!(choices(agent, &losses), [Stay, Stay, SitOut, SitOut, Stay, Stay, SitOut]);
    }
}

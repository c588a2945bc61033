//! `contagious`: an agent that sees others leave has less patience.
//!
//! ```text
//! leaves  iff  F_m ≤ ε_m,  or  t > P·(1 − σ)
//! ```
//!
//! where σ is the share of all agents that have left and t the number of rounds since it first saw
//! somebody gone. Until somebody leaves it is `threshold`. With half of the federation gone it bears
//! half as many rounds; so one departure that a rule does not prevent may bring others after it.
//!
//! Reference: this project.

use super::{Choice, Decide, Origin, View, check_patience};
use crate::Error;
use serde::{Deserialize, Serialize};

pub(super) const ORIGIN: Origin = Origin {
    about: "leaves content, or when others have left and its patience, which falls with them, is over",
    reference: "this project",
};

/// Has less patience the more others have left.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Contagious {
    /// How many rounds it would stay after a departure if hardly anybody had left.
    pub patience: u32,
    #[serde(skip_serializing_if = "super::is_default")]
    memory: Alarm,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct Alarm {
    /// The rounds since it first saw somebody gone.
    rounds: u32,
}

impl Default for Contagious {
    fn default() -> Self {
        Self { patience: 50, memory: Alarm::default() }
    }
}

impl Decide for Contagious {
    fn decide(&mut self, view: &mut View<'_>) -> Choice {
        if view.evidence.at_most(view.epsilon) {
            return Choice::Leave;
        }
        let gone = view.evidence.gone();
        if gone > 0.0 || self.memory.rounds > 0 {
            self.memory.rounds += 1;
        }
        let bears = f64::from(self.patience) * (1.0 - gone);
        if f64::from(self.memory.rounds) > bears { Choice::Leave } else { Choice::Stay }
    }

    fn needs_simulator(&self) -> bool {
        true
    }

    fn check(&self) -> Result<(), Error> {
        check_patience(self.patience)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::among;
    use super::*;

    #[test]
    fn its_patience_falls_with_the_share_that_has_left_and_without_departures_it_is_the_threshold()
    {
        let left = |gone: f64| {
            let mut agent = Contagious { patience: 10, ..Contagious::default() };
            (1..100).find(|_| among(&mut agent, 0.9, gone, None) == Choice::Leave)
        };
        assert_eq!(
            (left(0.0), left(0.1), left(0.5), left(1.0)),
            (None, Some(10), Some(6), Some(1))
        );
        let mut agent = Contagious::default();
        assert_eq!(among(&mut agent, 0.2, 0.0, None), Choice::Leave);
    }
}

//! `amplifying`: decide honestly, and pull harder.
//!
//! It decides as `threshold` does and sends its direction (and its gradient, if it sends one) times
//! `factor`. Under averaging that is a larger say; under a rule that predicts from gradients it is also
//! a false prediction: a step that is meant to lower its loss by so much lowers it by less, and an agent
//! that looks as if the next step might satisfy it is held from farther away.
//!
//! Reference: scaled updates as in Bagdasaryan, Veit, Hua, Estrin, Shmatikov, *How To Backdoor
//! Federated Learning*, AISTATS 2020, where the factor serves an attack; here only its own loss.

use super::{Choice, Decide, Manner, Origin, Sends, View, check_not_negative};
use crate::Error;
use serde::{Deserialize, Serialize};

pub(super) const ORIGIN: Origin = Origin {
    about: "leaves content; sends its direction times a factor, so that it counts more",
    reference: "after Bagdasaryan, Veit, Hua, Estrin, Shmatikov, How To Backdoor Federated Learning, AISTATS 2020",
};

/// Sends its direction times a factor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Amplifying {
    /// What it multiplies its direction by. 1 is `threshold`.
    pub factor: f64,
}

impl Default for Amplifying {
    fn default() -> Self {
        Self { factor: 5.0 }
    }
}

impl Decide for Amplifying {
    fn decide(&mut self, view: &mut View<'_>) -> Choice {
        if view.evidence.at_most(view.epsilon) { Choice::Leave } else { Choice::Stay }
    }

    fn manner(&self) -> Manner {
        Manner { sends: Sends::Times(self.factor), ..Manner::default() }
    }

    fn needs_simulator(&self) -> bool {
        true
    }

    fn check(&self) -> Result<(), Error> {
        check_not_negative("behaviour.factor", self.factor)
    }
}

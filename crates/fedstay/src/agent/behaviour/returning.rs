//! `returning`: leave content, come back when the model has become worse.
//!
//! ```text
//! in:   leaves      iff  F_m ≤ ε_m
//! out:  comes back  iff  F_m > ε_m (1 + h)
//! ```
//!
//! While it is out it looks at every broadcast, as anyone can look at a published model, and does
//! nothing else. `h` keeps it from going in and out at the same loss. It is the one behaviour that
//! comes back; all others leave for good. The run ends when nobody is left, even if some would
//! return: without reports the model does not change, so they would not.
//!
//! Reference: this project. The paper's agents (arXiv 2311.16459) leave for good.

use super::{Choice, Decide, Origin, View};
use crate::Error;
use serde::{Deserialize, Serialize};

pub(super) const ORIGIN: Origin = Origin {
    about: "leaves content and comes back when its loss has risen above ε_m(1 + h)",
    reference: "this project",
};

/// Leaves once content and comes back when its loss has risen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Returning {
    /// It comes back when its loss is above ε(1 + rise). Larger: stays away longer.
    pub rise: f64,
}

impl Default for Returning {
    fn default() -> Self {
        Self { rise: 0.25 }
    }
}

impl Decide for Returning {
    fn decide(&mut self, view: &mut View<'_>) -> Choice {
        // An absolute value, so that a negative ε (losses below zero) has its band above it too.
        let bound = match view.present {
            true => view.epsilon,
            false => view.epsilon + self.rise * view.epsilon.abs(),
        };
        if view.evidence.at_most(bound) { Choice::Leave } else { Choice::Stay }
    }

    fn comes_back(&self) -> bool {
        true
    }

    fn check(&self) -> Result<(), Error> {
        super::check_not_negative("behaviour.rise", self.rise)
    }
}

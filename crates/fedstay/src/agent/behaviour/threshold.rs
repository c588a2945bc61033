//! `threshold`: leave for good iff `F_m(w) ≤ ε_m`.
//!
//! This is the optimal choice of an agent that values all models under `ε_m` the same and pays for
//! every round. Reference: arXiv 2311.16459, Section 2, "Rational Agents".

use super::{Choice, Decide, Origin, View};
use serde::{Deserialize, Serialize};

pub(super) const ORIGIN: Origin = Origin {
    about: "leaves for good as soon as the received model is good enough, F_m(w) ≤ ε_m",
    reference: "arXiv 2311.16459, Section 2",
};

/// Leaves once its loss is at most its target loss. It has no parameters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Threshold {}

impl Decide for Threshold {
    fn decide(&mut self, view: &mut View<'_>) -> Choice {
        if view.evidence.at_most(view.epsilon) { Choice::Leave } else { Choice::Stay }
    }

    fn is_plain(&self) -> bool {
        true
    }
}

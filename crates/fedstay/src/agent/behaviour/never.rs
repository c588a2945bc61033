//! `never`: stay, whatever the model. The ceiling of every comparison.

use super::{Choice, Decide, Origin, View};
use serde::{Deserialize, Serialize};

pub(super) const ORIGIN: Origin = Origin {
    about: "never leaves: the ceiling every rule is measured against",
    reference: "arXiv 2311.16459, \"irrational\" agents",
};

/// Never leaves. It has no parameters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Never {}

impl Decide for Never {
    fn decide(&mut self, _: &mut View<'_>) -> Choice {
        Choice::Stay
    }

    fn is_plain(&self) -> bool {
        true
    }
}

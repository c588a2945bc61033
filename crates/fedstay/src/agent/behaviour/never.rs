//! `never`: stay, whatever the model. The ceiling of every comparison.

use super::{Choice, Decide, View};
use serde::{Deserialize, Serialize};

/// Never leaves. No parameters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Never {}

impl Decide for Never {
    fn decide(&mut self, _: &mut View<'_>) -> Choice {
        Choice::Stay
    }
}

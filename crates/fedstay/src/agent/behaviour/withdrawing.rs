//! `withdrawing`: take back one's consent on a given day.
//!
//! It decides as `threshold` does until round `after`, and leaves in that round whatever the model. It
//! is the departure that no rule can prevent: the reason lies outside of the federation.
//!
//! Reference: Regulation (EU) 2016/679 (GDPR), article 7(3): consent may be withdrawn at any time.

use super::{Choice, Decide, Origin, View};
use serde::{Deserialize, Serialize};

pub(super) const ORIGIN: Origin = Origin {
    about: "leaves content, or in a given round whatever the model",
    reference: "after GDPR, article 7(3)",
};

/// Leaves in a given round, if not before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Withdrawing {
    /// The round in which it leaves at the latest.
    pub after: u32,
}

impl Default for Withdrawing {
    fn default() -> Self {
        Self { after: 50 }
    }
}

impl Decide for Withdrawing {
    fn decide(&mut self, view: &mut View<'_>) -> Choice {
        let leaves = view.round >= self.after || view.evidence.at_most(view.epsilon);
        if leaves { Choice::Leave } else { Choice::Stay }
    }
}

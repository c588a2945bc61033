//! `foresight`: look a few steps ahead.
//!
//! On receipt of the model the agent privately takes `J` more gradient steps of size `a` on its own
//! data, starting from it, and leaves if *that* reaches its target loss:
//!
//! ```text
//! u_0 = w,  u_{j+1} = u_j − a ∇F_m(u_j);   leaves  iff  F_m(w) ≤ ε_m  or  F_m(u_J) ≤ ε_m
//! ```
//!
//! It is the objection of the paper's first reviewer, and it is a sound one: no rule can keep a
//! foresight agent for unlimited `J`, because an agent that can finish alone needs nobody. For
//! limited `J` a margin in the rule helps (`rule.margin`, `rule.horizon`): for convex losses and
//! `a ≤ 2/H` gradients do not grow along the path, so `F_m(u_J) ≥ F_m(w) − J·a·‖g_m‖²`, and an
//! agent that is kept above `ε_m + J·a·‖g_m‖²` stays.
//!
//! Each round costs it `J` further passes over its data.

use super::{Choice, Decide, Origin, View};
use crate::Error;
use serde::{Deserialize, Serialize};

pub(super) const ORIGIN: Origin = Origin {
    about: "privately looks some steps ahead and leaves if those would make the model good enough",
    reference: "an objection in the reviews of arXiv 2311.16459",
};

/// Leaves once a few private steps would make the received model good enough.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Foresight {
    /// The number J of private steps it looks ahead. 0 is `threshold`.
    pub steps: u32,
    /// The size a of one private step.
    pub rate: f64,
}

impl Default for Foresight {
    fn default() -> Self {
        Self { steps: 5, rate: 0.02 }
    }
}

impl Decide for Foresight {
    fn decide(&mut self, view: &mut View<'_>) -> Choice {
        let reaches = view.evidence.at_most(view.epsilon)
            || self.steps > 0 && view.evidence.ahead_at_most(self.steps, self.rate, view.epsilon);
        if reaches { Choice::Leave } else { Choice::Stay }
    }

    fn check(&self) -> Result<(), Error> {
        if self.steps > 10_000 {
            return Err(Error::bad_parameter("behaviour.steps", self.steps, "at most 10000"));
        }
        super::check_not_negative("behaviour.rate", self.rate)
    }
}

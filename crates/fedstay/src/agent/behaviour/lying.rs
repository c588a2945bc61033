//! `lying`: report a false loss.
//!
//! The agent decides by its true loss, as `threshold` does, and reports `max(0, F_m + offset)`.
//! With `offset > 0` it pretends to be worse off than it is, so a rule that protects agents about
//! to leave does not protect it: the model is pulled across its target loss and it leaves with that
//! model. With `offset < 0` it pretends to be about to leave, and its loss stays where it is.
//!
//! `within` says when it lies: only while `F_m ≤ ε_m + within`, because far from its target loss a
//! lie gains nothing; by default it always lies. A loss that is always off by the same amount could
//! be somebody's true loss, with the same gradients, so no check of consistency can tell; a lie
//! that *begins* makes the loss jump, and the flags of a convex run catch that
//! (`fedstay::consistency`).
//!
//! No rule here is incentive-compatible against liars. Reference: this project.

use super::{Choice, Decide, Manner, Origin, View};
use crate::Error;
use serde::{Deserialize, Serialize};

pub(super) const ORIGIN: Origin =
    Origin { about: "decides by its true loss and reports another", reference: "this project" };

/// Decides by its true loss and reports another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Lying {
    /// What it adds to the loss it reports.
    pub offset: f64,
    /// It lies only while its true loss is at most this much above its target loss; always, if not
    /// given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within: Option<f64>,
    /// Whether it lies in this round. Decided again in every round, so it is not saved.
    #[serde(skip)]
    lies: bool,
}

impl Default for Lying {
    fn default() -> Self {
        Self { offset: 0.5, within: None, lies: false }
    }
}

impl Lying {
    /// A liar that always adds `offset`.
    pub fn new(offset: f64) -> Self {
        Self { offset, ..Self::default() }
    }
}

impl Decide for Lying {
    fn decide(&mut self, view: &mut View<'_>) -> Choice {
        let content = view.evidence.at_most(view.epsilon);
        let near = |within: f64| content || view.evidence.at_most(view.epsilon + within);
        self.lies = self.within.is_none_or(near);
        if content { Choice::Leave } else { Choice::Stay }
    }

    fn manner(&self) -> Manner {
        Manner { loss_offset: if self.lies { self.offset } else { 0.0 }, ..Manner::default() }
    }

    fn check(&self) -> Result<(), Error> {
        if !self.offset.is_finite() {
            let must = "a finite number";
            return Err(Error::bad_parameter("behaviour.offset", self.offset, must));
        }
        super::check_not_negative("behaviour.within", self.within.unwrap_or(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::choice;
    use super::*;
    use crate::Behaviour;

    #[test]
    fn it_lies_near_its_target_loss_only_if_told_so() {
        let mut near = Behaviour::Lying(Lying { within: Some(0.1), ..Lying::new(0.4) });
        let mut always = Behaviour::Lying(Lying::new(-0.4));
        let said = |agent: &mut Behaviour, loss: f64| {
            assert_eq!(choice(agent, loss), Choice::Stay);
            agent.manner().told(loss)
        };
        assert_eq!(said(&mut near, 0.5), 0.5);
        assert_eq!(said(&mut near, 0.25), 0.65);
        assert_eq!(said(&mut always, 1.0), 0.6);
        // A loss is never negative, and neither is a reported one.
        assert_eq!(said(&mut always, 0.3), 0.0);
        assert_eq!(choice(&mut always, 0.2), Choice::Leave);
    }
}

//! `guard`: follow the rule as closely as everybody's floor allows.

use super::{Place, PolicyFacts, PolicyOption, Turn, Values, Wrap};
use crate::Error;
use crate::list::Origin;
use crate::rule::floors::Floors;
use crate::rule::{Decision, SLACK, Split, StopReason, safety};
use serde::{Deserialize, Serialize};

pub(super) const ORIGIN: Origin = Origin {
    about: "follow the rule as closely as keeping every agent above its floor allows",
    reference: "this project",
};

pub(super) const OPTIONS: &[PolicyOption] = &[PolicyOption {
    key: "policy.delta",
    example: "0.01",
    values: Values::ANY,
    about: "how far above its target loss every agent is kept",
    otherwise: "for preview the problem's own on a problem",
}];

/// Move the rule's step to the nearest one with `F_m + ⟨g_m, s⟩ ≥ ε_m + δ` for every agent, which
/// for convex losses and exact gradients proves that nobody leaves. It costs no communication.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Guard {
    /// How far above its target loss every agent is kept.
    pub delta: f64,
}

impl Default for Guard {
    fn default() -> Self {
        Self { delta: SLACK }
    }
}

impl Wrap for Guard {
    fn facts(&self) -> PolicyFacts {
        PolicyFacts { reads_gradients: true, ..PolicyFacts::keeping(Place::Step) }
    }

    fn check(&self) -> Result<(), Error> {
        super::check_not_negative("policy.delta", self.delta)
    }

    fn apply(
        &mut self,
        turn: &Turn<'_>,
        step: &mut [f64],
        decision: &mut Decision,
    ) -> Result<(), Error> {
        if decision.stop.is_some() {
            // Nothing moves, or the rule lands and says itself how sure it is.
            return Ok(());
        }
        let reports = turn.round.reports;
        let mut floors = Floors::new(reports, "guard")?;
        let held = floors.keep(step, self.delta);
        let share = safety::shorten(reports, step, self.delta);
        if share < 1.0 || held.multipliers.iter().any(|multiplier| *multiplier > 0.0) {
            decision.guarded = true;
            decision.split = Split::by(reports, |i| held.multipliers[i] > 0.0);
        }
        let stands = step.iter().all(|value| *value == 0.0);
        if stands && (!held.met || share == 0.0) {
            decision.stop = Some(StopReason::Stalled);
        }
        Ok(())
    }
}

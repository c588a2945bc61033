//! `early-stop`: stop instead of taking the first step that is predicted to make an agent leave.

use super::{Place, PolicyFacts, PolicyOption, Turn, Values, Wrap};
use crate::Error;
use crate::list::Origin;
use crate::rule::{Decision, Landing, StopReason};
use serde::{Deserialize, Serialize};

pub(super) const ORIGIN: Origin = Origin {
    about: "stop instead of taking the first step predicted to make an agent leave",
    reference: "",
};

pub(super) const OPTIONS: &[PolicyOption] = &[PolicyOption {
    key: "policy.margin",
    example: "0.01",
    values: Values::ANY,
    about: "stop this much earlier; preview: keep every agent this much higher",
    otherwise: "",
}];

/// Stop at the first predicted departure, `F_m + ⟨g_m, s⟩ ≤ ε_m + margin`.
///
/// Where a policy before it shows agents something else, departures are predicted for that: s is then
/// what the step does to what the agent is shown.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EarlyStop {
    /// How much earlier it stops. For convex losses, zero is enough to lose nobody.
    pub margin: f64,
}

impl Wrap for EarlyStop {
    fn facts(&self) -> PolicyFacts {
        PolicyFacts::keeping(Place::Stops)
    }

    fn check(&self) -> Result<(), Error> {
        match self.margin.is_finite() {
            true => Ok(()),
            false => Err(Error::bad_parameter("policy.margin", self.margin, "a finite number")),
        }
    }

    fn apply(
        &mut self,
        turn: &Turn<'_>,
        step: &mut [f64],
        decision: &mut Decision,
    ) -> Result<(), Error> {
        for report in turn.round.reports.iter() {
            report.exact_loss("early-stop")?;
        }
        let split = turn.forecast(step, self.margin);
        if decision.stop.is_none() && !split.d.is_empty() {
            step.fill(0.0);
            decision.split = split;
            decision.stop = Some(StopReason::EarlyStop);
            if turn.others_show() {
                // What was said of the step that is not taken.
                (decision.kept, decision.landed) = (None, decision.landed.map(|_| Landing::No));
            }
        }
        Ok(())
    }
}

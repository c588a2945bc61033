//! `early-stop`: stop instead of taking the first step that is predicted to make an agent leave.

use super::Wrap;
use crate::Error;
use crate::list::Origin;
use crate::rule::{Decision, Round, StopReason, forecast};
use serde::{Deserialize, Serialize};

pub(super) const ORIGIN: Origin = Origin {
    about: "stop instead of taking the first step predicted to make an agent leave",
    reference: "",
};

/// Stop at the first predicted departure, `F_m + ⟨g_m, s⟩ ≤ ε_m + margin`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EarlyStop {
    /// How much earlier it stops. For convex losses, zero is enough to lose nobody.
    pub margin: f64,
}

impl Wrap for EarlyStop {
    fn check(&self) -> Result<(), Error> {
        match self.margin.is_finite() {
            true => Ok(()),
            false => Err(Error::bad_parameter("policy.margin", self.margin, "a finite number")),
        }
    }

    fn apply(
        &mut self,
        round: &Round<'_>,
        step: &mut [f64],
        decision: &mut Decision,
    ) -> Result<(), Error> {
        for report in round.reports.iter() {
            report.exact_loss("early-stop")?;
        }
        let split = forecast(round.reports, step, self.margin);
        if decision.stop.is_none() && !split.d.is_empty() {
            step.fill(0.0);
            decision.split = split;
            decision.stop = Some(StopReason::EarlyStop);
        }
        Ok(())
    }
}

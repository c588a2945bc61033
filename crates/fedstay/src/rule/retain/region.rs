//! The trust region: how long a step may be while predictions are only predictions.
//!
//! `‖s‖ ≤ ρ` for the base `level`, `‖s0‖ ≤ ρ` and `‖s‖ ≤ 1.5ρ` for `descent`. A shorter step of the
//! same direction keeps all floors, because standing still does. After each round every agent's loss is compared with its
//! prediction. What endangers an agent is a loss *below* it, measured against the room it had (δ/2,
//! or a quarter of its distance to ε): that shrinks ρ in proportion, at most to 0.3ρ. A loss above
//! its prediction endangers nobody, but a step that brings less than it promised was too long for
//! the model. How much less is tolerated depends on the base, see [`Pace`].

use super::Base;
use crate::message::is_default;
use crate::rule::floors::Floors;
use crate::rule::{Miss, Round};
use crate::{AgentId, Report, Vector, linalg};
use serde::{Deserialize, Serialize};

/// `‖s‖` may be this many times the radius of `‖s0‖`.
const STRETCH: f64 = 1.5;
/// The smallest share of the radius that is left after a dangerous miss.
const SHRINK_AT_MOST: f64 = 0.3;
/// The share of the radius that is left after a step that brought too little.
const SHRINK: f64 = 0.7;

/// How the radius follows what a step brought, as a share of what it promised.
struct Pace {
    /// Below this share it shrinks as after the most dangerous miss.
    worse: f64,
    /// Below this share it shrinks.
    poor: f64,
    /// Above this share it grows …
    good: f64,
    /// … by this factor …
    grow: f64,
    /// … but never beyond this many times the length that was wanted: farther was not tried.
    beyond: f64,
}

/// Down the mean gradient, nets train best where steps are nearly too long: only losses that rise
/// by more than they were to fall count against the radius. (Asking for a tenth of the promise cost
/// three times the rounds on CIFAR-10.)
const DESCENT: Pace =
    Pace { worse: f64::NEG_INFINITY, poor: -1.0, good: -1.0, grow: 1.15, beyond: f64::INFINITY };
/// Steps towards the level know how far to go, so they may ask for a little, and try more at once.
/// (On CIFAR-10 with exact gradients, −1, 0, 0.05 and 0.25 for `poor` differ little; with samples
/// of 32 anything above 0.1 crawls; far from the level −1 overshoots for good.) A step after which
/// losses have risen by more than they were to fall was far too long: the next one, nearly as long, lost
/// an agent on digits with samples of 32.
const LEVEL: Pace = Pace { worse: -1.0, poor: 0.05, good: 0.1, grow: 2.0, beyond: 1.2 };

impl Pace {
    fn of(base: Base) -> Self {
        match base {
            Base::Descent => DESCENT,
            Base::Level => LEVEL,
        }
    }
}

/// The radius, and the predictions it rests on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Region {
    /// The radius ρ; `None` before the first step.
    radius: Option<f64>,
    /// Every agent's loss before the last step, and what it was predicted to be after, by agent.
    predicted: Vec<(AgentId, f64, f64)>,
    /// The strongest curvature seen along the steps so far.
    pub(super) curvature: f64,
    /// How far below their predictions losses were in the last round.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) short: f64,
}

impl Region {
    /// Adapts radius and curvature to how the last predictions turned out, and says which missed.
    pub(super) fn learn(
        &mut self,
        round: &Round<'_>,
        floors: &Floors<'_>,
        delta: f64,
        base: Base,
    ) -> Vec<Miss> {
        let mut missed = Vec::new();
        let (mut danger, mut above) = (0.0f64, 0.0f64);
        let (mut descended, mut promised) = (0.0, 0.0);
        self.short = 0.0;
        for (index, report) in round.reports.iter().enumerate() {
            let known = self.predicted.binary_search_by_key(&report.agent, |(agent, ..)| *agent);
            let Ok(known) = known else { continue };
            let (_, before, predicted) = &self.predicted[known];
            let loss = floors.loss[index];
            let room = (delta / 2.0).max((predicted - floors.epsilon[index]) / 4.0);
            let short = (predicted - loss) / room;
            self.short = self.short.max(predicted - loss);
            if short > 1.0 {
                missed.push(Miss { agent: report.agent, predicted: *predicted, loss });
            }
            danger = danger.max(short);
            above = above.max(loss - predicted);
            descended += before - loss;
            promised += before - predicted;
        }
        if round.last_step > 0.0 {
            self.curvature = self.curvature.max(2.0 * above / (round.last_step * round.last_step));
        }
        let Some(radius) = self.radius.as_mut().filter(|_| !self.predicted.is_empty()) else {
            return missed;
        };
        let pace = Pace::of(base);
        if danger > 1.0 {
            *radius *= (1.0 / danger).max(SHRINK_AT_MOST);
        } else if promised > 0.0 && descended < pace.worse * promised {
            *radius *= SHRINK_AT_MOST;
        } else if promised > 0.0 && descended < pace.poor * promised {
            *radius *= SHRINK;
        } else if danger < 0.5 && descended >= pace.good * promised {
            *radius *= pace.grow;
        }
        missed
    }

    /// Every agent's loss before the last step, and what it was predicted to be after.
    pub(super) fn predicted(&self) -> &[(AgentId, f64, f64)] {
        &self.predicted
    }

    /// Forgets what was predicted: the step that was taken is another one.
    pub(super) fn forget(&mut self) {
        self.predicted.clear();
    }

    /// Whether there is no radius yet.
    pub(super) fn is_new(&self) -> bool {
        self.radius.is_none()
    }

    /// Shortens the base step to the radius, which is `usual` at first.
    pub(super) fn shorten(&mut self, step: &mut [f64], usual: f64, base: Base) {
        let wanted = linalg::norm(Vector::F64(step));
        let first = if usual > 0.0 { usual } else { wanted };
        let radius = *self.radius.get_or_insert(first);
        if wanted > radius {
            linalg::scale(step, radius / wanted);
        }
        self.radius = Some(radius.min(Pace::of(base).beyond * wanted));
    }

    /// Shortens the whole step, with what the floors added, to what the radius allows.
    pub(super) fn bound(&self, step: &mut [f64]) {
        let length = linalg::norm(Vector::F64(step));
        if let Some(most) = self.radius.map(|radius| STRETCH * radius).filter(|most| length > *most)
        {
            linalg::scale(step, most / length);
        }
    }

    /// Remembers what every agent's loss should be after the step, given the inner products of all lines
    /// with it.
    pub(super) fn predict(&mut self, reports: &[Report<'_>], floors: &Floors<'_>, along: &[f64]) {
        let losses = floors.loss.iter().zip(along);
        self.predicted = reports
            .iter()
            .zip(losses)
            .map(|(report, (loss, along))| (report.agent, *loss, loss + along))
            .collect();
    }
}

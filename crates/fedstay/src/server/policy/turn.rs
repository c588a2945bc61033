//! A round as one policy of a list sees it, and the reports of a round as each of them sees them.

use super::{Place, Policy, Translation};
use crate::message::{forecast, forecast_by};
use crate::rule::{Round, Split};
use crate::{Broadcast, Reports, Vector, linalg};

/// A policy's turn in a round: after the rule and those before it in the list.
pub(super) struct Turn<'a> {
    /// The round. Its reports are as if about what this policy and those before it showed.
    pub(super) round: &'a Round<'a>,
    /// Those before it, as they were when the round began.
    pub(super) then: &'a [Policy],
    /// Those before it, after their turns.
    pub(super) now: &'a [Policy],
}

impl Turn<'_> {
    /// Whether one of those before it shows agents other weights than the server's.
    pub(super) fn others_show(&self) -> bool {
        self.now.iter().any(|policy| policy.facts().place == Place::Shows)
    }

    /// The agents for which what they are shown next would be good enough, to first order:
    /// `F_m + ⟨g_m, x⁺ − x⟩ ≤ ε_m + margin`, where the step carries what m is shown from x to x⁺.
    pub(super) fn forecast(&self, step: &[f64], margin: f64) -> Split {
        let Round { weights, reports, .. } = *self.round;
        if !self.others_show() {
            return forecast(reports, step, margin);
        }
        let moved: Vec<f64> =
            weights.iter().zip(step).map(|(weight, step)| weight + step).collect();
        let (then, now) = (shown(weights, self.then), shown(&moved, self.now));
        forecast_by(reports, margin, |index| {
            let report = &reports.as_slice()[index];
            let (from, to) = match (then.personal(report.agent), now.personal(report.agent)) {
                (None, None) => return linalg::dot(report.slope(), Vector::F64(step)),
                (from, to) => (from.unwrap_or(weights.into()), to.unwrap_or((&moved).into())),
            };
            let way: Vec<f64> = to.iter().zip(from.iter()).map(|(to, from)| to - from).collect();
            linalg::dot(report.slope(), Vector::F64(&way))
        })
    }
}

/// What agents are shown under these policies, where the server's own weights are `weights`.
pub(super) fn shown<'a>(weights: &'a [f64], policies: &'a [Policy]) -> Broadcast<'a> {
    policies.iter().fold(Broadcast::new(weights), |broadcast, policy| {
        broadcast.with_layer(policy.inner().layer())
    })
}

/// The reports of a round: as they were made, and translated back through one policy after the other,
/// the last one first.
pub(crate) struct Views<'a> {
    pub(super) made: &'a Reports<'a>,
    /// With the position of the policy that they were last translated through.
    pub(super) translated: Vec<(usize, Reports<'a>)>,
}

impl<'a> Views<'a> {
    /// The reports as if about the server's own weights.
    pub(crate) fn common(&self) -> &Reports<'a> {
        self.translated.last().map_or(self.made, |(_, reports)| reports)
    }

    /// The reports as if about what the policy in this position and those before it showed.
    pub(super) fn of(&self, position: usize) -> &Reports<'a> {
        let behind = self.translated.iter().rev().find(|(through, _)| *through > position);
        behind.map_or(self.made, |(_, reports)| reports)
    }

    /// Adds the reports as if about what is shown without the policy in this position.
    pub(super) fn translate(&mut self, position: usize, by: &'a Translation) {
        let reports = by.of(self.common());
        self.translated.push((position, reports));
    }
}

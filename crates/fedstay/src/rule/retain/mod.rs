//! `retain`: keep everybody above their floor, and nothing more.
//!
//! ADA-GD freezes the agents about to leave. But a step only has to keep everybody *above* the
//! floor, which is a half-space for each agent, not a subspace:
//!
//! ```text
//! minimise ½‖s − s0‖²  subject to  F_m + ⟨g_m, s⟩ ≥ ε_m + δ  for every agent m still in
//! ```
//!
//! The dual has one non-negative variable per agent and needs only the Gram matrix (see
//! `half_space.rs`), and `s` stays in the span of the reports: still a first-order rule.
//!
//! **Where to go** if no floor is in the way, `s0`:
//!
//! * `level`, the default: the shortest step after which everybody is predicted to be at most
//!   `ε_m + 1.5δ`, by the same dual. A cut of a convex loss lies below it, so whatever satisfies
//!   everybody is on the far side of all cuts and the step brings the weights nearer to it,
//!   whatever η (projection onto level sets: Polyak, *USSR Comput. Math.* 9, 1969).
//! * `descent`: `−η ·` the mean of the directions of those with `F_m > ε_m + 2δ`. It is the one
//!   that uses the agents' local paths where they take several local steps.
//!
//! **Certified.** For convex losses and exact gradients the constraint is a proof:
//! `F_m(w + s) ≥ F_m + ⟨g_m, s⟩ ≥ ε_m + δ > ε_m`, at *any* step size. So η may be as large as the
//! optimiser likes.
//!
//! **Estimated.** For nets and sampled gradients it is a prediction, and a trust region keeps it
//! honest (see `region.rs`). The losses re-anchor the constraints every round, so errors do not
//! pile up. Agents that take several local steps should report the gradient at the received weights
//! as well as their path (`local.exact_gradient`): predictions made from the path miss.
//!
//! **Landing.** Above the floor nobody is content yet. When everybody is within 2δ of their target
//! loss the slack is halved, and as soon as one step can bring everybody to it, that step is taken:
//!
//! ```text
//! minimise ‖s‖²  subject to  F_m + ⟨g_m, s⟩ + ½H‖s‖² ≤ ε_m  for every agent m still in
//! ```
//!
//! All are content in the same broadcast, so leaving is benign by definition. With `smoothness = H`
//! given, convex losses and exact gradients this too is a proof (`landed: certified`); otherwise H
//! is the strongest curvature seen along the steps (`landed: estimated`).
//!
//! The server must know: every agent's loss, target loss, direction and gradient. It stops
//! `landed`; or `settled` when everybody is within 2δ and no landing was found down to a thousandth
//! of δ (or none was asked for); or `stalled` when the constraints cannot be met together and no
//! step violates them less than standing still.
//!
//! Reference: this project; the constraint is Lemma 3 of arXiv 2311.16459, read backwards.

mod landing;
mod region;

use super::floors::Floors;
use super::{Aggregator, Change, Decision, Facts, Landing, Origin, Round, Split, StopReason};
use crate::memory::inside::is_default;
use crate::{Error, Vector, linalg};
use region::Region;
use serde::{Deserialize, Serialize};

pub(super) const ORIGIN: Origin = Origin {
    about: "the shortest step to where all are nearly content that keeps each above its floor; a proof for convex losses",
    reference: "this project",
};

/// What a label may change about the rule, as in ADA-GD.
const CHANGES: &[Change] = &[Change { name: "horizon", set: "horizon = 0.1" }];

/// The level base aims this many δ above everybody's target loss: between the floor and where an
/// agent counts as far.
const LEVEL: f64 = 1.5;
/// While landing the slack may fall to this share of δ.
const SMALLEST_SLACK: f64 = 1e-3;

/// Keep everybody above their floor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Retain {
    /// How far above its target loss every agent is kept. Larger: more room for misses, and agents
    /// end farther from their target loss (within 2δ).
    pub delta: f64,
    /// Where to go if no floor is in the way.
    pub base: Base,
    /// Whether floors are kept at all. `false` is the same optimiser for agents that never leave:
    /// the control that shows what keeping everybody costs.
    pub floors: bool,
    /// Whether predictions are checked and the step's length follows them.
    pub trust: Trust,
    /// Whether to bring everybody to their target loss at the end.
    pub landing: bool,
    /// Added to every agent's target loss for its floor, as in ADA-GD: a defence against agents
    /// that leave a little early (see `behaviour/foresight.rs`).
    pub margin: f64,
    /// Also adds `horizon · ‖g_m‖²`, as in ADA-GD.
    pub horizon: f64,
    /// A constant H such that every loss is H-smooth, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smoothness: Option<f64>,
    #[serde(skip_serializing_if = "is_default")]
    memory: RetainMemory,
}

/// Where to go if no floor is in the way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Base {
    /// The shortest step after which everybody is predicted to be near their target loss, whatever
    /// η.
    #[default]
    Level,
    /// Down the mean direction of the agents that are far from their target loss, by η.
    Descent,
}

/// When the step is kept within a radius in which predictions have held.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trust {
    /// For gradients in single precision, which nets and samples have.
    #[default]
    Auto,
    /// Always, whatever the gradients.
    Region,
    /// Never: for convex losses with exact gradients, where the constraint is a proof.
    Proof,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct RetainMemory {
    /// How far predictions are trusted, and what was last predicted.
    #[serde(flatten)]
    region: Region,
    /// The slack while landing, once everybody has been within 2δ.
    delta: Option<f64>,
}

impl Default for Retain {
    fn default() -> Self {
        Self {
            delta: 0.05,
            base: Base::default(),
            floors: true,
            trust: Trust::Auto,
            landing: true,
            margin: 0.0,
            horizon: 0.0,
            smoothness: None,
            memory: RetainMemory::default(),
        }
    }
}

impl Retain {
    /// The rule with slack δ.
    pub fn new(delta: f64) -> Self {
        Self { delta, ..Self::default() }
    }

    /// The slack in force.
    fn slack(&self) -> f64 {
        self.memory.delta.unwrap_or(self.delta)
    }

    fn trusts_a_region(&self, round: &Round<'_>) -> bool {
        match self.trust {
            Trust::Region => true,
            Trust::Proof => false,
            Trust::Auto => round.reports.iter().any(|r| matches!(r.slope(), Vector::F32(_))),
        }
    }
}

impl Aggregator for Retain {
    fn aggregate(&mut self, round: &Round<'_>, step: &mut [f64]) -> Result<Decision, Error> {
        let reports = round.reports.as_slice();
        let mut floors = Floors::new(round.reports, "retain")?;
        floors.raise(self.margin, self.horizon);
        let trusting = self.trusts_a_region(round);
        let slack = self.slack();
        let missed = self.memory.region.learn(round, &floors, slack, self.base);

        let everybody = Split::by(round.reports, |_| true);
        let mut decision = Decision {
            landed: Some(Landing::No),
            kept: self.floors.then_some(true),
            missed: Some(missed),
            ..Decision::new(everybody, round.step_size)
        };
        let far = |delta: f64| -> Vec<bool> {
            let agents = floors.loss.iter().zip(&floors.epsilon);
            agents.map(|(loss, epsilon)| *loss > epsilon + 2.0 * delta).collect()
        };
        let mut is_far = far(self.slack());
        if self.landing && (!is_far.contains(&true) || self.memory.delta.is_some()) {
            let smoothness = self.smoothness.unwrap_or(self.memory.region.curvature);
            if landing::step(&floors, smoothness, step) {
                decision.stop = Some(StopReason::Landed);
                decision.landed = Some(match self.smoothness {
                    Some(_) if !trusting => Landing::Certified,
                    _ => Landing::Estimated,
                });
                return Ok(decision);
            }
            while !is_far.contains(&true) && self.slack() > self.delta * SMALLEST_SLACK {
                self.memory.delta = Some(self.slack() / 2.0);
                is_far = far(self.slack());
            }
        }
        let delta = self.slack();
        let count = is_far.iter().filter(|far| **far).count() as f64;
        if count == 0.0 {
            decision.stop = Some(StopReason::Settled);
            return Ok(decision);
        }

        // s0: by descent first, whose length also is the first radius.
        for (report, _) in reports.iter().zip(&is_far).filter(|(_, far)| **far) {
            linalg::add_scaled(step, -round.step_size / count, report.direction);
        }
        let usual = linalg::norm(Vector::F64(step));
        if self.base == Base::Level {
            step.fill(0.0);
            floors.descend(step, LEVEL * delta);
        }
        let wanted = linalg::norm(Vector::F64(step));
        if trusting {
            self.memory.region.shorten(step, usual, self.base);
        }
        let mut multipliers = vec![0.0; reports.len()];
        if self.floors {
            multipliers = floors.keep(step, delta).multipliers;
        }
        if trusting {
            self.memory.region.bound(step);
        }
        if linalg::norm(Vector::F64(step)) <= 1e-12 * wanted.max(f64::MIN_POSITIVE) {
            step.fill(0.0);
            decision.stop = Some(StopReason::Stalled);
        }
        decision.kept = self.floors.then(|| floors.nobody_crosses(step));
        self.memory.region.predict(reports, &floors, step);
        decision.split = Split::by(round.reports, |index| multipliers[index] > 0.0);
        Ok(decision)
    }

    fn facts(&self) -> Facts {
        Facts { takes_smoothness: true, changes: CHANGES, ..Facts::keeping(self.delta) }
    }

    fn check(&self) -> Result<(), Error> {
        if let Some(smoothness) = self.smoothness.filter(|h| !(h.is_finite() && *h >= 0.0)) {
            return Err(Error::bad_parameter("rule.smoothness", smoothness, "zero or more"));
        }
        super::check_not_negative("rule.margin", self.margin)?;
        super::check_not_negative("rule.horizon", self.horizon)?;
        super::check_delta(self.delta)
    }
}

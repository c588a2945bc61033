//! `retain`: keep everybody above their floor, and nothing more.
//!
//! ADA-GD freezes whoever is near. But a step only has to keep everybody *above* the floor, which is
//! a half-space for each agent, not a subspace:
//!
//! ```text
//! minimise ½‖s − s0‖²  subject to  F_m + ⟨g_m, s⟩ ≥ ε_m + δ  for every agent m still in
//! s0 = −η · mean of the directions of those with F_m > ε_m + 2δ
//! ```
//!
//! The dual has one non-negative variable an agent and needs only the Gram matrix (see
//! `half_space.rs`), and `s` stays in the span of the reports: still a first-order rule.
//!
//! **Certified.** For convex losses and exact gradients the constraint is a proof:
//! `F_m(w + s) ≥ F_m + ⟨g_m, s⟩ ≥ ε_m + δ > ε_m`, at *any* step size. So η may be as large as the
//! optimiser likes.
//!
//! **Estimated.** For nets and sampled gradients it is a prediction. A trust region keeps it honest:
//! `‖s0‖ ≤ ρ`, `‖s‖ ≤ 1.5ρ`; after each round every agent's loss is compared with its prediction. An
//! agent that fell below it by more than its room (δ/2, or a quarter of its way to ε) shrinks ρ in
//! proportion, at most to 0.3ρ; so do losses that rise by more than they were to fall. Otherwise ρ
//! grows by 1.15. The losses re-anchor the constraints every round, so errors do not
//! pile up. Agents that take several
//! local steps must report the gradient at the received weights besides their path
//! (`local.exact_gradient`): predictions made from the path miss, and the radius collapses.
//!
//! **Landing.** Above the floor nobody is content yet. When everybody is within 2δ of their precision
//! the slack is halved, and as soon as one step can bring everybody under it, that step is taken:
//!
//! ```text
//! minimise ‖s‖²  subject to  F_m + ⟨g_m, s⟩ + ½H‖s‖² ≤ ε_m  for every agent m still in
//! ```
//!
//! All are content in the same broadcast, so leaving is benign by definition. With `smoothness = H`
//! given, convex losses and exact gradients this too is a proof (`landed: certified`); else H is the
//! strongest curvature seen along the steps (`landed: estimated`).
//!
//! The server must know: every agent's loss, precision, direction and gradient. It stops `landed`;
//! or `settled` when everybody is within 2δ and no landing was found down to a thousandth of δ (or
//! none was asked for); or `stalled` when the constraints cannot be met together and no step
//! violates them less than standing still.
//!
//! Reference: this project; the constraint is the paper's Lemma 3 (arXiv 2311.16459) read backwards.

use super::floors::Floors;
use super::half_space::{Nearest, nearest};
use super::{Aggregator, Decision, Landing, Losses, Round, Split, StopReason};
use crate::{AgentId, Error, Vector, linalg};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `‖s‖` may be so many times the radius of `‖s0‖`.
const STRETCH: f64 = 1.5;
/// How the radius follows the misses.
const SHRINK_AT_MOST: f64 = 0.3;
const GROW: f64 = 1.15;
/// What is left of the radius when the losses rose by more than they were to fall.
const SHRINK_WHEN_RISING: f64 = 0.7;
/// While landing the slack may fall to this share of δ.
const SMALLEST_SLACK: f64 = 1e-3;

/// Keep everybody above their floor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Retain {
    /// How far above its precision every agent is kept. Larger: more room for misses, and agents
    /// end farther from their precision (within 2δ).
    pub delta: f64,
    /// Whether predictions are checked and the step's length follows them.
    pub trust: Trust,
    /// Whether to bring everybody under their precision at the end.
    pub landing: bool,
    /// Added to every agent's precision for its floor, as in ADA-GD: a defence against agents that
    /// leave a little early (see `behaviour/foresight.rs`).
    pub margin: f64,
    /// Adds `horizon · ‖g_m‖²` too.
    pub horizon: f64,
    /// A constant H such that every loss is H-smooth, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smoothness: Option<f64>,
    #[serde(skip)]
    memory: Memory,
}

/// When the step is kept within a radius in which predictions have held.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trust {
    /// For gradients in single precision, which nets and samples have.
    #[default]
    Auto,
    /// Always.
    Region,
    /// Never: for convex losses with exact gradients, where the constraint is a proof.
    Proof,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Memory {
    /// The radius ρ; none before the first step.
    radius: Option<f64>,
    /// Every agent's loss before the last step, and what it was predicted to be after.
    predicted: Vec<(AgentId, f64, f64)>,
    /// Rounds in which an agent came nearer to its floor than predicted by more than its room.
    misses: u32,
    /// The slack while landing, once everybody has been within 2δ.
    delta: Option<f64>,
    /// The strongest curvature seen along the steps so far.
    curvature: f64,
}

impl Default for Retain {
    fn default() -> Self {
        Self {
            delta: 0.05,
            trust: Trust::Auto,
            landing: true,
            margin: 0.0,
            horizon: 0.0,
            smoothness: None,
            memory: Memory::default(),
        }
    }
}

impl Retain {
    /// The rule with slack δ.
    pub fn new(delta: f64) -> Self {
        Self { delta, ..Self::default() }
    }

    /// Adapts the radius and the curvature to how the last predictions turned out.
    ///
    /// What endangers an agent is a loss *below* its prediction, measured against the room it had:
    /// far above its floor a miss costs nobody. A loss above its prediction endangers nobody; only
    /// when the losses rise by more than they were to fall was the step too long for the model.
    /// (Asking for more, a tenth of the predicted descent, cost three times the rounds on CIFAR-10:
    /// nets train best where steps are nearly too long.)
    fn learn(&mut self, round: &Round<'_>, floors: &Floors<'_>, region: bool) {
        let delta = self.slack();
        let memory = &mut self.memory;
        let (mut danger, mut above) = (0.0f64, 0.0f64);
        let (mut descended, mut promised) = (0.0, 0.0);
        for (index, report) in round.reports.iter().enumerate() {
            let known = memory.predicted.iter().find(|(agent, ..)| *agent == report.agent);
            let Some((_, before, predicted)) = known else { continue };
            let loss = floors.loss[index];
            let room = (delta / 2.0).max((predicted - floors.epsilon[index]) / 4.0);
            danger = danger.max((predicted - loss) / room);
            above = above.max(loss - predicted);
            descended += before - loss;
            promised += before - predicted;
        }
        if round.last_step > 0.0 {
            memory.curvature =
                memory.curvature.max(2.0 * above / (round.last_step * round.last_step));
        }
        let Some(radius) = memory.radius.as_mut().filter(|_| region) else { return };
        if memory.predicted.is_empty() {
            return;
        }
        if danger > 1.0 {
            memory.misses += 1;
            *radius *= (1.0 / danger).max(SHRINK_AT_MOST);
        } else if promised > 0.0 && descended < -promised {
            *radius *= SHRINK_WHEN_RISING;
        } else if danger < 0.5 {
            *radius *= GROW;
        }
    }

    /// The slack in force.
    fn slack(&self) -> f64 {
        self.memory.delta.unwrap_or(self.delta)
    }

    /// The shortest step after which everybody is content, if the curvature allows one.
    fn landing(&self, floors: &Floors<'_>) -> Option<Vec<f64>> {
        let smoothness = self.smoothness.unwrap_or(self.memory.curvature);
        let (gram, n) = (&floors.gram, floors.loss.len());
        let mut square = 0.0;
        for _ in 0..60 {
            // ⟨−g_m, s⟩ ≥ F_m − ε_m + ½H‖s‖², with the length found so far; a hair more, so that
            // rounding leaves nobody above.
            let bend = 0.5 * smoothness * square;
            let above = floors.loss.iter().zip(&floors.precision).map(|(loss, epsilon)| {
                let above = loss - epsilon + bend;
                above + 1e-9 * above.abs().max(1e-3 * epsilon.abs())
            });
            let b: Vec<f64> = above.collect();
            let Nearest::Multipliers(multipliers) = nearest(gram, &b, 0.0) else { return None };
            let length: f64 = (0..n)
                .map(|i| {
                    (0..n).map(|j| multipliers[i] * gram[i * n + j] * multipliers[j]).sum::<f64>()
                })
                .sum();
            if length <= square {
                return Some(multipliers);
            }
            if !length.is_finite() || 0.5 * smoothness * length > 1e6 {
                return None;
            }
            square = 1.02 * length;
        }
        None
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
        let region = self.trusts_a_region(round);
        self.learn(round, &floors, region);

        // s0: towards what helps those that are still far.
        let far = |delta: f64| -> Vec<bool> {
            let agents = floors.loss.iter().zip(&floors.epsilon);
            agents.map(|(loss, epsilon)| *loss > epsilon + 2.0 * delta).collect()
        };
        let mut is_far = far(self.slack());
        if self.landing && (!is_far.contains(&true) || self.memory.delta.is_some()) {
            if let Some(multipliers) = self.landing(&floors) {
                for (multiplier, slope) in multipliers.iter().zip(&floors.slopes) {
                    linalg::add_scaled(step, -multiplier, *slope);
                }
                return Ok(Decision {
                    stop: Some(StopReason::Landed),
                    split: Split { d: reports.iter().map(|r| r.agent).collect(), nd: vec![] },
                    case: None,
                    step_size: round.step_size,
                    projection: None,
                    landed: Some(match self.smoothness {
                        Some(_) if !region => Landing::Certified,
                        _ => Landing::Estimated,
                    }),
                });
            }
            while !is_far.contains(&true) && self.slack() > self.delta * SMALLEST_SLACK {
                self.memory.delta = Some(self.slack() / 2.0);
                is_far = far(self.slack());
            }
        }
        let delta = self.slack();
        let count = is_far.iter().filter(|far| **far).count() as f64;
        let mut decision = Decision {
            stop: None,
            split: Split::default(),
            case: None,
            step_size: round.step_size,
            projection: None,
            landed: Some(Landing::No),
        };
        if count == 0.0 {
            decision.stop = Some(StopReason::Settled);
            decision.split.d = reports.iter().map(|report| report.agent).collect();
            return Ok(decision);
        }
        for (report, _) in reports.iter().zip(&is_far).filter(|(_, far)| **far) {
            linalg::add_scaled(step, -round.step_size / count, report.direction);
        }
        let wanted = linalg::norm(Vector::F64(step));
        if region {
            let radius = *self.memory.radius.get_or_insert(wanted);
            if wanted > radius {
                linalg::scale(step, radius / wanted);
            }
        }

        let held = floors.keep(step, delta);
        let mut length = linalg::norm(Vector::F64(step));
        if let (true, Some(radius)) = (region, self.memory.radius)
            && length > STRETCH * radius
        {
            linalg::scale(step, STRETCH * radius / length);
            length = STRETCH * radius;
        }
        if length <= 1e-12 * wanted.max(f64::MIN_POSITIVE) {
            step.fill(0.0);
            decision.stop = Some(StopReason::Stalled);
        }

        let predicted = floors.loss.iter().zip(floors.predicted(step));
        self.memory.predicted = reports
            .iter()
            .zip(predicted)
            .map(|(report, (loss, predicted))| (report.agent, *loss, predicted))
            .collect();
        for (report, multiplier) in reports.iter().zip(&held.multipliers) {
            let split = &mut decision.split;
            let side = if *multiplier > 0.0 { &mut split.d } else { &mut split.nd };
            side.push(report.agent);
        }
        Ok(decision)
    }

    fn losses(&self, _: f64, _: f64) -> Losses {
        Losses::Exact
    }

    fn check(&self) -> Result<(), Error> {
        if let Some(smoothness) = self.smoothness.filter(|h| !(h.is_finite() && *h >= 0.0)) {
            return Err(Error::bad_parameter("rule.smoothness", smoothness, "zero or more"));
        }
        super::check_not_negative("rule.margin", self.margin)?;
        super::check_not_negative("rule.horizon", self.horizon)?;
        super::check_delta(self.delta)
    }

    fn memory(&self) -> Value {
        serde_json::to_value(&self.memory).unwrap_or(Value::Null)
    }

    fn recall(&mut self, memory: &Value) -> Result<(), Error> {
        self.memory = match memory {
            Value::Null => Memory::default(),
            memory => Memory::deserialize(memory)
                .map_err(|error| Error::BadState { why: error.to_string() })?,
        };
        Ok(())
    }
}

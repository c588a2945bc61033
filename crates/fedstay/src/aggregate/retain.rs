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
//! `‖s0‖ ≤ ρ`, `‖s‖ ≤ 1.5ρ`; after each round every agent's loss is compared with its prediction, a
//! miss above δ/2 shrinks ρ in proportion (at most to 0.3ρ), misses below δ/4 grow it by 1.15. The
//! losses re-anchor the constraints every round, so errors do not pile up. Agents that take several
//! local steps must report the gradient at the received weights besides their path
//! (`local.exact_gradient`): predictions made from the path miss, and the radius collapses.
//!
//! The server must know: every agent's loss, precision, direction and gradient. It stops `settled`
//! when everybody is within 2δ of their precision, and `stalled` when the constraints cannot be met
//! together and no step violates them less than standing still.
//!
//! Reference: this project; the constraint is the paper's Lemma 3 (arXiv 2311.16459) read backwards.

use super::half_space::{Nearest, nearest};
use super::{Aggregator, Decision, Losses, Round, Split, StopReason};
use crate::{AgentId, Error, Standing, Vector, linalg};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `‖s‖` may be so many times the radius of `‖s0‖`.
const STRETCH: f64 = 1.5;
/// How the radius follows the misses.
const SHRINK_AT_MOST: f64 = 0.3;
const GROW: f64 = 1.15;
/// Softening of constraints that cannot be met together.
const RIDGE: f64 = 1e-6;

/// Keep everybody above their floor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Retain {
    /// How far above its precision every agent is kept. Larger: more room for misses, and agents
    /// end farther from their precision (within 2δ).
    pub delta: f64,
    /// Whether predictions are checked and the step's length follows them.
    pub trust: Trust,
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
    /// What every agent's loss was predicted to be.
    predicted: Vec<(AgentId, f64)>,
    /// Rounds in which a prediction missed by more than δ/2.
    misses: u32,
}

impl Default for Retain {
    fn default() -> Self {
        Self { delta: 0.05, trust: Trust::Auto, memory: Memory::default() }
    }
}

/// An agent's constraint.
struct Floor {
    loss: f64,
    epsilon: f64,
}

impl Retain {
    /// The rule with slack δ.
    pub fn new(delta: f64) -> Self {
        Self { delta, ..Self::default() }
    }

    /// Adapts the radius to how the last predictions turned out.
    fn learn(&mut self, round: &Round<'_>, floors: &[Floor]) {
        let mut worst: f64 = 0.0;
        for (report, floor) in round.reports.iter().zip(floors) {
            let predicted = self.memory.predicted.iter().find(|(agent, _)| *agent == report.agent);
            if let Some((_, predicted)) = predicted {
                worst = worst.max((floor.loss - predicted).abs());
            }
        }
        let Some(radius) = &mut self.memory.radius else { return };
        if self.memory.predicted.is_empty() {
            return;
        }
        if worst > self.delta / 2.0 {
            self.memory.misses += 1;
            *radius *= (self.delta / 2.0 / worst).max(SHRINK_AT_MOST);
        } else if worst < self.delta / 4.0 {
            *radius *= GROW;
        }
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
        let mut floors = Vec::with_capacity(reports.len());
        for report in reports {
            let Standing::Open { epsilon, loss } = report.standing else {
                return Err(report.exact_loss("retain").err().unwrap_or(Error::NeedsExactLoss {
                    agent: report.agent,
                    rule: "retain",
                    instead: "no loss",
                }));
            };
            report.exact_loss("retain")?;
            floors.push(Floor { loss: loss.cautious(), epsilon });
        }
        let region = self.trusts_a_region(round);
        if region {
            self.learn(round, &floors);
        }

        // s0: towards what helps those that are still far.
        let far: Vec<bool> = floors.iter().map(|f| f.loss > f.epsilon + 2.0 * self.delta).collect();
        let count = far.iter().filter(|far| **far).count() as f64;
        let mut decision = Decision {
            stop: None,
            split: Split::default(),
            case: None,
            step_size: round.step_size,
            projection: None,
        };
        if count == 0.0 {
            decision.stop = Some(StopReason::Settled);
            decision.split.d = reports.iter().map(|report| report.agent).collect();
            return Ok(decision);
        }
        for (report, _) in reports.iter().zip(&far).filter(|(_, far)| **far) {
            linalg::add_scaled(step, -round.step_size / count, report.direction);
        }
        let wanted = linalg::norm(Vector::F64(step));
        if region {
            let radius = *self.memory.radius.get_or_insert(wanted);
            if wanted > radius {
                linalg::scale(step, radius / wanted);
            }
        }

        // The nearest step that keeps everybody above their floor.
        let slopes: Vec<Vector<'_>> = reports.iter().map(|report| report.slope()).collect();
        let gram = linalg::gram(&slopes);
        let needs = |floor: &Floor| floor.epsilon + self.delta - floor.loss;
        let lacking = |step: &[f64]| -> Vec<f64> {
            let along = slopes.iter().map(|slope| linalg::dot(*slope, Vector::F64(step)));
            floors.iter().zip(along).map(|(floor, along)| needs(floor) - along).collect()
        };
        let mut b = lacking(step);
        // A constraint whose gradient vanishes cannot be served by any step.
        for (b, norm) in b.iter_mut().zip(round.reports.norms()) {
            if *norm == 0.0 {
                *b = 0.0;
            }
        }
        let (multipliers, met) = match nearest(&gram, &b, 0.0) {
            Nearest::Multipliers(multipliers) => (multipliers, true),
            Nearest::Empty => match nearest(&gram, &b, RIDGE) {
                Nearest::Multipliers(multipliers) => (multipliers, false),
                Nearest::Empty => (vec![0.0; b.len()], false),
            },
        };
        for (multiplier, slope) in multipliers.iter().zip(&slopes) {
            if *multiplier > 0.0 {
                linalg::add_scaled(step, *multiplier, *slope);
            }
        }
        if met {
            // One correction: what the arithmetic of a long step left over.
            let rest = lacking(step);
            let held = rest
                .iter()
                .zip(&multipliers)
                .map(|(rest, m)| if *m > 0.0 { *rest } else { rest.min(0.0) });
            if let Nearest::Multipliers(more) = nearest(&gram, &held.collect::<Vec<_>>(), 0.0) {
                for (multiplier, slope) in more.iter().zip(&slopes) {
                    if *multiplier > 0.0 {
                        linalg::add_scaled(step, *multiplier, *slope);
                    }
                }
            }
        } else {
            let worst = |lacking: Vec<f64>| lacking.into_iter().fold(0.0f64, f64::max);
            if worst(lacking(step)) >= worst(floors.iter().map(needs).collect()) {
                step.fill(0.0);
            }
        }
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

        self.memory.predicted.clear();
        for ((report, floor), (slope, multiplier)) in
            reports.iter().zip(&floors).zip(slopes.iter().zip(&multipliers))
        {
            let predicted = floor.loss + linalg::dot(*slope, Vector::F64(step));
            self.memory.predicted.push((report.agent, predicted));
            let side =
                if *multiplier > 0.0 { &mut decision.split.d } else { &mut decision.split.nd };
            side.push(report.agent);
        }
        Ok(decision)
    }

    fn losses(&self, _: f64, _: f64) -> Losses {
        Losses::Exact
    }

    fn check(&self) -> Result<(), Error> {
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

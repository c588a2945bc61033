//! Server policies that wrap any rule: what a server without a better idea would do about
//! departures. They belong in every comparison.

use crate::aggregate::floors::Floors;
use crate::aggregate::{Decision, Round, Split, StopReason, forecast, safety};
use crate::list::Entry;
use crate::memory::is_default;
use crate::{AgentId, Error, packed};
use serde::{Deserialize, Serialize};

/// Every policy, under the name it has in a configuration.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Policy {
    /// Follow the rule.
    #[default]
    None,
    /// Stop instead of taking the first step that is predicted to make an agent leave.
    EarlyStop(EarlyStop),
    /// Follow the rule, but return the best weights seen, not the last.
    KeepBest(KeepBest),
    /// Follow the rule as near as everybody's floor allows.
    Guard(Guard),
}

/// Move the rule's step to the nearest one with `F_m + ⟨g_m, s⟩ ≥ ε_m + δ` for every agent, which
/// for convex losses and exact gradients proves that nobody leaves. It costs no communication.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Guard {
    /// How far above its precision every agent is kept.
    pub delta: f64,
}

impl Default for Guard {
    fn default() -> Self {
        Self { delta: 0.01 }
    }
}

/// Stop at the first predicted departure, `F_m + ⟨g_m, s⟩ ≤ ε_m + margin`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EarlyStop {
    /// Stops this much earlier. For convex losses zero is enough to lose nobody.
    pub margin: f64,
}

/// Return the weights with the lowest mean loss over all agents.
///
/// The server can judge weights only by what agents report about them. Once somebody has left,
/// nothing newer can be judged for everybody, so the best is the best of the rounds up to the first
/// departure; in that round itself, those who leave are content and count with their ε.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct KeepBest {
    #[serde(skip_serializing_if = "is_default")]
    memory: Seen,
}

/// What keep-best remembers: the best weights so far, and what it takes to judge the next.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Seen {
    best: Option<Best>,
    epsilons: Vec<(AgentId, f64)>,
    somebody_left: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Best {
    loss: f64,
    round: u32,
    #[serde(with = "packed")]
    weights: Vec<f64>,
}

impl Policy {
    /// The name in a configuration, and one sentence, of every policy.
    pub const LIST: &'static [Entry] = &[
        Entry { name: "none", about: "follow the rule", reference: "" },
        Entry {
            name: "early-stop",
            about: "stop instead of taking the first step predicted to make an agent leave",
            reference: "",
        },
        Entry {
            name: "keep-best",
            about: "follow the rule, but return the best weights seen for everybody",
            reference: "",
        },
        Entry {
            name: "guard",
            about: "follow the rule as near as keeping every agent above its floor allows",
            reference: "this project",
        },
    ];

    /// The name in a configuration.
    pub fn name(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::EarlyStop(_) => "early-stop",
            Self::KeepBest(_) => "keep-best",
            Self::Guard(_) => "guard",
        }
    }

    /// Checks the parameters, once, before the first round.
    pub fn check(&self) -> Result<(), Error> {
        match self {
            Self::EarlyStop(EarlyStop { margin }) if !margin.is_finite() => {
                Err(Error::bad_parameter("policy.margin", margin, "a finite number"))
            }
            Self::Guard(Guard { delta }) if !(delta.is_finite() && *delta >= 0.0) => {
                Err(Error::bad_parameter("policy.delta", delta, "a number, zero or more"))
            }
            _ => Ok(()),
        }
    }

    /// Whether every report must carry an exact loss, not a lower bound.
    pub(crate) fn needs_exact_losses(&self) -> bool {
        !matches!(self, Self::None)
    }

    /// Has its say after the rule. Changes itself only when it succeeds.
    pub(crate) fn apply(
        &mut self,
        round: &Round<'_>,
        step: &mut [f64],
        decision: &mut Decision,
    ) -> Result<(), Error> {
        match self {
            Self::None => {}
            Self::EarlyStop(EarlyStop { margin }) => {
                for report in round.reports.iter() {
                    report.exact_loss("early-stop")?;
                }
                let split = forecast(round.reports, step, *margin);
                decision.kept = Some(*margin >= 0.0);
                if decision.stop.is_none() && !split.d.is_empty() {
                    step.fill(0.0);
                    decision.split = split;
                    decision.stop = Some(StopReason::EarlyStop);
                }
            }
            Self::KeepBest(policy) => policy.memory.consider(round)?,
            Self::Guard(guard) => {
                if decision.stop.is_some() {
                    // Nothing moves, or the rule lands and says itself how sure it is.
                    decision.kept.get_or_insert(true);
                    return Ok(());
                }
                let floors = Floors::new(round.reports, "guard")?;
                let held = floors.keep(step, guard.delta);
                let share = safety::shorten(round.reports, step, guard.delta);
                decision.kept = Some(safety::keeps_everybody(round.reports, step, guard.delta));
                if share < 1.0 || held.multipliers.iter().any(|multiplier| *multiplier > 0.0) {
                    decision.guarded = true;
                    decision.split = Split::by(round.reports, |i| held.multipliers[i] > 0.0);
                }
                let stands = step.iter().all(|value| *value == 0.0);
                if stands && (!held.met || share == 0.0) {
                    decision.stop = Some(StopReason::Stalled);
                }
            }
        }
        Ok(())
    }

    /// A round without reports: its goodbyes still count.
    pub(crate) fn heard_nobody(&mut self, round: &Round<'_>) -> Result<(), Error> {
        match self {
            Self::KeepBest(policy) => policy.memory.consider(round),
            _ => Ok(()),
        }
    }

    /// The weights to deliver at the end, if not the current ones.
    pub(crate) fn deliver(&self) -> Option<&[f64]> {
        match self {
            Self::KeepBest(policy) => {
                policy.memory.best.as_ref().map(|best| best.weights.as_slice())
            }
            _ => None,
        }
    }
}

impl Seen {
    fn consider(&mut self, round: &Round<'_>) -> Result<(), Error> {
        if self.somebody_left {
            return Ok(());
        }
        let mut total = 0.0;
        let mut count = 0usize;
        for report in round.reports.iter() {
            total += report.exact_loss("keep-best")?;
            count += 1;
        }
        for (agent, epsilon) in &self.epsilons {
            if round.reports.goodbyes().contains(agent) {
                total += epsilon;
                count += 1;
            }
        }
        self.epsilons = round
            .reports
            .iter()
            .filter_map(|report| report.epsilon().map(|epsilon| (report.agent, epsilon)))
            .collect();
        self.somebody_left = !round.reports.goodbyes().is_empty();
        let loss = total / count.max(1) as f64;
        if count > 0 && self.best.as_ref().is_none_or(|best| loss < best.loss) {
            self.best = Some(Best { loss, round: round.number, weights: round.weights.to_vec() });
        }
        Ok(())
    }
}

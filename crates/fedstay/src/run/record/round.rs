//! One round of `rounds.jsonl`.

use super::flag::Flag;
use super::worth::WorthLine;
use super::{Arrival, AssessmentLine, or_unknown, unknown};
use crate::rule::{Decision, Doubted, Landing, Miss, Shown};
use crate::run::Assessment;
use crate::{AgentId, Loss, Reports, StopReason, Vector, linalg};
use serde::{Deserialize, Serialize};

/// One round of `rounds.jsonl`. Columns run over `agents`, those that reported.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RoundLine {
    /// The round, from 1.
    pub round: u32,
    /// The agents that reported, by id.
    pub agents: Vec<AgentId>,
    /// Their losses at the weights they received; null for an agent that does not tell its loss.
    pub loss: Vec<Option<f64>>,
    /// The agents among them whose loss is only a lower bound.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at_least: Vec<AgentId>,
    /// The agents about to leave.
    #[serde(default)]
    pub d: Vec<AgentId>,
    /// The paper's case, for rules that act on who is about to leave.
    pub case: Option<u8>,
    /// The agents that left on receipt of this round's weights.
    #[serde(default)]
    pub left: Vec<AgentId>,
    /// The agents among them that asked to be forgotten.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forgot: Vec<AgentId>,
    /// The agents that had left and came back on receipt of this round's weights.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub returned: Vec<AgentId>,
    /// The agents that should have answered and did not, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<(AgentId, String)>,
    /// The agents that could not be reached by their schedule, or sat this round out. They have not
    /// left.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<AgentId>,
    /// The agents that came in this round, and what they found, where models are kept for newcomers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arrived: Vec<Arrival>,
    /// The agents whose reports contradict themselves, and how, in runs that check.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<Flag>,
    /// The step size in force after the decision.
    #[serde(default = "unknown", deserialize_with = "or_unknown")]
    pub step_size: f64,
    /// The length of the step.
    #[serde(default = "unknown", deserialize_with = "or_unknown")]
    pub step_norm: f64,
    /// The number of independent gradients that the projection kept clear of, and of all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<(usize, usize)>,
    /// Why the run ended here, if it did.
    pub stop: Option<StopReason>,
    /// Whether this step brings everybody to their target loss, for rules that try.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landed: Option<Landing>,
    /// Whether first-order information says that the step keeps everybody; none where the losses
    /// that would tell were not asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<bool>,
    /// Whether the guard changed the rule's step.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub guarded: bool,
    /// The agents whose loss the last step's prediction missed, for rules that rest on predictions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed: Option<Vec<Miss>>,
    /// The agents that were shown other weights than the server's. Their losses are those of what
    /// they were shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shown: Vec<Shown>,
    /// The agents that were not heard and for whom their last report stood in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_cut: Vec<AgentId>,
    /// Whether the step leads back to the best weights so far, because what was tried from there was worse.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reverted: bool,
    /// The agents whose reports were not taken at their word, and what was done about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubted: Vec<Doubted>,
    /// How far above their target losses everybody has to stay at least, as far as is proved, where
    /// no model satisfies everybody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least: Option<f64>,
    /// Where it is proved that no model satisfies everybody: the distance from the received weights within
    /// which that holds; absent where it holds at any distance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<f64>,
    /// How good the received weights are for every agent of the header, in rounds that measure it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assessment: Option<AssessmentLine>,
    /// What the round says about what agents are worth, in runs that ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worth: Option<WorthLine>,
    /// The weights the agents received, if they are few.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<Vec<f64>>,
}

impl RoundLine {
    /// The line of a round of which nothing is known.
    pub fn unknown(round: u32) -> Self {
        Self { round, step_size: f64::NAN, step_norm: f64::NAN, ..Self::default() }
    }

    /// The line of a round, without its weights.
    pub(crate) fn new(
        round: u32,
        reports: &Reports<'_>,
        faults: &[(AgentId, String)],
        decision: &Decision,
        step: &[f64],
        assessment: Option<&Assessment>,
    ) -> Self {
        let bounded = |report: &&crate::Report<'_>| matches!(report.loss(), Some(Loss::AtLeast(_)));
        Self {
            round,
            agents: reports.iter().map(|report| report.agent).collect(),
            loss: reports.iter().map(|report| report.loss().map(Loss::value)).collect(),
            at_least: reports.iter().filter(bounded).map(|report| report.agent).collect(),
            d: decision.split.d.clone(),
            case: decision.case,
            left: reports.goodbyes().to_vec(),
            forgot: decision.forgot.clone(),
            returned: reports.returned().to_vec(),
            faults: faults.to_vec(),
            step_size: decision.step_size,
            step_norm: linalg::norm(Vector::F64(step)),
            rank: decision.projection.map(|projection| (projection.rank, projection.of)),
            stop: decision.stop,
            landed: decision.landed,
            kept: decision.kept,
            guarded: decision.guarded,
            missed: decision.missed.clone(),
            shown: decision.shown.clone(),
            by_cut: decision.by_cut.clone(),
            reverted: decision.reverted,
            doubted: decision.doubted.clone(),
            least: decision.least,
            within: decision.within,
            assessment: assessment.map(AssessmentLine::new),
            ..Self::default()
        }
    }

    /// Checks that its columns have matching lengths.
    ///
    /// # Errors
    /// Says what is wrong with a line that something else wrote.
    pub fn check(&self) -> Result<(), String> {
        match (self.agents.len(), self.loss.len()) {
            (agents, losses) if agents == losses => Ok(()),
            (agents, losses) => Err(format!("{agents} agents but {losses} losses")),
        }
    }

    /// The mean of the reported losses.
    pub fn mean_loss(&self) -> Option<f64> {
        let told: Vec<f64> = self.loss.iter().flatten().copied().collect();
        (!told.is_empty()).then(|| told.iter().sum::<f64>() / told.len() as f64)
    }
}

//! What a server decides in a round.

use crate::{AgentId, Loss, Reports, Vector, linalg, projection::Projection};
use serde::{Deserialize, Serialize};

/// The agents of a round, parted by whether they are predicted to leave.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Split {
    /// Predicted to leave, by id.
    pub d: Vec<AgentId>,
    /// The others, by id.
    pub nd: Vec<AgentId>,
}

impl Split {
    /// Parts those who reported: `leaves` is asked about the reports by their position.
    pub fn by(reports: &Reports<'_>, mut leaves: impl FnMut(usize) -> bool) -> Self {
        let mut split = Self::default();
        for (index, report) in reports.iter().enumerate() {
            let side = if leaves(index) { &mut split.d } else { &mut split.nd };
            side.push(report.agent);
        }
        split
    }

    /// The paper's case: 1 if some are predicted to leave, 2 if nobody, 3 if everybody.
    pub fn case(&self) -> u8 {
        match (self.d.is_empty(), self.nd.is_empty()) {
            (false, false) => 1,
            (true, _) => 2,
            (false, true) => 3,
        }
    }
}

/// Why a run ended. All of these are results; none is an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopReason {
    /// Everybody is within reach of their precision (ADA-GD's case 3).
    Settled,
    /// All agents were brought under their precision in one broadcast.
    Landed,
    /// No direction is left that helps somebody and leaves those about to leave alone.
    Stalled,
    /// Every agent has left.
    #[serde(alias = "nobody-left")]
    EveryoneLeft,
    /// The policy stopped before a predicted departure.
    EarlyStop,
    /// The rounds that were asked for are over.
    RoundLimit,
    /// Fewer agents answered than the server was told to go on with.
    TooFew,
}

impl StopReason {
    /// Every reason there is.
    pub const ALL: [Self; 7] = [
        Self::Settled,
        Self::Landed,
        Self::Stalled,
        Self::EveryoneLeft,
        Self::EarlyStop,
        Self::RoundLimit,
        Self::TooFew,
    ];

    /// The name it has in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Settled => "settled",
            Self::Landed => "landed",
            Self::Stalled => "stalled",
            Self::EveryoneLeft => "everyone-left",
            Self::EarlyStop => "early-stop",
            Self::RoundLimit => "round-limit",
            Self::TooFew => "too-few",
        }
    }
}

/// What the server decided in a round.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// Why the run ends here, if it does. The weights then stay as they are, but for a landing,
    /// whose step is the last.
    pub stop: Option<StopReason>,
    /// Who was predicted to leave.
    pub split: Split,
    /// The paper's case, for rules that act on the split; `None` for those that only watch it.
    pub case: Option<u8>,
    /// The step size from here on.
    pub step_size: f64,
    /// What the projection did, where there was one.
    pub projection: Option<Projection>,
    /// Whether everybody was brought under their precision in this step, for rules that try.
    pub landed: Option<Landing>,
    /// Whether the step keeps every agent above its precision as far as first-order information
    /// tells, or lands; for rules and policies that see to it, `None` for those that do not.
    pub kept: Option<bool>,
    /// Whether the guard changed the rule's step.
    pub guarded: bool,
    /// Whose loss the last step's prediction missed, for rules that rest on predictions; `None` for
    /// those that make none.
    pub missed: Option<Vec<Miss>>,
}

impl Decision {
    /// The run continues at this step size, and nothing more is known than who was predicted to leave.
    /// Rules that have more to say set the other fields.
    pub fn new(split: Split, step_size: f64) -> Self {
        Self {
            stop: None,
            split,
            case: None,
            step_size,
            projection: None,
            landed: None,
            kept: None,
            guarded: false,
            missed: None,
        }
    }
}

/// An agent whose loss came out below its prediction by more than the room it had: the dangerous
/// kind of error, which might have carried it to its precision.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Miss {
    /// The agent.
    pub agent: AgentId,
    /// The loss that was predicted.
    pub predicted: f64,
    /// The loss that it reported.
    pub loss: f64,
}

/// Whether everybody was brought under their precision in one broadcast.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Landing {
    /// Everybody provably is: losses are convex, gradients exact, the smoothness known.
    Certified,
    /// Everybody is, as far as can be predicted.
    Estimated,
    /// Not everybody is, yet.
    No,
}

/// Who the step would carry to their precision, to first order: `F_m + ⟨g_m, s⟩ ≤ ε_m + margin`.
///
/// For convex losses this is exact in one direction: the loss after the step is at least its linear
/// prediction, so an agent in `nd` provably stays. An agent that does not tell its loss cannot be
/// predicted here and counts as staying.
pub(crate) fn forecast(reports: &Reports<'_>, step: &[f64], margin: f64) -> Split {
    Split::by(reports, |index| {
        let report = &reports.as_slice()[index];
        let slope = || linalg::dot(report.slope(), Vector::F64(step));
        match (report.loss(), report.epsilon()) {
            (Some(loss), Some(epsilon)) => carries(loss, slope, epsilon, margin),
            _ => false,
        }
    })
}

/// Whether a step would carry an agent to its precision, to first order: `F + ⟨g, s⟩ ≤ ε + margin`.
///
/// `slope` gives ⟨g, s⟩ and is asked only where it decides: an agent with only a lower bound on its
/// loss was beyond the reach of a step.
pub fn carries(loss: Loss, slope: impl FnOnce() -> f64, epsilon: f64, margin: f64) -> bool {
    !matches!(loss, Loss::AtLeast(_)) && loss.cautious() + slope() <= epsilon + margin
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Report;

    #[test]
    fn a_split_keeps_the_order_and_knows_its_case() {
        let g = [1.0];
        let report = |id| Report::new(AgentId(id), 1.0, 0.1, Vector::F64(&g));
        let reports = Reports::new(1, vec![report(7), report(2), report(5)]).unwrap();
        let split = Split::by(&reports, |index| index != 1);
        assert_eq!(
            (split.d.as_slice(), split.nd.as_slice()),
            (&[AgentId(2), AgentId(7)][..], &[AgentId(5)][..])
        );
        assert_eq!(split.case(), 1);
        assert_eq!(Split::by(&reports, |_| false).case(), 2);
        assert_eq!(Split::by(&reports, |_| true).case(), 3);
    }
}

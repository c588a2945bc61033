//! What a server decides in a round.

use crate::{AgentId, Loss, Report, Reports, Standing, Vector, linalg, projection::Projection};
use serde::{Deserialize, Serialize};

/// The agents of a round, divided by whether they are about to leave.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Split {
    /// The agents about to leave, by id.
    pub d: Vec<AgentId>,
    /// The other agents, by id.
    pub nd: Vec<AgentId>,
}

impl Split {
    /// Divides the agents that reported; `leaves` is asked about each report by its position.
    pub fn by(reports: &Reports<'_>, mut leaves: impl FnMut(usize) -> bool) -> Self {
        let mut split = Self::default();
        for (index, report) in reports.iter().enumerate() {
            let side = if leaves(index) { &mut split.d } else { &mut split.nd };
            side.push(report.agent);
        }
        split
    }

    /// The paper's case: 1 if some agents are about to leave, 2 if nobody is, 3 if everybody is.
    pub(crate) fn case(&self) -> u8 {
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
    /// Everybody is within reach of their target loss (ADA-GD's case 3).
    Settled,
    /// All agents were brought to their target loss in one broadcast.
    Landed,
    /// No step is left that helps somebody and keeps those about to leave.
    Stalled,
    /// Every agent has left.
    #[serde(alias = "nobody-left")]
    EveryoneLeft,
    /// The policy stopped before a predicted departure, or a program that watches the run ended it.
    EarlyStop,
    /// The requested number of rounds is over.
    RoundLimit,
    /// Fewer agents answered than the server needs to continue.
    TooFew,
    /// No model satisfies everybody: for convex losses and exact reports provably, as far as
    /// [`Decision::within`] reaches.
    Unrealizable,
}

impl StopReason {
    /// Every reason to stop.
    pub const ALL: [Self; 8] = [
        Self::Settled,
        Self::Landed,
        Self::Stalled,
        Self::EveryoneLeft,
        Self::EarlyStop,
        Self::RoundLimit,
        Self::TooFew,
        Self::Unrealizable,
    ];

    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Settled => "settled",
            Self::Landed => "landed",
            Self::Stalled => "stalled",
            Self::EveryoneLeft => "everyone-left",
            Self::EarlyStop => "early-stop",
            Self::RoundLimit => "round-limit",
            Self::TooFew => "too-few",
            Self::Unrealizable => "unrealizable",
        }
    }
}

/// What the server decided in a round.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// Why the run ends here, if it does. The weights then stay as they are, except in a landing,
    /// whose step is the last one.
    pub stop: Option<StopReason>,
    /// Who is about to leave, and who is not.
    pub split: Split,
    /// The paper's case, for rules that act on the split; `None` for rules that only watch it.
    pub case: Option<u8>,
    /// The step size from here on.
    pub step_size: f64,
    /// What the projection did, if there was one.
    pub projection: Option<Projection>,
    /// Whether everybody was brought to their target loss in this step, for rules that try.
    pub landed: Option<Landing>,
    /// Whether, as far as first-order information tells, the step keeps every agent above its
    /// target loss that is above it, or lands. The server computes it from the step, for every rule;
    /// `None` where the losses that would tell were not asked for.
    pub kept: Option<bool>,
    /// Whether the guard changed the rule's step.
    pub guarded: bool,
    /// The agents whose loss the last step's prediction missed, for rules that rest on predictions;
    /// `None` for rules that make none.
    pub missed: Option<Vec<Miss>>,
    /// The agents that were shown other weights than the server's in this round.
    pub shown: Vec<Shown>,
    /// The agents that were not heard in this round and for whom their last report stood in.
    pub by_cut: Vec<AgentId>,
    /// Whether the step leads back to the best weights so far, because what was tried from there was worse.
    pub reverted: bool,
    /// The agents whose reports were not taken at their word.
    pub doubted: Vec<Doubted>,
    /// How far above their target losses everybody has to stay at least, as far as is proved, where
    /// no model satisfies everybody.
    pub least: Option<f64>,
    /// Where it is proved that no model satisfies everybody: the distance from the round's weights within
    /// which that holds; `None` where it holds at any distance.
    pub within: Option<f64>,
    /// The agents that asked to be forgotten in this round.
    pub forgot: Vec<AgentId>,
    /// What the rule has measured of its step on the way, if anything; the server measures the rest,
    /// and hands on none of it.
    pub measured: Option<Measured>,
}

/// What is known about a step from the pass that made it.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// Its length.
    pub length: f64,
    /// For every report, in order, the inner product of its [slope](crate::Report::slope) with the
    /// step; `None` where nobody asked for it.
    pub slopes: Vec<Option<f64>>,
}

impl Decision {
    /// A decision to continue at this step size, with nothing known but who is about to leave.
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
            shown: Vec::new(),
            by_cut: Vec::new(),
            reverted: false,
            doubted: Vec::new(),
            least: None,
            within: None,
            forgot: Vec::new(),
            measured: None,
        }
    }
}

impl Measured {
    /// Nothing about a step for these reports but its length.
    fn length_of(reports: &Reports<'_>, step: &[f64]) -> Self {
        let square = reports.machine().squares(&[Vector::F64(step)])[0];
        Self { length: square.sqrt(), slopes: vec![None; reports.len()] }
    }

    /// The inner product of a report's slope with the step.
    pub(crate) fn slope(&self, reports: &Reports<'_>, index: usize, step: &[f64]) -> f64 {
        let measure = || linalg::dot(reports.as_slice()[index].slope(), Vector::F64(step));
        self.slopes[index].unwrap_or_else(measure)
    }
}

/// What the rule has measured of this step, or else its length.
pub(crate) fn measure(known: Option<Measured>, reports: &Reports<'_>, step: &[f64]) -> Measured {
    let known = known.unwrap_or_else(|| Measured::length_of(reports, step));
    debug_assert!({
        let length = linalg::norm(Vector::F64(step));
        let near = |a: f64, b: f64, size: f64| !b.is_finite() || (a - b).abs() <= 1e-9 * size;
        let slopes = reports.iter().zip(reports.norms()).zip(&known.slopes);
        near(known.length, length, length)
            && slopes.into_iter().all(|((report, norm), slope)| {
                slope.is_none_or(|slope| {
                    near(slope, linalg::dot(report.slope(), Vector::F64(step)), norm * length)
                })
            })
    });
    known
}

/// An agent whose loss came out below its prediction by more than the room it had: the dangerous
/// kind of error, which might have carried it to its target loss.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Miss {
    /// The agent.
    pub agent: AgentId,
    /// The loss that was predicted.
    pub predicted: f64,
    /// The loss that it reported.
    pub loss: f64,
}

/// An agent whose report was not taken at its word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doubted {
    /// The agent.
    pub agent: AgentId,
    /// What was done about it.
    pub why: Why,
}

/// What a rule does about a report that it doubts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// It says that it is far farther from its target than is usual, and counts as nearer.
    Capped,
    /// It says another target loss than at first; the first one counts.
    Moved,
    /// Nobody else can be served because of it. It is left out from here on, and may leave.
    Benched,
    /// What it says contradicts what it said before, as far as losses are convex. It counts for less.
    Contradicts,
}

/// An agent that was shown other weights than the server's. Its reported loss is that of the weights
/// it was shown.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Shown {
    /// The agent.
    pub agent: AgentId,
    /// How far from the server's weights.
    pub distance: f64,
    /// Its loss at the server's weights, as far as its report tells.
    pub real: f64,
    /// For how many rounds in a row it has been shown the same.
    #[serde(default, skip_serializing_if = "crate::message::is_default")]
    pub stood: u32,
    /// Whether that is because the nearest preview was farther away than `policy.cap` allows.
    #[serde(default, skip_serializing_if = "crate::message::is_default")]
    pub capped: bool,
}

/// Whether everybody was brought to their target loss in one broadcast.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Landing {
    /// Everybody provably was: losses are convex, gradients exact, and the smoothness known.
    Certified,
    /// Everybody was, as far as can be predicted.
    Estimated,
    /// Not everybody was, yet.
    No,
}

/// The agents that the step would carry to their target loss, to first order:
/// `F_m + ⟨g_m, s⟩ ≤ ε_m + margin`.
///
/// For convex losses this is exact in one direction: the loss after the step is at least its linear
/// prediction, so an agent in `nd` provably stays. An agent that does not tell its loss cannot be
/// predicted here and counts as staying.
pub(crate) fn forecast(reports: &Reports<'_>, step: &[f64], margin: f64) -> Split {
    forecast_by(reports, margin, |index| {
        linalg::dot(reports.as_slice()[index].slope(), Vector::F64(step))
    })
}

/// The same, where `slope` gives the inner product of a report's slope with the step.
pub(crate) fn forecast_by(
    reports: &Reports<'_>,
    margin: f64,
    slope: impl Fn(usize) -> f64,
) -> Split {
    Split::by(reports, |index| {
        let report = &reports.as_slice()[index];
        match (report.loss(), report.epsilon()) {
            (Some(loss), Some(epsilon)) => carries(loss, || slope(index), epsilon, margin),
            _ => false,
        }
    })
}

/// The reports that a forecast looks at: it needs the inner products of their slopes with the step.
pub(crate) fn forecast_asks(reports: &Reports<'_>) -> Vec<usize> {
    let asks = |report: &Report<'_>| match report.standing {
        Standing::Open { loss, .. } => !matches!(loss, Loss::AtLeast(_)),
        Standing::Private { .. } => false,
    };
    let reports = reports.iter().enumerate();
    reports.filter(|(_, report)| asks(report)).map(|(index, _)| index).collect()
}

/// Whether a step would carry an agent to its target loss, to first order:
/// `F + ⟨g, s⟩ ≤ ε + margin`.
///
/// `slope` gives ⟨g, s⟩ and is called only where it decides: an agent that gives only a lower bound
/// on its loss was beyond the reach of a step.
pub fn carries(loss: Loss, slope: impl FnOnce() -> f64, epsilon: f64, margin: f64) -> bool {
    !matches!(loss, Loss::AtLeast(_)) && loss.cautious() + slope() <= epsilon + margin
}

/// Whether an agent above its target loss is still above it after a step, to first order:
/// `F + ⟨g, s⟩ > ε`. An agent that is not above it has nothing to lose; of one that gives only a lower
/// bound on its loss it may not be known.
pub fn stays(loss: Loss, slope: impl FnOnce() -> f64, epsilon: f64) -> Option<bool> {
    match loss {
        Loss::AtLeast(bound) => (bound + slope() > epsilon).then_some(true),
        loss if loss.value() <= epsilon => Some(true),
        loss => {
            let careful = loss.cautious();
            let held = if careful > epsilon { careful } else { loss.value() };
            Some(held + slope() > epsilon)
        }
    }
}

/// Whether a step keeps every agent that is above its target loss above it, to first order; `None`
/// where that is not known. `slack` is the δ that an agent in privacy mode has put into its τ.
pub(crate) fn kept(
    reports: &Reports<'_>,
    step: &[f64],
    measured: &Measured,
    slack: f64,
) -> Option<bool> {
    let length = measured.length;
    let mut kept = Some(true);
    for (index, (report, norm)) in reports.iter().zip(reports.norms()).enumerate() {
        let slope = || measured.slope(reports, index, step);
        let stays = match (report.loss(), report.epsilon()) {
            // Even straight down the gradient the step is too short.
            (Some(loss), Some(epsilon))
                if loss.cautious() - norm * length * (1.0 + 1e-9) > epsilon =>
            {
                Some(true)
            }
            // A lower bound on a loss never shows that an agent is lost, so once it is not known
            // whether all are kept, one more bound changes nothing.
            (Some(Loss::AtLeast(_)), Some(_)) if kept.is_none() => None,
            (Some(loss), Some(epsilon)) => stays(loss, slope, epsilon),
            _ => match report.standing {
                Standing::Private { tau } if tau.is_finite() => {
                    let room = tau * norm + slack;
                    Some(room <= 0.0 || room + slope() > 0.0)
                }
                _ => Some(true),
            },
        };
        match stays {
            Some(true) => {}
            Some(false) => return Some(false),
            None => kept = None,
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_split_keeps_the_order_and_knows_its_case() {
        let g = [1.0];
        let report =
            |id| Report::new(AgentId(id), Loss::Exact(1.0).leaves_at(0.1), Vector::F64(&g));
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

//! Every agent's floor and level: how low a step may take its predicted loss, and how low it should.
//!
//! ```text
//! floor_m  ≤  F_m + ⟨g_m, s⟩  ≤  aim_m
//! ```
//!
//! Both are met in one projection (`fedstay_kernels::numerics::slabs`). Projecting onto the aims first and then onto
//! the floors would be half a turn of alternating projections, which needs `1/sin²θ` turns where two
//! gradients are at the angle θ.
//!
//! Standing still never breaks a floor: an agent that is between its target loss and its floor is
//! lifted to the floor where that is possible together with all others, and else only held. An agent
//! that reports a loss at or below its target and is still in does not leave by it, so it has no
//! floor.

use crate::{AgentId, Error, Report, Reports, Standing, Vector, linalg};
use fedstay_kernels::numerics::slabs::{Bundle, Slab};

/// Softening of aims that cannot be met together. With much less, the compromise may be very far
/// away; with much more, it hardly moves.
const RIDGE: f64 = 0.1;
/// Which shares of what was asked are tried before the aims are softened.
const SHARES: [f64; 4] = [1.0, 0.5, 0.25, 0.1];
/// An aim is met well enough within this share of what it asks for, or of the slack.
const GIVE: f64 = 0.02;

/// Where a line of constraints comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// A report of this round.
    Heard,
    /// The last report of an agent that was not heard in this round.
    Silent,
    /// An earlier report of an agent: a cut, which bounds its loss from below if that is convex.
    Earlier,
}

/// A report of an earlier round, as it reads at the present weights.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EarlierReport<'a> {
    pub(crate) agent: AgentId,
    pub(crate) source: Source,
    /// The loss it predicts at the present weights.
    pub(crate) loss: f64,
    pub(crate) epsilon: f64,
    pub(crate) slope: Vector<'a>,
    /// The length of the path that the weights have come since.
    pub(crate) since: f64,
    /// Whether the loss was exact.
    pub(crate) exact: bool,
}

/// The constraints of a round, one line per report, in the order of the reports; then those of the
/// agents that were not heard, and of earlier rounds.
pub(crate) struct Floors<'a> {
    pub(crate) bundle: Bundle<'a>,
    pub(crate) agent: Vec<AgentId>,
    pub(crate) source: Vec<Source>,
    /// The loss that a careful server holds an agent by: two standard errors below a sampled one.
    pub(crate) loss: Vec<f64>,
    /// The loss that a careful server lands an agent by: two standard errors above a sampled one.
    pub(crate) upper: Vec<f64>,
    /// The loss that was told.
    told: Vec<f64>,
    /// What each agent is kept above: its target loss, raised by a margin if the rule has one.
    pub(crate) epsilon: Vec<f64>,
    /// Each agent's target loss.
    pub(crate) precision: Vec<f64>,
    /// The length of the path since the report.
    pub(crate) since: Vec<f64>,
    /// Whether the losses are exact.
    pub(crate) exact: Vec<bool>,
}

/// What it took to keep everybody above their floor.
pub(crate) struct Held {
    /// How hard each agent's floor pushed; zero where it did not.
    pub(crate) multipliers: Vec<f64>,
    /// Whether all constraints hold. If not, they cannot be met together, and every agent below its
    /// floor is held where it is.
    pub(crate) met: bool,
}

/// Where the projection onto aims and floors came to.
pub(crate) struct Aimed {
    /// How hard each line pulled: above zero at its floor, below zero at its aim.
    pub(crate) pulls: Vec<f64>,
    /// Whether all of what was asked can be had at once.
    pub(crate) met: bool,
    /// If not, the lines that contradict each other.
    pub(crate) against: Vec<usize>,
}

impl Aimed {
    /// Where nothing was asked of any line.
    pub(crate) fn nothing(lines: usize) -> Self {
        Self { pulls: vec![0.0; lines], met: true, against: Vec::new() }
    }
}

impl From<Held> for Aimed {
    fn from(held: Held) -> Self {
        Self { pulls: held.multipliers, met: held.met, against: Vec::new() }
    }
}

impl<'a> Floors<'a> {
    /// The floors of the agents that reported; all must tell their exact loss.
    pub(crate) fn new(reports: &Reports<'a>, rule: &'static str) -> Result<Self, Error> {
        Self::with_lines(reports, rule, &[])
    }

    /// The floors of the agents that reported, and of earlier reports.
    pub(crate) fn with_lines(
        reports: &Reports<'a>,
        rule: &'static str,
        earlier: &[EarlierReport<'a>],
    ) -> Result<Self, Error> {
        let mut floors = Self {
            bundle: Bundle::new(reports.machine().clone(), Vec::new(), Vec::new()),
            agent: Vec::new(),
            source: Vec::new(),
            loss: Vec::new(),
            upper: Vec::new(),
            told: Vec::new(),
            epsilon: Vec::new(),
            precision: Vec::new(),
            since: Vec::new(),
            exact: Vec::new(),
        };
        let (mut slopes, mut lengths) = (Vec::new(), Vec::new());
        for (report, norm) in reports.iter().zip(reports.norms()) {
            report.exact_loss(rule)?;
            if let Standing::Open { loss, epsilon } = report.standing {
                floors.agent.push(report.agent);
                floors.source.push(Source::Heard);
                floors.loss.push(loss.cautious());
                floors.upper.push(loss.doubtful());
                floors.told.push(loss.value());
                floors.epsilon.push(epsilon);
                floors.since.push(0.0);
                floors.exact.push(is_exact(report));
                slopes.push(report.slope());
                lengths.push(*norm);
            }
        }
        for line in earlier {
            floors.agent.push(line.agent);
            floors.source.push(line.source);
            floors.loss.push(line.loss);
            floors.upper.push(line.loss);
            floors.told.push(line.loss);
            floors.epsilon.push(line.epsilon);
            floors.since.push(line.since);
            floors.exact.push(line.exact);
            slopes.push(line.slope);
            lengths.push(linalg::norm(line.slope));
        }
        floors.bundle = Bundle::new(reports.machine().clone(), slopes, lengths);
        floors.precision.clone_from(&floors.epsilon);
        Ok(floors)
    }

    /// Raises every floor by `margin + horizon · ‖g‖²`, for agents that leave early.
    pub(crate) fn raise(&mut self, margin: f64, horizon: f64) {
        for (epsilon, norm) in self.epsilon.iter_mut().zip(self.bundle.lengths()) {
            *epsilon += super::ahead(margin, horizon, *norm);
        }
    }

    /// Whether somebody is kept above a floor by this line. The last report of a silent agent keeps
    /// it even where it predicts a loss below the target, because the true loss may be higher.
    fn has_floor(&self, line: usize) -> bool {
        match self.source[line] {
            Source::Heard => self.told[line] > self.precision[line],
            Source::Silent => true,
            Source::Earlier => false,
        }
    }

    /// The bounds of every line: floors by the slack, and aims.
    fn slabs(&self, keep: Option<(f64, bool)>, aims: Option<(&[f64], f64)>) -> Vec<Slab> {
        let mut slabs = vec![Slab::FREE; self.loss.len()];
        for (line, slab) in slabs.iter_mut().enumerate() {
            if let Some((delta, lift)) = keep.filter(|_| self.has_floor(line)) {
                let lacking = self.epsilon[line] + delta - self.loss[line];
                let lift = lift && self.source[line] == Source::Heard;
                slab.low = if lift { lacking } else { lacking.min(0.0) };
            }
            if let Some((aims, give)) = aims {
                slab.high = (aims[line] - self.loss[line]).max(slab.low);
                slab.give = GIVE * (-slab.high).max(give);
            }
        }
        slabs
    }

    /// Moves the step to the nearest one after which every line's prediction is at most its aim and
    /// everybody is above their floor by the slack, if floors are kept.
    ///
    /// Where that is impossible, a share of it is tried: agents that should descend by much then
    /// descend by less. Where even a tenth is impossible, floors are kept and the aims are missed
    /// by as little as possible, in the sense of squares.
    pub(crate) fn toward(
        &mut self,
        step: &mut [f64],
        aims: &[f64],
        slack: f64,
        keep: bool,
    ) -> Aimed {
        let mut aimed = Aimed { pulls: Vec::new(), met: true, against: Vec::new() };
        for share in SHARES {
            let part: Vec<f64> = self
                .loss
                .iter()
                .zip(aims)
                .map(|(loss, aim)| if loss > aim { loss - share * (loss - aim) } else { *aim })
                .collect();
            for lift in [true, false] {
                let slabs = self.slabs(keep.then_some((slack, lift)), Some((&part, slack)));
                match self.bundle.nearest(step, &slabs, 0.0) {
                    Ok(pulls) => return Aimed { pulls, ..aimed },
                    Err(ray) if share == 1.0 && !lift => {
                        aimed.met = false;
                        let pulled = ray.iter().enumerate().filter(|(_, pull)| **pull != 0.0);
                        aimed.against = pulled.map(|(line, _)| line).collect();
                    }
                    Err(_) => {}
                }
            }
        }
        let slabs = self.slabs(keep.then_some((slack, false)), Some((aims, slack)));
        match self.bundle.nearest(step, &slabs, RIDGE) {
            Ok(pulls) => aimed.pulls = pulls,
            Err(_) => {
                step.fill(0.0);
                aimed.pulls = vec![0.0; self.loss.len()];
            }
        }
        aimed
    }

    /// Adds the shortest step after which every line predicts at most `above` over the target loss;
    /// if there is none, returns how the lines combine to a proof of that.
    pub(crate) fn reach(&mut self, step: &mut [f64], above: f64) -> Result<(), Vec<f64>> {
        let highs = self.loss.iter().zip(&self.precision);
        let highs: Vec<f64> = highs.map(|(loss, epsilon)| epsilon + above - loss).collect();
        let slabs: Vec<Slab> = highs.into_iter().map(|high| Slab { high, ..Slab::FREE }).collect();
        self.bundle.nearest(step, &slabs, 0.0).map(|_| ())
    }

    /// Whether some line predicts more than `above` over its target loss and has no slope, so that
    /// no step can lower it.
    pub(crate) fn is_stuck(&self, above: f64) -> bool {
        let mut lines = self.loss.iter().zip(&self.precision).zip(self.bundle.lengths());
        lines.any(|((loss, epsilon), length)| *length == 0.0 && *loss > epsilon + above)
    }

    /// The length of the shortest step that meets all aims and floors if one line is left out; none
    /// if that is not enough.
    pub(crate) fn without(
        &mut self,
        line: usize,
        aims: &[f64],
        slack: f64,
        keep: bool,
        dimension: usize,
    ) -> Option<f64> {
        let mut slabs = self.slabs(keep.then_some((slack, false)), Some((aims, slack)));
        slabs[line] = Slab::FREE;
        let mut step = vec![0.0; dimension];
        self.bundle.nearest(&mut step, &slabs, 0.0).ok()?;
        Some(linalg::norm(Vector::F64(&step)))
    }

    /// Moves the step to the nearest one that keeps everybody above their floor.
    pub(crate) fn keep(&mut self, step: &mut [f64], delta: f64) -> Held {
        for lift in [true, false] {
            let slabs = self.slabs(Some((delta, lift)), None);
            if let Ok(multipliers) = self.bundle.nearest(step, &slabs, 0.0) {
                return Held { multipliers, met: lift };
            }
        }
        step.fill(0.0);
        Held { multipliers: vec![0.0; self.loss.len()], met: false }
    }
}

/// Whether a report's loss and gradient are exact, so that what follows from them is a proof.
fn is_exact(report: &Report<'_>) -> bool {
    matches!(report.loss(), Some(crate::Loss::Exact(_)))
        && matches!(report.gradient, Some(Vector::F64(_)))
}

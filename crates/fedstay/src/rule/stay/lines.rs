//! What everybody's loss is predicted to be at the server's weights: one line per member that is still in.
//!
//! A report of this round is a line by itself. Of a member that was not heard, the last report is kept as long as it is
//! silent, and moves with the weights: `L + ⟨g, w − w_then⟩`, a lower bound if its loss is convex.

use crate::packed;
use crate::rule::Round;
use crate::{AgentId, Error, Loss, Standing, Vector, linalg};
use serde::{Deserialize, Serialize};

/// No difference of losses counts for more: sums of such numbers are finite.
const LARGEST: f64 = 1e300;

/// One member's line.
#[derive(Debug, Clone, Copy)]
pub(super) struct PricedLine<'a> {
    pub(super) agent: AgentId,
    /// The loss predicted at the server's weights.
    pub(super) loss: f64,
    pub(super) epsilon: f64,
    pub(super) slope: Vector<'a>,
    /// The length of the slope.
    pub(super) length: f64,
    /// How far along it one step of averaging goes.
    pub(super) reach: f64,
    /// Whether it is a report of this round.
    pub(super) heard: bool,
    /// Whether loss and gradient are exact.
    pub(super) exact: bool,
    /// By how much the loss is lower than the one that was reported, if that was made at a preview.
    pub(super) fall: Option<f64>,
}

impl PricedLine<'_> {
    /// How far the predicted loss is above the target.
    pub(super) fn above(&self) -> f64 {
        (self.loss - self.epsilon).clamp(-LARGEST, LARGEST)
    }
}

/// The lines of members that are silent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Silent(Vec<SilentLine>);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct SilentLine {
    agent: AgentId,
    loss: f64,
    epsilon: f64,
    length: f64,
    reach: f64,
    #[serde(with = "packed")]
    slope: Vec<f64>,
}

/// The lines of the reports, in their order.
pub(super) fn heard<'a>(round: &Round<'a>) -> Result<Vec<PricedLine<'a>>, Error> {
    let mut lines = Vec::with_capacity(round.reports.len());
    for (index, (report, length)) in round.reports.iter().zip(round.reports.norms()).enumerate() {
        let loss = report.exact_loss("stay")?;
        let Standing::Open { epsilon, .. } = report.standing else { continue };
        let exact = matches!(report.loss(), Some(Loss::Exact(_))) && report.gradient.is_some();
        lines.push(PricedLine {
            agent: report.agent,
            loss,
            epsilon,
            slope: report.slope(),
            length: *length,
            reach: report.reach.unwrap_or(round.step_size),
            heard: true,
            exact,
            fall: round.reports.fall(index),
        });
    }
    Ok(lines)
}

impl Silent {
    /// Forgets who is heard again or gone, and moves the others along.
    pub(super) fn follow(&mut self, round: &Round<'_>, way: &[f64]) {
        let reports = round.reports.as_slice();
        let is_heard =
            |agent: AgentId| reports.binary_search_by_key(&agent, |report| report.agent).is_ok();
        let nobody_absent = round.reports.absent() == 0;
        self.0.retain(|line| {
            let gone = nobody_absent || round.reports.goodbyes().contains(&line.agent);
            !gone && !is_heard(line.agent)
        });
        for line in &mut self.0 {
            line.loss += linalg::dot(Vector::F64(&line.slope), Vector::F64(way));
        }
        self.0.retain(|line| line.loss.is_finite());
    }

    /// The lines, to be put behind those of the reports.
    pub(super) fn lines(&self) -> impl Iterator<Item = PricedLine<'_>> {
        self.0.iter().map(|line| PricedLine {
            agent: line.agent,
            loss: line.loss,
            epsilon: line.epsilon,
            slope: Vector::F64(&line.slope),
            length: line.length,
            reach: line.reach,
            heard: false,
            exact: false,
            fall: None,
        })
    }
}

/// What is kept for the next round, which may be without some of these: nothing, where nobody was silent.
pub(super) fn kept(round: &Round<'_>, lines: &[PricedLine<'_>]) -> Silent {
    if round.reports.absent() == 0 {
        return Silent::default();
    }
    let line = |line: &PricedLine<'_>| {
        let mut slope = vec![0.0; line.slope.len()];
        linalg::add_scaled(&mut slope, 1.0, line.slope);
        let PricedLine { agent, loss, epsilon, length, reach, .. } = *line;
        SilentLine { agent, loss, epsilon, length, reach, slope }
    };
    let usable = lines.iter().filter(|line| line.length.is_finite());
    Silent(usable.map(line).collect())
}

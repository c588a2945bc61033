//! What agents said in earlier rounds, as it reads at the present weights.
//!
//! A loss L and a gradient g at some weights predict `L + ⟨g, w − w_then⟩` at others, and bound the
//! loss from below there if it is convex. The last report of an agent that is silent now therefore
//! keeps it above its floor while others are heard. Only runs in which somebody was silent store
//! such cuts, one vector per agent that is still in; where losses are known to be convex, a bounded
//! number of earlier ones is kept as well, because together they may prove that no model satisfies
//! everybody.

use crate::packed;
use crate::rule::Round;
use crate::rule::floors::{EarlierReport, Source};
use crate::{AgentId, Loss, Standing, Vector, linalg};
use serde::{Deserialize, Serialize};

/// The most numbers that earlier cuts may take, in all.
const MOST_NUMBERS: usize = 1 << 18;
/// The most earlier cuts per agent that is heard.
const MOST_EACH: usize = 20;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Cuts(Vec<Cut>);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Cut {
    agent: AgentId,
    epsilon: f64,
    /// What it predicts at the present weights.
    loss: f64,
    /// The length of the path since.
    since: f64,
    /// Whether loss and gradient were exact.
    exact: bool,
    /// Whether it is the agent's last.
    last: bool,
    #[serde(with = "packed")]
    gradient: Vec<f64>,
}

impl Cuts {
    /// The cuts that count in this round, beside the reports.
    pub(super) fn lines(&self, round: &Round<'_>) -> Vec<EarlierReport<'_>> {
        let heard = |agent: AgentId| {
            round.reports.as_slice().binary_search_by_key(&agent, |report| report.agent).is_ok()
        };
        let present = self.0.iter().filter(|cut| !round.reports.goodbyes().contains(&cut.agent));
        // With nobody absent, an agent that was not heard is gone.
        let nobody_absent = round.reports.absent() == 0;
        let present = present.filter(|cut| heard(cut.agent) || !nobody_absent);
        present
            .map(|cut| EarlierReport {
                agent: cut.agent,
                source: match cut.last && !heard(cut.agent) {
                    true => Source::Silent,
                    false => Source::Earlier,
                },
                loss: cut.loss,
                epsilon: cut.epsilon,
                slope: Vector::F64(&cut.gradient),
                since: cut.since,
                exact: cut.exact,
            })
            .collect()
    }

    /// Takes up a round's reports and moves on by its step.
    pub(super) fn advance(&mut self, round: &Round<'_>, step: &[f64], convex: bool) {
        let reports = round.reports;
        let heard = |agent: AgentId| {
            reports.as_slice().binary_search_by_key(&agent, |report| report.agent).is_ok()
        };
        let gone = |agent: AgentId| {
            reports.goodbyes().contains(&agent) || (reports.absent() == 0 && !heard(agent))
        };
        self.0.retain(|cut| !gone(cut.agent) && (convex || !heard(cut.agent)));
        let length = linalg::norm(Vector::F64(step));
        for cut in &mut self.0 {
            cut.last &= !heard(cut.agent);
            cut.loss += linalg::dot(Vector::F64(&cut.gradient), Vector::F64(step));
            cut.since += length;
        }
        if reports.absent() == 0 && !convex {
            return;
        }
        for report in reports.iter() {
            let Standing::Open { loss, epsilon } = report.standing else { continue };
            let mut gradient = vec![0.0; step.len()];
            linalg::add_scaled(&mut gradient, 1.0, report.slope());
            let along = linalg::dot(report.slope(), Vector::F64(step));
            let exact =
                matches!(loss, Loss::Exact(_)) && matches!(report.gradient, Some(Vector::F64(_)));
            let loss = loss.cautious() + along;
            let cut = Cut {
                agent: report.agent,
                epsilon,
                loss,
                since: length,
                exact,
                last: true,
                gradient,
            };
            self.0.push(cut);
        }
        self.forget(reports.len(), step.len());
    }

    /// Forgets the oldest of the cuts that are not their agent's last.
    fn forget(&mut self, heard: usize, dimension: usize) {
        let earlier = self.0.iter().filter(|cut| !cut.last).count();
        let most = (MOST_NUMBERS / dimension.max(1)).min(MOST_EACH * heard);
        let mut surplus = earlier.saturating_sub(most);
        self.0.retain(|cut| {
            let drop = surplus > 0 && !cut.last;
            surplus -= usize::from(drop);
            !drop
        });
    }
}

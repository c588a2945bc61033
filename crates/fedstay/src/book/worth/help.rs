//! Who helped whom: exact bookkeeping of the fall of every loss, without validation data.
//!
//! ```text
//! Help_r[m, i] = c_i · ⟨½(g_m(w_r) + g_m(w_{r+1})), d_i⟩
//! ```
//!
//! is what agent i's direction in round r did to agent m's loss. Over i it sums to
//! `F_m(w_r) − F_m(w_{r+1})`: exactly where F_m is quadratic, to third order elsewhere. What is missing
//! is kept beside it. A step is booked for agent m once m has reported before and after it, with its
//! loss, about the server's weights: an agent that left, was silent or was shown something else is
//! booked for no step it did not judge.

use crate::memory::inside::pairs;
use crate::message::is_default;
use crate::{AgentId, Report, RoundRecord, Vector, linalg, packed};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What is booked so far.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Help {
    /// By who was helped: how much by whom, and the rest of the fall.
    #[serde(with = "pairs")]
    rows: BTreeMap<AgentId, Row>,
    /// The last step, until it can be judged.
    #[serde(default, skip_serializing_if = "is_default")]
    pending: Option<Pending>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Row {
    #[serde(with = "pairs")]
    pub(super) by: BTreeMap<AgentId, f64>,
    /// How far its loss fell over the steps that are booked.
    pub(super) fall: f64,
    /// How many those are.
    pub(super) steps: u32,
}

impl Row {
    /// The part of the fall that nobody's direction explains.
    pub(super) fn unexplained(&self) -> f64 {
        self.fall - self.by.values().sum::<f64>()
    }
}

/// A step with what is known about it when it is taken.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Pending {
    sent: Vec<SentDirection>,
    /// Of each agent that judged the weights before it: the loss, and `⟨g_m, d_i⟩` for each of `sent`.
    #[serde(with = "pairs")]
    before: BTreeMap<AgentId, (f64, Vec<f64>)>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct SentDirection {
    agent: AgentId,
    c: f64,
    #[serde(with = "packed")]
    direction: Vec<f64>,
}

/// One entry of a round: who was helped, by whom, by how much.
pub(super) type Booked = (AgentId, AgentId, f64);

impl Help {
    /// Books the last step, now that agents have judged it, and takes note of this one.
    pub(super) fn look(&mut self, record: &RoundRecord<'_>, c: &[f64]) -> Vec<Booked> {
        let shown = |agent| record.decision.shown.iter().any(|shown| shown.agent == agent);
        let judges = |report: &&Report<'_>| !shown(report.agent);
        let mut booked = Vec::new();
        if let Some(last) = self.pending.take() {
            for report in record.reports.iter().filter(judges) {
                let (Some((before, slopes)), Ok(now)) =
                    (last.before.get(&report.agent), report.exact_loss("worth"))
                else {
                    continue;
                };
                let row = self.rows.entry(report.agent).or_default();
                row.fall += before - now;
                row.steps += 1;
                for (sent, slope) in last.sent.iter().zip(slopes) {
                    let after = linalg::dot(report.slope(), Vector::F64(&sent.direction));
                    let help = sent.c * 0.5 * (slope + after);
                    *row.by.entry(sent.agent).or_default() += help;
                    booked.push((report.agent, sent.agent, help));
                }
            }
        }
        let moved = record.step.iter().any(|value| *value != 0.0);
        self.pending = moved.then(|| {
            let directions = record.reports.iter().zip(c).map(|(report, c)| {
                let mut direction = vec![0.0; report.direction.len()];
                linalg::add_scaled(&mut direction, 1.0, report.direction);
                SentDirection { agent: report.agent, c: *c, direction }
            });
            let before = record.reports.iter().filter(judges).filter_map(|report| {
                let loss = report.exact_loss("worth").ok()?;
                let slope = |sent: &Report<'_>| linalg::dot(report.slope(), sent.direction);
                Some((report.agent, (loss, record.reports.iter().map(slope).collect())))
            });
            Pending { sent: directions.collect(), before: before.collect() }
        });
        booked
    }

    /// Everybody who was helped, and by whom.
    pub(super) fn rows(&self) -> &BTreeMap<AgentId, Row> {
        &self.rows
    }

    /// What an agent gave to the others, and what it got from them.
    pub(super) fn balance(&self, agent: AgentId) -> (f64, f64) {
        let others = self.rows.iter().filter(|(helped, _)| **helped != agent);
        let given = others.filter_map(|(_, row)| row.by.get(&agent)).sum();
        let got = self.rows.get(&agent).map_or(0.0, |row| {
            row.by.iter().filter(|(by, _)| **by != agent).map(|(_, help)| help).sum()
        });
        (given, got)
    }
}

//! Scores from how directions lie relative to each other: they cost one Gram matrix.
//!
//! ```text
//! cgsv        φ_i = (C r)_i/√(rᵀC r)        C the cosines; r ← 0.95·r + 0.05·φ, of sum 1, uniform at first
//! fedce       1 − cos(d_i, Σ_{j≠i} c_j d_j)
//! reputation  T = (1 − u)·κα/(κα + ηβ) + u/2    α rounds in which d_i agreed with the step, β the others
//! ```
//!
//! The first two are means over the rounds in which an agent reported. In the third, u is the share of
//! the rounds in which the agent was asked and silent, κ = 0.4 and η = 0.6: a bad round weighs more
//! than a good one.
//!
//! References: Xu, Lyu, Ma, Miao, Foo, Low, *Gradient-Driven Rewards to Guarantee Fairness in
//! Collaborative Machine Learning*, NeurIPS 2021; Jiang et al., CVPR 2023 (see `rule/fedce.rs`); Kang,
//! Xiong, Niyato, Xie, Zhang, *Incentive Mechanism for Reliable Federated Learning*, IEEE Internet of
//! Things Journal 6, 2019.

use crate::memory::inside::pairs;
use crate::{AgentId, RoundRecord, Vector, linalg};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How much of the importance of an agent is kept from round to round.
const KEPT: f64 = 0.95;
/// How much a good and a bad round weigh.
const GOOD: f64 = 0.4;
const BAD: f64 = 0.6;

/// What is known about every agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Alike {
    #[serde(with = "pairs")]
    agents: BTreeMap<AgentId, AlikeScores>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct AlikeScores {
    importance: f64,
    reports: u32,
    silent: u32,
    good: u32,
    cgsv: f64,
    fedce: f64,
}

impl AlikeScores {
    fn mean(&self, sum: f64) -> Option<f64> {
        (self.reports > 0).then(|| sum / f64::from(self.reports))
    }

    pub(super) fn cgsv(&self) -> Option<f64> {
        self.mean(self.cgsv)
    }

    pub(super) fn fedce(&self) -> Option<f64> {
        self.mean(self.fedce)
    }

    /// One half for an agent about which nothing is known.
    pub(super) fn reputation(&self) -> f64 {
        let (good, bad) = (f64::from(self.good), f64::from(self.reports - self.good));
        let asked = f64::from(self.reports + self.silent);
        let unknown = if asked > 0.0 { f64::from(self.silent) / asked } else { 1.0 };
        let weighed = GOOD * good + BAD * bad;
        let belief = if weighed > 0.0 { GOOD * good / weighed } else { 0.0 };
        (1.0 - unknown) * belief + unknown / 2.0
    }
}

/// The scores of one round, in the order of the reports.
#[derive(Debug, Default)]
pub(super) struct OfRound {
    pub(super) cgsv: Vec<f64>,
    pub(super) fedce: Vec<f64>,
}

fn cosine(along: f64, square: f64, other: f64) -> f64 {
    let lengths = (square.max(0.0) * other.max(0.0)).sqrt();
    if lengths > 0.0 { (along / lengths).clamp(-1.0, 1.0) } else { 0.0 }
}

impl Alike {
    /// Adds a round; `gram` has the inner products of the directions, `c` what came from whom.
    pub(super) fn look(&mut self, record: &RoundRecord<'_>, gram: &[f64], c: &[f64]) -> OfRound {
        for (agent, _) in &record.line.faults {
            self.agents.entry(*agent).or_default().silent += 1;
        }
        let reports = record.reports.as_slice();
        let n = reports.len();
        let known = |agent: &AgentId| self.agents.get(agent).filter(|seen| seen.reports > 0);
        let even = 1.0 / n.max(1) as f64;
        let importance: Vec<f64> = reports
            .iter()
            .map(|report| known(&report.agent).map_or(even, |seen| seen.importance))
            .collect();
        let at = |i: usize, j: usize| gram[i * n + j];
        let all = |i: usize, j: usize| cosine(at(i, j), at(i, i), at(j, j));
        let towards = |i: usize| (0..n).map(|j| all(i, j) * importance[j]).sum::<f64>();
        let square: f64 = (0..n).map(|i| importance[i] * towards(i)).sum();
        let length = square.max(0.0).sqrt();
        let cgsv: Vec<f64> =
            (0..n).map(|i| if length > 0.0 { towards(i) / length } else { 0.0 }).collect();
        let fedce: Vec<f64> = (0..n)
            .map(|own| {
                let others = || (0..n).filter(move |other| *other != own);
                let along: f64 = others().map(|j| c[j] * at(own, j)).sum();
                let square =
                    others().map(|i| c[i] * others().map(|j| c[j] * at(i, j)).sum::<f64>());
                1.0 - cosine(along, at(own, own), square.sum())
            })
            .collect();
        for (index, report) in reports.iter().enumerate() {
            let agrees = linalg::dot(report.direction, Vector::F64(record.step)) < 0.0;
            let seen = self.agents.entry(report.agent).or_default();
            seen.importance = KEPT * importance[index] + (1.0 - KEPT) * cgsv[index].max(0.0);
            seen.reports += 1;
            seen.good += u32::from(agrees);
            seen.cgsv += cgsv[index];
            seen.fedce += fedce[index];
        }
        let total: f64 = self.agents.values().map(|seen| seen.importance).sum();
        if total > 0.0 {
            self.agents.values_mut().for_each(|seen| seen.importance /= total);
        }
        OfRound { cgsv, fedce }
    }

    /// What is known about an agent.
    pub(super) fn of(&self, agent: AgentId) -> AlikeScores {
        self.agents.get(&agent).cloned().unwrap_or_default()
    }
}

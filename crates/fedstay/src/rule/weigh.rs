//! How much an agent's report counts before a rule does anything about it: all alike, or by the number
//! of samples behind it.
//!
//! McMahan et al. weigh by samples, n_m/n, so that the mean is the one over all rows wherever they are;
//! the paper behind this project (arXiv 2311.16459) counts every agent once, so that it is the one over
//! agents. With equally many samples both are the same, bit for bit.

use super::{LabelChange, Measured, Round};
use serde::{Deserialize, Serialize};

/// What a label may change: `fedavg+samples`.
pub(super) const CHANGES: &[LabelChange] =
    &[LabelChange { name: "samples", set: "weigh = \"samples\"" }];

/// How much each agent counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Weigh {
    /// All alike.
    #[default]
    Uniform,
    /// By the number of samples behind the report.
    Samples,
}

impl Weigh {
    /// What the label of a rule says about it.
    pub(super) fn label(self) -> Vec<&'static str> {
        match self {
            Self::Uniform => Vec::new(),
            Self::Samples => vec!["samples"],
        }
    }

    /// Everybody's share, given everybody's number of samples; `None` if all count alike.
    pub(super) fn shares(self, samples: impl Iterator<Item = u64> + Clone) -> Option<Vec<f64>> {
        let mut all = samples.clone();
        let first = all.next();
        if self == Self::Uniform || all.all(|other| Some(other) == first) {
            return None;
        }
        let total: f64 = samples.clone().map(|count| count as f64).sum();
        Some(samples.map(|count| count as f64 / total).collect())
    }

    /// Fills `step` with the mean of the agents' own displacements.
    pub(super) fn mean(self, round: &Round<'_>, step: &mut [f64]) -> Measured {
        let reaches = round.reports.iter().map(|r| r.reach.unwrap_or(round.step_size));
        match self.shares(round.reports.iter().map(|report| report.samples)) {
            None => {
                let times: Vec<f64> = reaches.map(|reach| -reach).collect();
                super::combined(round, &times, times.len() as f64, step)
            }
            Some(shares) => {
                let times: Vec<f64> =
                    reaches.zip(shares).map(|(reach, share)| -reach * share).collect();
                super::combined(round, &times, 1.0, step)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::{Mifa, MinibatchSgd, Nu, QFedAvg, Uniform};
    use crate::{AgentId, Loss, Mean, Report, Reports, Rule, Server, Vector};
    use proptest::prelude::*;

    fn rules(weigh: Weigh) -> Vec<Rule> {
        let mean = Mean { weigh, ..Mean::default() };
        vec![
            mean.clone().into(),
            MinibatchSgd(mean).into(),
            Mifa::new(weigh).into(),
            Uniform { nu: Nu::One, weigh, ..Uniform::default() }.into(),
            QFedAvg { q: 0.0, weigh, ..QFedAvg::default() }.into(),
        ]
    }

    fn step(rule: Rule, samples: &[u64], directions: &[Vec<f64>]) -> Vec<f64> {
        let mut server = Server::new(vec![0.0; directions[0].len()], rule, 0.1).unwrap();
        let mut reports = Vec::new();
        for (id, (direction, samples)) in directions.iter().zip(samples).enumerate() {
            let report = Report::new(
                AgentId(id as u64),
                Loss::Exact(2.0).leaves_at(0.1),
                Vector::F64(direction),
            );
            // Agents with an odd number went twice as far.
            let reach = Some(0.1 * (1 + id % 2) as f64);
            reports.push(Report { samples: *samples, reach, ..report });
        }
        server.step(&Reports::new(directions[0].len(), reports).unwrap()).unwrap();
        server.displacement().to_vec()
    }

    proptest! {
        #[test]
        fn each_row_counts_once_and_equal_agents_change_no_bit(
            rows in prop::collection::vec((1u64..50, prop::collection::vec(-2.0..2.0f64, 3)), 1..6),
            each in 0u64..40,
        ) {
            let (samples, directions): (Vec<u64>, Vec<Vec<f64>>) = rows.into_iter().unzip();
            // The mean over all rows: every agent as often as it has rows.
            let total: u64 = samples.iter().sum();
            let mut naive = vec![0.0; 3];
            for (id, (direction, count)) in directions.iter().zip(&samples).enumerate() {
                for _ in 0..*count {
                    for (sum, value) in naive.iter_mut().zip(direction) {
                        *sum -= 0.1 * (1 + id % 2) as f64 * value / total as f64;
                    }
                }
            }
            for (weighed, plain) in rules(Weigh::Samples).into_iter().zip(rules(Weigh::Uniform)) {
                prop_assert!(weighed.facts().label.contains(&"samples"));
                let found = step(weighed.clone(), &samples, &directions);
                let far = found.iter().zip(&naive).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                prop_assert!(far < 1e-12, "{}: {:?} {:?}", weighed.name(), found, naive);
                let equal = vec![each; samples.len()];
                let (one, other) =
                    (step(weighed, &equal, &directions), step(plain, &samples, &directions));
                prop_assert_eq!(one, other);
            }
        }
    }
}

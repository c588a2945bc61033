//! FairFed: agents count more the closer their groups are served to how everybody's are.
//!
//! Rows belong to one of two groups. The equal-opportunity difference of a model is how much oftener
//! it is right about one group's positive rows than about the other's:
//!
//! ```text
//! F_m = P(right | group 0) − P(right | group 1)   on agent m's rows,   F the same on everybody's
//! Δ_m = |F − F_m|,  or |A − A_m| with accuracies A where F or F_m is not defined
//! a_m ← a_m − β (Δ_m − mean Δ),    ω_m ∝ max(n_m/Σn + a_m, 0),    s = −Σ ω_m · reach_m · direction_m
//! ```
//!
//! An agent on whose rows the groups are served as differently as on everybody's counts more from
//! round to round, one that says something else less.
//!
//! The authors start the weights at n_m/Σn and change those; here the change is kept apart from n_m/Σn,
//! which is the same while everybody takes part, and goes on to mean something when agents leave or
//! come. They let weights become negative; here they end at zero. F is computed from the sums of the
//! agents' counts, which the authors add up by secure aggregation.
//!
//! The server must know: the directions, the numbers of samples, and how well every agent's groups are
//! served by the model that was sent ([`Report::rates`](crate::Report::rates)). It never stops on its
//! own. With β = 0 it is FedAvg by samples.
//!
//! Reference: Yahya H. Ezzeldin, Shen Yan, Chaoyang He, Emilio Ferrara, A. Salman Avestimehr,
//! *FairFed: Enabling Group Fairness in Federated Learning*, AAAI 2023, Algorithm 1; arXiv 2110.00857.

use super::{Aggregator, Decision, Facts, Origin, Round, check_not_negative, descend, watched};
use crate::memory::inside::pairs;
use crate::{AgentId, Error, Rates};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub(super) const ORIGIN: Origin = Origin {
    about: "agents count more the closer their groups are served to how everybody's are",
    reference: "Ezzeldin, Yan, He, Ferrara, Avestimehr, FairFed: Enabling Group Fairness in Federated \
                Learning, AAAI 2023",
};

/// Agents count by how they serve two groups.
///
/// ```
/// use fedstay::rule::FairFed;
/// use fedstay::{AgentId, Loss, Rates, Report, Reports, Server, Vector};
///
/// let report = |id, direction, right, of| {
///     let rates = Rates { right, of: [of; 2], correct: right[0] + right[1], rows: 2 * of };
///     let standing = Loss::Exact(1.0).leaves_at(0.1);
///     Report { rates: Some(rates), ..Report::new(AgentId(id), standing, Vector::F64(direction)) }
/// };
/// // The groups are served alike on the rows of the first, and nearly so on everybody's.
/// let reports = vec![report(0, &[1.0, 0.0], [10, 10], 20), report(1, &[0.0, 1.0], [9, 5], 10)];
/// let mut server = Server::new(vec![0.0, 0.0], FairFed::default(), 1.0)?;
/// server.step(&Reports::new(2, reports)?)?;
/// assert!(server.weights()[0] < server.weights()[1], "the first counts more");
/// # Ok::<(), fedstay::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FairFed {
    /// How fast weights change; 0 is FedAvg by samples.
    pub beta: f64,
    /// Widens the forecast of departures and changes no step.
    pub delta: f64,
    /// How far each agent's weight has moved from its share of the samples.
    #[serde(rename = "memory", with = "pairs", skip_serializing_if = "BTreeMap::is_empty")]
    moved: BTreeMap<AgentId, f64>,
}

impl Default for FairFed {
    fn default() -> Self {
        Self { beta: 1.0, delta: 0.0, moved: BTreeMap::new() }
    }
}

impl FairFed {
    /// The rule before its first round.
    pub fn new(beta: f64) -> Self {
        Self { beta, ..Self::default() }
    }
}

/// How far each agent is from everybody.
fn gaps(rates: &[Rates]) -> Vec<f64> {
    let all = rates.iter().fold(Rates::default(), |sum, rates| sum.plus(rates));
    let everybody = all.difference();
    let gap = |own: &Rates| match (everybody, own.difference()) {
        (Some(all), Some(own)) => (all - own).abs(),
        _ => (all.accuracy() - own.accuracy()).abs(),
    };
    rates.iter().map(gap).collect()
}

impl Aggregator for FairFed {
    fn aggregate(&mut self, round: &Round<'_>, step: &mut [f64]) -> Result<Decision, Error> {
        let reports = round.reports;
        let told = |report: &crate::Report<'_>| {
            report.rates.ok_or(Error::NeedsRates { agent: report.agent, rule: "fairfed" })
        };
        let rates = reports.iter().map(told).collect::<Result<Vec<Rates>, Error>>()?;
        let gaps = gaps(&rates);
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        for (report, gap) in reports.iter().zip(&gaps) {
            *self.moved.entry(report.agent).or_default() -= self.beta * (gap - mean);
        }
        let all: f64 = reports.iter().map(|report| report.samples as f64).sum();
        let alike = 1.0 / reports.len() as f64;
        let share = |samples: u64| if all > 0.0 { samples as f64 / all } else { alike };
        let mut weights: Vec<f64> = reports
            .iter()
            .map(|report| (share(report.samples) + self.moved[&report.agent]).max(0.0))
            .collect();
        let total: f64 = weights.iter().sum();
        // Nobody counts only where all who had weight have left.
        weights.iter_mut().for_each(|w| *w = if total > 0.0 { *w / total } else { alike });
        descend(round, &weights, step);
        Ok(watched(round, step, self.delta))
    }

    fn facts(&self) -> Facts {
        Facts { reads_rates: true, ..Facts::blind(self.delta).near(0.5) }
    }

    fn check(&self) -> Result<(), Error> {
        super::check_delta(self.delta)?;
        check_not_negative("rule.beta", self.beta)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::Weigh;
    use crate::{Loss, Mean, Report, Reports, Rule, Server, Vector};
    use proptest::prelude::*;

    type Told = (u64, Rates, Vec<f64>);

    prop_compose! {
        fn rates()(of in prop::array::uniform2(0u64..20), rest in 1u64..20)(
            right in (0..=of[0], 0..=of[1]),
            others in 0..=rest,
            of in Just(of),
            rest in Just(rest),
        ) -> Rates {
            let right = [right.0, right.1];
            Rates { right, of, correct: right[0] + right[1] + others, rows: of[0] + of[1] + rest }
        }
    }

    fn rounds() -> impl Strategy<Value = Vec<Vec<Told>>> {
        let told = (1u64..50, rates(), prop::collection::vec(-2.0..2.0f64, 2));
        prop::collection::vec(prop::collection::vec(told, 4), 1..5)
    }

    fn take(server: &mut Server, round: &[Told]) -> Vec<f64> {
        let reports = round.iter().enumerate().map(|(id, (samples, rates, g))| Report {
            samples: *samples,
            rates: Some(*rates),
            ..Report::new(AgentId(id as u64), Loss::Exact(9.0).leaves_at(0.1), Vector::F64(g))
        });
        server.step(&Reports::new(2, reports.collect()).unwrap()).unwrap();
        server.displacement().to_vec()
    }

    fn server(rule: impl Into<Rule>) -> Server {
        Server::new(vec![0.0; 2], rule, 0.3).unwrap()
    }

    proptest! {
        #[test]
        fn it_is_the_authors_method(rounds in rounds(), beta in 0.0..2.0f64) {
            let mut server = server(FairFed::new(beta));
            let mut moved = [0.0; 4];
            for round in &rounds {
                let step = take(&mut server, round);
                let sum = |count: &dyn Fn(&Rates) -> u64| round.iter().map(|(_, r, _)| count(r)).sum::<u64>() as f64;
                let rate = |right: f64, of: f64| if of > 0.0 { Some(right / of) } else { None };
                let global = |g: usize| rate(sum(&|r| r.right[g]), sum(&|r| r.of[g]));
                let accuracy = sum(&|r| r.correct) / sum(&|r| r.rows);
                let gaps: Vec<f64> = round.iter().map(|(_, r, _)| {
                    let own = |g: usize| rate(r.right[g] as f64, r.of[g] as f64);
                    match (global(0), global(1), own(0), own(1)) {
                        (Some(a), Some(b), Some(c), Some(d)) => ((a - b) - (c - d)).abs(),
                        _ => (accuracy - r.correct as f64 / r.rows as f64).abs(),
                    }
                }).collect();
                let mean = gaps.iter().sum::<f64>() / 4.0;
                let samples: u64 = round.iter().map(|(n, ..)| n).sum();
                let mut weights = [0.0; 4];
                for (id, (n, ..)) in round.iter().enumerate() {
                    moved[id] -= beta * (gaps[id] - mean);
                    weights[id] = (*n as f64 / samples as f64 + moved[id]).max(0.0);
                }
                let total: f64 = weights.iter().sum();
                for (axis, step) in step.iter().enumerate() {
                    let along: f64 = weights.iter().zip(round).map(|(w, told)| w / total * told.2[axis]).sum();
                    prop_assert!((step + 0.3 * along).abs() < 1e-9, "{} {}", step, along);
                }
            }
        }

        #[test]
        fn with_a_beta_of_zero_it_is_fedavg_by_samples(rounds in rounds()) {
            let samples = Mean { weigh: Weigh::Samples, ..Mean::default() };
            let (mut fair, mut mean) = (server(FairFed::new(0.0)), server(samples));
            for round in &rounds {
                let (own, other) = (take(&mut fair, round), take(&mut mean, round));
                prop_assert!(own.iter().zip(&other).all(|(a, b)| (a - b).abs() < 1e-12));
            }
        }
    }

    #[test]
    fn who_serves_groups_as_everybody_does_counts_more() {
        let usual = Rates { right: [5, 5], of: [10, 10], correct: 10, rows: 20 };
        let odd = Rates { right: [9, 1], of: [10, 10], correct: 10, rows: 20 };
        let round: Vec<Told> = vec![
            (10, usual, vec![1.0, 0.0]),
            (10, usual, vec![1.0, 0.0]),
            (10, odd, vec![0.0, 1.0]),
        ];
        let mut fair = server(FairFed::new(0.5));
        let (first, second) = (take(&mut fair, &round), take(&mut fair, &round));
        assert!(
            first[1] > -0.1 && second[1] > first[1],
            "the third counts less: {first:?} {second:?}"
        );
        assert!(second[0] < first[0]);
    }

    #[test]
    fn a_report_that_does_not_tell_is_refused_by_name() {
        let g = [1.0, 0.0];
        let reports =
            vec![Report::new(AgentId(4), Loss::Exact(9.0).leaves_at(0.1), Vector::F64(&g))];
        let error =
            server(FairFed::default()).step(&Reports::new(2, reports).unwrap()).unwrap_err();
        assert_eq!(error, Error::NeedsRates { agent: AgentId(4), rule: "fairfed" });
        assert!(FairFed::new(f64::NAN).check().is_err());
    }
}

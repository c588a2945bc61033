//! MIFA: the latest update of everybody, leavers included.
//!
//! ```text
//! G_m ← reach_m · direction_m / η   for every agent m that reports
//! s = −(η/N) Σ G_m                  over the N agents that were ever heard
//! ```
//!
//! An agent that is silent, and one that has left, pulls on with the last update it sent. For agents
//! that come and go that keeps the mean unbiased, which is what the authors prove. For agents that
//! leave because they are content it is a memory of what they wanted then, at weights that are no
//! longer those: whether that still helps them is what a comparison shows.
//!
//! With `weigh = "samples"` an agent counts by the samples behind its last report instead of alike.
//!
//! The server must know: the directions. It keeps one vector per agent. It never stops on its own. A
//! round in which nobody reports moves nothing, here as under every rule. Where everybody always
//! reports it is FedAvg, bit for bit.
//!
//! Reference: Xinran Gu, Kaixuan Huang, Jingzhao Zhang, Longbo Huang, *Fast Federated Learning in
//! the Presence of Arbitrary Device Unavailability*, NeurIPS 2021, Algorithm 1; arXiv 2106.04159. The
//! authors assume that everybody is heard in the first round; here, an agent that was not yet heard
//! does not count.

use super::sent::{self, Last, LastSent};
use super::weigh::{CHANGES, Weigh};
use super::{Aggregator, Decision, Facts, Origin, Round, watched};
use crate::{Error, Vector, linalg};
use serde::{Deserialize, Serialize};

pub(super) const ORIGIN: Origin = Origin {
    about: "the mean of everybody's latest update, also of those who are silent or have left",
    reference: "Gu, Huang, Zhang, Huang, Fast Federated Learning in the Presence of Arbitrary Device \
                Unavailability, NeurIPS 2021",
};

/// The latest update of everybody.
///
/// ```
/// use fedstay::rule::Mifa;
/// use fedstay::{AgentId, Loss, Report, Reports, Server, Vector};
///
/// let near = Report::new(AgentId(0), Loss::Exact(0.5).leaves_at(0.1), Vector::F64(&[1.0, 0.0]));
/// let far = Report::new(AgentId(1), Loss::Exact(2.0).leaves_at(0.1), Vector::F64(&[0.0, 2.0]));
/// let mut server = Server::new(vec![0.0, 0.0], Mifa::default(), 1.0)?;
/// server.step(&Reports::new(2, vec![near, far])?)?;
/// // The first agent leaves, and pulls on with the last that it sent.
/// server.step(&Reports::with_goodbyes(2, vec![far], vec![AgentId(0)])?)?;
/// assert_eq!(server.displacement(), [-0.5, -1.0]);
/// # Ok::<(), fedstay::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Mifa {
    /// How much each agent counts.
    pub weigh: Weigh,
    /// Widens the forecast of departures and changes no step.
    pub delta: f64,
    #[serde(rename = "memory", with = "sent", skip_serializing_if = "Last::is_empty")]
    last: Last,
}

impl Mifa {
    /// The rule before its first round.
    pub fn new(weigh: Weigh) -> Self {
        Self { weigh, ..Self::default() }
    }
}

impl Aggregator for Mifa {
    fn aggregate(&mut self, round: &Round<'_>, step: &mut [f64]) -> Result<Decision, Error> {
        for report in round.reports.iter() {
            let sent = LastSent::new(report, round.strides(report), round.number);
            self.last.insert(report.agent, sent);
        }
        let shares = self.weigh.shares(self.last.values().map(|sent| sent.samples));
        for (place, sent) in self.last.values().enumerate() {
            let share = shares.as_ref().map_or(1.0, |shares| shares[place]);
            linalg::add_scaled(step, -round.step_size * share, Vector::F64(&sent.direction));
        }
        if shares.is_none() {
            let everybody = self.last.len() as f64;
            step.iter_mut().for_each(|value| *value /= everybody);
        }
        Ok(watched(round, step, self.delta))
    }

    fn facts(&self) -> Facts {
        Facts { label: self.weigh.label(), changes: CHANGES, ..Facts::blind(self.delta).near(0.5) }
    }

    fn check(&self) -> Result<(), Error> {
        super::check_delta(self.delta)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AgentId, Loss, Mean, Report, Reports, Server};
    use proptest::prelude::*;

    fn reports<'a>(round: &'a [(bool, Vec<f64>)]) -> Vec<Report<'a>> {
        let heard = round.iter().enumerate().filter(|(_, (heard, _))| *heard);
        heard
            .map(|(id, (_, g))| Report {
                reach: Some(0.1 * (1.0 + id as f64)),
                ..Report::new(AgentId(id as u64), Loss::Exact(9.0).leaves_at(0.1), Vector::F64(g))
            })
            .collect()
    }

    proptest! {
        /// Against a table of everybody's last displacement, whichever agents are heard.
        #[test]
        fn it_averages_the_last_displacement_of_everybody(
            rounds in prop::collection::vec(
                prop::collection::vec((any::<bool>(), prop::collection::vec(-2.0..2.0f64, 2)), 4),
                1..6,
            ),
        ) {
            let mut server = Server::new(vec![0.0; 2], Mifa::default(), 0.3).unwrap();
            let mut table: Vec<Option<[f64; 2]>> = vec![None; 4];
            for round in rounds.iter().filter(|round| round.iter().any(|(heard, _)| *heard)) {
                for (id, (_, g)) in round.iter().enumerate().filter(|(_, (heard, _))| *heard) {
                    let reach = 0.1 * (1.0 + id as f64);
                    table[id] = Some([-reach * g[0], -reach * g[1]]);
                }
                let known: Vec<[f64; 2]> = table.iter().flatten().copied().collect();
                // An agent that was heard once and is not heard now has left.
                let left = (0..4).filter(|id| table[*id].is_some() && !round[*id].0);
                let left = left.map(|id| AgentId(id as u64)).collect();
                let reports = Reports::with_goodbyes(2, reports(round), left).unwrap();
                server.step(&reports).unwrap();
                for axis in 0..2 {
                    let mean = known.iter().map(|s| s[axis]).sum::<f64>() / known.len() as f64;
                    prop_assert!((server.displacement()[axis] - mean).abs() < 1e-12);
                }
            }
        }

        #[test]
        fn where_everybody_always_reports_it_is_fedavg(
            rounds in prop::collection::vec(
                prop::collection::vec(prop::collection::vec(-2.0..2.0f64, 3), 3), 4),
        ) {
            let mut mifa = Server::new(vec![0.0; 3], Mifa::default(), 0.3).unwrap();
            let mut mean = Server::new(vec![0.0; 3], Mean::default(), 0.3).unwrap();
            for round in &rounds {
                let told = round.iter().enumerate().map(|(id, g)| {
                    Report::new(AgentId(id as u64), Loss::Exact(9.0).leaves_at(0.1), Vector::F64(g))
                });
                let reports = Reports::new(3, told.collect()).unwrap();
                prop_assert_eq!(mifa.step(&reports).unwrap(), mean.step(&reports).unwrap());
                prop_assert_eq!(mifa.weights(), mean.weights());
            }
        }
    }

    #[test]
    fn one_that_left_pulls_on_where_averaging_forgets_it() {
        let (a, b) = ([1.0], [-3.0]);
        let both = [(true, a.to_vec()), (true, b.to_vec())];
        let one = [(true, a.to_vec()), (false, b.to_vec())];
        let after = |rule: crate::Rule| {
            let mut server = Server::new(vec![0.0], rule, 0.3).unwrap();
            server.step(&Reports::new(1, reports(&both)).unwrap()).unwrap();
            let gone = Reports::with_goodbyes(1, reports(&one), vec![AgentId(1)]).unwrap();
            server.step(&gone).unwrap();
            server.displacement()[0]
        };
        assert!((after(Mifa::default().into()) - 0.25).abs() < 1e-15, "(−0.1·1 + 0.2·3)/2");
        assert!((after(Mean::default().into()) + 0.1).abs() < 1e-15);
    }
}

//! SCAFFOLD: local steps that are corrected by what the others do.
//!
//! Several local steps lead an agent towards its own optimum, and the mean of where everybody ends is
//! not the optimum of the mean ("client drift"). So every agent m has a *variate* c_m, the gradient
//! that it is expected to have, the server has their mean c, and an agent adds what the others have
//! and it lacks to the gradient of every local step:
//!
//! ```text
//! agent:   u ← u − η (g_m(u) + c − c_m)    K times, from w; it reports d_m = (w − u)/(Kη) as ever
//!          c_m ← c_m − c + d_m             the mean of the g_m along its path: option II
//! server:  s = −Σ share_m · reach_m · d_m,   c = Σ share_m · c_m
//! ```
//!
//! The authors' agents keep c_m and send its change. With option II that change is `d_m − c`: the
//! server can compute it from what every report contains. So here the server keeps the variates, and
//! sends `c − c_m` along with the weights ([`Broadcast::correction`](crate::Broadcast::correction)):
//! one more vector down, none up, and nothing that an agent could lose.
//!
//! **What becomes of a leaver's variate** the authors do not say. With `leavers = "keep"` it stays in
//! c, which counts everybody who was ever heard, as their c does: the model is pulled on towards what
//! the leaver last wanted, as under MIFA. With `"drop"` it goes with the agent.
//!
//! The server must know: the directions, and an engine whose agents add the correction. It keeps one
//! vector per agent. It never stops on its own. With one local step on all rows, and everybody
//! reporting, the corrections cancel and it is averaging. An agent that was not yet heard is not
//! corrected; the authors start with c_m = 0, so that its first steps would be along g_m + c. Their
//! server's step size is `server.lr`.
//!
//! Reference: Sai Praneeth Karimireddy, Satyen Kale, Mehryar Mohri, Sashank J. Reddi, Sebastian U.
//! Stich, Ananda Theertha Suresh, *SCAFFOLD: Stochastic Controlled Averaging for Federated Learning*,
//! ICML 2020, Algorithm 1; arXiv 1910.06378.

use super::sent::{self, Last, LastSent};
use super::weigh::Weigh;
use super::{Aggregator, Decision, Facts, LabelChange, Origin, Round, watched};
use crate::message::is_default;
use crate::{AgentId, Error, Vector, linalg, packed};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

pub(super) const ORIGIN: Origin = Origin {
    about: "averaging whose local steps are corrected by what the others do",
    reference: "Karimireddy, Kale, Mohri, Reddi, Stich, Suresh, SCAFFOLD: Stochastic Controlled \
                Averaging for Federated Learning, ICML 2020",
};

/// What a label may change: `scaffold+samples`, `scaffold+drop`.
const CHANGES: &[LabelChange] = &[
    LabelChange { name: "samples", set: "weigh = \"samples\"" },
    LabelChange { name: "drop", set: "leavers = \"drop\"" },
];

/// Averaging whose local steps are corrected.
///
/// ```
/// use fedstay::rule::Scaffold;
/// use fedstay::{AgentId, Loss, Report, Reports, Server, Vector};
///
/// let near = Report::new(AgentId(0), Loss::Exact(0.5).leaves_at(0.1), Vector::F64(&[1.0, 0.0]));
/// let far = Report::new(AgentId(1), Loss::Exact(2.0).leaves_at(0.1), Vector::F64(&[0.0, 2.0]));
/// let mut server = Server::new(vec![0.0, 0.0], Scaffold::default(), 1.0)?;
/// server.step(&Reports::new(2, vec![near, far])?)?;
/// // What the first adds to its next local gradients: the mean of both, less its own.
/// assert_eq!(server.broadcast().correction(AgentId(0)), Some(vec![-0.5, 1.0]));
/// # Ok::<(), fedstay::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Scaffold {
    /// How much each agent counts.
    pub weigh: Weigh,
    /// What becomes of the variate of an agent that leaves.
    pub leavers: Leavers,
    /// Widens the forecast of departures and changes no step.
    pub delta: f64,
    #[serde(rename = "memory", skip_serializing_if = "is_default")]
    variates: Variates,
}

/// What becomes of the variate of an agent that leaves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Leavers {
    /// It stays in the mean.
    #[default]
    Keep,
    /// It goes with the agent.
    Drop,
}

/// The gradients that agents are expected to have.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Variates {
    #[serde(with = "sent")]
    each: Last,
    /// Their mean.
    #[serde(with = "packed")]
    mean: Vec<f64>,
}

impl Scaffold {
    /// The rule before its first round.
    pub fn new(leavers: Leavers) -> Self {
        Self { leavers, ..Self::default() }
    }
}

impl Variates {
    /// What an agent lacks of what the others have.
    fn correction(&self, agent: AgentId) -> Option<Vec<f64>> {
        let own = self.each.get(&agent)?;
        let mut lacks = self.mean.clone();
        linalg::add_scaled(&mut lacks, -1.0, Vector::F64(&own.direction));
        Some(lacks)
    }

    fn average(&mut self, weigh: Weigh, dimension: usize) {
        self.mean = vec![0.0; dimension];
        let alike = 1.0 / self.each.len().max(1) as f64;
        let shares = weigh.shares(self.each.values().map(|sent| sent.samples));
        for (place, own) in self.each.values().enumerate() {
            let share = shares.as_ref().map_or(alike, |shares| shares[place]);
            linalg::add_scaled(&mut self.mean, share, Vector::F64(&own.direction));
        }
    }
}

impl Aggregator for Scaffold {
    fn aggregate(&mut self, round: &Round<'_>, step: &mut [f64]) -> Result<Decision, Error> {
        self.weigh.mean(round, step);
        let new: Vec<Arc<LastSent>> = round
            .reports
            .iter()
            .map(|report| {
                let mut sent = LastSent::new(report, 1.0, round.number);
                let corrected = self.variates.correction(report.agent);
                if let (Some(by), Some(sent)) = (corrected, Arc::get_mut(&mut sent)) {
                    linalg::add_scaled(&mut sent.direction, -1.0, Vector::F64(&by));
                }
                sent
            })
            .collect();
        self.variates.each.extend(new.into_iter().map(|sent| (sent.agent, sent)));
        if self.leavers == Leavers::Drop {
            self.variates.each.retain(|agent, _| !round.reports.goodbyes().contains(agent));
        }
        self.variates.average(self.weigh, step.len());
        Ok(watched(round, step, self.delta))
    }

    fn correction(&self, agent: AgentId) -> Option<Vec<f64>> {
        self.variates.correction(agent)
    }

    fn facts(&self) -> Facts {
        let mut label = self.weigh.label();
        label.extend((self.leavers == Leavers::Drop).then_some("drop"));
        Facts { label, changes: CHANGES, corrects: true, ..Facts::blind(self.delta).near(0.5) }
    }

    fn check(&self) -> Result<(), Error> {
        super::check_delta(self.delta)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Loss, Mean, Report, Reports, Rule, Server};
    use proptest::prelude::*;

    /// An agent whose gradient at u is `stretch · (u − centre)`, in two dimensions.
    type Bowl = ([f64; 2], [f64; 2]);

    const ETA: f64 = 0.1;

    fn gradient((stretch, centre): &Bowl, at: &[f64]) -> [f64; 2] {
        [stretch[0] * (at[0] - centre[0]), stretch[1] * (at[1] - centre[1])]
    }

    /// K local steps, each corrected, and the mean direction along them.
    fn path(bowl: &Bowl, start: &[f64], steps: usize, correction: &[f64]) -> Vec<f64> {
        let mut at = start.to_vec();
        for _ in 0..steps {
            let g = gradient(bowl, &at);
            (0..2).for_each(|axis| at[axis] -= ETA * (g[axis] + correction[axis]));
        }
        (0..2).map(|axis| (start[axis] - at[axis]) / (ETA * steps as f64)).collect()
    }

    /// A round of the server with those of `bowls` that are `there`, after the others left.
    fn round(server: &mut Server, bowls: &[Bowl], there: &[bool], steps: usize) {
        let asked = (0..bowls.len()).filter(|id| there[*id]);
        let told: Vec<(u64, Vec<f64>)> = asked
            .map(|id| {
                let broadcast = server.broadcast();
                let by = broadcast.correction(AgentId(id as u64)).unwrap_or(vec![0.0; 2]);
                (id as u64, path(&bowls[id], &broadcast.to(AgentId(id as u64)), steps, &by))
            })
            .collect();
        let reports = told.iter().map(|(id, direction)| Report {
            reach: Some(ETA * steps as f64),
            ..Report::new(AgentId(*id), Loss::Exact(9.0).leaves_at(0.1), Vector::F64(direction))
        });
        let gone = (0..bowls.len()).filter(|id| !there[*id]).map(|id| AgentId(id as u64));
        let reports = Reports::with_goodbyes(2, reports.collect(), gone.collect()).unwrap();
        server.step(&reports).unwrap();
    }

    fn server(rule: impl Into<Rule>) -> Server {
        Server::new(vec![1.0, -0.5], rule, ETA).unwrap()
    }

    fn bowl() -> impl Strategy<Value = Bowl> {
        (prop::array::uniform2(0.2..2.0f64), prop::array::uniform2(-2.0..2.0f64))
    }

    proptest! {
        /// The authors' Algorithm 1 with option II: agents keep their variates and send changes.
        #[test]
        fn it_is_the_authors_algorithm(bowls in prop::collection::vec(bowl(), 3), steps in 1usize..6) {
            let mut server = server(Scaffold::default());
            let mut x = [1.0, -0.5];
            let (mut c, mut own) = ([0.0; 2], [[0.0; 2]; 3]);
            for _ in 0..5 {
                round(&mut server, &bowls, &[true; 3], steps);
                let (mut dx, mut dc) = ([0.0; 2], [0.0; 2]);
                for (bowl, own) in bowls.iter().zip(&mut own) {
                    let mut y = x;
                    for _ in 0..steps {
                        let g = gradient(bowl, &y);
                        (0..2).for_each(|axis| y[axis] -= ETA * (g[axis] - own[axis] + c[axis]));
                    }
                    for axis in 0..2 {
                        let new = own[axis] - c[axis] + (x[axis] - y[axis]) / (steps as f64 * ETA);
                        dx[axis] += (y[axis] - x[axis]) / 3.0;
                        dc[axis] += (new - own[axis]) / 3.0;
                        own[axis] = new;
                    }
                }
                for axis in 0..2 {
                    x[axis] += dx[axis];
                    c[axis] += dc[axis];
                    prop_assert!((server.weights()[axis] - x[axis]).abs() < 1e-10);
                }
            }
        }

        #[test]
        fn with_one_local_step_of_everybody_it_is_averaging_and_with_several_it_is_not(
            bowls in prop::collection::vec(bowl(), 3),
        ) {
            let far = |steps: usize| {
                let (mut own, mut mean) = (server(Scaffold::default()), server(Mean::default()));
                for _ in 0..6 {
                    round(&mut own, &bowls, &[true; 3], steps);
                    round(&mut mean, &bowls, &[true; 3], steps);
                }
                own.weights().iter().zip(mean.weights()).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
            };
            prop_assert!(far(1) < 1e-12);
            let alike = |axis: usize| {
                let of = |bowl: &Bowl| bowl.0[axis];
                bowls.iter().map(of).fold(0.0, f64::max) - bowls.iter().map(of).fold(9.0, f64::min)
            };
            prop_assume!(alike(0).max(alike(1)) > 0.5);
            prop_assert!(far(8) > 1e-6);
        }

        #[test]
        fn it_ends_where_the_mean_loss_is_least(bowls in prop::collection::vec(bowl(), 3)) {
            prop_assert!(off(Scaffold::default().into(), &bowls) < 1e-6);
        }
    }

    /// How far from the optimum of the mean a rule with four local steps ends.
    fn off(rule: Rule, bowls: &[Bowl]) -> f64 {
        let mut server = server(rule);
        (0..600).for_each(|_| round(&mut server, bowls, &[true; 3], 4));
        let best = |axis: usize| {
            let pull: f64 = bowls.iter().map(|(s, c)| s[axis] * c[axis]).sum();
            pull / bowls.iter().map(|(s, _)| s[axis]).sum::<f64>()
        };
        (0..2).map(|axis| (server.weights()[axis] - best(axis)).abs()).fold(0.0, f64::max)
    }

    /// The converse: averaging of several local steps ends elsewhere.
    #[test]
    fn averaging_drifts_where_agents_differ() {
        let bowls = [([2.0, 1.0], [1.0, 0.0]), ([0.3, 1.0], [-2.0, 0.0]), ([1.0, 0.2], [0.0, 2.0])];
        assert!(off(Mean::default().into(), &bowls) > 0.01);
        assert!(off(Scaffold::default().into(), &bowls) < 1e-9);
    }

    #[test]
    fn a_leaver_pulls_on_unless_its_variate_goes_with_it() {
        let bowls = [([1.0, 1.0], [2.0, 0.0]), ([1.0, 1.0], [0.0, 0.0]), ([1.0, 1.0], [-4.0, 0.0])];
        let after = |rule: Rule| {
            let mut server = server(rule);
            round(&mut server, &bowls, &[true; 3], 1);
            (0..300).for_each(|_| round(&mut server, &bowls, &[true, true, false], 1));
            server.weights()[0]
        };
        // Without the third the optimum is at 1.
        assert!((after(Scaffold::new(Leavers::Drop).into()) - 1.0).abs() < 1e-9);
        assert!((after(Mean::default().into()) - 1.0).abs() < 1e-9);
        assert!(after(Scaffold::default().into()) < 0.5, "it is pulled towards −4");
    }

    #[test]
    fn whoever_was_not_heard_is_not_corrected() {
        let server = server(Scaffold::default());
        assert_eq!(server.broadcast().correction(AgentId(0)), None);
    }
}

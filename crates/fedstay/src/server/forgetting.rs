//! Withdrawal with forgetting: a goodbye that asks that what the agent contributed be removed.
//!
//! | `how` | what the server does on receipt of it | keeps |
//! |---|---|---|
//! | `keep` | nothing: the control | nothing |
//! | `retrain` | begins again from the first weights, without the agent | the first weights |
//! | `eraser` | begins again, and takes the lengths of the steps it takes from its own past (below) | them, and lengths |
//! | `subtract` | takes the agent's part of every step back | one vector per agent |
//!
//! In every way but `keep`, rule, optimiser and policy begin anew too, because they may remember the
//! agent, and the round in which it asks moves nothing else: its reports are about weights that are
//! gone. The others then go on training, and what they pay for it is rounds.
//!
//! **FedEraser** replays the past in short: of every n-th round of the past the server knows how long
//! every agent's update was. In as many rounds it now asks the agents for directions at the new weights
//! and lets everybody go as far along its own as it went then:
//! `s = −(1/M) Σ ‖u_m‖ · d_m/‖d_m‖`. An agent without a length of its own has the mean of the others'.
//!
//! **Subtracting** is exact for the part of the steps, `s = −Σ c_i d_i` with the [coefficients](crate::worth)
//! that say whose direction moved how much, and for nothing else: what the others computed at weights
//! that the agent had moved stays.
//!
//! References: Liu, Ma, Yang, Wang, Liu, *FedEraser: Enabling Efficient Client-Level Data Removal from
//! Federated Learning Models*, IWQoS 2021 (Eq. 3 and 4; their calibration ratio is the agents' local
//! work as it is here). Wu, Zhu, Mitra, *Federated Unlearning with Knowledge Distillation*, arXiv
//! 2201.09441, 2022, for the subtraction, without the distillation. The right: GDPR, article 17.

use crate::memory::inside::{self, pairs};
use crate::message::{coefficients, is_default};
use crate::rule::Round;
use crate::{AgentId, Reports, Vector};
use crate::{Error, Report, linalg, packed};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What the server does about agents that ask to be forgotten when they leave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Forgetting {
    /// What it does.
    pub how: ForgetMethod,
    /// Whose goodbyes ask for it; everybody's if none is named.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentId>,
    /// Every how many rounds the lengths of updates are kept, for `eraser`.
    pub every: u32,
    #[serde(rename = "memory", skip_serializing_if = "is_default")]
    kept: ForgettingMemory,
}

/// What a server does about an agent that asks to be forgotten.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ForgetMethod {
    /// Nothing.
    #[default]
    Keep,
    /// It begins again.
    Retrain,
    /// It begins again, with steps as long as they were.
    Eraser,
    /// It takes back what the agent added.
    Subtract,
}

impl ForgetMethod {
    /// Its name in a configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::Retrain => "retrain",
            Self::Eraser => "eraser",
            Self::Subtract => "subtract",
        }
    }
}

impl Default for Forgetting {
    fn default() -> Self {
        Self {
            how: ForgetMethod::Keep,
            agents: Vec::new(),
            every: 2,
            kept: ForgettingMemory::default(),
        }
    }
}

/// How long everybody's update was in a round.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
struct Lengths(#[serde(with = "pairs")] BTreeMap<AgentId, f64>);

/// What must be remembered to forget.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct ForgettingMemory {
    #[serde(with = "packed", skip_serializing_if = "Vec::is_empty")]
    start: Vec<f64>,
    /// The lengths of past rounds.
    past: Vec<Lengths>,
    /// How many rounds there were since the last of them.
    since: u32,
    /// The lengths of rounds that are still to be replayed.
    replay: Vec<Lengths>,
    /// By agent, its part of all steps so far.
    #[serde(with = "pairs")]
    parts: BTreeMap<AgentId, StepsPart>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
struct StepsPart(#[serde(with = "packed")] Vec<f64>);

impl Forgetting {
    /// The way, for everybody who leaves.
    pub fn new(how: ForgetMethod) -> Self {
        Self { how, ..Self::default() }
    }

    /// The same without what it remembers.
    #[cfg(test)]
    fn fresh(self) -> Self {
        Self { kept: ForgettingMemory::default(), ..self }
    }

    /// Checks the parameters.
    pub fn check(&self) -> Result<(), Error> {
        match self.every {
            0 => Err(Error::bad_parameter("forget.every", 0, "a number of rounds, at least 1")),
            _ => Ok(()),
        }
    }

    /// The same, at the beginning of a run from these weights.
    pub(super) fn begin(mut self, weights: &[f64]) -> Result<Self, Error> {
        self.check()?;
        inside::check_fresh("forget", &self)?;
        if matches!(self.how, ForgetMethod::Retrain | ForgetMethod::Eraser) {
            self.kept.start = weights.to_vec();
        }
        Ok(self)
    }

    /// Rejects a memory of weights of another length.
    pub(super) fn check_dimension(&self, dimension: usize) -> Result<(), Error> {
        let parts = self.kept.parts.values().map(|part| part.0.len());
        let start = Some(self.kept.start.len()).filter(|len| *len > 0);
        let needs =
            matches!(self.how, ForgetMethod::Retrain | ForgetMethod::Eraser) && start.is_none();
        match parts.chain(start).find(|len| *len != dimension) {
            Some(len) => {
                let why = format!("forget remembers {len} numbers, the weights have {dimension}");
                Err(Error::BadState { why })
            }
            None if needs => {
                Err(Error::BadState { why: "forget has lost the first weights".to_owned() })
            }
            None => Ok(()),
        }
    }

    fn listens_to(&self, agent: AgentId) -> bool {
        self.agents.is_empty() || self.agents.contains(&agent)
    }

    /// Who asks to be forgotten in this round.
    pub(super) fn asking(&self, reports: &Reports<'_>) -> Vec<AgentId> {
        reports.goodbyes().iter().copied().filter(|agent| self.listens_to(*agent)).collect()
    }

    /// Forgets agents: what to add to the weights.
    pub(super) fn forget(&mut self, who: &[AgentId], weights: &[f64]) -> Vec<f64> {
        if self.how == ForgetMethod::Subtract {
            let mut back = vec![0.0; weights.len()];
            for agent in who {
                if let Some(part) = self.kept.parts.remove(agent) {
                    linalg::add_scaled(&mut back, -1.0, Vector::F64(&part.0));
                }
            }
            return back;
        }
        let mut all = std::mem::take(&mut self.kept.past);
        all.append(&mut self.kept.replay);
        for lengths in &mut all {
            lengths.0.retain(|agent, _| !who.contains(agent));
        }
        all.retain(|lengths| !lengths.0.is_empty());
        (self.kept.replay, self.kept.since) = (all, 0);
        self.kept.start.iter().zip(weights).map(|(start, now)| start - now).collect()
    }

    /// The step of a round that replays one of the past; `None` if there is none to replay.
    pub(super) fn replay(&mut self, round: &Round<'_>, step: &mut [f64]) -> Option<()> {
        if self.kept.replay.is_empty() {
            return None;
        }
        let lengths = self.kept.replay.remove(0);
        let usual = lengths.0.values().sum::<f64>() / lengths.0.len().max(1) as f64;
        let share = 1.0 / round.reports.len() as f64;
        let mut taken = Lengths::default();
        for report in round.reports.iter() {
            let length = lengths.0.get(&report.agent).copied().unwrap_or(usual);
            let norm = linalg::norm(report.direction);
            if norm > 0.0 {
                linalg::add_scaled(step, -share * length / norm, report.direction);
                taken.0.insert(report.agent, length);
            }
        }
        self.kept.past.push(taken);
        Some(())
    }

    /// Takes note of an ordinary round and its step.
    pub(super) fn note(&mut self, round: &Round<'_>, step: &[f64]) {
        let reach = |report: &Report<'_>| report.reach.unwrap_or(round.step_size);
        match self.how {
            ForgetMethod::Keep | ForgetMethod::Retrain => {}
            ForgetMethod::Eraser => {
                if self.kept.since == 0 {
                    let length = |report: &Report<'_>| {
                        (report.agent, reach(report) * linalg::norm(report.direction))
                    };
                    self.kept.past.push(Lengths(round.reports.iter().map(length).collect()));
                }
                self.kept.since = (self.kept.since + 1) % self.every.max(1);
            }
            ForgetMethod::Subtract => {
                let reports = round.reports.as_slice();
                let directions: Vec<Vector<'_>> = reports.iter().map(|r| r.direction).collect();
                let gram = linalg::gram(&directions);
                let c = coefficients::of(reports, &gram, step, round.step_size);
                for (report, c) in reports.iter().zip(c) {
                    if self.listens_to(report.agent) {
                        let part = self.kept.parts.entry(report.agent).or_default();
                        part.0.resize(step.len(), 0.0);
                        linalg::add_scaled(&mut part.0, -c, report.direction);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Server;
    use super::*;
    use crate::optimiser::Adam;
    use crate::rule::Mifa;
    use crate::{Loss, Mean, Optimiser, Rule};
    use proptest::prelude::*;

    const START: [f64; 2] = [0.5, -0.5];

    fn server(rule: impl Into<Rule>, how: ForgetMethod) -> Server {
        let server = Server::new(START.to_vec(), rule, 0.1).unwrap();
        server.with_forgetting(Forgetting { every: 1, ..Forgetting::new(how) }).unwrap()
    }

    /// A round with those who have a direction; the agents in `gone` say goodbye.
    fn round(server: &mut Server, told: &[Option<[f64; 2]>], gone: &[u64]) -> Vec<AgentId> {
        let heard = told.iter().enumerate().filter_map(|(id, g)| Some((id, g.as_ref()?)));
        let report = |(id, g): (usize, &'_ [f64; 2])| (id as u64, *g);
        let heard: Vec<(u64, [f64; 2])> = heard.map(report).collect();
        let reports = heard.iter().map(|(id, g)| {
            Report::new(AgentId(*id), Loss::Exact(5.0).leaves_at(0.1), Vector::F64(g))
        });
        let gone = gone.iter().copied().map(AgentId).collect();
        let reports = Reports::with_goodbyes(2, reports.collect(), gone).unwrap().with_absent(1);
        server.step(&reports).unwrap().forgot
    }

    fn near(a: &[f64], b: &[f64]) -> bool {
        a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12)
    }

    proptest! {
        /// After `retrain` the server is one that never met the agent, whatever rule, optimiser and
        /// policy remember.
        #[test]
        fn retraining_is_beginning_again(
            before in prop::collection::vec(prop::array::uniform3(prop::array::uniform2(-1.0..1.0f64)), 1..5),
            after in prop::collection::vec(prop::array::uniform2(prop::array::uniform2(-1.0..1.0f64)), 1..5),
        ) {
            for rule in [Rule::from(Mean::default()), Mifa::default().into()] {
                let adam = || Optimiser::from(Adam::default());
                let mut run = server(rule.clone(), ForgetMethod::Retrain).with_optimiser(adam()).unwrap();
                let mut fresh = Server::new(START.to_vec(), rule, 0.1).unwrap().with_optimiser(adam()).unwrap();
                for told in &before {
                    round(&mut run, &told.map(Some), &[]);
                }
                prop_assert_eq!(round(&mut run, &[Some([1.0, 1.0]), Some([1.0, 0.0])], &[2]), [AgentId(2)]);
                prop_assert_eq!(run.weights(), START);
                for told in &after {
                    let told = told.map(Some);
                    round(&mut run, &told, &[]);
                    round(&mut fresh, &told, &[]);
                    prop_assert_eq!(run.weights(), fresh.weights());
                }
            }
        }

        /// Where directions do not depend on the weights, the mean without the agent's part is what
        /// subtraction leaves: the others' steps, as long as they were.
        #[test]
        fn subtracting_takes_back_the_agents_part_and_nothing_else(
            before in prop::collection::vec(prop::array::uniform3(prop::array::uniform2(-1.0..1.0f64)), 1..6),
        ) {
            let mut run = server(Mean::default(), ForgetMethod::Subtract);
            let mut expected = START;
            for told in &before {
                round(&mut run, &told.map(Some), &[]);
                for g in &told[..2] {
                    (0..2).for_each(|axis| expected[axis] -= 0.1 * g[axis] / 3.0);
                }
            }
            round(&mut run, &[Some([0.3, 0.1]), None], &[2]);
            prop_assert!(near(run.weights(), &expected), "{:?} {:?}", run.weights(), expected);
        }

        /// With every round kept and the same directions again, the eraser comes to where the others
        /// alone would have come.
        #[test]
        fn the_eraser_replays_the_others_rounds(
            before in prop::collection::vec(prop::array::uniform3(prop::array::uniform2(0.1..1.0f64)), 1..6),
        ) {
            let mut run = server(Mean::default(), ForgetMethod::Eraser);
            let mut alone = Server::new(START.to_vec(), Mean::default(), 0.1).unwrap();
            for told in &before {
                round(&mut run, &told.map(Some), &[]);
                round(&mut alone, &[Some(told[0]), Some(told[1])], &[]);
            }
            round(&mut run, &[Some([0.3, 0.1]), None], &[2]);
            prop_assert_eq!(run.weights(), START);
            for told in &before {
                // Twice as long and in the same direction: the length is the past's.
                let again = |g: [f64; 2]| Some(g.map(|value| 2.0 * value));
                round(&mut run, &[again(told[0]), again(told[1])], &[]);
            }
            prop_assert!(near(run.weights(), alone.weights()), "{:?} {:?}", run.weights(), alone.weights());
        }

        #[test]
        fn a_saved_state_goes_on_as_if_nothing_had_happened(
            told in prop::collection::vec(prop::array::uniform3(prop::array::uniform2(-1.0..1.0f64)), 6),
            asks in 1usize..5,
            saved in 1usize..6,
        ) {
            for how in [ForgetMethod::Keep, ForgetMethod::Retrain, ForgetMethod::Eraser, ForgetMethod::Subtract] {
                let mut whole = server(Mean::default(), how);
                let mut cut = whole.clone();
                for (number, told) in told.iter().enumerate() {
                    if number == saved {
                        let text = serde_json::to_string(&cut.state()).unwrap();
                        let fresh = server(Mean::default(), how);
                        cut = Server::from_state(serde_json::from_str(&text).unwrap()).unwrap();
                        let mut resumed = Server::new(cut.weights().to_vec(), Mean::default(), 0.1)
                            .unwrap()
                            .with_forgetting(fresh.forgetting().unwrap().clone().fresh())
                            .unwrap();
                        resumed.resume(cut.progress().unwrap()).unwrap();
                        prop_assert_eq!(resumed.state(), cut.state());
                    }
                    let mut told = told.map(Some);
                    let gone: &[u64] = if number == asks { &[2] } else { &[] };
                    told[2] = told[2].filter(|_| number < asks);
                    round(&mut whole, &told, gone);
                    round(&mut cut, &told, gone);
                }
                prop_assert_eq!(whole.state(), cut.state());
            }
        }
    }

    #[test]
    fn only_those_who_are_named_are_forgotten_and_keep_forgets_nobody() {
        let both = [Some([1.0, 0.0]), Some([0.0, 1.0])];
        let forgetting =
            Forgetting { agents: vec![AgentId(7)], ..Forgetting::new(ForgetMethod::Retrain) };
        let fresh = Server::new(START.to_vec(), Mean::default(), 0.1).unwrap();
        let mut named = fresh.with_forgetting(forgetting).unwrap();
        let mut keeps = server(Mean::default(), ForgetMethod::Keep);
        for server in [&mut named, &mut keeps] {
            round(server, &both, &[]);
        }
        let moved = named.weights().to_vec();
        assert_eq!(round(&mut named, &[Some([1.0, 0.0])], &[1]), []);
        assert_ne!(named.weights(), START);
        assert_eq!(round(&mut named, &[], &[7]), [AgentId(7)]);
        assert_eq!(named.weights(), START);
        assert_eq!(round(&mut keeps, &[Some([0.0, 0.0])], &[1]), [AgentId(1)]);
        assert_eq!(keeps.weights(), moved);
        assert!(keeps.policies().is_empty());
        assert!(Forgetting { every: 0, ..Forgetting::default() }.check().is_err());
    }
}

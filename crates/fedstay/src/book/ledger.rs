//! The ledger: who left when, who was predicted to, and what a run comes to.

use crate::rule::Landing;
use crate::run::record::{
    AgentSummary, Departure, Guarantee, Prediction, Return, RoundLine, Spread, Summary, few,
};
use crate::run::verdict::Verdict;
use crate::{About, AgentId, Assessment, Policy, Server, StopReason};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A run that covers less than this share of the way from the first mean loss to the mean ε has hardly
/// moved.
const HARDLY: f64 = 0.1;

/// Keeps the books of a run: who left when, who was predicted to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Ledger {
    rounds: u32,
    stop: Option<StopReason>,
    left: Vec<Departure>,
    #[serde(default)]
    returned: Vec<Return>,
    foreseen: u32,
    rounds_in_d: BTreeMap<AgentId, u32>,
    in_d: BTreeSet<AgentId>,
    #[serde(default)]
    first_in_d: BTreeMap<AgentId, u32>,
    #[serde(default)]
    reports: BTreeMap<AgentId, u32>,
    content_at_start: Vec<AgentId>,
    landed: Option<Landing>,
    /// Whether every step so far kept everybody, as far as gradients tell.
    #[serde(default)]
    kept: Option<bool>,
    /// Rounds in which the guard changed the rule's step.
    #[serde(default)]
    guarded: u32,
    /// Predictions that missed, for rules that make them.
    #[serde(default)]
    misses: Option<u32>,
    /// Every agent's first loss, where it told one exactly.
    #[serde(default)]
    first_loss: BTreeMap<AgentId, f64>,
    /// The mean loss of the first weights over all agents, where the engine measured it.
    #[serde(default)]
    start: Option<f64>,
}

/// How a run ended: what the ledger needs beside its rounds to sum it up.
#[derive(Debug, Clone, Copy)]
pub struct Ended<'a> {
    /// The server after its last round.
    pub server: &'a Server,
    /// How good its delivered weights are.
    pub assessment: &'a Assessment,
    /// Why the run ended.
    pub stop: StopReason,
    /// Whether first-order statements about the agents are proofs.
    pub proves: bool,
}

impl Ledger {
    /// Why the run ended, if a round said so.
    pub fn stop(&self) -> Option<StopReason> {
        self.stop
    }

    /// Who left so far, in order.
    pub fn left(&self) -> &[Departure] {
        &self.left
    }

    /// Adds a round, seen or read back from its line.
    pub fn add(&mut self, line: &RoundLine) {
        self.rounds = line.round;
        for agent in &line.returned {
            self.returned.push(Return { agent: *agent, round: line.round });
        }
        for (agent, loss) in line.agents.iter().zip(&line.loss) {
            *self.reports.entry(*agent).or_default() += 1;
            if let (Some(loss), false) = (loss, line.at_least.contains(agent)) {
                self.first_loss.entry(*agent).or_insert(*loss);
            }
        }
        if let (1, Some(assessment)) = (line.round, &line.assessment) {
            self.start = Spread::of(assessment.loss.iter().copied()).map(|loss| loss.mean);
        }
        for agent in &line.left {
            // Predictions are counted by agents, so only the first departure of one counts.
            let first = self.left.iter().all(|left| left.agent != *agent);
            self.foreseen += u32::from(first && self.in_d.contains(agent));
            self.left.push(Departure { agent: *agent, round: line.round });
            if line.round == 1 {
                self.content_at_start.push(*agent);
            }
        }
        self.in_d = line.d.iter().copied().collect();
        for agent in &line.d {
            *self.rounds_in_d.entry(*agent).or_default() += 1;
            self.first_in_d.entry(*agent).or_insert(line.round);
        }
        self.stop = line.stop;
        self.landed = line.landed;
        self.guarded += u32::from(line.guarded);
        if let Some(missed) = &line.missed {
            *self.misses.get_or_insert(0) += missed.len() as u32;
        }
        if let Some(kept) = line.kept {
            self.kept = Some(kept && self.kept != Some(false));
        }
    }

    /// The round in which an agent left, unless it has come back since.
    fn gone(&self, agent: AgentId) -> Option<u32> {
        let left = self.left.iter().rfind(|left| left.agent == agent)?.round;
        let back = self.returned.iter().rfind(|back| back.agent == agent);
        back.is_none_or(|back| back.round < left).then_some(left)
    }

    /// Sums the run up.
    pub fn summary(&self, ended: &Ended<'_>, about: &About) -> Summary {
        let Ended { server, assessment, stop, proves } = *ended;
        let agents: Vec<AgentSummary> = assessment
            .agents
            .iter()
            .map(|agent| AgentSummary {
                id: agent.id,
                epsilon: agent.epsilon,
                loss: agent.loss,
                loss_of_round: agent.as_of,
                accuracy: agent.accuracy,
                left: self.gone(agent.id),
                rounds_in_d: self.rounds_in_d.get(&agent.id).copied().unwrap_or(0),
                behaviour: agent.behaviour.as_ref().map(ToString::to_string),
                reports: self.reports.get(&agent.id).copied().unwrap_or(0),
                first_in_d: self.first_in_d.get(&agent.id).copied(),
                ends_with: None,
                alone: None,
                idle: 0,
            })
            .collect();
        let unasked: Vec<String> = agents
            .iter()
            .filter(|agent| agent.loss_of_round.is_some())
            .map(|agent| agent.id.to_string())
            .collect();
        let asked = agents.iter().filter(|agent| agent.loss_of_round.is_none()).count();
        let content = agents.iter().filter(|agent| agent.is_content()).count();
        let everybody_content = unasked.is_empty() && content == asked;
        let verdict = match (self.left.is_empty(), everybody_content) {
            (true, false) if content == 0 && unasked.is_empty() => Verdict::Unsatisfied,
            (true, _) => Verdict::Retained,
            (false, true) => Verdict::Benign,
            (false, false) if content == asked => Verdict::Unknown,
            (false, false) => Verdict::Harmful,
        };
        let mut warnings = Vec::new();
        warnings.extend(self.hardly_moved(&agents));
        if !unasked.is_empty() {
            let who = unasked.join(", ");
            warnings.push(format!(
                "not asked about the delivered model, so their losses are those they last told: \
                 agent {who}"
            ));
        }
        if !self.content_at_start.is_empty() {
            let who: Vec<String> = self.content_at_start.iter().map(ToString::to_string).collect();
            let who = who.join(", ");
            warnings.push(format!(
                "content with the start, left before the first step: agent {who}; no rule can keep \
                 an agent that is content from the start, so choose another start or a smaller epsilon"
            ));
        }
        warnings.extend(about.warnings.iter().cloned());
        let nothing = Spread { min: 0.0, mean: 0.0, max: 0.0 };
        Summary {
            schema: Summary::SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            rule: server.rule().name().to_owned(),
            policy: server.policy().name().to_owned(),
            behaviour: about.behaviour.clone(),
            on: about.on.clone(),
            seed: about.seed,
            rounds: self.rounds,
            stop,
            verdict,
            content: content as u32,
            everybody_content,
            left: self.left.clone(),
            returned: self.returned.clone(),
            loss: Spread::of(agents.iter().map(|agent| agent.loss)).unwrap_or(nothing),
            accuracy: Spread::of(agents.iter().filter_map(|agent| agent.accuracy)),
            population: assessment.population,
            landed: self.landed,
            guarantee: self.kept.map(|kept| match kept && proves {
                true => Guarantee::Certified,
                false => Guarantee::Estimated,
            }),
            guarded: matches!(server.policy(), Policy::Guard(_))
                .then(|| f64::from(self.guarded) / f64::from(self.rounds.max(1))),
            misses: self.misses,
            prediction: self.prediction(),
            counterfactual: None,
            privacy: None,
            notes: about.notes.clone(),
            flagged: Vec::new(),
            warnings,
            weights: few(server.delivered()),
            agents,
        }
    }

    /// A sentence, where the delivered weights are hardly better than the first ones: a step size
    /// that is far too small, a rule that stopped at once, directions that are not gradients. Without
    /// it, "nobody left" would look like a success.
    fn hardly_moved(&self, agents: &[AgentSummary]) -> Option<String> {
        let mean = |of: &dyn Fn(&&AgentSummary) -> f64, over: &[&AgentSummary]| {
            over.iter().map(of).sum::<f64>() / over.len() as f64
        };
        let asked = agents.iter().filter(|agent| agent.loss_of_round.is_none());
        let told =
            |agent: &&AgentSummary| self.start.is_some() || self.first_loss.contains_key(&agent.id);
        let over: Vec<&AgentSummary> = asked.filter(told).collect();
        if over.is_empty() {
            return None;
        }
        let start = match self.start {
            Some(start) => start,
            None => mean(&|agent| self.first_loss[&agent.id], &over),
        };
        let end = mean(&|agent| agent.loss, &over);
        let target = mean(&|agent| agent.epsilon, &over);
        let covered = (start - end) / (start - target);
        (start > target && covered < HARDLY).then(|| {
            format!(
                "the losses hardly moved: from {start:.4} on average to {end:.4}, where the agents want \
                 {target:.4}; try more rounds, another step_size or another rule"
            )
        })
    }

    fn prediction(&self) -> Prediction {
        let leavers: BTreeSet<AgentId> = self.left.iter().map(|left| left.agent).collect();
        let left = |agent: &&AgentId| leavers.contains(*agent);
        Prediction {
            left: leavers.len() as u32,
            left_foreseen: self.foreseen,
            in_d: self.rounds_in_d.len() as u32,
            in_d_left: self.rounds_in_d.keys().filter(left).count() as u32,
        }
    }
}

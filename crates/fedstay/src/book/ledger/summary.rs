//! The outcome of a run: the one place in which a summary is made.
//!
//! It is made from the ledger, how the run ended and what the run is. A [`Book`](crate::Book) that
//! has more to say enters its section afterwards.

use super::{AgentEntry, Ledger};
use crate::run::fairness::Fairness;
use crate::run::record::{
    AgentSummary, Forgotten, Guarantee, MOST_LISTED, Prediction, Spread, Summary, few,
};
use crate::run::verdict::Verdict;
use crate::{About, AgentAssessment, AgentId, Assessment, Policy, Server, StopReason};
use std::collections::BTreeSet;

/// A run that covers less than this share of the distance from the first mean loss to the mean ε
/// has hardly moved.
const HARDLY: f64 = 0.1;

/// How a run ended: what the ledger needs beside its rounds to sum it up.
#[derive(Debug, Clone, Copy)]
pub struct Ended<'a> {
    /// The server after its last round.
    pub server: &'a Server,
    /// How good its delivered weights are. An agent whose loss is not a number was not measured.
    pub assessment: &'a Assessment,
    /// How many agents took part, assessed or not.
    pub agents: usize,
    /// Why the run ended.
    pub stop: StopReason,
    /// Whether first-order statements about the agents are proofs.
    pub proves: bool,
}

impl Ledger {
    /// Sums the run up.
    pub fn summary(&self, ended: &Ended<'_>, about: &About) -> Summary {
        let Ended { server, assessment, stop, proves, .. } = *ended;
        let assessed = &assessment.agents;
        let everybody = ended.agents.max(assessed.len());
        let measured: Vec<&AgentAssessment> =
            assessed.iter().filter(|agent| agent.is_measured()).collect();
        let unmeasured = everybody - measured.len();
        let agents: Vec<AgentSummary> = assessed
            .iter()
            .filter(|agent| assessed.len() <= MOST_LISTED || self.agent(agent.id).is_some())
            .map(|agent| self.agent_summary(agent))
            .collect();
        let unasked: Vec<String> = measured
            .iter()
            .filter(|agent| agent.as_of.is_some())
            .map(|agent| agent.id.to_string())
            .collect();
        let asked = measured.len() - unasked.len();
        let is_content =
            |agent: &&&AgentAssessment| agent.as_of.is_none() && agent.loss <= agent.epsilon;
        let content = measured.iter().filter(is_content).count();
        let nobody = everybody == 0;
        // What is claimed of everybody must be known of everybody.
        let known = unasked.is_empty() && unmeasured == 0;
        let everybody_content = !nobody && known && content == asked;
        let verdict = match (self.left.is_empty(), everybody_content) {
            _ if nobody => Verdict::Unknown,
            (true, false) if content == 0 && known => Verdict::Unsatisfied,
            (true, false) if content == 0 && unmeasured > 0 => Verdict::Unknown,
            (true, _) => Verdict::Retained,
            (false, true) => Verdict::Benign,
            (false, false) if content == asked => Verdict::Unknown,
            (false, false) => Verdict::Harmful,
        };
        let mut warnings = Vec::new();
        if nobody {
            warnings.push("nobody took part, so the model is the one the run began with".into());
        }
        warnings.extend(self.hardly_moved(&measured));
        if !unasked.is_empty() {
            let who = unasked.join(", ");
            warnings.push(format!(
                "not asked about the delivered model, so their losses are those they last told: \
                 agent {who}"
            ));
        }
        let at_start = self.left.iter().filter(|left| left.round == 1);
        let at_start: Vec<String> = at_start.map(|left| left.agent.to_string()).collect();
        if !at_start.is_empty() {
            let who = at_start.join(", ");
            warnings.push(format!(
                "content with the start, left before the first step: agent {who}; no rule can keep \
                 an agent that is content from the start, so choose another start or a smaller epsilon"
            ));
        }
        let capped: Vec<String> =
            self.those(|entry| entry.capped > 0).map(|agent| agent.to_string()).collect();
        if !capped.is_empty() {
            let who = capped.join(", ");
            warnings.push(format!(
                "shown the same model again in some rounds, because the nearest that would keep it was \
                 farther away than policy.cap allows: agent {who}; raise policy.cap if that happens often"
            ));
        }
        warnings.extend(about.warnings.iter().cloned());
        // Of agents that nobody measured, nothing is known.
        let nothing = if nobody { 0.0 } else { f64::NAN };
        let nothing = Spread { min: nothing, mean: nothing, max: nothing };
        let losses = || measured.iter().map(|agent| agent.loss);
        Summary {
            schema: Summary::SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            rule: server.rule().name().to_owned(),
            optimiser: Some(server.optimiser())
                .filter(|optimiser| !optimiser.is_plain())
                .map(|optimiser| optimiser.name().to_owned()),
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
            loss: Spread::of(losses()).unwrap_or(nothing),
            accuracy: Spread::of(measured.iter().filter_map(|agent| agent.accuracy)),
            fairness: Fairness::of_measured(&measured),
            better_than_alone: None,
            population: assessment.population,
            landed: self.landed,
            guarantee: self.kept.filter(|_| server.sees_to_keeping()).map(|kept| {
                match kept && proves {
                    true => Guarantee::Certified,
                    false => Guarantee::Estimated,
                }
            }),
            forgotten: self
                .forgotten
                .iter()
                .map(|known| Forgotten {
                    how: server.forgetting().map_or("", |f| f.how.name()).to_owned(),
                    loss: agents
                        .iter()
                        .find(|agent| agent.id == known.agent && agent.loss_of_round.is_none())
                        .map(|agent| agent.loss),
                    ..known.clone()
                })
                .collect(),
            least: self.least,
            guarded: matches!(server.policy(), Policy::Guard(_))
                .then(|| f64::from(self.guarded) / f64::from(self.rounds.max(1))),
            misses: self.misses,
            prediction: self.prediction(),
            counterfactual: None,
            without: Vec::new(),
            privacy: None,
            worth: None,
            notes: about.notes.clone(),
            flagged: self.those(|entry| entry.flags > 0).collect(),
            warnings,
            weights: few(server.delivered()),
            unlisted: everybody - agents.len(),
            unmeasured,
            agents,
        }
    }

    fn agent_summary(&self, agent: &AgentAssessment) -> AgentSummary {
        AgentSummary {
            id: agent.id,
            epsilon: agent.epsilon,
            loss: agent.loss,
            loss_of_round: agent.as_of,
            accuracy: agent.accuracy,
            behaviour: agent.behaviour.as_ref().map(ToString::to_string),
            entry: self.agent(agent.id).cloned().unwrap_or_default(),
            ends_with: None,
            alone: None,
            worth: None,
            idle: 0,
        }
    }

    /// A warning if the delivered weights are hardly better than the first ones: because of a step
    /// size that is far too small, a rule that stopped at once, or directions that are not
    /// gradients. Without it, "nobody left" would look like a success.
    fn hardly_moved(&self, measured: &[&AgentAssessment]) -> Option<String> {
        let first =
            |agent: &AgentAssessment| self.agent(agent.id).and_then(|entry| entry.first_loss);
        let mean = |of: &dyn Fn(&AgentAssessment) -> f64, over: &[&AgentAssessment]| {
            over.iter().map(|agent| of(agent)).sum::<f64>() / over.len() as f64
        };
        let asked = measured.iter().copied().filter(|agent| agent.as_of.is_none());
        let told = |agent: &&AgentAssessment| self.start.is_some() || first(agent).is_some();
        let over: Vec<&AgentAssessment> = asked.filter(told).collect();
        if over.is_empty() {
            return None;
        }
        let start = match self.start {
            Some(start) => start,
            None => mean(&|agent| first(agent).unwrap_or(f64::NAN), &over),
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
        let in_d = || self.those(|entry| entry.rounds_in_d > 0);
        Prediction {
            left: leavers.len() as u32,
            left_foreseen: self.foreseen,
            in_d: in_d().count() as u32,
            in_d_left: in_d().filter(|agent| leavers.contains(agent)).count() as u32,
        }
    }

    /// The agents whose entries satisfy `kind`, by id.
    fn those(&self, kind: fn(&AgentEntry) -> bool) -> impl Iterator<Item = AgentId> {
        self.agents.iter().filter(move |(_, entry)| kind(entry)).map(|(agent, _)| *agent)
    }
}

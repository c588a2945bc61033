//! The outcome of a run: the one place in which a summary is made.
//!
//! It is made from the ledger, how the run ended and what the run is. A [`Book`](crate::Book) that
//! has more to say enters its section afterwards.

use super::warnings::Found;
use super::{AgentEntry, Ledger};
use crate::policy::Place;
use crate::run::fairness::Fairness;
use crate::run::record::{
    AgentSummary, Forgotten, Guarantee, HeaderAgent, MOST_LISTED, Prediction, Spread, Summary, few,
};
use crate::run::verdict::{Empty, Tally};
use crate::{About, AgentAssessment, AgentId, Assessment, Server, StopReason};
use std::collections::BTreeSet;

/// The behaviour that may leave in the first round without being content.
const LEAVES_ANYWAY: &str = "withdrawing";

/// How a run ended: what the ledger needs beside its rounds to sum it up.
#[derive(Debug, Clone, Copy)]
pub struct Ended<'a> {
    /// The server after its last round.
    pub server: &'a Server,
    /// How good its delivered weights are. An agent whose loss is not a number was not measured.
    pub assessment: &'a Assessment,
    /// The agents that are listed, by id, with their names.
    pub roll: &'a [HeaderAgent],
    /// How many agents took part, assessed or not.
    pub agents: usize,
    /// Why the run ended.
    pub stop: StopReason,
    /// Whether first-order statements about the agents are proofs.
    pub proves: bool,
}

impl<'a> Ended<'a> {
    /// The display name of an agent, if it is listed and has one.
    pub(super) fn name_of(&self, agent: AgentId) -> Option<&'a str> {
        let place = self.roll.binary_search_by_key(&agent, |agent| agent.id).ok()?;
        self.roll[place].name.as_deref()
    }
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
            .map(|agent| self.agent_summary(agent, ended))
            .collect();
        let asked: Vec<&AgentAssessment> =
            measured.iter().copied().filter(|agent| agent.as_of.is_none()).collect();
        let content = asked.iter().filter(|agent| agent.loss <= agent.epsilon).count();
        let nobody = everybody == 0;
        let content_at_start = self.content_at_start(ended, about);
        let loss = Spread::of(measured.iter().map(|agent| agent.loss));
        let accuracy = Spread::of(measured.iter().filter_map(|agent| agent.accuracy));
        let means = loss.map(|loss| (loss.mean, accuracy.map(|accuracy| accuracy.mean)));
        let empty = self.empty(assessment, means);
        let leavers: BTreeSet<AgentId> = self.left.iter().map(|left| left.agent).collect();
        let tally = Tally {
            agents: everybody,
            known: asked.len(),
            content,
            left: leavers.len(),
            at_start: content_at_start.len(),
            empty,
        };
        let found = Found {
            measured: &measured,
            at_start: &content_at_start,
            no_better: means.filter(|_| empty == Some(Empty::Constant)),
        };
        let warnings = self.warnings(ended, about, &found);
        // Of agents that nobody measured, nothing is known.
        let nothing = if nobody { 0.0 } else { f64::NAN };
        let nothing = Spread { min: nothing, mean: nothing, max: nothing };
        Summary {
            schema: Summary::SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            rule: server.rule().name().to_owned(),
            optimiser: Some(server.optimiser())
                .filter(|optimiser| !optimiser.is_plain())
                .map(|optimiser| optimiser.name().to_owned()),
            policy: server.policies().to_string(),
            behaviour: about.behaviour.clone(),
            on: about.on.clone(),
            seed: about.seed,
            rounds: self.rounds,
            stop,
            verdict: tally.verdict(),
            empty: tally.empty(),
            content: content as u32,
            // What is claimed of everybody must be known of everybody.
            everybody_content: !nobody && content == everybody,
            left: self.left.clone(),
            content_at_start,
            returned: self.returned.clone(),
            loss: loss.unwrap_or(nothing),
            accuracy,
            fairness: Fairness::of_measured(&measured),
            better_than_alone: None,
            population: assessment.population,
            constant: assessment.constant,
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
            within: self.within,
            guarded: server
                .policies()
                .first(Place::Step)
                .map(|_| f64::from(self.guarded) / f64::from(self.rounds.max(1))),
            misses: self.misses,
            prediction: self.prediction(&leavers),
            counterfactual: None,
            without: Vec::new(),
            privacy: None,
            worth: None,
            rows: about.rows.clone(),
            notes: about.notes.clone(),
            flagged: self.those(|entry| entry.flags > 0).collect(),
            warnings,
            weights: few(server.delivered()),
            unlisted: everybody - agents.len(),
            unmeasured,
            agents,
        }
    }

    fn agent_summary(&self, agent: &AgentAssessment, ended: &Ended<'_>) -> AgentSummary {
        AgentSummary {
            id: agent.id,
            name: ended.name_of(agent.id).map(ToOwned::to_owned),
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

    /// The agents that left before the first step, content with the weights that the run began with.
    fn content_at_start(&self, ended: &Ended<'_>, about: &About) -> Vec<AgentId> {
        // What decides on its own model has trained before it leaves.
        if about.own {
            return Vec::new();
        }
        let behaviour = |agent: AgentId| {
            let known = ended.assessment.of(agent).and_then(|agent| agent.behaviour.as_deref());
            known.unwrap_or(&about.behaviour)
        };
        self.those(|entry| entry.left == Some(1) && entry.reports == 0)
            .filter(|agent| behaviour(*agent) != LEAVES_ANYWAY)
            .collect()
    }

    /// Why the delivered weights are worth nothing, if they are. `means` has their loss and accuracy.
    fn empty(&self, assessment: &Assessment, means: Option<(f64, Option<f64>)>) -> Option<Empty> {
        if self.agents.values().all(|entry| entry.reports == 0) {
            return Some(Empty::NobodyTrained);
        }
        if !self.moved {
            return Some(Empty::NoStep);
        }
        let (constant, (loss, accuracy)) = (assessment.constant?, means?);
        constant.is_as_good_as(loss, accuracy).then_some(Empty::Constant)
    }

    fn prediction(&self, leavers: &BTreeSet<AgentId>) -> Prediction {
        let in_d = || self.those(|entry| entry.rounds_in_d > 0);
        Prediction {
            left: leavers.len() as u32,
            left_foreseen: self.foreseen,
            in_d: in_d().count() as u32,
            in_d_left: in_d().filter(|agent| leavers.contains(agent)).count() as u32,
        }
    }

    /// The agents whose entries satisfy `kind`, by id.
    pub(super) fn those(&self, kind: fn(&AgentEntry) -> bool) -> impl Iterator<Item = AgentId> {
        self.agents.iter().filter(move |(_, entry)| kind(entry)).map(|(agent, _)| *agent)
    }
}

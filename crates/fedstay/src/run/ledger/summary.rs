//! The outcome of a run: the one place in which a summary is made.
//!
//! It is made from the ledger, how the run ended and what the run is. A [`Book`](crate::Book) that
//! has more to say enters its section afterwards.

use super::warnings::Grounds;
use super::{AgentEntry, Ledger};
use crate::policy::Place;
use crate::run::fairness::Fairness;
use crate::run::record::{
    AgentSummary, Forgotten, Guarantee, HeaderAgent, HeldBack, MOST_LISTED, Prediction, Spread,
    Summary, few,
};
use crate::run::verdict::{Empty, Tally};
use crate::{About, AgentAssessment, AgentId, Assessment, Measure, Score, Server, StopReason};
use std::collections::BTreeSet;

/// The behaviour that may leave in the first round without being content.
const LEAVES_ANYWAY: &str = "withdrawing";

/// How a run ended: what the ledger needs beside its rounds to sum it up.
#[derive(Debug, Clone)]
pub struct Ended<'a> {
    /// The server after its last round.
    pub server: &'a Server,
    /// How good its delivered weights are. An agent whose loss is not a number was not measured.
    pub assessment: &'a Assessment,
    /// What was measured besides the loss, the headline first.
    pub measures: Vec<Measure>,
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

    /// How many agents took part.
    fn everybody(&self) -> usize {
        self.agents.max(self.assessment.agents.len())
    }

    /// The agents that were measured, now or, if they could not be asked, earlier.
    fn measured(&self) -> Vec<&'a AgentAssessment> {
        self.assessment.agents.iter().filter(|agent| agent.is_measured()).collect()
    }
}

impl Ledger {
    /// Sums the run up.
    pub fn summary(&self, ended: &Ended<'_>, about: &About) -> Summary {
        let Ended { server, assessment, stop, .. } = *ended;
        let (everybody, measured) = (ended.everybody(), ended.measured());
        let content_at_start = self.content_at_start(ended, about);
        let score = Score::over(measured.iter().map(|agent| &agent.score));
        let means = score.as_ref().map(Score::means);
        let empty = self.empty(assessment, means.as_ref());
        let tally = self.tally(ended, content_at_start.len(), empty);
        let found = Grounds {
            measured: &measured,
            at_start: &content_at_start,
            no_better: means.filter(|_| empty == Some(Empty::Constant)),
        };
        let warnings = self.warnings(ended, about, &found);
        let agents = self.agents(ended);
        // Of agents that nobody measured, nothing is known.
        let zero = Spread { min: 0.0, mean: 0.0, max: 0.0 };
        let nothing = if everybody == 0 { zero } else { Spread::UNKNOWN };
        let optimiser = Some(server.optimiser()).filter(|optimiser| !optimiser.is_plain());
        Summary {
            schema: Summary::SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            rule: server.rule().name().to_owned(),
            optimiser: optimiser.map(|optimiser| optimiser.name().to_owned()),
            policy: server.policies().to_string(),
            behaviour: about.behaviour.clone(),
            on: about.on.clone(),
            seed: about.seed,
            rounds: self.rounds,
            stop,
            verdict: tally.verdict(),
            empty: tally.empty(),
            content: tally.content as u32,
            // What is claimed of everybody must be known of everybody.
            everybody_content: everybody > 0 && tally.content == everybody,
            left: self.left.clone(),
            content_at_start,
            returned: self.returned.clone(),
            score: score.unwrap_or_else(|| Score::new(nothing)),
            measures: ended.measures.clone(),
            held_back: held_back(&assessment.agents),
            fairness: Fairness::of_measured(&measured, &ended.measures),
            better_than_alone: None,
            population: assessment.population.clone(),
            constant: assessment.constant.clone(),
            landed: self.landed,
            guarantee: self.guarantee(ended),
            forgotten: self.forgotten(server, &agents),
            least: self.least,
            within: self.within,
            guarded: self.share_guarded(server),
            misses: self.misses,
            prediction: self.prediction(),
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
            unmeasured: everybody - measured.len(),
            agents,
        }
    }

    /// How many agents there were, and what became of them.
    fn tally(&self, ended: &Ended<'_>, at_start: usize, empty: Option<Empty>) -> Tally {
        let assessed = ended.assessment.agents.iter();
        let asked: Vec<&AgentAssessment> =
            assessed.filter(|agent| agent.is_measured() && agent.as_of.is_none()).collect();
        Tally {
            agents: ended.everybody(),
            known: asked.len(),
            content: asked.iter().filter(|agent| agent.score.loss <= agent.epsilon).count(),
            left: self.leavers().len(),
            at_start,
            empty,
        }
    }

    /// The agents that left, each once.
    fn leavers(&self) -> BTreeSet<AgentId> {
        self.left.iter().map(|left| left.agent).collect()
    }

    /// The agents that are listed.
    fn agents(&self, ended: &Ended<'_>) -> Vec<AgentSummary> {
        let assessed = &ended.assessment.agents;
        let listed = |agent: &&AgentAssessment| {
            assessed.len() <= MOST_LISTED || self.agent(agent.id).is_some()
        };
        assessed.iter().filter(listed).map(|agent| self.agent_summary(agent, ended)).collect()
    }

    fn guarantee(&self, ended: &Ended<'_>) -> Option<Guarantee> {
        let kept = self.kept.filter(|_| ended.server.sees_to_keeping())?;
        Some(if kept && ended.proves { Guarantee::Certified } else { Guarantee::Estimated })
    }

    fn share_guarded(&self, server: &Server) -> Option<f64> {
        let step = server.policies().first(Place::Step);
        step.map(|_| f64::from(self.guarded) / f64::from(self.rounds.max(1)))
    }

    /// The agents that asked to be forgotten, with what the server did and what their losses are now.
    fn forgotten(&self, server: &Server, agents: &[AgentSummary]) -> Vec<Forgotten> {
        let how = server.forgetting().map_or("", |forgetting| forgetting.how.name());
        let loss = |of: AgentId| {
            let agent = agents.iter().find(|agent| agent.id == of)?;
            Some(agent.score.loss).filter(|_| agent.loss_of_round.is_none())
        };
        let all = self.forgotten.iter();
        let told = |known: &Forgotten| Forgotten {
            how: how.to_owned(),
            loss: loss(known.agent),
            ..known.clone()
        };
        all.map(told).collect()
    }

    fn agent_summary(&self, agent: &AgentAssessment, ended: &Ended<'_>) -> AgentSummary {
        AgentSummary {
            id: agent.id,
            name: ended.name_of(agent.id).map(ToOwned::to_owned),
            epsilon: agent.epsilon,
            score: agent.score.clone(),
            loss_of_round: agent.as_of,
            behaviour: agent.behaviour.as_ref().map(ToString::to_string),
            entry: self.agent(agent.id).cloned().unwrap_or_default(),
            held_back: agent.held_back.clone(),
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

    /// Why the delivered weights are worth nothing, if they are. `means` is their score.
    fn empty(&self, assessment: &Assessment, means: Option<&Score>) -> Option<Empty> {
        if self.agents.values().all(|entry| entry.reports == 0) {
            return Some(Empty::NobodyTrained);
        }
        if !self.moved {
            return Some(Empty::NoStep);
        }
        let constant = assessment.constant.as_ref()?;
        constant.is_as_good_as(means?).then_some(Empty::Constant)
    }

    fn prediction(&self) -> Prediction {
        let leavers = self.leavers();
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

/// How agents are served on rows of their own on which nobody trained, over those that have some.
fn held_back(agents: &[AgentAssessment]) -> Option<Score<Spread>> {
    let held_back = agents.iter().filter_map(|agent| agent.held_back.as_ref());
    let scores: Vec<Score> = held_back.map(HeldBack::score).collect();
    Score::over(scores.iter())
}

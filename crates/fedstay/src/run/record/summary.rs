//! `summary.json`: the outcome of a run.

use super::worth::WorthSummary;
use super::{
    AgentSummary, Constant, Counterfactual, DataRows, Departure, Extra, Forgotten, HeldBack,
    Return, Spread, Without, called, called_briefly, is_default,
};
use crate::message::score::{Measure, Score};
use crate::privacy::Budget;
use crate::rule::Landing;
use crate::run::fairness::{Fairness, median};
use crate::run::verdict::{Empty, Verdict};
use crate::{AgentId, StopReason};
use serde::{Deserialize, Serialize};

/// `summary.json`: the outcome of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The schema of this file.
    pub schema: String,
    /// The program's version.
    pub version: String,
    /// The rule's name.
    pub rule: String,
    /// The server optimiser's name, where it changes the rule's steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub optimiser: Option<String>,
    /// The policy's name.
    pub policy: String,
    /// The behaviour's name.
    pub behaviour: String,
    /// What was trained: the problem's or the data set's name.
    pub on: String,
    /// The seed.
    pub seed: u64,
    /// The rounds that were gathered.
    pub rounds: u32,
    /// Why the run ended.
    pub stop: StopReason,
    /// What the departures did to the result.
    pub verdict: Verdict,
    /// Why the delivered weights are worth nothing, if they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub empty: Option<Empty>,
    /// How many agents the delivered weights satisfy, as far as they could be asked. For files that
    /// may be older than this field, [`satisfied`](Self::satisfied) counts again.
    #[serde(default)]
    pub content: u32,
    /// Whether the delivered weights satisfy every agent, including those that left; not where there
    /// is none.
    pub everybody_content: bool,
    /// The agents that left, in the order in which they did.
    pub left: Vec<Departure>,
    /// The agents that were content with the starting weights and never took part, by id. They are
    /// among those that left.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub content_at_start: Vec<AgentId>,
    /// The agents that came back, in the order in which they did. An agent may leave and come back
    /// more than once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub returned: Vec<Return>,
    /// Every agent, by id, but for those that are not listed.
    pub agents: Vec<AgentSummary>,
    /// How many more agents took part, to whom nothing happened and who are too many to be listed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unlisted: usize,
    /// How many agents, listed or not, were not measured: what is said about losses, accuracies and
    /// contentment is about the others.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unmeasured: usize,
    /// How good the delivered weights are over the agents.
    #[serde(flatten)]
    pub score: Score<Spread>,
    /// What was measured besides the loss, the headline first.
    #[serde(default = "Measure::usual", skip_serializing_if = "Measure::are_usual")]
    pub measures: Vec<Measure>,
    /// How good the delivered weights are over the agents that have rows of their own on which nobody
    /// trained, on those rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_back: Option<Score<Spread>>,
    /// How the first measure, or else the loss, is spread over the agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fairness: Option<Fairness>,
    /// How many agents end with a better model than they would have made alone, if that was asked for;
    /// [`against_alone`](Self::against_alone) also says of how many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub better_than_alone: Option<u32>,
    /// The score on the population, where there is one.
    pub population: Option<Score>,
    /// How good the best constant prediction is for the agents, where the engine can say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constant: Option<Constant>,
    /// Whether everybody was brought to their target loss in one broadcast, for rules that try.
    pub landed: Option<Landing>,
    /// How sure it is that the rule keeps everybody, for rules and policies that see to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guarantee: Option<Guarantee>,
    /// How far above their target losses everybody has to stay at least, where it was proved that no
    /// model satisfies everybody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least: Option<f64>,
    /// Where it was proved that no model satisfies everybody: the distance from the weights of that round
    /// within which that holds; absent where it holds at any distance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<f64>,
    /// The share of the rounds in which the guard changed the rule's step, if there is a guard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guarded: Option<f64>,
    /// How often an agent's loss came out below its prediction by more than the room it had, for
    /// rules that rest on predictions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub misses: Option<u32>,
    /// How good the server's predictions were.
    pub prediction: Prediction,
    /// What the run would have delivered with nobody leaving, if that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counterfactual: Option<Counterfactual>,
    /// What every single departure would cost the others, if that was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<Without>,
    /// The agents that asked to be forgotten, and what came of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forgotten: Vec<Forgotten>,
    /// What the reports gave away, where agents add noise to them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub privacy: Option<Budget>,
    /// Who helped whom, in runs that ask what agents are worth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worth: Option<WorthSummary>,
    /// What became of the rows of the data set, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<DataRows>,
    /// Notes on the run, such as how the data were dealt out.
    pub notes: Vec<String>,
    /// Agents whose reports contradicted themselves, by id, in runs that check. What is wrong with
    /// them is among the warnings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flagged: Vec<AgentId>,
    /// What a reader should know before believing the rest.
    pub warnings: Vec<String>,
    /// The delivered weights, if they are few.
    pub weights: Option<Vec<f64>>,
}

impl Summary {
    /// The schema of `summary.json`.
    pub const SCHEMA: &'static str = "fedstay.summary/1";

    /// What was measured over the agents besides the loss, the headline first.
    pub fn measured_besides(&self) -> impl Iterator<Item = (&Measure, &Spread)> {
        self.measures.iter().filter_map(|measure| Some((measure, self.score.get(&measure.name)?)))
    }

    /// What headlines tell: the first measure, or else the loss.
    pub fn headline(&self) -> (&Measure, &Spread) {
        static LOSS: Measure = Measure::LOSS;
        self.measured_besides().next().unwrap_or((&LOSS, &self.score.loss))
    }

    /// What the agent in the middle has of a measure, or of the loss, among those that were measured;
    /// `None` where not everybody is listed and nobody has counted it.
    pub fn median(&self, name: &str) -> Option<f64> {
        if self.unlisted > 0 {
            let counted = self.fairness.as_ref().filter(|fairness| fairness.of == name);
            return counted.map(|fairness| fairness.median);
        }
        let measured = self.agents.iter().filter(|agent| agent.is_measured());
        median(measured.filter_map(|agent| agent.score.of(name)))
    }

    /// How a measure is spread over the agents that have rows of their own on which nobody trained, on
    /// those rows.
    pub fn on_held_back(&self, measure: &Measure) -> Option<&Spread> {
        self.held_back.as_ref()?.measures.get(&measure.name)
    }

    /// What the agent in the middle has on such rows, among those that have some.
    pub fn median_held_back(&self, name: &str) -> Option<f64> {
        let held_back = self.agents.iter().filter_map(|agent| agent.held_back.as_ref());
        let value = |held_back: &HeldBack| held_back.score().of(name);
        median(held_back.filter_map(value)).filter(|_| self.unlisted == 0)
    }

    /// How many agents left, each counted once.
    pub fn leavers(&self) -> usize {
        let who: std::collections::BTreeSet<AgentId> =
            self.left.iter().map(|left| left.agent).collect();
        who.len()
    }

    /// How many agents end with a better model than they would have made alone, and of how many both are
    /// known; `None` if that was not asked for.
    pub fn against_alone(&self) -> Option<(usize, usize)> {
        let judged = || self.agents.iter().filter_map(AgentSummary::is_better_than_alone);
        let of = judged().count();
        (of > 0).then(|| (judged().filter(|better| *better).count(), of))
    }

    /// What departures cost those who stayed, if it is known what would have been without any.
    pub fn extra_work(&self) -> Option<Extra> {
        let without = self.counterfactual.as_ref()?;
        let left = |agent: &AgentSummary| self.left.iter().any(|left| left.agent == agent.id);
        let (mut stayers, mut rounds) = (0, 0);
        for (agent, usual) in self.agents.iter().zip(&without.reports) {
            if !left(agent) {
                stayers += 1;
                rounds += i64::from(agent.entry.reports) - i64::from(*usual);
            }
        }
        let bytes =
            rounds.saturating_mul(i64::try_from(without.bytes_per_report).unwrap_or(i64::MAX));
        (stayers > 0 && !self.left.is_empty()).then_some(Extra { stayers, rounds, bytes })
    }

    /// How many agents the delivered weights satisfy, as far as they could be asked.
    pub fn satisfied(&self) -> usize {
        match self.unlisted {
            0 => self.agents.iter().filter(|agent| agent.is_content()).count(),
            _ => self.content as usize,
        }
    }

    /// How many agents took part, listed or not.
    pub fn count(&self) -> usize {
        self.agents.len() + self.unlisted
    }

    /// How many agents are known to be content with the delivered weights or not to be: those that
    /// were measured and could be asked about them.
    pub fn known(&self) -> usize {
        let unasked = self.agents.iter().filter(|agent| agent.loss_of_round.is_some()).count();
        self.measured().saturating_sub(unasked)
    }

    /// What an agent is called in a sentence: its name, or `agent 3`.
    pub fn called(&self, id: AgentId) -> String {
        called(id, self.name(id))
    }

    /// What an agent is called under a heading that says that it is one: its name, or `3`.
    pub fn called_briefly(&self, id: AgentId) -> String {
        called_briefly(id, self.name(id))
    }

    fn name(&self, id: AgentId) -> Option<&str> {
        self.agents.iter().find(|agent| agent.id == id)?.name.as_deref()
    }

    /// How many agents were measured.
    pub fn measured(&self) -> usize {
        self.count().saturating_sub(self.unmeasured)
    }
}

/// How sure it is that a rule keeps everybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Guarantee {
    /// Proved: the losses are convex, gradients and losses exact, agents leave at their target loss
    /// and not before, and every step met every constraint.
    Certified,
    /// Predicted from gradients, which nets, samples and other behaviours may belie.
    Estimated,
}

/// How good the server's predictions were.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prediction {
    /// How many agents left.
    pub left: u32,
    /// How many of those were about to leave in the round before.
    pub left_foreseen: u32,
    /// How many agents were ever about to leave.
    pub in_d: u32,
    /// How many of those left, sooner or later.
    pub in_d_left: u32,
}

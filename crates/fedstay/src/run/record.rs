//! What a run leaves behind, as data: the lines of `rounds.jsonl` and `gram.jsonl`, and
//! `summary.json`.
//!
//! These files are the interface of everything that looks at a run: drawings, the live view,
//! Python. Every file names its schema; a field may be added under the same schema, never changed.

use super::fairness::Fairness;
use super::verdict::Verdict;
use super::{About, Assessment, RoundRecord};
use crate::book::consistency::Flag;
use crate::book::ledger::AgentEntry;
use crate::book::worth::{AgentWorth, WorthLine, WorthSummary};
use crate::privacy::Budget;
use crate::rule::{Decision, Doubted, Landing, Miss, Shown};
use crate::{AgentId, Loss, Reports, StopReason, Vector, linalg};
use serde::{Deserialize, Deserializer, Serialize};

/// Weights of at most this many components are written out, for drawings and for people.
const SMALL: usize = 16;

/// Of more agents than this, a header, an assessment and a summary do not list everybody: only those
/// to whom something happened, and how many are not listed.
pub const MOST_LISTED: usize = 10_000;

/// Weights as a line holds them: only if they are few.
pub(crate) fn few(weights: &[f64]) -> Option<Vec<f64>> {
    (weights.len() <= SMALL).then(|| weights.to_vec())
}

/// The first line of `rounds.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The schema of this file.
    pub schema: String,
    /// The program's version.
    pub version: String,
    /// The rule's name, with its policy.
    pub rule: String,
    /// What is trained: the problem's or the data set's name.
    pub on: String,
    /// The seed.
    pub seed: u64,
    /// The rounds asked for.
    pub rounds: u32,
    /// Every agent that takes part, but for those that are not listed.
    pub agents: Vec<HeaderAgent>,
    /// How many more agents take part, where they are too many to be listed.
    #[serde(default, skip_serializing_if = "is_none")]
    pub unlisted: usize,
    /// Whether only some rounds are here, without the agents' losses: a run from a sweep's store.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sketch: bool,
    /// Whether agents decide on, and report, the loss of their own model after their local work,
    /// instead of that of the model they received.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own: bool,
    /// Whether agents may be shown other weights than the server's. They report the loss of what they
    /// were shown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub previews: bool,
}

impl Header {
    /// The schema of `rounds.jsonl`.
    pub const SCHEMA: &'static str = "fedstay.rounds/1";

    /// The header of a run.
    pub fn new(about: &About, rounds: u32, agents: Vec<HeaderAgent>) -> Self {
        Self {
            schema: Self::SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            rule: about.label.clone(),
            on: about.on.clone(),
            seed: about.seed,
            rounds,
            agents,
            unlisted: 0,
            sketch: false,
            own: about.own,
            previews: false,
        }
    }

    /// How many agents take part, listed or not.
    pub fn count(&self) -> usize {
        self.agents.len() + self.unlisted
    }
}

/// One agent that takes part, as the header lists it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeaderAgent {
    /// Its id.
    pub id: AgentId,
    /// Its target loss.
    #[serde(default = "unknown", deserialize_with = "or_unknown")]
    pub epsilon: f64,
    /// Its display name, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

fn is_none(count: &usize) -> bool {
    *count == 0
}

/// JSON has no NaN: an unknown number is written as null, and read back as NaN.
fn or_unknown<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(from)?.unwrap_or(f64::NAN))
}

fn unknown() -> f64 {
    f64::NAN
}

/// Reads a column of numbers in which an unknown one is null.
fn or_unknowns<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<f64>, D::Error> {
    let column = Vec::<Option<f64>>::deserialize(from)?;
    Ok(column.into_iter().map(|value| value.unwrap_or(f64::NAN)).collect())
}

/// One round of `rounds.jsonl`. Columns run over `agents`, those that reported.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RoundLine {
    /// The round, from 1.
    pub round: u32,
    /// The agents that reported, by id.
    pub agents: Vec<AgentId>,
    /// Their losses at the weights they received; null for an agent that does not tell its loss.
    pub loss: Vec<Option<f64>>,
    /// The agents among them whose loss is only a lower bound.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at_least: Vec<AgentId>,
    /// The agents about to leave.
    #[serde(default)]
    pub d: Vec<AgentId>,
    /// The paper's case, for rules that act on who is about to leave.
    pub case: Option<u8>,
    /// The agents that left on receipt of this round's weights.
    #[serde(default)]
    pub left: Vec<AgentId>,
    /// The agents among them that asked to be forgotten.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forgot: Vec<AgentId>,
    /// The agents that had left and came back on receipt of this round's weights.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub returned: Vec<AgentId>,
    /// The agents that should have answered and did not, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<(AgentId, String)>,
    /// The agents that could not be reached by their schedule, or sat this round out. They have not
    /// left.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<AgentId>,
    /// The agents that came in this round, and what they found, where models are kept for newcomers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arrived: Vec<Arrival>,
    /// The agents whose reports contradict themselves, and how, in runs that check.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<Flag>,
    /// The step size in force after the decision.
    #[serde(default = "unknown", deserialize_with = "or_unknown")]
    pub step_size: f64,
    /// The length of the step.
    #[serde(default = "unknown", deserialize_with = "or_unknown")]
    pub step_norm: f64,
    /// The number of independent gradients that the projection kept clear of, and of all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<(usize, usize)>,
    /// Why the run ended here, if it did.
    pub stop: Option<StopReason>,
    /// Whether this step brings everybody to their target loss, for rules that try.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landed: Option<Landing>,
    /// Whether first-order information says that the step keeps everybody; none where the losses
    /// that would tell were not asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<bool>,
    /// Whether the guard changed the rule's step.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub guarded: bool,
    /// The agents whose loss the last step's prediction missed, for rules that rest on predictions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed: Option<Vec<Miss>>,
    /// The agents that were shown other weights than the server's. Their losses are those of what
    /// they were shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shown: Vec<Shown>,
    /// The agents that were not heard and for whom their last report stood in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_cut: Vec<AgentId>,
    /// The agents whose reports were not taken at their word, and what was done about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubted: Vec<Doubted>,
    /// How far above their target losses everybody has to stay at least, as far as is proved, where
    /// no model satisfies everybody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least: Option<f64>,
    /// How good the received weights are for every agent of the header, in rounds that measure it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assessment: Option<AssessmentLine>,
    /// What the round says about what agents are worth, in runs that ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worth: Option<WorthLine>,
    /// The weights the agents received, if they are few.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<Vec<f64>>,
}

impl RoundLine {
    /// The line of a round, without its weights.
    pub(crate) fn new(
        round: u32,
        reports: &Reports<'_>,
        faults: &[(AgentId, String)],
        decision: &Decision,
        step: &[f64],
        assessment: Option<&Assessment>,
    ) -> Self {
        let bounded = |report: &&crate::Report<'_>| matches!(report.loss(), Some(Loss::AtLeast(_)));
        Self {
            round,
            agents: reports.iter().map(|report| report.agent).collect(),
            loss: reports.iter().map(|report| report.loss().map(Loss::value)).collect(),
            at_least: reports.iter().filter(bounded).map(|report| report.agent).collect(),
            d: decision.split.d.clone(),
            case: decision.case,
            left: reports.goodbyes().to_vec(),
            forgot: decision.forgot.clone(),
            returned: reports.returned().to_vec(),
            faults: faults.to_vec(),
            absent: Vec::new(),
            arrived: Vec::new(),
            flags: Vec::new(),
            step_size: decision.step_size,
            step_norm: linalg::norm(Vector::F64(step)),
            rank: decision.projection.map(|projection| (projection.rank, projection.of)),
            stop: decision.stop,
            landed: decision.landed,
            kept: decision.kept,
            guarded: decision.guarded,
            missed: decision.missed.clone(),
            shown: decision.shown.clone(),
            by_cut: decision.by_cut.clone(),
            doubted: decision.doubted.clone(),
            least: decision.least,
            assessment: assessment.map(AssessmentLine::new),
            worth: None,
            weights: None,
        }
    }

    /// Checks that its columns have matching lengths.
    ///
    /// # Errors
    /// Says what is wrong with a line that something else wrote.
    pub fn check(&self) -> Result<(), String> {
        match (self.agents.len(), self.loss.len()) {
            (agents, losses) if agents == losses => Ok(()),
            (agents, losses) => Err(format!("{agents} agents but {losses} losses")),
        }
    }

    /// The mean of the reported losses.
    pub fn mean_loss(&self) -> Option<f64> {
        let told: Vec<f64> = self.loss.iter().flatten().copied().collect();
        (!told.is_empty()).then(|| told.iter().sum::<f64>() / told.len() as f64)
    }
}

/// An agent that left and asked to be forgotten, and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Forgotten {
    /// The agent.
    pub agent: AgentId,
    /// The round in which it asked.
    pub round: u32,
    /// What the server did about it.
    #[serde(default)]
    pub how: String,
    /// The mean loss that the others told in that round.
    pub rest: Option<f64>,
    /// After how many rounds the others were back at that loss, if they were.
    pub recovered: Option<u32>,
    /// Its loss under the delivered weights.
    #[serde(default)]
    pub loss: Option<f64>,
    /// How well its rows can be told from unseen ones of the same classes by their loss under the
    /// delivered weights: ½ if not at all, 1 if always (the area under the curve of an attack on
    /// membership).
    #[serde(default)]
    pub membership: Option<f64>,
}

/// What an agent found that came after the first round, where models are kept for newcomers: its loss
/// on its own data.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Arrival {
    /// The agent.
    pub agent: AgentId,
    /// The round in which it came.
    pub round: u32,
    /// Under the model of that round.
    pub last: f64,
    /// Under the best of the models that were kept; null where none was.
    pub best: Option<f64>,
    /// The round of that model.
    pub of_round: Option<u32>,
    /// Under a mixture of the models that were kept and the last one.
    pub mixture: f64,
    /// Of how many models that mixture is.
    pub mixed: u32,
}

/// How good the weights of a round are. Columns run over the header's agents, including those that
/// left, or over those that were measured, where these are others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AssessmentLine {
    /// The agents that were measured, by id, where these are not the header's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentId>,
    /// Every agent's loss.
    #[serde(default, deserialize_with = "or_unknowns")]
    pub loss: Vec<f64>,
    /// Every agent's accuracy; empty where that means nothing.
    #[serde(default, deserialize_with = "or_unknowns")]
    pub accuracy: Vec<f64>,
    /// Loss and accuracy on the population, where there is one.
    pub population: Option<Population>,
    /// Loss and accuracy over all agents, if only that was kept, as in a sketch or of very many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<(Option<Spread>, Option<Spread>)>,
}

impl AssessmentLine {
    fn new(assessment: &Assessment) -> Self {
        let loss: Vec<f64> = assessment.agents.iter().map(|agent| agent.loss).collect();
        let accuracy: Vec<f64> =
            assessment.agents.iter().filter_map(|agent| agent.accuracy).collect();
        let (agents, population) = (Vec::new(), assessment.population);
        if loss.len() > MOST_LISTED {
            let over = Some((Spread::of(loss), Spread::of(accuracy)));
            return Self { agents, loss: Vec::new(), accuracy: Vec::new(), population, over };
        }
        Self { agents, loss, accuracy, population, over: None }
    }

    /// Names the agents of the columns, if these are not all that the header lists.
    pub(crate) fn name_agents(&mut self, header: &Header, assessment: &Assessment) {
        let listed = header.agents.iter().map(|agent| agent.id);
        if self.over.is_none() && !listed.eq(assessment.agents.iter().map(|agent| agent.id)) {
            self.agents = assessment.agents.iter().map(|agent| agent.id).collect();
        }
    }

    /// The place of an agent in the columns, given its place in the header.
    fn place(&self, in_header: usize, agent: AgentId) -> Option<usize> {
        match self.agents.is_empty() {
            true => Some(in_header),
            false => self.agents.binary_search(&agent).ok(),
        }
    }

    /// The loss of an agent, given its place in the header, if it was measured.
    pub fn loss_of(&self, in_header: usize, agent: AgentId) -> Option<f64> {
        self.loss.get(self.place(in_header, agent)?).copied()
    }

    /// The accuracy of an agent, given its place in the header, if it was measured.
    pub fn accuracy_of(&self, in_header: usize, agent: AgentId) -> Option<f64> {
        self.accuracy.get(self.place(in_header, agent)?).copied()
    }

    /// The losses over the agents that were measured.
    pub fn losses(&self) -> Option<Spread> {
        self.over.map_or_else(|| Spread::of(self.loss.iter().copied()), |over| over.0)
    }

    /// The accuracies over the agents that were measured.
    pub fn accuracies(&self) -> Option<Spread> {
        self.over.map_or_else(|| Spread::of(self.accuracy.iter().copied()), |over| over.1)
    }
}

/// One round of `gram.jsonl`: how the agents' gradients lie relative to each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GramLine {
    /// The round, from 1.
    pub round: u32,
    /// The agents that reported, by id.
    pub agents: Vec<AgentId>,
    /// Their losses; null unless exact.
    pub loss: Vec<Option<f64>>,
    /// The inner products of their gradients: the lower triangle, row by row.
    pub gram: Vec<f64>,
    /// The inner products of their gradients with the step.
    pub slope: Vec<f64>,
    /// The length of the step.
    pub step_norm: f64,
}

impl GramLine {
    /// The schema of `gram.jsonl`.
    pub const SCHEMA: &'static str = "fedstay.gram/1";

    /// Checks that its columns have matching lengths.
    ///
    /// # Errors
    /// Says what is wrong with a line that something else wrote.
    pub fn check(&self) -> Result<(), String> {
        let n = self.agents.len();
        let whole = self.loss.len() == n && self.slope.len() == n;
        match whole && self.gram.len() == n * (n + 1) / 2 {
            true => Ok(()),
            false => Err(format!("its columns do not fit {n} agents")),
        }
    }

    /// The line of a round.
    pub fn new(record: &RoundRecord<'_>) -> Self {
        let slopes: Vec<Vector<'_>> = record.reports.iter().map(|report| report.slope()).collect();
        let full = linalg::gram(&slopes);
        let n = slopes.len();
        let step = Vector::F64(record.step);
        Self {
            round: record.line.round,
            agents: record.reports.iter().map(|report| report.agent).collect(),
            loss: record.reports.iter().map(|report| report.exact_loss("").ok()).collect(),
            gram: (0..n).flat_map(|row| full[row * n..=row * n + row].to_vec()).collect(),
            slope: slopes.iter().map(|slope| linalg::dot(*slope, step)).collect(),
            step_norm: linalg::norm(step),
        }
    }
}

/// The smallest, the mean and the largest of a number over the agents.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The smallest.
    #[serde(deserialize_with = "or_unknown")]
    pub min: f64,
    /// The mean.
    #[serde(deserialize_with = "or_unknown")]
    pub mean: f64,
    /// The largest.
    #[serde(deserialize_with = "or_unknown")]
    pub max: f64,
}

impl Spread {
    /// The spread of some numbers; `None` if there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let values: Vec<f64> = values.into_iter().collect();
        (!values.is_empty()).then(|| Self {
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            mean: values.iter().sum::<f64>() / values.len() as f64,
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        })
    }
}

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
    /// How many agents the delivered weights satisfy, as far as they could be asked. For files that
    /// may be older than this field, [`satisfied`](Self::satisfied) counts again.
    #[serde(default)]
    pub content: u32,
    /// Whether the delivered weights satisfy every agent, including those that left; not where there
    /// is none.
    pub everybody_content: bool,
    /// The agents that left, in the order in which they did.
    pub left: Vec<Departure>,
    /// The agents that came back, in the order in which they did. An agent may leave and come back
    /// more than once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub returned: Vec<Return>,
    /// Every agent, by id, but for those that are not listed.
    pub agents: Vec<AgentSummary>,
    /// How many more agents took part, to whom nothing happened and who are too many to be listed.
    #[serde(default, skip_serializing_if = "is_none")]
    pub unlisted: usize,
    /// How many agents, listed or not, were not measured: what is said about losses, accuracies and
    /// contentment is about the others.
    #[serde(default, skip_serializing_if = "is_none")]
    pub unmeasured: usize,
    /// The delivered weights' loss over the agents.
    pub loss: Spread,
    /// Their accuracy over the agents, where that means something.
    pub accuracy: Option<Spread>,
    /// How the delivered weights' accuracy, or else their loss, is spread over the agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fairness: Option<Fairness>,
    /// Loss and accuracy on the population, where there is one.
    pub population: Option<Population>,
    /// Whether everybody was brought to their target loss in one broadcast, for rules that try.
    pub landed: Option<Landing>,
    /// How sure it is that the rule keeps everybody, for rules and policies that see to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guarantee: Option<Guarantee>,
    /// How far above their target losses everybody has to stay at least, where it was proved that no
    /// model satisfies everybody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least: Option<f64>,
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

    /// How many agents left, each counted once.
    pub fn leavers(&self) -> usize {
        let who: std::collections::BTreeSet<AgentId> =
            self.left.iter().map(|left| left.agent).collect();
        who.len()
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

/// One agent that left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Departure {
    /// The agent that left.
    pub agent: AgentId,
    /// The round whose weights it left on.
    pub round: u32,
}

/// One agent that came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Return {
    /// The agent that came back.
    pub agent: AgentId,
    /// The round whose weights it came back on.
    pub round: u32,
}

/// What became of one agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentSummary {
    /// Its id.
    pub id: AgentId,
    /// Its target loss.
    #[serde(default = "unknown", deserialize_with = "or_unknown")]
    pub epsilon: f64,
    /// Its loss at the delivered weights.
    #[serde(default = "unknown", deserialize_with = "or_unknown")]
    pub loss: f64,
    /// The round in which it last reported a loss, if it could not be asked about the delivered
    /// weights; `loss` is then that one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_of_round: Option<u32>,
    /// Its accuracy at the delivered weights, where that means something.
    pub accuracy: Option<f64>,
    /// What the ledger counted about it: when it left, how often it reported, and the like.
    #[serde(flatten)]
    pub entry: AgentEntry,
    /// How it behaves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behaviour: Option<String>,
    /// How good the model it ends with is for it: the delivered one or, for an agent that left, the
    /// one it left with. Given if that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_with: Option<Score>,
    /// How good a model it would have made alone, where that was asked for: in as many rounds as the
    /// run had, or, with the key `compare_alone`, in as many as it might have had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone: Option<Score>,
    /// What it gave and got, in runs that ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worth: Option<AgentWorth>,
    /// In how many of its reports it repeated itself without having worked, where that was asked for.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub idle: u32,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl AgentSummary {
    /// Whether it was measured, at the delivered weights or, if it could not be asked, at earlier
    /// ones.
    pub fn is_measured(&self) -> bool {
        self.loss_of_round.is_some() || !self.loss.is_nan()
    }

    /// Whether its loss at the delivered weights is known.
    pub fn is_asked(&self) -> bool {
        self.loss_of_round.is_none() && !self.loss.is_nan()
    }

    /// Whether the delivered weights are known to satisfy it.
    pub fn is_content(&self) -> bool {
        self.loss_of_round.is_none() && self.loss <= self.epsilon
    }
}

/// How good a model is for one agent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// Its loss on its own data.
    pub loss: f64,
    /// Its accuracy on its own data, where that means something.
    pub accuracy: Option<f64>,
    /// Its accuracy on rows that nobody trained on, weighted by its own mix of classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unseen: Option<f64>,
}

impl Score {
    /// Whether this score is the better of two: on unseen rows if there are any, else by the loss.
    pub fn beats(&self, other: &Self) -> bool {
        match (self.unseen, other.unseen) {
            (Some(own), Some(other)) => own > other,
            _ => self.loss < other.loss,
        }
    }
}

/// The same run with nobody leaving: what it would have delivered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Counterfactual {
    /// The number of its rounds.
    pub rounds: u32,
    /// Why that run ended.
    pub stop: StopReason,
    /// Its delivered weights' loss over the agents.
    pub loss: Spread,
    /// Their accuracy over the agents, where that means something.
    pub accuracy: Option<Spread>,
    /// Loss and accuracy on the population, where there is one.
    pub population: Option<Population>,
    /// In how many rounds each agent reported, by id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reports: Vec<u32>,
    /// How many bytes go to an agent and back for one report, in single precision.
    #[serde(default)]
    pub bytes_per_report: u64,
}

/// What departures cost those who stay: what they do and send beyond what they would have, had nobody
/// left. Until the first departure both runs are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extra {
    /// How many never left.
    pub stayers: u32,
    /// How many more rounds they worked, all together; negative if fewer.
    pub rounds: i64,
    /// How many more bytes went to them and back.
    pub bytes: i64,
}

/// What it would have changed for the others if an agent had never taken part.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Without {
    /// The agent.
    pub agent: AgentId,
    /// The mean loss of the others.
    pub loss: Change,
    /// The largest loss among them.
    pub worst: Change,
    /// Their mean accuracy, where that means something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<Change>,
    /// The loss on the population, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub population: Option<Change>,
    /// How many of the others left.
    pub left: Change,
}

/// A number in the run as it was, and in the same run without an agent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// In the run as it was.
    pub with: f64,
    /// Without the agent.
    pub without: f64,
}

impl Change {
    /// By how much it is more without the agent.
    pub fn by(&self) -> f64 {
        self.without - self.with
    }
}

impl Without {
    /// Compares a run with the same run without the agent.
    pub fn of(agent: AgentId, with: &Summary, without: &Summary) -> Self {
        let others = |summary: &Summary| -> Vec<AgentSummary> {
            summary.agents.iter().filter(|other| other.id != agent).cloned().collect()
        };
        let (now, then) = (others(with), others(without));
        let change =
            |of: &dyn Fn(&[AgentSummary]) -> f64| Change { with: of(&now), without: of(&then) };
        let measured = |agent: &&AgentSummary| agent.is_measured();
        let losses = |agents: &[AgentSummary]| {
            Spread::of(agents.iter().filter(measured).map(|agent| agent.loss))
        };
        let accuracy = |agents: &[AgentSummary]| {
            let of = agents.iter().filter(measured).map(|agent| agent.accuracy);
            let each: Option<Vec<f64>> = of.collect();
            Spread::of(each?).map(|spread| spread.mean)
        };
        let both = |with: Option<f64>, without: Option<f64>| {
            with.zip(without).map(|(with, without)| Change { with, without })
        };
        let population = |summary: &Summary| summary.population.map(|population| population.loss);
        let left = |agents: &[AgentSummary]| {
            agents.iter().filter(|agent| agent.entry.left.is_some()).count() as f64
        };
        Self {
            agent,
            loss: change(&|agents| losses(agents).map_or(f64::NAN, |spread| spread.mean)),
            worst: change(&|agents| losses(agents).map_or(f64::NAN, |spread| spread.max)),
            accuracy: both(accuracy(&now), accuracy(&then)),
            population: both(population(with), population(without)),
            left: change(&left),
        }
    }
}

/// Loss and accuracy on data that no participant trained on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Population {
    /// The mean loss.
    pub loss: f64,
    /// The share of correct predictions.
    pub accuracy: Option<f64>,
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

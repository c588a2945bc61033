//! The simulator: agents that hold real data, in this process, on all its threads.
//!
//! An agent's work in a round is done by one thread from start to end and depends on nothing but
//! the weights, the round and the agent's own stream of randomness, so the number of threads
//! changes how long a round takes and nothing else.

mod agent;
mod judge;
mod library;
pub mod local_work;
pub mod population;
mod unseen;

pub(crate) use agent::reach_of;
pub use judge::UnseenRows;
pub use library::Shelf;

use crate::data::{Dataset, Inputs};
use crate::experiment::bounds::{check_drawn, check_held};
use crate::experiment::{Experiment, SpecError, Training};
use crate::model::{Architecture, Evaluation, Loaded, Network, Rows, RowsData, Workspace};
use agent::{Agent, AgentState, Hermit, Task};
use fedstay::record::{Arrival, HeaderAgent, Population as PopulationScore, Score};
use fedstay::schedule::When;
use fedstay::{
    Abilities, AgentAssessment, AgentId, Answer, Assessment, Call, Decide, Engine, Error, Gathered,
    Losses, Memory, Participant, Privacy, Reports, Rule, Schedule, Seed,
};
use library::Library;
use local_work::{BatchSize, Local};
use population::{Population, Sizes};
use rand::seq::SliceRandom;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use unseen::Unseen;

/// On which loss an agent decides. It reports the same loss.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DecidesOn {
    /// The loss of the model it received: the paper's rule.
    #[default]
    Received,
    /// The loss of its own model, after its local work: the choice that reproduces the paper's
    /// Figure 2.
    Own,
}

/// An engine whose agents hold data.
pub struct Simulator {
    network: Network,
    population: Population,
    agents: Vec<Agent>,
    training: Training,
    seed: Seed,
    /// Mini-batch SGD: all gradients are taken at the received weights.
    stands: bool,
    /// Evaluate everything in full, for comparison with the early exit.
    full_losses: bool,
    /// Everybody stays, whatever they decide: the counterfactual.
    nobody_leaves: bool,
    privacy: Option<Privacy>,
    schedule: Schedule,
    library: Library,
    /// An agent that is kept out from the start.
    without: Option<AgentId>,
    workspaces: Workspaces,
}

/// What must survive a restart.
#[derive(Serialize, Deserialize)]
struct State {
    agents: Vec<AgentState>,
    #[serde(default)]
    library: Library,
}

/// One workspace per thread, handed out and taken back.
#[derive(Default)]
struct Workspaces(Mutex<Vec<Workspace>>);

impl Workspaces {
    fn with<T>(&self, work: impl FnOnce(&mut Workspace) -> T) -> T {
        let taken = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).pop();
        let mut workspace = taken.unwrap_or_default();
        let result = work(&mut workspace);
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(workspace);
        result
    }
}

/// The outcome of an agent's work.
type Worked = Result<(), crate::model::Error>;

/// What an error of the model means for a run.
pub(crate) fn failed(round: u32) -> impl Fn(crate::model::Error) -> Error {
    use crate::model::Error::{Bound, NotFinite};
    move |error| match error {
        // A bound is not a number where a norm is not one.
        NotFinite { .. } | Bound => Error::Diverged { round, why: error.to_string() },
        _ => Error::Engine { round, why: error.to_string() },
    }
}

impl Simulator {
    /// Loads the data, deals them out and builds the model.
    ///
    /// # Errors
    /// When the experiment has no training, or the data are missing or do not suffice.
    pub fn new(experiment: &Experiment) -> Result<Self, SpecError> {
        Self::on(experiment, Self::deal(experiment)?)
    }

    /// Loads the data and deals them out: the part that experiments with the same data, partition,
    /// numbers of agents and rows, and seed have in common.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn deal(experiment: &Experiment) -> Result<Population, SpecError> {
        let training = experiment.training().ok_or(SpecError::NoTraining)?;
        let loaded = training.data.load()?;
        let sizes = Sizes {
            agents: training.agents,
            population: training.population,
            per_agent: training.data.per_agent,
        };
        let mut rng = Seed(experiment.seed).stream("partition", 0, 0);
        Ok(Population::new(loaded, &training.partition, sizes, &mut rng)?)
    }

    /// The simulator over data that [`deal`](Self::deal) dealt out for this experiment.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn on(experiment: &Experiment, population: Population) -> Result<Self, SpecError> {
        let training = experiment.training().cloned().ok_or(SpecError::NoTraining)?;
        let seed = Seed(experiment.seed);
        let data = population.data();
        let network = training.model.network(data.features(), data.classes.len())?;
        let behaviours = experiment.behaviour.assign(population.agents(), seed)?;
        let (parameters, count) = (network.layout().parameters(), population.agents());
        // Models that are kept are as large as those that agents hold.
        check_held(count + training.library.keep, parameters)?;
        if matches!(training.local.batch, BatchSize::Samples(_)) {
            let largest = population.sizes().into_iter().max().unwrap_or(0);
            check_drawn(training.local.steps, training.local.batch_of(largest))?;
        }
        let agents = behaviours
            .into_iter()
            .enumerate()
            .map(|(index, behaviour)| Agent::new(index, behaviour, parameters));
        let mut simulator = Self {
            agents: agents.collect(),
            network,
            population,
            training,
            seed,
            stands: matches!(experiment.rule, Rule::MinibatchSgd(_)),
            full_losses: false,
            nobody_leaves: false,
            privacy: experiment.privacy,
            schedule: experiment.schedule_for(count)?,
            library: Library::default(),
            without: None,
            workspaces: Workspaces::default(),
        };
        // Checks labels, lengths and scaling once, so that no round can fail on them.
        for index in 0..simulator.agents.len() {
            rows(simulator.population.data(), simulator.population.agent(index))?;
        }
        let alone = || simulator.alone(experiment.step_size, experiment.rounds);
        let epsilon: Vec<f64> = experiment.epsilon.each(count, alone)?;
        for (agent, epsilon) in simulator.agents.iter_mut().zip(epsilon) {
            agent.participant.epsilon = epsilon;
        }
        Ok(simulator)
    }

    /// The first weights, by the model's init and the seed.
    pub fn initial_weights(&self) -> Vec<f64> {
        self.network.initial_weights(&mut self.seed.stream("init", 0, 0))
    }

    /// The model.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Who holds which rows.
    pub fn population(&self) -> &Population {
        &self.population
    }

    /// Makes every loss be evaluated in full, for comparison with the early exit.
    pub fn set_full_losses(&mut self, full: bool) {
        self.full_losses = full;
    }

    /// Makes everybody stay, whatever they decide: the counterfactual of a run with departures.
    pub fn set_nobody_leaves(&mut self, nobody: bool) {
        self.nobody_leaves = nobody;
    }

    /// Keeps an agent out from the start, to see what the others would do without it.
    pub fn set_without(&mut self, agent: AgentId) {
        self.without = Some(agent);
    }

    /// In how many rounds each agent reported without having worked.
    pub fn idle_rounds(&self) -> Vec<u32> {
        let idle = |agent: &Agent| agent.participant.behaviour().idle_rounds();
        self.agents.iter().map(idle).collect()
    }

    /// Makes everybody report, content or not, and leaves it to the caller to say who is still in
    /// (`left`) and up to which loss (`epsilon`) an agent looks. One entry per agent.
    pub(crate) fn steer(&mut self, left: &[Option<u32>], epsilon: &[f64]) {
        self.nobody_leaves = true;
        for ((agent, left), epsilon) in self.agents.iter_mut().zip(left).zip(epsilon) {
            agent.participant.set_left(*left);
            agent.participant.epsilon = *epsilon;
        }
    }

    /// The loss every agent reaches by training alone, with the same local work and rounds.
    ///
    /// # Errors
    /// When training leaves the floating-point range.
    pub fn alone(&self, step_size: f64, rounds: u32) -> Result<Vec<f64>, SpecError> {
        let scores = self.alone_scores(step_size, rounds, None)?;
        Ok(scores.iter().map(|score| score.loss).collect())
    }

    /// How good the model is that every agent trains alone, with the same local work and rounds.
    fn alone_scores(
        &self,
        step_size: f64,
        rounds: u32,
        unseen: Option<&Unseen>,
    ) -> Result<Vec<Score>, SpecError> {
        let start = self.initial_weights();
        let Self { network, seed, stands, .. } = self;
        let local = &self.training.local;
        (0..self.agents.len())
            .into_par_iter()
            .map(|index| {
                let rows = own_rows(&self.population, index)?;
                let agent = index as u64;
                self.workspaces.with(|work| {
                    let start = network.load(&start)?;
                    let (rows, seed, stands) = (&rows, *seed, *stands);
                    let hermit = Hermit { network, rows, local, seed, agent, stands, step_size };
                    let model = hermit.train(start, rounds, work)?;
                    self.score(index, &model, unseen, work)
                })
            })
            .collect::<Result<_, crate::model::Error>>()
            .map_err(SpecError::from)
    }

    /// How good weights are for one agent.
    fn score(
        &self,
        agent: usize,
        weights: &Loaded,
        unseen: Option<&Unseen>,
        work: &mut Workspace,
    ) -> Result<Score, crate::model::Error> {
        let own = rows(self.population.data(), self.population.agent(agent))?;
        let evaluation = self.network.evaluate(weights, &own, None, work)?;
        let mut score =
            Score { loss: evaluation.loss, accuracy: Some(evaluation.accuracy()), unseen: None };
        if let Some(unseen) = unseen {
            let class = |range: &Range<usize>| {
                let rows = rows(&unseen.data, range.clone())?;
                Ok(self.network.evaluate(weights, &rows, None, &mut *work)?.accuracy())
            };
            let by_class: Vec<f64> =
                unseen.classes.iter().map(class).collect::<Result<_, crate::model::Error>>()?;
            score.unseen = Some(unseen.accuracy(agent, &by_class));
        }
        Ok(score)
    }

    /// How good the model is that every agent trains alone in this many rounds, on unseen rows too.
    ///
    /// # Errors
    /// When training leaves the floating-point range.
    pub fn scores_alone(&self, step_size: f64, rounds: u32) -> Result<Vec<Score>, SpecError> {
        self.alone_scores(step_size, rounds, Unseen::new(&self.population).as_ref())
    }

    /// How good weights are for every agent, on unseen rows too: one vector of weights per agent.
    ///
    /// # Errors
    /// When a vector does not fit this model.
    pub fn scores(&self, weights: &[&[f64]]) -> Result<Vec<Score>, SpecError> {
        let unseen = Unseen::new(&self.population);
        let score = |(agent, weights): (usize, &&[f64])| {
            let weights = self.network.load(weights)?;
            self.workspaces.with(|work| self.score(agent, &weights, unseen.as_ref(), work))
        };
        weights
            .par_iter()
            .enumerate()
            .map(score)
            .collect::<Result<_, _>>()
            .map_err(|error: crate::model::Error| error.into())
    }

    /// Whether an agent can be reached in a round.
    fn is_there(&self, index: usize, round: u32) -> bool {
        let (agent, agents) = (index as u64, self.agents.len() as u64);
        let kept_out = self.without == Some(AgentId(agent));
        !kept_out && self.schedule.is_there(When { round, agent, agents, seed: self.seed })
    }

    /// Who is asked in a round: the agents still in that can be reached, or a share of them. Agents
    /// that have left and may come back look at the model by themselves.
    fn asked(&self, round: u32) -> Vec<bool> {
        let there: Vec<bool> =
            (0..self.agents.len()).map(|index| self.is_there(index, round)).collect();
        let mut present: Vec<usize> = (0..self.agents.len())
            .filter(|index| there[*index] && self.agents[*index].participant.is_in())
            .collect();
        if self.training.participation < 1.0 {
            let share = self.training.participation * present.len() as f64;
            present.shuffle(&mut self.seed.stream("participation", u64::from(round), 0));
            present.truncate((share.round() as usize).max(1));
        }
        let away = self.agents.iter().map(|Agent { participant, .. }| participant);
        let looks = |agent: &Participant| !agent.is_in() && agent.looks();
        let mut asked: Vec<bool> =
            away.zip(there).map(|(agent, there)| there && looks(agent)).collect();
        present.into_iter().for_each(|index| asked[index] = true);
        asked
    }

    /// What the agents find that come in this round, if models are kept for them. Whoever is there in
    /// the first round has not come later.
    fn arrivals(&mut self, call: &Call<'_>) -> Result<Vec<Arrival>, crate::model::Error> {
        let mut arrived = Vec::new();
        for index in 0..self.agents.len() {
            if self.agents[index].met || !self.is_there(index, call.round) {
                continue;
            }
            self.agents[index].met = true;
            if call.round == 1 || self.training.library.keep == 0 {
                continue;
            }
            let own = rows(self.population.data(), self.population.agent(index))?;
            let who = (self.agents[index].participant.id, call.round);
            let with = (&self.network, &own);
            let last = call.broadcast.shared();
            let offer = |work: &mut Workspace| self.library.offer(who, last, with, work);
            arrived.push(self.workspaces.with(offer)?);
        }
        Ok(arrived)
    }

    /// An agent's local work, under the load the server set for it.
    fn local_work(&self, agent: &Agent, loads: Option<&[(AgentId, f64)]>) -> Local {
        let local = &self.training.local;
        let load = loads.into_iter().flatten().find(|(id, _)| *id == agent.participant.id);
        let rows = || self.population.agent(agent.participant.id.0 as usize).len();
        load.map_or_else(|| local.clone(), |(_, share)| local.with_load(*share, rows()))
    }

    fn assess_loaded(&self, weights: &Loaded) -> Result<Assessment, crate::model::Error> {
        let score = |range: Range<usize>| {
            let rows = rows(self.population.data(), range)?;
            self.workspaces.with(|work| self.network.evaluate(weights, &rows, None, work))
        };
        // Agents side by side share tiles; the results are those of each by itself.
        let pieces: Vec<Vec<Evaluation>> = self
            .neighbours()
            .into_par_iter()
            .map(|agents| {
                let range = self.population.agent(agents.start).start
                    ..self.population.agent(agents.end - 1).end;
                let rows = rows(self.population.data(), range)?;
                let sizes: Vec<usize> =
                    agents.map(|index| self.population.agent(index).len()).collect();
                self.workspaces
                    .with(|work| self.network.evaluate_each(weights, &rows, &sizes, work))
            })
            .collect::<Result<_, crate::model::Error>>()?;
        let scored = self.agents.iter().zip(pieces.iter().flatten());
        let agents: Vec<AgentAssessment> = scored
            .map(|(agent, evaluation)| AgentAssessment {
                id: agent.participant.id,
                epsilon: agent.participant.epsilon,
                behaviour: Some(Cow::Borrowed(agent.participant.behaviour().name())),
                loss: evaluation.loss,
                accuracy: Some(evaluation.accuracy()),
                as_of: None,
            })
            .collect();
        Ok(Assessment { agents, population: self.score_population(&score)? })
    }

    /// All agents, in groups of neighbours whose rows together fill many tiles.
    fn neighbours(&self) -> Vec<Range<usize>> {
        const ROWS: usize = 1024;
        let mut groups: Vec<Range<usize>> = Vec::new();
        let mut held = ROWS;
        for agent in 0..self.agents.len() {
            match groups.last_mut() {
                Some(group) if held < ROWS => group.end = agent + 1,
                _ => {
                    groups.push(agent..agent + 1);
                    held = 0;
                }
            }
            held += self.population.agent(agent).len();
        }
        groups
    }

    /// The population's score, in pieces of one agent's size so that threads share the work.
    fn score_population(
        &self,
        score: &(impl Fn(Range<usize>) -> Result<Evaluation, crate::model::Error> + Sync),
    ) -> Result<Option<PopulationScore>, crate::model::Error> {
        let Some(range) = self.population.population() else { return Ok(None) };
        let piece = self.population.per_agent().clamp(256, 4096);
        let pieces: Vec<Range<usize>> = (range.start..range.end)
            .step_by(piece)
            .map(|from| from..range.end.min(from + piece))
            .collect();
        let scores: Vec<Evaluation> =
            pieces.into_par_iter().map(score).collect::<Result<_, _>>()?;
        let samples: usize = scores.iter().map(|score| score.samples).sum();
        let correct: usize = scores.iter().map(|score| score.correct).sum();
        let loss: f64 = scores.iter().map(|score| score.loss * score.samples as f64).sum();
        Ok(Some(PopulationScore {
            loss: loss / samples as f64,
            accuracy: Some(correct as f64 / samples as f64),
        }))
    }
}

/// The rows of a range, as a model reads them.
pub(crate) fn rows(
    data: &Arc<Dataset>,
    range: Range<usize>,
) -> Result<Rows<'_>, crate::model::Error> {
    let features = data.features();
    let span = range.start * features..range.end * features;
    let inputs = match &data.inputs {
        Inputs::Bytes { rows, scale, shift } => RowsData::Bytes { rows: &rows[span], scale, shift },
        Inputs::Floats { rows, features } => {
            RowsData::Floats { rows: &rows[span], features: *features }
        }
    };
    Rows::new(inputs, &data.labels[range])
}

/// The rows of an agent, to train on.
fn own_rows(population: &Population, agent: usize) -> Result<Rows<'_>, crate::model::Error> {
    let rows = rows(population.data(), population.agent(agent))?;
    Ok(match population.products(agent) {
        Some(products) => rows.with_products(products),
        None => rows,
    })
}

impl Simulator {
    /// Whether some agent looks at what the others told.
    fn somebody_compares(&self) -> bool {
        self.agents.iter().any(|agent| agent.participant.behaviour().compares())
    }
}

impl Engine for Simulator {
    fn agents(&self) -> Vec<HeaderAgent> {
        let listed = |Agent { participant, .. }: &Agent| HeaderAgent {
            id: participant.id,
            epsilon: participant.epsilon,
            name: None,
        };
        self.agents.iter().map(listed).collect()
    }

    fn gather(&mut self, call: &Call<'_>) -> Result<Gathered<'_>, Error> {
        let arrived = self.arrivals(call).map_err(failed(call.round))?;
        let shared = self.network.load(call.broadcast.shared()).map_err(failed(call.round))?;
        let looks = call.round == 1 || call.round.is_multiple_of(self.training.eval_every);
        let assessment = match looks {
            true => Some(self.assess_loaded(&shared).map_err(failed(call.round))?),
            false => None,
        };
        let asked = self.asked(call.round);
        let known = |index: usize| match (&assessment, self.training.decides_on) {
            // Measured at the shared weights, so of no use to an agent that is shown others.
            (Some(assessment), DecidesOn::Received) => {
                let agent = &assessment.agents[index];
                call.broadcast.personal(agent.id).is_none().then_some(agent.loss)
            }
            _ => None,
        };
        // Noise on a bound would be worthless: it is added to the loss.
        let privacy = self.privacy;
        let exact = self.full_losses || privacy.is_some() || self.somebody_compares();
        let losses = if exact { Losses::Exact } else { call.losses };
        let locals: Vec<Local> =
            self.agents.iter().map(|agent| self.local_work(agent, call.loads)).collect();
        let (network, population) = (&self.network, &self.population);
        let (training, seed, stands) = (&self.training, self.seed, self.stands);
        let workspaces = &self.workspaces;
        let is_in = |agent: &Agent| agent.participant.is_in();
        let gone = self.agents.iter().filter(|agent| !is_in(agent)).count();
        let gone = gone as f64 / self.agents.len() as f64;
        let told: Vec<Option<f64>> =
            self.agents.iter().map(|agent| agent.told.filter(|_| is_in(agent))).collect();
        let (sum, heard) =
            told.iter().flatten().fold((0.0, 0u32), |(sum, heard), told| (sum + told, heard + 1));
        // Without its own, if it told one; once for all, because there may be many agents.
        let others = |index: usize| {
            let (own, heard) = told[index].map_or((0.0, heard), |own| (own, heard - 1));
            (heard > 0).then(|| (sum - own) / f64::from(heard))
        };
        let with_task =
            |index: usize,
             known_loss: Option<f64>,
             must_stay: bool,
             act: &mut dyn FnMut(&Task<'_>, &mut Workspace) -> Worked| {
                let rows = own_rows(population, index)?;
                let personal = call.broadcast.personal(AgentId(index as u64));
                let personal = personal.map(|weights| network.load(&weights)).transpose()?;
                let task = Task {
                    network,
                    weights: personal.as_ref().unwrap_or(&shared),
                    rows: &rows,
                    local: &locals[index],
                    decides_on: training.decides_on,
                    stands,
                    seed,
                    round: call.round,
                    step_size: call.step_size,
                    losses,
                    known_loss,
                    must_stay,
                    privacy,
                    company: (gone, others(index)),
                };
                workspaces.with(|work| act(&task, work))
            };
        let is_in = |index: &usize| self.agents[*index].participant.is_in();
        let present = (0..asked.len()).filter(is_in).count();
        let asked_in = (0..asked.len()).filter(is_in).filter(|index| asked[*index]);
        let unasked = present - asked_in.count();
        let unreachable = (0..asked.len()).filter(is_in);
        let unreachable: Vec<AgentId> = unreachable
            .filter(|index| !self.is_there(*index, call.round))
            .map(|index| self.agents[index].participant.id)
            .collect();
        let must_stay = self.nobody_leaves || training.last_stays && present == 1;
        self.agents
            .par_iter_mut()
            .enumerate()
            .filter(|(index, _)| asked[*index])
            .try_for_each(|(index, agent)| {
                with_task(index, known(index), must_stay, &mut |task, work| {
                    agent.take_part(task, work)
                })
            })
            .map_err(failed(call.round))?;

        let answered = |agents: &[Agent], answer: Answer| -> Vec<usize> {
            (0..asked.len()).filter(|i| asked[*i] && agents[*i].answer == answer).collect()
        };
        let returned = answered(&self.agents, Answer::Returns);
        let leaving = answered(&self.agents, Answer::Leaves);
        if training.last_stays && leaving.len() == present && returned.is_empty() {
            // All would leave at once: the one with the highest number continues.
            if let Some(last) = leaving.last() {
                let agent = &mut self.agents[*last];
                with_task(*last, None, true, &mut |task, work| agent.stay(task, work))
                    .map_err(failed(call.round))?;
            }
        }
        let ids = |agents: &[Agent], which: &[usize]| -> Vec<AgentId> {
            which.iter().map(|index| agents[*index].participant.id).collect()
        };
        let leaving = answered(&self.agents, Answer::Leaves);
        let (goodbyes, returned) = (ids(&self.agents, &leaving), ids(&self.agents, &returned));
        let sitting_out = answered(&self.agents, Answer::SitsOut);
        let weights = call.broadcast.shared();
        self.library.note(self.training.library, call.round, weights, &goodbyes);
        let reports = (0..asked.len())
            .filter(|index| asked[*index] && self.agents[*index].answer.reports())
            .map(|index| self.agents[index].report(self.population.agent(index).len()))
            .collect();
        let dimension = self.network.layout().parameters();
        let reports =
            Reports::with_goodbyes(dimension, reports, goodbyes)?.with_returned(returned)?;
        let out = ids(&self.agents, &sitting_out);
        let reports = reports.with_absent(unasked + out.len());
        let mut absent = [unreachable, out].concat();
        absent.sort_unstable();
        Ok(Gathered { assessment, absent, arrived, ..Gathered::new(reports) })
    }

    fn assess(&mut self, weights: &[f64]) -> Result<Assessment, Error> {
        let weights = self.network.load(weights).map_err(failed(0))?;
        self.assess_loaded(&weights).map_err(failed(0))
    }

    fn save(&self) -> Result<Memory, Error> {
        let compared = self.somebody_compares();
        let agents = self.agents.iter().map(|agent| agent.save(compared)).collect();
        Memory::of(&State { agents, library: self.library.clone() })
    }

    fn restore(&mut self, memory: &Memory) -> Result<(), Error> {
        let State { agents: states, library } = memory.read()?;
        if states.len() != self.agents.len() {
            let (got, expected) = (states.len(), self.agents.len());
            let why = format!("it has {got} agents, the experiment {expected}");
            return Err(Error::BadState { why });
        }
        self.library = library;
        let mut agents = self.agents.iter_mut().zip(states);
        agents.try_for_each(|(agent, state)| agent.restore(state))
    }

    fn abilities(&self) -> Abilities {
        Abilities { loads: true, personal: true, ..Abilities::default() }
    }
}

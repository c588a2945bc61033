//! The simulator: agents that hold real data, in this process, on all its threads.
//!
//! An agent's work in a round is done by one thread from start to end and depends on nothing but
//! the weights, the round and the agent's own stream of randomness, so the number of threads
//! changes how long a round takes and nothing else.

mod agent;
mod asking;
mod assess;
pub mod baseline;
mod cohort;
mod corrected;
mod deciding;
mod desk;
mod groups;
mod held_back;
mod judge;
mod library;
mod membership;
pub mod population;
mod roster;
mod unseen;
mod workers;
mod yardsticks;

pub(crate) use agent::reach_of;
pub use held_back::Made;
pub use judge::UnseenRows;
pub use workers::host;
pub(crate) use yardsticks::Yardsticks;

use crate::data::{DataError, Dataset, Draw, Inputs};
use crate::experiment::bounds::{check_drawn, check_held};
use crate::experiment::{Experiment, SpecError, Training};
use crate::lock;
use crate::model::{Network, Rows, RowsData, Workspace};
use crate::training::{BatchSize, ExactGradient};
use agent::Seat;
use asking::Asking;
use desk::Desk;
use fedstay::record::{Arrival, HeaderAgent, MOST_LISTED};
use fedstay::{
    Abilities, AgentId, Answer, Assessment, Call, Engine, Error, Gathered, Losses, Measure, Memory,
    Privacy, Reports, Schedule, Seed,
};
use groups::GroupedRows;
use library::Library;
use population::{Population, Sizes};
use roster::{Roster, RosterState};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// An engine whose agents hold data.
pub struct Simulator {
    network: Network,
    population: Population,
    roster: Roster,
    /// Where the agents of the last round worked; their reports are read from here.
    desks: Vec<Desk>,
    /// Desks at which nobody sits now.
    spare: Vec<Desk>,
    /// Whether agents tell their losses where nobody reads them.
    tells: bool,
    /// The agents that are measured, in order; `None` for all.
    sample: Option<Vec<usize>>,
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
    /// Whether each agent could be reached in some round so far, where models are kept for newcomers.
    met: Vec<bool>,
    /// How well groups are served, where the rule asks.
    groups: Option<GroupedRows>,
    /// The last round that was gathered, which says what rows agents see.
    round: u32,
    /// Agents that are kept out from the start.
    without: Vec<AgentId>,
    workspaces: Workspaces,
}

/// What must survive a restart.
#[derive(Serialize, Deserialize)]
struct State {
    roster: RosterState,
    #[serde(default)]
    library: Library,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    met: Vec<bool>,
    #[serde(default)]
    round: u32,
}

/// One workspace per thread, handed out and taken back.
#[derive(Default)]
struct Workspaces(Mutex<Vec<Workspace>>);

impl Workspaces {
    fn with<T>(&self, work: impl FnOnce(&mut Workspace) -> T) -> T {
        let mut workspace = lock(&self.0).pop().unwrap_or_default();
        let result = work(&mut workspace);
        lock(&self.0).push(workspace);
        result
    }
}

/// The outcome of an agent's work.
type Worked = Result<(), crate::model::Error>;

/// What an error of the model means for a run.
fn failed(round: u32) -> impl Fn(crate::model::Error) -> Error {
    move |error| error.in_round(round)
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
        let draw = Draw { seed: experiment.seed, small: training.partition.small() };
        let loaded = training.data.load_for(draw)?;
        let sizes = Sizes {
            agents: training.agents,
            population: training.population,
            per_agent: training.data.per_agent,
        };
        if training.data.replace {
            let seed = Seed(experiment.seed);
            return Ok(Population::drawn(loaded, &training.partition, sizes, seed)?);
        }
        let mut rng = Seed(experiment.seed).stream("partition", 0, 0);
        Ok(Population::new(loaded, &training.partition, sizes, &mut rng)?)
    }

    /// The simulator over data that [`deal`](Self::deal) dealt out for this experiment.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn on(experiment: &Experiment, population: Population) -> Result<Self, SpecError> {
        let mut training = experiment.training().cloned().ok_or(SpecError::NoTraining)?;
        training.local.exact_gradient = ExactGradient::Told(experiment.asks_for_gradients());
        let seed = Seed(experiment.seed);
        if training.data.replace && (training.data.group.is_some() || !training.stream.is_usual()) {
            let why = "agents that draw their rows have neither groups (data.group) nor a [stream]";
            return Err(DataError::setting("data.replace", why).into());
        }
        let population = population.lined_up(training.stream)?;
        let data = population.data();
        let groups = match experiment.rule.facts().reads_rates {
            true => Some(GroupedRows::new(&population).ok_or_else(|| {
                let why = format!(
                    "{} asks how well two groups of rows are served; set it to `brightness`, or to the \
                     number or, in a csv file, the name of a feature",
                    experiment.rule.name()
                );
                DataError::setting("data.group", why)
            })?),
            false => None,
        };
        let network = training.model.network(data.as_ref(), data.targets.output())?;
        let (parameters, count) = (network.layout().parameters(), population.agents());
        let roster = Roster::new(count, &experiment.behaviour, seed)?;
        // Each agent that is asked holds one direction; each model that is kept is as large.
        let asked = (training.participation * count as f64).ceil() as usize;
        check_held(asked.max(1) + roster.keepers() + training.library.keep, parameters)?;
        let (local, largest) = (&training.local, population.largest());
        if local.batch != BatchSize::Full || local.epochs.is_some() {
            check_drawn(local.steps_on(largest), local.batch_of(largest))?;
        }
        // Checks lengths and scaling once, so that no round can fail on them.
        rows(data, 0..data.len())?;
        let keeps = training.library.keep > 0;
        let mut simulator = Self {
            tells: !experiment.nobody_reads_losses() || !roster.nobody_leaves(),
            sample: training.eval_agents.sample(count, seed),
            desks: Vec::new(),
            spare: Vec::new(),
            roster,
            network,
            population,
            training,
            seed,
            stands: experiment.rule.facts().stands,
            full_losses: false,
            nobody_leaves: false,
            privacy: experiment.privacy,
            schedule: experiment.schedule_for(count)?,
            library: Library::default(),
            met: if keeps { vec![false; count] } else { Vec::new() },
            groups,
            round: 1,
            without: Vec::new(),
            workspaces: Workspaces::default(),
        };
        simulator.check_held_back()?;
        let known = Yardsticks::new(&simulator, experiment.step_size, experiment.rounds);
        let epsilon = experiment.epsilon.each(&known)?;
        simulator.roster.set_targets(epsilon);
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

    /// Keeps one more agent out from the start, to see what the others would do without it.
    pub fn set_without(&mut self, agent: AgentId) {
        self.without.push(agent);
    }

    /// In how many rounds each agent reported without having worked.
    pub fn idle_rounds(&self) -> Vec<u32> {
        (0..self.roster.len()).map(|index| self.roster.behaviour(index).idle_rounds()).collect()
    }

    /// Makes everybody report, content or not, and leaves it to the caller to say who is still in
    /// (`left`) and up to which loss (`epsilon`) an agent looks. One entry per agent.
    pub(crate) fn steer(&mut self, left: &[Option<u32>], epsilon: &[f64]) {
        self.nobody_leaves = true;
        self.roster.set_targets(epsilon.to_vec());
        self.roster.steer(left);
    }

    /// What the agents find that come in this round, if models are kept for them. Agents that are there in
    /// the first round have not come later.
    fn arrivals(&mut self, call: &Call<'_>) -> Result<Vec<Arrival>, crate::model::Error> {
        let mut arrived = Vec::new();
        for index in 0..self.met.len() {
            if self.met[index] || !self.is_there(index, call.round) {
                continue;
            }
            self.met[index] = true;
            if call.round == 1 {
                continue;
            }
            let own = self.seen(index, call.round);
            let own = own.view()?;
            let who = (AgentId(index as u64), call.round);
            let with = (&self.network, &own);
            let last = call.broadcast.shared();
            let offer = |work: &mut Workspace| self.library.offer(who, last, with, work);
            arrived.push(self.workspaces.with(offer)?);
        }
        Ok(arrived)
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
    Ok(Rows::new(inputs, data.targets.rows(range))?.with_scale(data.targets.scale()))
}

impl Engine for Simulator {
    fn agents(&self) -> Vec<HeaderAgent> {
        let listed = |index: usize| HeaderAgent {
            id: AgentId(index as u64),
            epsilon: self.roster.epsilon(index),
            name: self.population.name(index).map(str::to_owned),
        };
        if self.roster.len() <= MOST_LISTED {
            return (0..self.roster.len()).map(listed).collect();
        }
        // Too many: those that are measured, if they are not too many as well.
        let sample = self.sample.iter().filter(|sample| sample.len() <= MOST_LISTED);
        sample.flatten().copied().map(listed).collect()
    }

    fn count(&self) -> usize {
        self.roster.len()
    }

    fn measures(&self) -> Vec<Measure> {
        self.training.measure.measures()
    }

    fn gather(&mut self, call: &Call<'_>) -> Result<Gathered<'_>, Error> {
        self.round = call.round;
        let arrived = self.arrivals(call).map_err(failed(call.round))?;
        let shared = self.network.load(call.broadcast.shared()).map_err(failed(call.round))?;
        let looks = call.round == 1 || call.round.is_multiple_of(self.training.eval_every);
        let assessment = match looks {
            true => Some(self.assess_loaded(&shared).map_err(failed(call.round))?),
            false => None,
        };
        let cohort = self.cohort(call.round);
        // Noise on a bound would be worthless: it is added to the loss.
        let compared = self.roster.somebody_compares();
        let exact = self.full_losses || self.privacy.is_some() || compared;
        let losses = if exact { Losses::Exact } else { call.losses };
        let gone = self.roster.gone().len() as f64 / self.roster.len() as f64;
        let loads = call.loads.into_iter().flatten().copied().collect();
        let round = Asking { call, shared: &shared, losses, gone, loads };
        let others = self.company(&cohort.asked);
        let mut seats = self.seat(&cohort.asked);
        let known = (assessment.as_ref(), &others[..]);
        let worked = self.ask(&round, &cohort, known, &mut seats);
        for (index, Seat { agent, desk }) in cohort.asked.iter().zip(seats) {
            self.roster.put(*index, agent);
            self.desks.push(desk);
        }
        worked.map_err(failed(call.round))?;

        let answered = |answer: Answer| -> Vec<AgentId> {
            self.desks.iter().filter(|desk| desk.answer == answer).map(|desk| desk.agent).collect()
        };
        let (goodbyes, returned) = (answered(Answer::Leaves), answered(Answer::Returns));
        let out = answered(Answer::SitsOut);
        let weights = call.broadcast.shared();
        self.library.note(self.training.library, call.round, weights, &goodbyes);
        let reports = self.desks.iter().filter(|desk| desk.answer.reports()).map(Desk::report);
        let dimension = self.network.layout().parameters();
        let reports =
            Reports::with_machine(dimension, reports.collect(), goodbyes, workers::machine())?
                .with_returned(returned)?
                .with_absent(cohort.unasked + out.len());
        let mut absent = [cohort.unreachable, out].concat();
        absent.sort_unstable();
        Ok(Gathered { assessment, absent, arrived, ..Gathered::new(reports) })
    }

    fn assess(&mut self, weights: &[f64]) -> Result<Assessment, Error> {
        let weights = self.network.load(weights).map_err(failed(0))?;
        self.assess_listed(&weights).map_err(failed(0))
    }

    fn save(&self) -> Result<Memory, Error> {
        let (library, met) = (self.library.clone(), self.met.clone());
        Memory::of(&State { roster: self.roster.save(), library, met, round: self.round })
    }

    fn restore(&mut self, memory: &Memory) -> Result<(), Error> {
        let State { roster, library, met, round } = memory.read()?;
        if met.len() != self.met.len() {
            let why = "it is of other agents, or of a run that keeps no models for newcomers";
            return Err(Error::BadState { why: why.to_owned() });
        }
        (self.library, self.met, self.round) = (library, met, round.max(1));
        self.roster.restore(roster, self.network.layout().parameters())
    }

    fn abilities(&self) -> Abilities {
        let rates = self.groups.is_some();
        Abilities { loads: true, personal: true, corrections: true, rates, ..Abilities::default() }
    }
}

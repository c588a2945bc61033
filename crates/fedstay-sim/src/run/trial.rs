//! One run of an experiment: a file becomes a session, and a session a summary.

use crate::experiment::{Experiment, Members, SpecError, Training, Work, Yardstick};
use crate::run::{Asked, Driver, Folder, FolderError, Start, Who};
use crate::simulator::population::Population;
use crate::simulator::{Made, Simulator};
use fedstay::consistency::Consistency;
use fedstay::fairness::Fairness;
use fedstay::problem::Federation;
use fedstay::record::{AgentSummary, Counterfactual, Header, Summary};
use fedstay::worth::{Judge, Worth};
use fedstay::{
    About, AgentId, Book, Engine, Error, Privacy, RoundRecord, Score, Seed, Server, Session,
    SessionState,
};
use fedstay_kernels::isa::instructions;
use std::ops::{ControlFlow, Deref, DerefMut};
use std::path::Path;
use std::sync::Arc;

/// An experiment, ready to run or running.
pub struct Trial {
    experiment: Experiment,
    session: Session<Agents>,
    /// What every agent makes alone in the experiment's rounds, where somebody knows it already.
    alone: Option<Arc<[Made]>>,
}

/// The agents that take part, of either kind.
enum Agents {
    Problem(Federation),
    Data(Box<Simulator>),
}

impl Trial {
    /// Builds the problem, or loads the data and deals them out.
    ///
    /// # Errors
    /// When a parameter is out of range or the data are missing; the message says what to do.
    pub fn new(experiment: Experiment) -> Result<Self, SpecError> {
        let population = match experiment.training() {
            Some(_) => Some(Simulator::deal(&experiment)?),
            None => None,
        };
        Self::on(experiment, population)
    }

    /// Builds the trial over data that are already dealt out.
    pub(crate) fn on(
        mut experiment: Experiment,
        population: Option<Population>,
    ) -> Result<Self, SpecError> {
        let (engine, start) = match experiment.problem() {
            Some(problem) => {
                let instance = problem.build(Seed(experiment.seed))?;
                let epsilon = experiment.epsilon.each(&OnProblem(instance.oracles.len()))?;
                let seed = Seed(experiment.seed);
                let federation = experiment
                    .behaviour
                    .assign(instance.oracles.len(), seed)
                    .and_then(|each| Federation::with_behaviours(&instance, &epsilon, each));
                let mut federation = federation?;
                if let Some(privacy) = experiment.privacy {
                    federation.set_privacy(privacy, seed);
                }
                federation.set_schedule(experiment.schedule_for(epsilon.len())?, seed);
                (Agents::Problem(federation), instance.start)
            }
            None => {
                let simulator = match population {
                    Some(population) => Simulator::on(&experiment, population)?,
                    None => Simulator::new(&experiment)?,
                };
                let start = simulator.initial_weights();
                (Agents::Data(Box::new(simulator)), start)
            }
        };
        if let (Agents::Data(simulator), Work::Training(training)) = (&engine, &mut experiment.work)
        {
            // How many owners there are is known only now.
            training.agents = simulator.population().agents();
        }
        let server = experiment.server(start)?;
        let about = match &engine {
            Agents::Problem(_) => about(&experiment, None),
            Agents::Data(simulator) => about(&experiment, Some(simulator.population())),
        };
        let mut session = Session::new(server, engine, experiment.rounds, about)?;
        if let Some(privacy) = experiment.privacy {
            session = session.with_book(Spent { privacy, parts: experiment.parts_of_a_report() });
        }
        let convex = experiment.is_convex();
        if experiment.check_reports.unwrap_or(convex) {
            session = session.with_book(Consistency::new(convex));
        }
        if let (Some(_), Agents::Data(simulator)) = (&experiment.forget, session.engine_mut()) {
            // What forgetting costs the others shows in the losses they tell.
            simulator.set_full_losses(true);
        }
        if !experiment.worth.is_nothing() {
            let judge: Option<Box<dyn Judge>> = match session.engine_mut() {
                Agents::Problem(federation) => Some(Box::new(federation.judge())),
                Agents::Data(simulator) => {
                    // An agent that is booked for the fall of its loss must tell it.
                    simulator.set_full_losses(true);
                    simulator.judge().map(|judge| Box::new(judge) as Box<dyn Judge>)
                }
            };
            session = session.with_book(Worth::new(&experiment.worth.methods, judge)?);
        }
        Ok(Self { experiment, session, alone: None })
    }

    /// The experiment that is run.
    pub fn experiment(&self) -> &Experiment {
        &self.experiment
    }

    /// The server.
    pub fn server(&self) -> &Server {
        self.session.server()
    }

    /// The first line of `rounds.jsonl`.
    pub fn header(&self) -> &Header {
        self.session.header()
    }

    /// What a reader should know before believing the results.
    pub fn warnings(&self) -> &[String] {
        &self.session.about().warnings
    }

    /// The simulator, if the experiment trains on data.
    pub fn simulator(&self) -> Option<&Simulator> {
        match self.session.engine() {
            Agents::Problem(_) => None,
            Agents::Data(simulator) => Some(simulator),
        }
    }

    /// The simulator, to change how it computes.
    pub fn simulator_mut(&mut self) -> Option<&mut Simulator> {
        match self.session.engine_mut() {
            Agents::Problem(_) => None,
            Agents::Data(simulator) => Some(simulator),
        }
    }

    /// Tells what every agent makes alone in the experiment's rounds, so that it is not computed again
    /// for `compare_alone`.
    pub(crate) fn set_alone(&mut self, alone: Arc<[Made]>) {
        self.alone = Some(alone);
    }

    /// Runs to the end and sums up. If a book ends the run early, there is no summary. A trial that
    /// was resumed continues with its next round.
    ///
    /// # Errors
    /// When the engine or a book fails; all rounds until then are in the books. With `compare_alone`,
    /// when training alone leaves the floating-point range.
    pub fn run(&mut self, books: &mut [&mut dyn Book]) -> Result<Option<Summary>, Error> {
        if !self.experiment.compare_alone {
            let Some(mut summary) = self.session.run(books)? else { return Ok(None) };
            self.tell_members(&mut summary)?;
            return Ok(Some(summary));
        }
        let mut parting = DepartureWeights::default();
        let mut all: Vec<&mut dyn Book> = vec![&mut parting];
        for book in books {
            all.push(&mut **book);
        }
        let Some(mut summary) = self.session.run(&mut all)? else { return Ok(None) };
        let round = summary.rounds;
        let failed = |error: SpecError| error.in_round(round);
        self.compare_with_alone(&mut summary, &parting).map_err(failed)?;
        let idle = match self.session.engine() {
            Agents::Problem(federation) => federation.idle_rounds(),
            Agents::Data(simulator) => simulator.idle_rounds(),
        };
        for agent in &mut summary.agents {
            agent.idle = idle[agent.id.0 as usize];
        }
        self.tell_members(&mut summary)?;
        Ok(Some(summary))
    }

    /// Adds whether it shows that the delivered model was trained on the rows of agents that asked to
    /// be forgotten.
    fn tell_members(&self, summary: &mut Summary) -> Result<(), Error> {
        let Some(simulator) = self.simulator() else { return Ok(()) };
        for forgotten in &mut summary.forgotten {
            let shows = simulator.membership(forgotten.agent.0 as usize, self.server().delivered());
            forgotten.membership = shows.map_err(|error| error.in_round(summary.rounds))?;
        }
        Ok(())
    }

    /// How good a model every agent makes alone, with the same work, in as many rounds as the
    /// experiment allows: more than a run that stops early had, and so no rule makes it weaker.
    fn scores_alone(&self) -> Result<Vec<Made>, SpecError> {
        let Experiment { step_size, rounds, .. } = self.experiment;
        match (self.session.engine(), self.experiment.problem()) {
            (Agents::Problem(federation), Some(problem)) => {
                let start = problem.build(Seed(self.experiment.seed))?.start;
                Ok(on_a_problem(federation.alone(&start, step_size, rounds)))
            }
            (Agents::Data(simulator), _) => simulator.scores_alone(step_size, rounds),
            (Agents::Problem(_), None) => Ok(Vec::new()),
        }
    }

    /// Its present state, for a checkpoint.
    ///
    /// # Errors
    /// When it cannot be saved.
    pub fn state(&self) -> Result<SessionState, Error> {
        self.session.state()
    }

    /// Continues from a checkpoint.
    ///
    /// # Errors
    /// When the state belongs to another experiment.
    pub fn resume(&mut self, state: SessionState) -> Result<(), Error> {
        self.session.resume(state)
    }

    /// Creates a folder that keeps this trial. `asked` is what a resumed run must do too.
    ///
    /// # Errors
    /// When there is a run in it already, another process is making one, or it cannot be written to.
    pub fn keep_in(&self, path: &Path, asked: Asked) -> Result<Folder, FolderError> {
        let instructions = self.simulator().map(|_| instructions());
        let start = Start {
            config: &config_text(&self.experiment)?,
            header: self.header(),
            gram: self.experiment.record_gram,
            asked,
            instructions: instructions.as_deref(),
        };
        Folder::create(path, &start, Driver::Command)
    }

    /// Opens the folder of a run that was cut off, with its trial as it was at the last checkpoint.
    ///
    /// # Errors
    /// When there is no run, it is over, another process is writing it, or one of its files was
    /// changed since.
    pub fn resume_in(path: &Path) -> Result<(Folder, Self), FolderError> {
        let found = Folder::resume(path, Driver::Command)?;
        let mut trial = Self::new(Experiment::parse(&found.config, &[])?)?;
        if let Some(state) = found.state {
            trial.resume(state).map_err(|error| Driver::Command.changed(path, &error))?;
        }
        let mut folder = found.folder;
        if trial.simulator().is_some() {
            folder.continues_with(instructions());
        }
        // In the summary, on whichever machine it is continued.
        trial.session.warn(folder.warning());
        Ok((folder, trial))
    }

    /// Writes the delivered model and the summary into the trial's folder; the run is then over.
    ///
    /// # Errors
    /// When the disk is full; resuming then ends the run again.
    pub fn close(&self, folder: &mut Folder, summary: &Summary) -> Result<(), FolderError> {
        let layout = self.simulator().map_or(Vec::new(), |simulator| {
            let tensors = simulator.network().layout().tensors().iter();
            tensors.map(|tensor| (tensor.name.clone(), tensor.shape.clone())).collect()
        });
        folder.finish(self.state()?, self.server().delivered(), &layout, summary)
    }

    /// The same experiment with nobody leaving, whatever they decide: the difference is what
    /// departures cost.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn nobody_leaves(experiment: Experiment) -> Result<Self, SpecError> {
        let mut trial = Self::new(Experiment { compare_alone: false, ..experiment })?;
        match trial.session.engine_mut() {
            Agents::Problem(federation) => federation.set_nobody_leaves(true),
            Agents::Data(simulator) => simulator.set_nobody_leaves(true),
        }
        Ok(trial)
    }

    /// Runs a trial in which nobody leaves to the end and returns its outcome, or `None` if a book
    /// ended it.
    ///
    /// # Errors
    /// When the engine or a book fails.
    pub fn counterfactual(
        mut self,
        books: &mut [&mut dyn Book],
    ) -> Result<Option<Counterfactual>, Error> {
        let Some(summary) = self.run(books)? else { return Ok(None) };
        let Summary { rounds, stop, score, population, agents, .. } = summary;
        let reports = agents.iter().map(|agent| agent.entry.reports).collect();
        // The weights down and the direction up; what corrects local steps is one more down.
        let vectors = 2 + u64::from(self.server().rule().facts().corrects);
        let bytes_per_report = 4 * vectors * self.server().weights().len() as u64;
        Ok(Some(Counterfactual { rounds, stop, score, population, reports, bytes_per_report }))
    }

    /// The same experiment with an agent that never takes part.
    ///
    /// # Errors
    /// As [`new`](Self::new), and if there is no such agent.
    pub fn without(experiment: Experiment, agent: AgentId) -> Result<Self, SpecError> {
        let mut trial = Self::new(Experiment { compare_alone: false, ..experiment })?;
        let agents = trial.header().count();
        if !Who::Agent(agent.0).is_among(agents) {
            let must = format!("one of the {agents} agents, numbered from 0");
            return Err(Error::bad_parameter("--without", agent.0, must).into());
        }
        match trial.session.engine_mut() {
            Agents::Problem(federation) => federation.set_without(agent),
            Agents::Data(simulator) => simulator.set_without(agent),
        }
        Ok(trial)
    }

    /// Adds to every agent's summary what it ends with and what it would have reached alone in as
    /// many rounds as the experiment allows. `left_with` has the weights of the rounds in which
    /// somebody left; a resumed run lacks those of earlier rounds, and they are computed again.
    ///
    /// # Errors
    /// When training alone leaves the floating-point range.
    pub fn compare_with_alone(
        &mut self,
        summary: &mut Summary,
        left_with: &DepartureWeights,
    ) -> Result<(), SpecError> {
        let delivered = self.server().delivered().to_vec();
        let unknown = |round: &u32| left_with.weights(*round).is_none();
        let last_unknown =
            summary.agents.iter().filter_map(|agent| agent.entry.left).filter(unknown);
        let again = match last_unknown.max() {
            Some(round) => DepartureWeights::again(self.experiment.clone(), round)?,
            None => DepartureWeights::default(),
        };
        let left_with = |round: u32| left_with.weights(round).or_else(|| again.weights(round));
        let ends_with =
            |agent: &AgentSummary| agent.entry.left.and_then(left_with).unwrap_or(&delivered);
        let agents = summary.agents.iter();
        let scores = match self.session.engine() {
            Agents::Data(simulator) => {
                let ends: Vec<_> = agents.map(|agent| (agent.id, ends_with(agent))).collect();
                simulator.scores(&ends)?
            }
            Agents::Problem(federation) => {
                let ends: Vec<_> = agents.map(ends_with).collect();
                on_a_problem(federation.scores(&ends))
            }
        };
        let own = match &self.alone {
            Some(alone) => alone.to_vec(),
            None => self.scores_alone()?,
        };
        for (agent, ends) in summary.agents.iter_mut().zip(scores) {
            let own = own.get(agent.id.0 as usize).cloned();
            if let Some(held_back) = &mut agent.held_back {
                held_back.ends_with = ends.held_back;
                held_back.alone = own.as_ref().and_then(|own| own.held_back.clone());
            }
            (agent.ends_with, agent.alone) = (Some(ends.score), own.map(|own| own.score));
        }
        summary.fairness = Fairness::of(&summary.agents, &summary.measures);
        summary.better_than_alone = summary.against_alone().map(|(better, _)| better as u32);
        Ok(())
    }
}

/// The agents of a problem: they have no names, and no rows to train alone on.
struct OnProblem(usize);

impl Members for OnProblem {
    fn count(&self) -> usize {
        self.0
    }

    fn name(&self, _: usize) -> Option<&str> {
        None
    }

    fn losses(&self, _: Yardstick) -> Result<Vec<f64>, SpecError> {
        Err(SpecError::Relative { why: "needs data to train alone on; give a number" })
    }
}

/// Scores on a problem, which has no rows to hold back.
fn on_a_problem(scores: Vec<Score>) -> Vec<Made> {
    scores.into_iter().map(|score| Made { score, held_back: None }).collect()
}

/// The text of `config.toml`.
pub(crate) fn config_text(experiment: &Experiment) -> Result<String, SpecError> {
    let version = env!("CARGO_PKG_VERSION");
    Ok(format!(
        "# fedstay {version}, schema fedstay.config/1. Run it again: fedstay run config.toml\n\n{}",
        experiment.to_toml()?
    ))
}

/// What every output must say where agents decide by rows that they hold back.
const DECIDED: &str = "losses are those that members decide by, on rows of their own that nobody trains on; \
                       what is foreseen of them from gradients of training rows is an estimate";

/// What every output about an experiment must say.
pub(crate) fn about(experiment: &Experiment, population: Option<&Population>) -> About {
    let training = experiment.training();
    let mut warnings = experiment.warnings();
    warnings.extend(population.map(Population::warnings).unwrap_or_default());
    let decided = experiment.decides_held_back().then(|| DECIDED.to_owned());
    About {
        label: experiment.rule_label(),
        behaviour: experiment.behaviour.name().to_owned(),
        on: experiment.on().to_owned(),
        seed: experiment.seed,
        own: experiment.decides_on_own(),
        exact_gradients: experiment.reports_gradients(),
        notes: training.map(Training::describe_data).into_iter().chain(decided).collect(),
        rows: population.map(|population| population.rows().clone()),
        warnings,
    }
}

impl Deref for Agents {
    type Target = dyn Engine;

    fn deref(&self) -> &(dyn Engine + 'static) {
        match self {
            Self::Problem(engine) => engine,
            Self::Data(engine) => engine.as_ref(),
        }
    }
}

impl DerefMut for Agents {
    fn deref_mut(&mut self) -> &mut (dyn Engine + 'static) {
        match self {
            Self::Problem(engine) => engine,
            Self::Data(engine) => engine.as_mut(),
        }
    }
}

/// What the reports gave away, where agents add noise to them. It is a [`Book`].
struct Spent {
    privacy: Privacy,
    parts: u32,
}

impl Book for Spent {
    fn round(&mut self, _: &RoundRecord<'_>) -> Result<ControlFlow<()>, Error> {
        Ok(ControlFlow::Continue(()))
    }

    fn enter(&self, summary: &mut Summary) {
        let reports = summary.agents.iter().map(|agent| agent.entry.reports).max().unwrap_or(0);
        summary.privacy = Some(self.privacy.budget(reports, self.parts));
    }
}

/// The weights that agents left with. It is a [`Book`].
#[derive(Debug, Default)]
pub struct DepartureWeights(Vec<(u32, Vec<f64>)>);

impl DepartureWeights {
    /// The weights of a round in which somebody left.
    pub fn weights(&self, round: u32) -> Option<&[f64]> {
        let kept = self.0.iter().find(|(kept, _)| *kept == round);
        kept.map(|(_, weights)| weights.as_slice())
    }

    /// Repeats a run, from its start to a round: same experiment, same weights.
    fn again(experiment: Experiment, last: u32) -> Result<Self, SpecError> {
        /// Ends the run when there is nothing more to learn from it.
        struct Until(u32);
        impl Book for Until {
            fn round(&mut self, record: &RoundRecord<'_>) -> Result<ControlFlow<()>, Error> {
                let reached = record.line.round >= self.0;
                Ok(if reached { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            }
        }
        let mut parting = Self::default();
        let experiment = Experiment { compare_alone: false, ..experiment };
        Trial::new(experiment)?.run(&mut [&mut parting, &mut Until(last)])?;
        Ok(parting)
    }
}

impl Book for DepartureWeights {
    fn round(&mut self, record: &RoundRecord<'_>) -> Result<ControlFlow<()>, Error> {
        if !record.line.left.is_empty() {
            self.0.push((record.line.round, record.received.to_vec()));
        }
        Ok(ControlFlow::Continue(()))
    }
}

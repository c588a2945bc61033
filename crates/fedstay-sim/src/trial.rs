//! One run of an experiment: server, engine and books together, from a file to a summary.

use crate::experiment::{Experiment, SpecError};
use crate::population::Population;
use crate::simulator::Simulator;
use fedstay::consistency::Consistency;
use fedstay::problem::Federation;
use fedstay::record::{Counterfactual, Header, HeaderAgent, Score, Summary};
use fedstay::verdict::{About, Ledger};
use fedstay::{Engine, Error, Observer, Seed, Server, StopReason, run};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An experiment, ready to run or running.
pub struct Trial {
    experiment: Experiment,
    server: Server,
    engine: Agents,
    ledger: Ledger,
    consistency: Option<Consistency>,
}

/// Whoever takes part.
enum Agents {
    Problem(Federation),
    Data(Box<Simulator>),
}

/// What a trial is between two rounds, for a checkpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialState {
    server: fedstay::ServerState,
    engine: Value,
    ledger: Ledger,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    consistency: Option<Consistency>,
}

impl Trial {
    /// Builds the problem, or loads the data and deals them out.
    ///
    /// # Errors
    /// When a parameter is out of range or the data are not there; the message says what to do.
    pub fn new(experiment: Experiment) -> Result<Self, SpecError> {
        let population = match experiment.training() {
            Some(_) => Some(Simulator::deal(&experiment)?),
            None => None,
        };
        Self::on(experiment, population)
    }

    /// The same over data that are dealt out already.
    pub(crate) fn on(
        experiment: Experiment,
        population: Option<Population>,
    ) -> Result<Self, SpecError> {
        let (engine, start) = match experiment.problem() {
            Some(problem) => {
                let instance = problem.build(Seed(experiment.seed))?;
                let alone = || {
                    Err(SpecError::Relative { why: "needs data to train alone on; give a number" })
                };
                let epsilon: Vec<f64> = experiment.epsilon.each(instance.oracles.len(), alone)?;
                let seed = Seed(experiment.seed);
                let federation = experiment
                    .behaviour
                    .assign(instance.oracles.len(), seed)
                    .and_then(|each| Federation::with_behaviours(&instance, &epsilon, each));
                let mut federation = federation?;
                if let Some(privacy) = experiment.privacy {
                    federation.set_privacy(privacy, seed);
                }
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
        let server = Server::new(start, experiment.rule.clone(), experiment.step_size)
            .and_then(|server| server.with_policy(experiment.policy.clone()))?;
        let convex = experiment.is_convex();
        let checks = experiment.check_reports.unwrap_or(convex);
        let consistency = checks.then(|| Consistency::new(convex));
        Ok(Self { experiment, server, engine, ledger: Ledger::default(), consistency })
    }

    /// What is run.
    pub fn experiment(&self) -> &Experiment {
        &self.experiment
    }

    /// The server.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// The simulator, where there are data.
    pub fn simulator(&self) -> Option<&Simulator> {
        match &self.engine {
            Agents::Problem(_) => None,
            Agents::Data(simulator) => Some(simulator),
        }
    }

    /// The simulator, to change how it computes.
    pub fn simulator_mut(&mut self) -> Option<&mut Simulator> {
        match &mut self.engine {
            Agents::Problem(_) => None,
            Agents::Data(simulator) => Some(simulator),
        }
    }

    /// The first line of `rounds.jsonl`.
    pub fn header(&self) -> Header {
        let agents = self.engine.as_dyn().agents();
        Header {
            schema: Header::SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            rule: self.experiment.rule_label(),
            on: self.experiment.on().to_owned(),
            seed: self.experiment.seed,
            rounds: self.experiment.rounds,
            agents: agents
                .into_iter()
                .map(|(id, epsilon)| HeaderAgent { id, epsilon, name: None })
                .collect(),
            sketch: false,
            own: self.experiment.decides_on_own(),
        }
    }

    /// Runs to the end and sums up. A trial that was resumed goes on with its next round, and one
    /// whose last round had been gathered is only summed up.
    ///
    /// # Errors
    /// When the engine or an observer fails; all rounds until then have been observed.
    pub fn run(&mut self, watch: &mut dyn Watch) -> Result<Summary, Error> {
        let stop = match self.ledger.stop() {
            Some(stop) => stop,
            None => {
                let consistency = self.consistency.as_mut();
                let mut books = Books { ledger: &mut self.ledger, consistency, watch };
                let rounds = self.experiment.rounds;
                run(&mut self.server, self.engine.as_dyn_mut(), rounds, &mut [&mut books])?
            }
        };
        self.summary(stop)
    }

    fn summary(&mut self, stop: StopReason) -> Result<Summary, Error> {
        let about = about(&self.experiment);
        let engine = self.engine.as_dyn_mut();
        let mut summary = self.ledger.summary(&self.server, engine, stop, about)?;
        let reports = summary.agents.iter().map(|agent| agent.reports).max().unwrap_or(0);
        let parts = self.experiment.parts_of_a_report();
        summary.privacy = self.experiment.privacy.map(|privacy| privacy.budget(reports, parts));
        summary.warnings.extend(self.experiment.warnings());
        summary.flagged = self.consistency.iter().flat_map(Consistency::flagged).collect();
        summary.warnings.extend(self.consistency.iter().flat_map(Consistency::warnings));
        Ok(summary)
    }

    /// The same experiment with nobody leaving, whatever they decide: what departures cost is the
    /// difference.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn nobody_leaves(experiment: Experiment) -> Result<Self, SpecError> {
        let mut trial = Self::new(experiment)?;
        match &mut trial.engine {
            Agents::Problem(federation) => federation.set_nobody_leaves(true),
            Agents::Data(simulator) => simulator.set_nobody_leaves(true),
        }
        Ok(trial)
    }

    /// Runs to the end with nobody leaving and says what came of it.
    ///
    /// # Errors
    /// When the engine or `watch` fails.
    pub fn counterfactual(mut self, watch: &mut dyn Watch) -> Result<Counterfactual, Error> {
        let Summary { rounds, stop, loss, accuracy, population, .. } = self.run(watch)?;
        Ok(Counterfactual { rounds, stop, loss, accuracy, population })
    }

    /// Tells every agent's summary what it ends with and what it would have reached alone in as many
    /// rounds as the run had. `left_with` has the weights of the rounds in which somebody left; those
    /// of a run that was resumed, which it does not have, are computed again.
    ///
    /// # Errors
    /// When training alone leaves the floating-point range.
    pub fn compare_with_alone(
        &mut self,
        summary: &mut Summary,
        left_with: &Parting,
        alone: Option<&[Score]>,
    ) -> Result<(), SpecError> {
        let delivered = self.server.delivered().to_vec();
        let unknown = |round: &u32| left_with.weights(*round).is_none();
        let last_unknown = summary.agents.iter().filter_map(|agent| agent.left).filter(unknown);
        let again = match last_unknown.max() {
            Some(round) => Parting::again(self.experiment.clone(), round)?,
            None => Parting::default(),
        };
        let left_with = |round: u32| left_with.weights(round).or_else(|| again.weights(round));
        let ends: Vec<&[f64]> = summary
            .agents
            .iter()
            .map(|agent| agent.left.and_then(left_with).unwrap_or(&delivered))
            .collect();
        let (scores, own) = match &self.engine {
            Agents::Data(simulator) => {
                let scores = simulator.scores(&ends)?;
                let own = match alone {
                    Some(alone) => alone.to_vec(),
                    None => simulator.scores_alone(self.experiment.step_size, summary.rounds)?,
                };
                (scores, own)
            }
            Agents::Problem(federation) => {
                let start = self.experiment.problem().and_then(|problem| {
                    problem.build(Seed(self.experiment.seed)).ok().map(|instance| instance.start)
                });
                let start = start.unwrap_or_else(|| delivered.clone());
                let own = federation.alone(&start, self.experiment.step_size, summary.rounds);
                (federation.scores(&ends), own.iter().map(score).collect())
            }
        };
        for ((agent, ends), own) in summary.agents.iter_mut().zip(scores).zip(own) {
            (agent.ends_with, agent.alone) = (Some(ends), Some(own));
        }
        Ok(())
    }

    /// What it is now, for a checkpoint.
    pub fn state(&self) -> TrialState {
        TrialState {
            server: self.server.state(),
            engine: self.engine.as_dyn().memory(),
            ledger: self.ledger.clone(),
            consistency: self.consistency.clone(),
        }
    }

    /// Goes on from a checkpoint.
    ///
    /// # Errors
    /// When the state is another experiment's.
    pub fn resume(&mut self, state: TrialState) -> Result<(), Error> {
        let server = Server::from_state(state.server)?;
        let expected = (self.server.weights().len(), self.server.rule().name());
        let got = (server.weights().len(), server.rule().name());
        if expected != got {
            let why = format!("it is of {got:?} (weights, rule), the experiment of {expected:?}");
            return Err(Error::BadState { why });
        }
        self.engine.as_dyn_mut().recall(&state.engine)?;
        self.server = server;
        self.ledger = state.ledger;
        if let (Some(consistency), Some(saved)) = (&mut self.consistency, state.consistency) {
            *consistency = saved;
        }
        Ok(())
    }
}

/// What every output about an experiment must say.
pub(crate) fn about(experiment: &Experiment) -> About {
    let training = experiment.training();
    About {
        rule: experiment.rule.name().to_owned(),
        policy: experiment.policy.name().to_owned(),
        behaviour: experiment.behaviour.name().to_owned(),
        on: experiment.on().to_owned(),
        seed: experiment.seed,
        notes: training.map(|training| training.partition.describe()).into_iter().collect(),
    }
}

impl Agents {
    fn as_dyn(&self) -> &dyn Engine {
        match self {
            Self::Problem(engine) => engine,
            Self::Data(engine) => engine.as_ref(),
        }
    }

    fn as_dyn_mut(&mut self) -> &mut dyn Engine {
        match self {
            Self::Problem(engine) => engine,
            Self::Data(engine) => engine.as_mut(),
        }
    }
}

fn score(evaluation: &fedstay::Evaluation) -> Score {
    Score { loss: evaluation.loss, accuracy: evaluation.accuracy, unseen: None }
}

/// The weights agents left with. A [`Watch`].
#[derive(Debug, Default)]
pub struct Parting(Vec<(u32, Vec<f64>)>);

impl Parting {
    /// The weights of a round in which somebody left.
    pub fn weights(&self, round: u32) -> Option<&[f64]> {
        let kept = self.0.iter().find(|(kept, _)| *kept == round);
        kept.map(|(_, weights)| weights.as_slice())
    }

    /// Computes a run again, from its start to a round: same experiment, same weights.
    fn again(experiment: Experiment, last: u32) -> Result<Self, SpecError> {
        /// Ends the run when there is nothing more to be learnt from it.
        struct Until(Parting, u32);
        impl Watch for Until {
            fn round(&mut self, view: &fedstay::RoundView<'_>) -> Result<(), Error> {
                self.0.round(view)?;
                if view.number < self.1 { Ok(()) } else { Err(Error::Observer(String::new())) }
            }
        }
        let mut until = Until(Self::default(), last);
        match Trial::new(experiment)?.run(&mut until) {
            Ok(_) | Err(Error::Observer(_)) => Ok(until.0),
            Err(error) => Err(error.into()),
        }
    }
}

impl Watch for Parting {
    fn round(&mut self, view: &fedstay::RoundView<'_>) -> Result<(), Error> {
        if !view.reports.goodbyes().is_empty() {
            self.0.push((view.number, view.received.to_vec()));
        }
        Ok(())
    }
}

/// Watches a trial: every round, and the moment after it with a way to take a checkpoint.
pub trait Watch {
    /// A round is over.
    ///
    /// # Errors
    /// When it cannot be kept.
    fn round(&mut self, view: &fedstay::RoundView<'_>) -> Result<(), Error>;

    /// The moment after; `state` makes a checkpoint, when called.
    ///
    /// # Errors
    /// When it cannot be kept.
    fn between(&mut self, state: &dyn Fn() -> TrialState, last: bool) -> Result<(), Error> {
        let _ = (state, last);
        Ok(())
    }
}

/// Watches nothing.
impl Watch for () {
    fn round(&mut self, _: &fedstay::RoundView<'_>) -> Result<(), Error> {
        Ok(())
    }
}

/// Several watch.
impl<const N: usize> Watch for [&mut dyn Watch; N] {
    fn round(&mut self, view: &fedstay::RoundView<'_>) -> Result<(), Error> {
        self.iter_mut().try_for_each(|watch| watch.round(view))
    }

    fn between(&mut self, state: &dyn Fn() -> TrialState, last: bool) -> Result<(), Error> {
        self.iter_mut().try_for_each(|watch| watch.between(state, last))
    }
}

/// Keeps the ledger and passes everything on.
struct Books<'a> {
    ledger: &'a mut Ledger,
    consistency: Option<&'a mut Consistency>,
    watch: &'a mut dyn Watch,
}

impl Observer for Books<'_> {
    fn round(&mut self, view: &fedstay::RoundView<'_>) -> Result<(), Error> {
        let flags = self.consistency.as_mut().map(|consistency| consistency.look(view));
        let view = fedstay::RoundView { flags: flags.as_deref().unwrap_or(&[]), ..*view };
        self.ledger.round(&view)?;
        self.watch.round(&view)
    }

    fn between_rounds(&mut self, server: &Server, engine: &dyn Engine) -> Result<(), Error> {
        let ledger = &*self.ledger;
        let state = || TrialState {
            server: server.state(),
            engine: engine.memory(),
            ledger: ledger.clone(),
            consistency: self.consistency.as_deref().cloned(),
        };
        self.watch.between(&state, ledger.stop().is_some())
    }
}

//! The runs of a plan on one seed: those that are kept are found again, the others are computed side by side.

use super::PlanWatch;
use super::answer::{AVERAGING, CEILING, Method};
use super::compute::{Against, PlanRun, name_of_rows, run_key, run_way};
use super::error::QuestionError;
use super::find::{OwnerRows, SeedJudged, WITHOUT};
use super::judge::judge;
use super::kept::KeptRuns;
use super::question::Question;
use super::resample::RESAMPLES;
use crate::experiment::{Epsilon, Experiment, SpecError, Work};
use crate::measure::Measuring;
use crate::run::Trial;
use crate::simulator::Simulator;
use crate::simulator::population::Population;
use fedstay::Measure;
use fedstay::record::DataRows;
use rayon::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A run of a plan.
#[derive(Debug, Clone)]
pub(super) enum PlanCell {
    Against(Against),
    Way(String),
    /// The ceiling without some members.
    Without(Vec<usize>),
}

impl PlanCell {
    fn label(&self) -> &str {
        match self {
            Self::Against(against) => against.name(),
            Self::Way(label) => label,
            Self::Without(_) => WITHOUT,
        }
    }
}

/// What one seed's data say about the plan.
pub(super) struct SeedAbout {
    pub(super) on: String,
    /// The column that says who owns a row.
    pub(super) owner: Option<String>,
    pub(super) names: Vec<String>,
    pub(super) rows: Vec<OwnerRows>,
    pub(super) measures: Vec<Measure>,
    pub(super) method: Method,
    pub(super) data_rows: DataRows,
    pub(super) notes: Vec<String>,
    pub(super) rows_named: String,
}

pub(super) struct Planner<'a> {
    pub(super) question: &'a Question,
    pub(super) kept: KeptRuns,
    pub(super) watch: &'a dyn PlanWatch,
    pub(super) done: AtomicUsize,
    pub(super) of: usize,
}

impl Planner<'_> {
    /// Runs cells on one seed and judges them.
    pub(super) fn seed(
        &self,
        seed: u64,
        cells: &[PlanCell],
    ) -> Result<(SeedAbout, SeedJudged), QuestionError> {
        let base = self.question.experiment(AVERAGING, seed)?;
        let population = Simulator::deal(&base)?;
        let rows_named = name_of_rows(population.data());
        let trial = Trial::on(base.clone(), Some(population.clone()))?;
        let Some(simulator) = trial.simulator() else { return Err(SpecError::NoTraining.into()) };
        // What a target is relative to is trained once, not once for every way.
        let epsilon: Vec<f64> = trial.header().agents.iter().map(|agent| agent.epsilon).collect();
        let of_cell = |cell: &PlanCell| -> Result<PlanRun, QuestionError> {
            let (label, without) = match cell {
                PlanCell::Way(label) => (label.as_str(), &[][..]),
                PlanCell::Without(without) => (CEILING, without.as_slice()),
                PlanCell::Against(_) => (AVERAGING, &[][..]),
            };
            let experiment = self.question.experiment(label, seed)?;
            let key = run_key(&experiment, cell.label(), without, &rows_named)?;
            if let Some(run) = self.kept.find(&key) {
                self.advance();
                return Ok(run);
            }
            let run = match cell {
                PlanCell::Against(against) => against.run(simulator)?,
                PlanCell::Way(_) | PlanCell::Without(_) => {
                    let epsilon = Epsilon::Each(epsilon.clone());
                    let mut experiment = Experiment { epsilon, ..experiment };
                    if let Work::Training(training) = &mut experiment.work {
                        // All models are measured together, below.
                        training.measure = Measuring::nothing();
                    }
                    run_way(&experiment, population.clone(), without)?
                }
            };
            self.kept
                .keep(&key, &run)
                .map_err(|source| QuestionError::Io { path: key.into(), source })?;
            self.advance();
            Ok(run)
        };
        let runs: Vec<PlanRun> =
            cells.par_iter().map(of_cell).collect::<Result<_, QuestionError>>()?;
        let about = about(&base, &trial, simulator, rows_named)?;
        let judged = judge(simulator, seed, &about.measures, runs)?;
        let labels = cells.iter().map(|cell| cell.label().to_owned());
        Ok((about, labels.zip(judged).collect()))
    }

    fn advance(&self) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        self.watch.advanced(done.min(self.of), self.of);
    }
}

/// What one seed's data say about the plan.
fn about(
    experiment: &Experiment,
    trial: &Trial,
    simulator: &Simulator,
    rows_named: String,
) -> Result<SeedAbout, QuestionError> {
    let training = experiment.training().ok_or(SpecError::NoTraining)?;
    let population = simulator.population();
    let agents = 0..population.agents();
    let name = |agent: usize| {
        population.name(agent).map_or_else(|| format!("owner {agent}"), str::to_owned)
    };
    let config = serde_json::to_value(experiment).map_err(SpecError::from)?;
    let text = |key: &str| config[key].as_str().map(str::to_owned);
    let epsilon = &config["epsilon"];
    Ok(SeedAbout {
        on: population.data().name.clone(),
        owner: config["data"]["owner"].as_str().filter(|owner| *owner != "file").map(str::to_owned),
        names: agents.clone().map(name).collect(),
        rows: agents.map(|agent| rows_of(population, agent)).collect(),
        measures: training.measure.measures(),
        method: Method {
            seeds: Vec::new(),
            model: training.model.name().replace('-', " "),
            weights: simulator.network().layout().parameters(),
            features: population.data().features(),
            rounds: experiment.rounds,
            step_size: experiment.step_size,
            epsilon: epsilon.as_str().map_or_else(|| epsilon.to_string(), str::to_owned),
            decides_on_rows: text("decides_on_rows").unwrap_or_else(|| "training".to_owned()),
            resamples: RESAMPLES,
        },
        data_rows: population.rows().clone(),
        notes: trial.warnings().to_vec(),
        rows_named,
    })
}

/// How many rows an owner has.
fn rows_of(population: &Population, agent: usize) -> OwnerRows {
    let targets = &population.data().targets;
    let Some(range) = population.held_back(agent) else {
        return OwnerRows { rows: population.count(agent), held: 0, rarest: 0 };
    };
    let held = range.len();
    let rarest = match targets.kinds() {
        2 => targets.rows(range).counts(2).into_iter().min().unwrap_or(0),
        _ => held,
    };
    OwnerRows { rows: population.count(agent) + held, held, rarest }
}

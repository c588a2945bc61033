//! Plans: would a consortium hold, who would leave, when, at what price, who gains at all, what keeps them?
//!
//! | file | what |
//! |---|---|
//! | `question.rs`, `settle.rs` | what is asked: an experiment, ways to run it, seeds; what it leaves open |
//! | `compute.rs`, `kept.rs` | the runs: one for every way and seed, kept in the plan's folder |
//! | `resample.rs` | how sure a measure is, and a difference of two models on the same rows |
//! | `find.rs`, `answer.rs` | from the runs to findings, and the findings as data |
//! | `recommend.rs` | from the findings to a recommendation: a pure function |
//!
//! Words and pictures are made elsewhere, from a [`PlanAnswer`] alone.

mod answer;
mod compute;
mod error;
mod find;
mod kept;
mod question;
mod recommend;
mod resample;
mod settle;

pub use answer::{
    AVERAGING, CEILING, Findings, Gains, Leaver, Leaving, Measured, Method, OwnerFinding,
    PlanAnswer, WayFinding, WithoutFinding,
};
pub use error::QuestionError;
pub use question::{Question, USUAL_SEEDS};
pub use recommend::{Action, Advice, DO_NOT, PREFERRED, recommend};

use crate::experiment::{Epsilon, Experiment, SpecError, Work};
use crate::measure::{Listed, Measuring};
use crate::model::Said;
use crate::run::Trial;
use crate::simulator::Simulator;
use compute::{Against, PlanRun, name_of_rows, run_key, run_way};
use fedstay::record::DataRows;
use fedstay::{AgentId, Measure};
use find::{Evidence, Judged, SeedJudged, WITHOUT};
use kept::KeptRuns;
use rayon::prelude::*;
use resample::{RESAMPLES, Redrawn, Redraws, widening};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Watches a plan. Called from several threads.
pub trait PlanWatch: Sync {
    /// So many of all runs are done.
    fn advanced(&self, done: usize, of: usize) {
        let _ = (done, of);
    }
}

impl PlanWatch for () {}

/// Answers a question. Runs that a folder keeps are not computed again.
///
/// # Errors
/// When the data cannot be read, a run fails otherwise than by diverging, or the folder cannot be written.
pub fn answer(
    question: &Question,
    folder: Option<&Path>,
    watch: &dyn PlanWatch,
) -> Result<PlanAnswer, QuestionError> {
    let kept = KeptRuns::within(folder).map_err(|source| QuestionError::Io {
        path: folder.unwrap_or(Path::new(".")).to_owned(),
        source,
    })?;
    let of = (question.labels.len() + Against::ALL.len()) * question.seeds.len();
    let planner = Planner { question, kept, watch, done: AtomicUsize::new(0), of };
    let mut cells: Vec<PlanCell> = Against::ALL.map(PlanCell::Against).to_vec();
    cells.extend(question.labels.iter().cloned().map(PlanCell::Way));
    let mut seeds = Vec::with_capacity(question.seeds.len());
    let mut first: Option<SeedAbout> = None;
    let mut rows_named = Vec::with_capacity(question.seeds.len());
    for seed in &question.seeds {
        let (about, judged) = planner.seed(*seed, &cells)?;
        rows_named.push(about.rows_named.clone());
        first.get_or_insert(about);
        seeds.push(judged);
    }
    let Some(about) = first else { return Err(QuestionError::NothingHeldBack) };
    let rows: usize = about.rows.iter().map(|(rows, _)| rows).sum();
    let held: usize = about.rows.iter().map(|(_, held)| held).sum();
    // Where every seed holds back the same rows, further seeds say nothing new about rows.
    let in_common = match rows_named.iter().all(|named| *named == rows_named[0]) {
        true => 1.0,
        false => held as f64 / rows.max(1) as f64,
    };
    let widen = widening(question.seeds.len(), in_common);
    let mut evidence = Evidence { measures: &about.measures, names: &about.names, seeds, widen };
    let alone = |evidence: &Evidence<'_>| {
        let owners = evidence.owners(&about.rows, 0.0);
        let headline = about.measures[0].name.clone();
        let known =
            owners.into_iter().filter_map(move |owner| Some(owner.alone.get(&*headline)?.value));
        known.collect::<Vec<f64>>()
    };
    let least = Findings::least(&about.measures[0], alone(&evidence).into_iter());
    let mut owners = evidence.owners(&about.rows, least);
    let nothing: Vec<usize> =
        (0..owners.len()).filter(|owner| owners[*owner].gains == Gains::No).collect();
    let some_gain = owners.iter().any(|owner| owner.gains == Gains::Yes);
    let mut without = None;
    if some_gain && !nothing.is_empty() && owners.len() - nothing.len() > 1 {
        for (place, seed) in question.seeds.iter().enumerate() {
            let (_, judged) = planner.seed(*seed, &[PlanCell::Without(nothing.clone())])?;
            evidence.seeds[place].extend(judged);
        }
        without = evidence.without(&owners);
        owners = evidence.owners(&about.rows, least);
    }
    let found = Findings {
        schema: Findings::SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        on: about.on,
        ways: evidence.ways(&question.labels, &owners),
        mean_gain: evidence.mean_gain(),
        without,
        method: Method { seeds: question.seeds.clone(), ..about.method },
        rows: about.data_rows,
        measure: about.measures[0].clone(),
        least,
        owners,
        notes: about.notes,
    };
    Ok(PlanAnswer { recommend: recommend(&found), found })
}

/// A run of a plan.
#[derive(Debug, Clone)]
enum PlanCell {
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
struct SeedAbout {
    on: String,
    names: Vec<String>,
    /// Of every owner, how many rows it has and how many of them are held back.
    rows: Vec<(usize, usize)>,
    measures: Vec<Measure>,
    method: Method,
    data_rows: DataRows,
    notes: Vec<String>,
    rows_named: String,
}

struct Planner<'a> {
    question: &'a Question,
    kept: KeptRuns,
    watch: &'a dyn PlanWatch,
    done: AtomicUsize,
    of: usize,
}

impl Planner<'_> {
    /// Runs cells on one seed and judges them.
    fn seed(
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

/// Judges every run on every member's held-back rows.
fn judge(
    simulator: &Simulator,
    seed: u64,
    measures: &[Measure],
    runs: Vec<PlanRun>,
) -> Result<Vec<Judged>, QuestionError> {
    let listed: Vec<&Listed> =
        measures.iter().filter_map(|measure| Listed::find(&measure.name)).collect();
    let agents = simulator.population().agents();
    let mut said: Vec<Vec<Option<Said>>> = Vec::with_capacity(runs.len());
    let mut delivered: Vec<Vec<Option<f64>>> = Vec::with_capacity(runs.len());
    for run in &runs {
        if run.models.is_empty() {
            said.push(vec![None; agents]);
            delivered.push(vec![None; listed.len()]);
            continue;
        }
        let ends: Vec<(AgentId, &[f64])> = run
            .members
            .iter()
            .enumerate()
            .map(|(agent, member)| (AgentId(agent as u64), &run.models[member.model].0[..]))
            .collect();
        said.push(simulator.said_held_back_each(&ends)?);
        let whole = simulator.said_held_back(&run.models[0].0)?.into_iter().flatten().collect();
        let whole = Said::together(whole);
        let of = |listed: &&Listed| whole.as_ref().and_then(|whole| listed.of(whole));
        delivered.push(listed.iter().map(of).collect());
    }
    // One member after the other: the draws of all would take much memory.
    let each: Vec<Vec<Vec<Option<Redrawn>>>> = (0..agents)
        .into_par_iter()
        .map(|owner| {
            let any = said.iter().find_map(|said| said[owner].as_ref());
            let redraws = any.map(|any| Redraws::of(any, seed, owner));
            let of_run = |said: &Vec<Option<Said>>| {
                let of =
                    |listed: &&Listed| redraws.as_ref()?.measure(listed, said[owner].as_ref()?);
                listed.iter().map(of).collect()
            };
            said.iter().map(of_run).collect()
        })
        .collect();
    let mut by_run: Vec<Vec<Vec<Option<Redrawn>>>> =
        (0..runs.len()).map(|_| Vec::with_capacity(agents)).collect();
    for owner in each {
        owner.into_iter().enumerate().for_each(|(run, redrawn)| by_run[run].push(redrawn));
    }
    let judged = runs.into_iter().zip(by_run).zip(delivered);
    Ok(judged
        .map(|((mut run, redrawn), delivered)| {
            run.models.clear();
            Judged { run, redrawn, delivered }
        })
        .collect())
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
    let held = |agent: usize| population.held_back(agent).map_or(0, |rows| rows.len());
    let config = serde_json::to_value(experiment).map_err(SpecError::from)?;
    let text = |key: &str| config[key].as_str().map(str::to_owned);
    let epsilon = &config["epsilon"];
    Ok(SeedAbout {
        on: population.data().name.clone(),
        names: agents.clone().map(name).collect(),
        rows: agents.map(|agent| (population.count(agent) + held(agent), held(agent))).collect(),
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

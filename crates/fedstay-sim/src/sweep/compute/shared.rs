//! What workers use: pools of threads, data that are dealt out, and what agents make alone.

use crate::experiment::{Experiment, SpecError};
use crate::lock;
use crate::run::Trial;
use crate::simulator::population::Population;
use crate::simulator::{Made, Simulator};
use crate::sweep::SweepError;
use fedstay::Error;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

/// Pools of threads by size, made when first asked for.
#[derive(Default)]
pub(in crate::sweep) struct Pools(BTreeMap<usize, ThreadPool>);

impl Pools {
    pub(in crate::sweep) fn of(&mut self, threads: usize) -> Result<&ThreadPool, SweepError> {
        Ok(match self.0.entry(threads) {
            Entry::Occupied(pool) => pool.into_mut(),
            Entry::Vacant(place) => {
                let pool = ThreadPoolBuilder::new()
                    .num_threads(threads)
                    .build()
                    .map_err(|error| SweepError::Threads { threads, why: error.to_string() })?;
                place.insert(pool)
            }
        })
    }
}

/// Data that are dealt out, shared by cells that have the same.
#[derive(Default)]
pub(in crate::sweep) struct Populations(Mutex<VecDeque<(String, Population)>>);

/// How many are kept: those of a CIFAR-10 sweep are 100 to 200 MB each.
const POPULATIONS: usize = 4;

/// What decides who holds which rows.
pub(in crate::sweep) fn data_key(experiment: &Experiment) -> String {
    let Some(training) = experiment.training() else { return String::new() };
    serde_json::json!([
        experiment.seed,
        training.data,
        training.partition,
        training.agents,
        training.population
    ])
    .to_string()
}

impl Populations {
    pub(in crate::sweep) fn of(
        &self,
        experiment: &Experiment,
    ) -> Result<Option<Population>, SweepError> {
        if experiment.problem().is_some() {
            return Ok(None);
        }
        let key = data_key(experiment);
        // Held while data are read, so that two workers do not read the same at once.
        let mut kept = lock(&self.0);
        if let Some((_, population)) = kept.iter().find(|(name, _)| *name == key) {
            return Ok(Some(population.clone()));
        }
        let population = Simulator::deal(experiment)?;
        kept.push_front((key, population.clone()));
        kept.truncate(POPULATIONS);
        Ok(Some(population))
    }
}

/// What agents make alone, shared by cells that differ in other things: rule, policy, behaviour, ε.
#[derive(Default)]
pub struct AloneScores(Mutex<VecDeque<(String, ScoresOnce)>>);

/// Held while it is computed, so that two workers do not compute the same at once.
type ScoresOnce = Arc<Mutex<Option<Arc<[Made]>>>>;

/// How many are kept: a few numbers per agent each.
const ALONE: usize = 16;

/// What decides what an agent makes alone.
fn alone_key(experiment: &Experiment) -> String {
    let Some(training) = experiment.training() else { return String::new() };
    serde_json::json!([
        data_key(experiment),
        training.model,
        training.local,
        training.measure,
        training.stream,
        experiment.step_size,
        experiment.rounds,
        experiment.rule.facts().stands
    ])
    .to_string()
}

impl AloneScores {
    /// Tells a trial what its agents make alone, where it is going to compare them with that.
    ///
    /// # Errors
    /// When training alone leaves the floating-point range.
    pub fn tell(&self, trial: &mut Trial) -> Result<(), Error> {
        if let (true, Some(simulator)) = (trial.experiment().compare_alone, trial.simulator()) {
            let scores = self.of(trial.experiment(), simulator);
            let scores = scores.map_err(|error| error.in_round(trial.experiment().rounds))?;
            trial.set_alone(scores);
        }
        Ok(())
    }

    fn of(&self, experiment: &Experiment, simulator: &Simulator) -> Result<Arc<[Made]>, SpecError> {
        let key = alone_key(experiment);
        let place = {
            let mut kept = lock(&self.0);
            match kept.iter().find(|(name, _)| *name == key) {
                Some((_, place)) => Arc::clone(place),
                None => {
                    kept.push_front((key, ScoresOnce::default()));
                    kept.truncate(ALONE);
                    Arc::clone(&kept[0].1)
                }
            }
        };
        let mut scores = lock(&place);
        if let Some(scores) = &*scores {
            return Ok(Arc::clone(scores));
        }
        let made = simulator.scores_alone(experiment.step_size, experiment.rounds)?;
        Ok(Arc::clone(scores.insert(made.into())))
    }
}

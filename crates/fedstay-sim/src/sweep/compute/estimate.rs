//! How long a sweep will take: a few rounds of each kind of cell, measured now.

use crate::experiment::{Experiment, SpecError};
use crate::run::Trial;
use crate::sweep::plan::family::Family;
use crate::sweep::{Planned, families};
use fedstay::{Book, Engine, Error, RoundRecord};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time spent on measuring one kind of cell, at most by one round more.
const PATIENCE: Duration = Duration::from_millis(600);

/// What a sweep costs.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Estimate {
    /// The runs that are missing.
    pub runs: usize,
    /// The families they form.
    pub families: usize,
    /// The kinds of cells that were measured.
    pub kinds: usize,
    /// Seconds on one thread if every run is computed alone and nobody leaves.
    pub alone: f64,
    /// The same if all runs of a family share everything: no sweep is faster than that, but for
    /// agents who leave.
    pub shared: f64,
}

/// Measures a few rounds of every kind of cell on one thread.
///
/// # Errors
/// When an experiment cannot be set up or its data are not there.
pub fn estimate(missing: &[Arc<Planned>]) -> Result<Estimate, SpecError> {
    let families = families(missing, true);
    let mut measured: BTreeMap<String, f64> = BTreeMap::new();
    let mut estimate =
        Estimate { runs: missing.len(), families: families.len(), ..Estimate::default() };
    for Family { runs, .. } in &families {
        let kind = kind(&runs[0]);
        let seconds = match measured.get(&kind) {
            Some(seconds) => *seconds,
            None => {
                let seconds = run_seconds(&runs[0].experiment)?;
                measured.insert(kind, seconds);
                seconds
            }
        };
        estimate.alone += seconds * runs.len() as f64;
        estimate.shared += seconds;
    }
    estimate.kinds = measured.len();
    Ok(estimate)
}

/// Cells of one kind take equally long: seed, step size, target loss and mixture do not matter.
fn kind(run: &Planned) -> String {
    let mut config = run.config.clone();
    for key in ["seed", "step_size", "epsilon"] {
        config[key] = serde_json::Value::Null;
    }
    if let Some(partition) = config["partition"].as_object_mut() {
        partition.retain(|key, _| key == "kind");
    }
    config.to_string()
}

/// Seconds on one thread for a run in which nobody leaves.
fn run_seconds(experiment: &Experiment) -> Result<f64, SpecError> {
    // A problem takes no time worth measuring.
    if experiment.problem().is_some() {
        return Ok(0.0);
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    pool.install(|| measure(experiment))
}

/// The run that is timed: the experiment's own, with everybody in it to the end.
fn rehearsal(experiment: &Experiment) -> Result<Trial, SpecError> {
    Trial::nobody_leaves(experiment.clone())
}

fn measure(experiment: &Experiment) -> Result<f64, SpecError> {
    let mut trial = rehearsal(experiment)?;
    let start = trial.server().weights().to_vec();
    let simulator = trial.simulator_mut().ok_or(SpecError::NoTraining)?;
    let before = Instant::now();
    simulator.assess(&start)?;
    let look = before.elapsed();
    let mut watch = Stopwatch { since: Instant::now(), look, spent: Duration::ZERO, rounds: 0 };
    // Far too large a step ends it: what was measured until then has to do.
    let _ = trial.run(&mut [&mut watch]);
    let every = experiment.training().map_or(1, |training| training.eval_every);
    let round = watch.spent.as_secs_f64() / f64::from(watch.rounds.max(1));
    let look = look.as_secs_f64();
    let looks = f64::from(experiment.rounds / every + 2);
    Ok(f64::from(experiment.rounds) * round + looks * look)
}

/// Times rounds, without what measuring everybody takes, until it has seen enough of them.
struct Stopwatch {
    since: Instant,
    look: Duration,
    spent: Duration,
    rounds: u32,
}

impl Book for Stopwatch {
    fn round(&mut self, record: &RoundRecord<'_>) -> Result<ControlFlow<()>, Error> {
        let look = if record.assessment.is_some() { self.look } else { Duration::ZERO };
        self.spent += self.since.elapsed().saturating_sub(look);
        self.rounds += 1;
        self.since = Instant::now();
        let enough = self.rounds >= 2 && self.spent >= PATIENCE;
        Ok(if enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_run_that_is_timed_is_the_one_the_file_says() {
        let text = "rule.kind = 'fedavg'\npolicy.kind = 'keep-best'\nserver.optimiser = 'adam'\n\
                    data.kind = 'digits'\ndata.per_agent = 5\nforget.how = 'eraser'";
        let experiment = Experiment::parse(text, &[]).unwrap();
        let trial = rehearsal(&experiment).unwrap();
        let server = trial.server();
        let asked = experiment.forget.as_ref().map(|forget| forget.how);
        assert!(asked.is_some());
        assert_eq!(server.forgetting().map(|forgetting| forgetting.how), asked);
        assert_eq!(
            (server.policies(), server.optimiser()),
            (&experiment.policy, &experiment.server)
        );
        assert!(measure(&experiment).unwrap() > 0.0);
    }
}

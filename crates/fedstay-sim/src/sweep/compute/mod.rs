//! How a sweep is computed: what to ask for, what is told on the way, and the start of it.

mod branch;
pub(super) mod claim;
pub(super) mod estimate;
pub(super) mod package;
pub(super) mod shared;
pub(super) mod single;
mod workers;

use crate::experiment::SpecError;
use crate::sweep::compute::shared::data_key;
use crate::sweep::compute::workers::SweepWorkers;
use crate::sweep::{Family, Finished, Plan, Planned, Store, StoreError, WorkDone, families};
use std::path::Path;
use std::sync::Arc;

/// How to compute. Changes how long it takes and no result.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Threads to compute with.
    pub threads: usize,
    /// Whether runs that differ only in ε share what they have in common.
    pub share: bool,
    /// Whether losses are evaluated in full, for comparison with the early exit.
    pub full_losses: bool,
}

/// What went wrong with a sweep. Finished runs are in the store.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// With an experiment or its data.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// With the store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// With the disk for temporary files.
    #[error("no room for temporary files: {0}")]
    Scratch(#[source] std::io::Error),
    /// With the threads.
    #[error("cannot start {threads} threads: {why}")]
    Threads {
        /// How many.
        threads: usize,
        /// Why not.
        why: String,
    },
    /// A run failed for a reason other than divergence, and is not stored.
    #[error(
        "run {key} failed and is not stored: {why}; the runs that are finished are kept: leave this one \
         out with [[skip]], or put it right, and type the same command again"
    )]
    Failed {
        /// Which run.
        key: String,
        /// Why.
        why: String,
    },
    /// Somebody asked for it ([`SweepWatch::stopped`]).
    #[error("stopped; what was finished is kept, and the same command goes on")]
    Stopped,
}

/// How far a sweep is.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Tally {
    /// Runs of the plan.
    pub planned: usize,
    /// Those that were in the store before.
    pub there: usize,
    /// Rows of the store that were damaged and have been forgotten, so that they are computed again.
    pub damaged: usize,
    /// Those computed now.
    pub computed: usize,
    /// Those that another process has computed meanwhile.
    pub elsewhere: usize,
    /// The share of the missing work that is done, by rounds and local steps.
    pub share: f64,
    /// What was computed.
    pub work: WorkDone,
}

/// Watches a sweep. Called from several threads.
pub trait SweepWatch: Sync {
    /// Rounds were computed.
    fn advanced(&self, tally: &Tally) {
        let _ = tally;
    }

    /// A run is finished and stored.
    fn finished(&self, run: &Finished) {
        let _ = run;
    }

    /// Whether to stop; looked at after every round.
    fn stopped(&self) -> bool {
        false
    }
}

impl SweepWatch for () {}

/// Computes what is missing of a plan and keeps it in the store at `path`.
///
/// Families of one seed come first, then the next seed's, so that after a while there is a whole
/// picture, of few seeds.
///
/// # Errors
/// When an experiment cannot be set up, a run fails otherwise than by diverging, or the store fails.
/// What was finished is stored.
pub fn run(
    plan: &Plan,
    path: &Path,
    options: &Options,
    watch: &dyn SweepWatch,
) -> Result<Tally, SweepError> {
    let store = Store::open(path)?;
    let damaged = store.forget_damaged()?;
    let families = missing(plan, &store, options.share)?;
    let missing: usize = families.iter().map(|family| family.runs.len()).sum();
    let counts = (plan.runs.len(), plan.runs.len() - missing);
    let check_there = store.watch();
    let tally = SweepWorkers::new(store, families, counts, options, watch).run()?;
    check_there()?;
    Ok(Tally { damaged, ..tally })
}

/// What of a plan is not in a store, in the order in which it is best computed.
///
/// # Errors
/// When the store cannot be read.
pub fn missing(plan: &Plan, store: &Store, share: bool) -> Result<Vec<Family>, StoreError> {
    let there = store.keys()?;
    let missing: Vec<Arc<Planned>> =
        plan.runs.iter().filter(|run| !there.contains(&run.key)).cloned().collect();
    let mut families = families(&missing, share);
    // Most expensive first within a seed and its data, so that the tail is short.
    families.sort_by_cached_key(|family| {
        let experiment = &family.runs[0].experiment;
        (experiment.seed, data_key(experiment), u64::MAX - family.steps())
    });
    Ok(families)
}

//! The native simulator, from Python.

use crate::error::error;
use crate::outcome::Outcome;
use fedstay::record::RoundLine;
use fedstay::{Error, RoundView};
use fedstay_cli::picture;
use fedstay_cli::progress::Progress;
use fedstay_sim::experiment::{DEFAULT, Experiment, check_threads, default_under};
use fedstay_sim::observe::{Asked, Folder, read_rounds};
use fedstay_sim::trial::{Parting, Trial, TrialState, Watch};
use pyo3::prelude::*;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How often Ctrl-C is looked for.
const LOOKS_UP: Duration = Duration::from_millis(200);

/// Keeps the lines, and lets Ctrl-C through.
struct Lines {
    rounds: Vec<RoundLine>,
    looked: Instant,
    interrupt: Option<PyErr>,
}

impl Watch for Lines {
    fn round(&mut self, view: &RoundView<'_>) -> Result<(), Error> {
        self.rounds.push(RoundLine::new(view));
        if self.looked.elapsed() >= LOOKS_UP {
            self.looked = Instant::now();
            Python::attach(|py| py.check_signals()).map_err(|interrupt| {
                self.interrupt = Some(interrupt);
                Error::Observer("interrupted".into())
            })?;
        }
        Ok(())
    }
}

/// Watches without a folder too.
struct Kept(Option<Folder>);

impl Watch for Kept {
    fn round(&mut self, view: &RoundView<'_>) -> Result<(), Error> {
        self.0.as_mut().map_or(Ok(()), |folder| folder.round(view))
    }

    fn between(&mut self, state: &dyn Fn() -> TrialState, last: bool) -> Result<(), Error> {
        self.0.as_mut().map_or(Ok(()), |folder| folder.between(state, last))
    }
}

/// Runs an experiment (TOML text, or the default one, with keys set on top) in the native simulator.
///
/// With `out` the run is kept in a folder; with `resume` it goes on with the one in that folder.
#[pyfunction]
#[pyo3(signature = (text, set=Vec::new(), *, out=None, resume=false, threads=None))]
pub(crate) fn run_experiment(
    py: Python<'_>,
    text: Option<&str>,
    set: Vec<(String, String)>,
    out: Option<PathBuf>,
    resume: bool,
    threads: Option<usize>,
) -> PyResult<Outcome> {
    let mut interrupt = None;
    let done = py.detach(|| {
        let mut work = || run(text, &set, out.as_deref(), resume, &mut interrupt);
        match threads {
            None => work(),
            Some(threads) => rayon::ThreadPoolBuilder::new()
                .num_threads(check_threads(threads).map_err(|why| why.to_string())?)
                .build()
                .map_err(|why| why.to_string())?
                .install(work),
        }
    });
    match (done, interrupt) {
        (Ok(outcome), _) => Ok(outcome),
        (Err(_), Some(interrupt)) => Err(interrupt),
        (Err(why), None) => Err(error(why)),
    }
}

fn run(
    text: Option<&str>,
    set: &[(String, String)],
    out: Option<&Path>,
    resume: bool,
    interrupt: &mut Option<PyErr>,
) -> Result<Outcome, String> {
    let mut before = Vec::new();
    let (mut trial, folder) = match (out, resume) {
        (Some(path), true) => {
            let (folder, trial) = Folder::resume(path).map_err(|why| why.to_string())?;
            before = read_rounds(&path.join("rounds.jsonl"))?.rounds;
            (trial, Some(folder))
        }
        (None, true) => return Err("`resume` needs `out`, the folder to go on in".to_owned()),
        (out, false) => {
            let text = text.map_or_else(|| default_under(DEFAULT, set), |text| Ok(text.to_owned()));
            let experiment = text.and_then(|text| Experiment::parse(&text, set));
            let experiment = experiment.map_err(|why| why.to_string())?;
            let trial = Trial::new(experiment).map_err(|why| why.to_string())?;
            let folder = out.map(|path| Folder::create(path, &trial, Asked::default())).transpose();
            (trial, folder.map_err(|why| why.to_string())?)
        }
    };
    let mut kept = Kept(folder);
    let mut lines = Lines { rounds: before, looked: Instant::now(), interrupt: None };
    let mut progress = Progress::new(&trial);
    let summary = trial.run(&mut [&mut lines as &mut dyn Watch, &mut kept, &mut progress]);
    progress.finish();
    *interrupt = lines.interrupt.take();
    let mut summary = summary.map_err(|why| why.to_string())?;
    if let Some(folder) = &mut kept.0 {
        // What the command line had asked for when the run was begun there.
        if folder.asked().counterfactual {
            let without = Trial::nobody_leaves(trial.experiment().clone());
            let without = without.map_err(|why| why.to_string())?.counterfactual(&mut ());
            summary.counterfactual = Some(without.map_err(|why| why.to_string())?);
        }
        if folder.asked().story {
            let told = trial.compare_with_alone(&mut summary, &Parting::default(), None);
            told.map_err(|why| why.to_string())?;
        }
        picture::run::write(folder.path(), Some(&summary)).map_err(|why| format!("{why:#}"))?;
        picture::report::write(folder.path(), Some(&summary)).map_err(|why| format!("{why:#}"))?;
        folder.finish(&trial, &summary).map_err(|why| why.to_string())?;
    }
    let outcome =
        Outcome::new(&trial.header(), &lines.rounds, &summary, trial.server().delivered());
    outcome.map_err(|why| why.to_string())
}

//! The native simulator, from Python.

use crate::error::{error, with_sources};
use crate::outcome::Outcome;
use crate::progress::Progress;
use fedstay::record::RoundLine;
use fedstay::{Book, Error, RoundRecord};
use fedstay_draw::picture::{self, Subject};
use fedstay_sim::experiment::{DEFAULT, Experiment, check_threads, default_under};
use fedstay_sim::run::{Asked, DepartureWeights, Recorded, Trial, read_rounds};
use pyo3::prelude::*;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How often Ctrl-C is checked for.
const LOOKS_UP: Duration = Duration::from_millis(200);

/// A book that keeps the lines and lets Ctrl-C through.
struct Lines {
    rounds: Vec<RoundLine>,
    looked: Instant,
    interrupt: Option<PyErr>,
}

impl Book for Lines {
    fn round(&mut self, record: &RoundRecord<'_>) -> Result<ControlFlow<()>, Error> {
        self.rounds.push(record.line.clone());
        if self.looked.elapsed() >= LOOKS_UP {
            self.looked = Instant::now();
            if let Err(interrupt) = Python::attach(|py| py.check_signals()) {
                self.interrupt = Some(interrupt);
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Runs an experiment (TOML text, or the default one, with keys set on top) in the native
/// simulator.
///
/// With `out` the run is kept in a folder; with `resume` it continues the one in that folder.
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
    crate::workers::own();
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
    let (mut trial, mut folder) = match (out, resume) {
        (Some(path), true) => {
            let (folder, trial) = Trial::resume_in(path).map_err(|why| why.to_string())?;
            before = read_rounds(&path.join("rounds.jsonl"))?.rounds;
            (trial, Some(folder))
        }
        (None, true) => {
            return Err("`resume` needs `out`, the folder of the run to continue".to_owned());
        }
        (out, false) => {
            let text = text.map_or_else(|| default_under(DEFAULT, set), |text| Ok(text.to_owned()));
            let experiment = text.and_then(|text| Experiment::parse(&text, set));
            let experiment = experiment.map_err(|why| why.to_string())?;
            let trial = Trial::new(experiment).map_err(|why| why.to_string())?;
            let folder = out.map(|path| trial.keep_in(path, Asked::default())).transpose();
            (trial, folder.map_err(|why| why.to_string())?)
        }
    };
    let mut lines = Lines { rounds: before, looked: Instant::now(), interrupt: None };
    let mut progress = Progress::new(&trial);
    let summary = trial.run(&mut [&mut lines, &mut folder, &mut progress]);
    progress.finish();
    *interrupt = lines.interrupt.take();
    let mut summary = summary.map_err(|why| why.to_string())?.ok_or("interrupted")?;
    let (header, rounds) = (trial.header().clone(), lines.rounds);
    let mut recorded = Recorded { header, rounds, unreadable: Vec::new() };
    if let Some(folder) = &mut folder {
        // What the command line had asked for when it began the run.
        if folder.asked().counterfactual {
            let without = Trial::nobody_leaves(trial.experiment().clone());
            let without = without.map_err(|why| why.to_string())?.counterfactual(&mut []);
            summary.counterfactual = without.map_err(|why| why.to_string())?;
        }
        if folder.asked().story {
            let told = trial.compare_with_alone(&mut summary, &DepartureWeights::default());
            told.map_err(|why| why.to_string())?;
        }
        let subject = Subject::ending(folder.path(), recorded, summary.clone());
        picture::run::write(&subject).map_err(|why| with_sources(&why))?;
        picture::report::write(&subject).map_err(|why| why.to_string())?;
        recorded = subject.recorded;
        trial.close(folder, &summary).map_err(|why| why.to_string())?;
    }
    let Recorded { header, rounds, .. } = &recorded;
    let outcome = Outcome::new(header, rounds, &summary, trial.server().delivered());
    outcome.map_err(|why| why.to_string())
}

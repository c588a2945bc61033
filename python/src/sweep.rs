//! Sweeps, from Python: the plan and its store, and what a worker on another machine computes.

use crate::error::error;
use crate::progress::SweepProgress;
use fedstay_sim::experiment::{Experiment, check_threads};
use fedstay_sim::sweep::{
    self, Finished, Frame, Options, Package, Plan, Store, SweepError, SweepWatch, Tally, Values,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often Ctrl-C is checked for.
const LOOKS_UP: Duration = Duration::from_millis(100);

/// A sweep's file and its store.
#[pyclass(frozen, module = "fedstay")]
pub(crate) struct Sweep {
    plan: Plan,
    store: PathBuf,
}

#[pymethods]
impl Sweep {
    #[new]
    #[pyo3(signature = (file, set=Vec::new(), *, store=None))]
    fn new(file: PathBuf, set: Vec<(String, String)>, store: Option<PathBuf>) -> PyResult<Self> {
        let plan = Plan::read(&file, &set).map_err(error)?;
        Ok(Self { plan, store: store.unwrap_or_else(|| sweep::usual_store(&file)) })
    }

    /// The file in which the results are kept.
    #[getter]
    fn store(&self) -> PathBuf {
        self.store.clone()
    }

    /// How many runs the file asks for.
    #[getter]
    fn planned(&self) -> usize {
        self.plan.runs.len()
    }

    /// The missing runs as families that share work, each run as the text of its experiment.
    fn missing(&self, py: Python<'_>) -> PyResult<Vec<Vec<String>>> {
        py.detach(|| {
            let store = Store::open(&self.store).map_err(error)?;
            let families = sweep::missing(&self.plan, &store, true).map_err(error)?;
            families.iter().map(|family| family.to_toml().map_err(error)).collect()
        })
    }

    /// The runs of a family that are not in the store by now.
    fn still_missing(&self, py: Python<'_>, experiments: Vec<String>) -> PyResult<Vec<String>> {
        py.detach(|| {
            let there = Store::open(&self.store).and_then(|store| store.keys()).map_err(error)?;
            let mut missing = Vec::new();
            for text in experiments {
                let experiment = Experiment::parse(&text, &[]).map_err(error)?;
                if !there.contains(&sweep::key(&experiment).map_err(error)?) {
                    missing.push(text);
                }
            }
            Ok(missing)
        })
    }

    /// Stores what `run_family` returned. Returns how many runs that are.
    fn take(&self, py: Python<'_>, parcel: &str) -> PyResult<usize> {
        py.detach(|| {
            let parcel = Package::from_json(parcel).map_err(error)?;
            let store = Store::open(&self.store).map_err(error)?;
            store.take(&parcel).map_err(error)?;
            Ok(parcel.runs.len())
        })
    }

    /// Computes what is missing, in this process. Returns how many runs that were.
    fn compute(&self, py: Python<'_>, threads: usize) -> PyResult<usize> {
        let threads = check_threads(threads).map_err(error)?;
        let options = Options { threads, share: true, full_losses: false };
        let (done, interrupt) = py.detach(|| watched(&self.plan, &self.store, &options));
        match (done, interrupt) {
            (Ok(_) | Err(SweepError::Stopped), Some(interrupt)) => Err(interrupt),
            (done, _) => Ok(done.map_err(error)?.computed),
        }
    }

    /// The results as columns: one row per run, or with `series` one row per measured round.
    fn columns<'py>(&self, py: Python<'py>, series: bool) -> PyResult<Bound<'py, PyDict>> {
        let columns = py.detach(|| {
            let store = Store::read(&self.store).map_err(error)?;
            let frame = Frame::of_plan(&self.plan, &store).map_err(error)?;
            PyResult::Ok(match series {
                true => frame.series_columns(&self.plan),
                false => frame.columns(&self.plan),
            })
        })?;
        let table = PyDict::new(py);
        for column in columns {
            match column.values {
                Values::Whole(values) => table.set_item(column.name, values)?,
                Values::Number(values) => table.set_item(column.name, values)?,
                Values::Text(values) => table.set_item(column.name, values)?,
            }
        }
        Ok(table)
    }
}

/// Computes runs that share work, each given as the text of its experiment. Returns what
/// `Sweep.take` takes.
#[pyfunction]
pub(crate) fn run_family(
    py: Python<'_>,
    experiments: Vec<String>,
    threads: usize,
) -> PyResult<String> {
    let threads = check_threads(threads.max(1)).map_err(error)?;
    py.detach(|| {
        let parcel = sweep::run_family(&experiments, threads).map_err(error)?;
        parcel.to_json().map_err(error)
    })
}

/// Shows progress, and lets the sweep be stopped.
struct Bar<'a> {
    bar: SweepProgress,
    stop: &'a AtomicBool,
}

impl SweepWatch for Bar<'_> {
    fn advanced(&self, tally: &Tally) {
        self.bar.advanced(tally);
    }

    fn finished(&self, run: &Finished) {
        self.bar.finished(run);
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Sweeps on other threads while this one, Python's own, checks for Ctrl-C.
fn watched(
    plan: &Plan,
    store: &Path,
    options: &Options,
) -> (Result<Tally, SweepError>, Option<PyErr>) {
    let stop = AtomicBool::new(false);
    let bar = Bar { bar: SweepProgress::new(), stop: &stop };
    let (done, interrupt) = std::thread::scope(|scope| {
        let here = std::thread::current();
        let bar = &bar;
        let work = scope.spawn(move || {
            let done = sweep::run(plan, store, options, bar);
            here.unpark();
            done
        });
        let mut interrupt = None;
        while !work.is_finished() {
            std::thread::park_timeout(LOOKS_UP);
            if let Err(signal) = Python::attach(|py| py.check_signals()) {
                stop.store(true, Ordering::Relaxed);
                interrupt.get_or_insert(signal);
            }
        }
        (work.join(), interrupt)
    });
    bar.bar.finish();
    (done.unwrap_or_else(|panic| std::panic::resume_unwind(panic)), interrupt)
}

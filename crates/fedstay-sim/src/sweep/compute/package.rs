//! Runs that travel between machines: experiments go out as text, finished runs come back as text.
//!
//! What travels is a family, so that its runs share their work wherever they are computed. Runs are
//! deterministic on machines with the same instructions: a family whose machine died is given to
//! another, and one that was computed twice came out the same.

use crate::experiment::Experiment;
use crate::sweep::plan::key::{BUILD, RESULTS};
use crate::sweep::{
    Finished, Options, Outcome, Plan, Planned, Series, Store, StoreError, SweepError, WorkDone,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// What is wrong with runs that came from elsewhere.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PackageError {
    /// The text is not JSON, or not of this shape.
    #[error("this is not a parcel of finished runs: {0}")]
    Json(#[from] serde_json::Error),
    /// Another version of the format.
    #[error("this is not a finished run: its schema is {got}, not {SCHEMA}")]
    Schema {
        /// The schema it names.
        got: String,
    },
    /// The series is not base64.
    #[error("this is not a finished run: {0}")]
    Base64(#[from] base64::DecodeError),
    /// The series ends too soon.
    #[error("this is not a finished run: its series is cut")]
    Series,
    /// A build computed it whose results may differ.
    #[error(
        "run {key} was computed by fedstay {build} (results {results}), this is {BUILD} (results \
         {RESULTS}): install the same version on every machine"
    )]
    Build {
        /// Which run.
        key: String,
        /// The build that computed it.
        build: String,
        /// That build's number of results.
        results: u32,
    },
}

/// A finished run as text.
#[derive(Serialize, Deserialize)]
struct Run {
    schema: String,
    results: u32,
    build: String,
    key: String,
    config: Value,
    outcome: Outcome,
    series: String,
}

const SCHEMA: &str = "fedstay.cell/2";

impl Finished {
    /// The run as JSON, with its series in base64.
    ///
    /// # Errors
    /// Never, for a run that finished.
    pub fn to_json(&self) -> Result<String, PackageError> {
        let run = Run {
            schema: SCHEMA.to_owned(),
            results: RESULTS,
            build: self.build.clone(),
            key: self.key.clone(),
            config: self.config.clone(),
            outcome: self.outcome.clone(),
            series: STANDARD.encode(self.series.to_bytes()),
        };
        Ok(serde_json::to_string(&run)?)
    }

    /// A run that came from elsewhere. Its key must be the one that its configuration has here.
    ///
    /// # Errors
    /// When it is not what [`to_json`](Self::to_json) wrote, or a build with another number of
    /// results computed it.
    pub fn from_json(text: &str) -> Result<Self, PackageError> {
        let run: Run = serde_json::from_str(text)?;
        if run.schema != SCHEMA {
            return Err(PackageError::Schema { got: run.schema });
        }
        if crate::sweep::plan::key::hash(&run.config) != run.key {
            let Run { key, build, results, .. } = run;
            return Err(PackageError::Build { key, build, results });
        }
        let series =
            Series::from_bytes(&STANDARD.decode(&run.series)?).ok_or(PackageError::Series)?;
        let Run { key, build, config, outcome, .. } = run;
        Ok(Self { key, build, config, outcome, series })
    }
}

/// A family that was computed, on its way home.
#[derive(Debug, Clone, PartialEq)]
pub struct Package {
    /// Its runs, in the order in which they were asked for.
    pub runs: Vec<Finished>,
    /// What they took.
    pub work: WorkDone,
}

#[derive(Serialize, Deserialize)]
struct Wire {
    runs: Vec<String>,
    work: WorkDone,
}

/// Computes runs, each given as TOML, on this number of threads. Those that can share work do.
///
/// # Errors
/// When an experiment cannot be read or its data are not there, or the disk for temporary files is
/// full. A run that diverges is a result.
pub fn run_family(experiments: &[String], threads: usize) -> Result<Package, SweepError> {
    let mut runs = Vec::with_capacity(experiments.len());
    for text in experiments {
        runs.push(Arc::new(Planned::new(Experiment::parse(text, &[])?)?));
    }
    let plan = Plan { axes: Vec::new(), runs };
    let folder = tempfile::tempdir().map_err(SweepError::Scratch)?;
    let path = folder.path().join("family.db");
    let options = Options { threads, share: true, full_losses: false };
    let work = super::run(&plan, &path, &options, &())?.work;
    let store = Store::open(&path)?;
    let mut finished = Vec::with_capacity(plan.runs.len());
    for run in &plan.runs {
        finished.extend(store.get(&run.key)?);
    }
    Ok(Package { runs: finished, work })
}

impl Package {
    /// The parcel as JSON.
    ///
    /// # Errors
    /// Never, for runs that finished.
    pub fn to_json(&self) -> Result<String, PackageError> {
        let runs = self.runs.iter().map(Finished::to_json).collect::<Result<_, _>>()?;
        let wire = Wire { runs, work: self.work };
        Ok(serde_json::to_string(&wire)?)
    }

    /// Unpacks what [`to_json`](Self::to_json) packed.
    ///
    /// # Errors
    /// When it is something else, or a build with another number of results computed it.
    pub fn from_json(text: &str) -> Result<Self, PackageError> {
        let wire: Wire = serde_json::from_str(text)?;
        let runs = wire.runs.iter().map(|run| Finished::from_json(run));
        Ok(Self { runs: runs.collect::<Result<_, _>>()?, work: wire.work })
    }
}

impl Store {
    /// Keeps the runs of a parcel, and what they took.
    ///
    /// # Errors
    /// When the store cannot be written to.
    pub fn take(&self, parcel: &Package) -> Result<(), StoreError> {
        for run in &parcel.runs {
            self.insert(run)?;
        }
        self.note_work(&parcel.work)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::{key, run_cell};

    const TEXT: &str = "rounds = 6\neval_every = 2\n[rule]\nkind = \"fedavg\"\n[data]\nper_agent = 20\n\
                        [model]\nhidden = [8]";

    #[test]
    fn a_run_travels_as_json() {
        let finished = run_cell(TEXT).unwrap();
        let json = finished.to_json().unwrap();
        let back = Finished::from_json(&json).unwrap();
        assert_eq!(back.to_json().unwrap(), json);
        assert_eq!(back.summary(), finished.summary());
        assert_eq!(back.key, key(&Experiment::parse(TEXT, &[]).unwrap()).unwrap());
        let other = json.replace(&finished.key, "0123");
        assert!(Finished::from_json(&other).unwrap_err().to_string().contains("same version"));
        assert!(Finished::from_json("{}").is_err());
    }

    #[test]
    fn a_family_comes_back_as_if_each_had_been_alone() {
        let texts = ["0.9", "1.4", "1.9"].map(|epsilon| format!("epsilon = {epsilon}\n{TEXT}"));
        let parcel = run_family(&texts, 2).unwrap();
        let json = |run: &Finished| run.to_json().unwrap();
        for (run, text) in parcel.runs.iter().zip(&texts) {
            assert_eq!(json(run), json(&run_cell(text).unwrap()));
        }
        assert_eq!(parcel.runs.len(), 3);
        assert!(parcel.work.taken < parcel.work.alone, "nothing was shared: {:?}", parcel.work);
        let packed = parcel.to_json().unwrap();
        let back = Package::from_json(&packed).unwrap();
        assert_eq!(back.to_json().unwrap(), packed);

        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("home.db")).unwrap();
        store.take(&back).unwrap();
        store.take(&back).unwrap();
        assert_eq!(store.keys().unwrap().len(), 3);
        assert!(Package::from_json(&packed[..packed.len() / 2]).is_err());
        assert!(run_family(&["rounds = -1".into()], 1).is_err());
    }
}

//! One run by itself: what a machine elsewhere computes.

use super::series::Recorder;
use super::{Finished, Outcome, Series};
use crate::population::Population;
use crate::spec::{Experiment, SpecError};
use crate::trial::{Trial, Watch};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fedstay::record::RoundLine;
use fedstay::{Error, RoundView};
use serde::{Deserialize, Serialize};
use serde_json::Value;

struct Keep(Recorder);

impl Watch for Keep {
    fn round(&mut self, view: &RoundView<'_>) -> Result<(), Error> {
        self.0.add(&RoundLine::new(view));
        Ok(())
    }
}

/// Runs one experiment alone. `full_losses` evaluates every loss in full, for comparison.
pub(super) fn alone(
    experiment: &Experiment,
    population: Option<Population>,
    full_losses: bool,
) -> Result<Finished, SpecError> {
    let experiment = Experiment { record_gram: false, ..experiment.clone() };
    let mut trial = Trial::on(experiment.clone(), population)?;
    if let (true, Some(simulator)) = (full_losses, trial.simulator_mut()) {
        simulator.set_full_losses(true);
    }
    let agents = trial.header().agents.len();
    let mut keep = Keep(Recorder::new(&experiment, agents));
    let outcome = match trial.run(&mut keep) {
        Ok(summary) => Outcome::Finished(Box::new(summary)),
        Err(error) => Outcome::Diverged(error.to_string()),
    };
    Finished::new(&experiment, outcome, keep.0.finish())
}

/// A finished run as it travels between machines.
#[derive(Serialize, Deserialize)]
struct Parcel {
    schema: String,
    version: String,
    key: String,
    config: Value,
    outcome: Outcome,
    series: String,
}

const SCHEMA: &str = "fedstay.cell/1";

/// Runs one cell of a sweep, given its whole experiment as TOML, and returns the finished run as
/// JSON, which [`Finished::from_json`] and the store's driver take back. This is what a worker on
/// another machine calls; equal text gives equal bytes.
///
/// # Errors
/// When the experiment cannot be read or its data are not there. A run that diverges is a result.
pub fn run_cell(toml: &str) -> Result<String, SpecError> {
    alone(&Experiment::parse(toml, &[])?, None, false)?.to_json()
}

impl Finished {
    /// The run as JSON, with its series in base64.
    ///
    /// # Errors
    /// Never, for a run that finished.
    pub fn to_json(&self) -> Result<String, SpecError> {
        let parcel = Parcel {
            schema: SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            key: self.key.clone(),
            config: self.config.clone(),
            outcome: self.outcome.clone(),
            series: STANDARD.encode(self.series.to_bytes()),
        };
        serde_json::to_string(&parcel).map_err(|error| SpecError(error.to_string()))
    }

    /// A run that came from elsewhere. Its key must be that of its configuration in this version.
    ///
    /// # Errors
    /// When it is not what [`to_json`](Self::to_json) wrote, or another version computed it.
    pub fn from_json(text: &str) -> Result<Self, SpecError> {
        let bad = |why: String| SpecError(format!("this is no finished run: {why}"));
        let parcel: Parcel = serde_json::from_str(text).map_err(|error| bad(error.to_string()))?;
        if parcel.schema != SCHEMA {
            return Err(bad(format!("its schema is {}, not {SCHEMA}", parcel.schema)));
        }
        let expected = super::key::hash(&parcel.config);
        if expected != parcel.key {
            let ours = env!("CARGO_PKG_VERSION");
            return Err(SpecError(format!(
                "run {} was computed by fedstay {}, this is {ours}: install the same version on \
                 every machine",
                parcel.key, parcel.version
            )));
        }
        let series = STANDARD.decode(parcel.series).map_err(|error| bad(error.to_string()))?;
        let series = Series::from_bytes(&series).ok_or_else(|| bad("its series is cut".into()))?;
        let Parcel { key, config, outcome, .. } = parcel;
        Ok(Self { key, config, outcome, series })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::key;

    #[test]
    fn a_cell_travels_as_json() {
        let text = "rounds = 6\neval_every = 2\n[rule]\nkind = \"fedavg\"\n[data]\nper_agent = 20\n\
                    [model]\nhidden = [8]";
        let json = run_cell(text).unwrap();
        assert_eq!(run_cell(text).unwrap(), json);
        let finished = Finished::from_json(&json).unwrap();
        let experiment = Experiment::parse(text, &[]).unwrap();
        let summary = Trial::new(experiment.clone()).unwrap().run(&mut ()).unwrap();
        assert_eq!(finished.summary(), Some(&summary));
        assert_eq!(finished.key, key(&experiment).unwrap());
        assert_eq!(finished.series.0.iter().map(|p| p.round).collect::<Vec<_>>(), [1, 2, 4, 6]);
        assert_eq!(finished.to_json().unwrap(), json);
        let other = json.replace(&finished.key, "0123");
        assert!(Finished::from_json(&other).unwrap_err().to_string().contains("same version"));
        assert!(Finished::from_json("{}").is_err());
    }
}

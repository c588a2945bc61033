//! One run by itself.

use super::series::Recorder;
use super::{Finished, Outcome, SweepError, Watch};
use crate::population::Population;
use crate::spec::Experiment;
use crate::trial::{self, Trial};
use fedstay::record::RoundLine;
use fedstay::{Error, RoundView};

struct Keep<'a> {
    recorder: Recorder,
    watch: &'a dyn Watch,
    stopped: bool,
}

impl trial::Watch for Keep<'_> {
    fn round(&mut self, view: &RoundView<'_>) -> Result<(), Error> {
        self.recorder.add(&RoundLine::new(view));
        self.stopped = self.watch.stopped();
        if self.stopped { Err(Error::Observer("stopped".into())) } else { Ok(()) }
    }
}

/// Runs one experiment alone. `full_losses` evaluates every loss in full, for comparison.
pub(super) fn alone(
    experiment: &Experiment,
    population: Option<Population>,
    full_losses: bool,
    watch: &dyn Watch,
) -> Result<Finished, SweepError> {
    let experiment = Experiment { record_gram: false, ..experiment.clone() };
    let mut trial = Trial::on(experiment.clone(), population)?;
    if let (true, Some(simulator)) = (full_losses, trial.simulator_mut()) {
        simulator.set_full_losses(true);
    }
    let recorder = Recorder::new(&experiment, trial.header().agents.len());
    let mut keep = Keep { recorder, watch, stopped: false };
    let outcome = match trial.run(&mut keep) {
        Ok(summary) => Outcome::Finished(Box::new(summary)),
        Err(_) if keep.stopped => return Err(SweepError::Stopped),
        Err(error) => Outcome::Diverged(error.to_string()),
    };
    Ok(Finished::new(&experiment, outcome, keep.recorder.finish())?)
}

/// Runs one cell of a sweep by itself, given its whole experiment as TOML, sharing nothing: what all
/// shortcuts are held against. Equal text gives equal bytes.
///
/// # Errors
/// When the experiment cannot be read or its data are not there. A run that diverges is a result.
pub fn run_cell(toml: &str) -> Result<Finished, SweepError> {
    alone(&Experiment::parse(toml, &[])?, None, false, &())
}

//! One run by itself.

use crate::experiment::Experiment;
use crate::run::Trial;
use crate::simulator::population::Population;
use crate::sweep::compute::shared::AloneScores;
use crate::sweep::results::series::Recorder;
use crate::sweep::{Finished, Outcome, SweepError, SweepWatch, key};
use fedstay::{Book, Error, RoundRecord};
use std::ops::ControlFlow;

struct Keep<'a> {
    recorder: Recorder,
    watch: &'a dyn SweepWatch,
}

impl Book for Keep<'_> {
    fn round(&mut self, record: &RoundRecord<'_>) -> Result<ControlFlow<()>, Error> {
        self.recorder.add(&record.line);
        let stopped = self.watch.stopped();
        Ok(if stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }
}

/// Runs one experiment alone. `full_losses` evaluates every loss in full, for comparison.
pub(in crate::sweep) fn alone(
    experiment: &Experiment,
    population: Option<Population>,
    scores: &AloneScores,
    full_losses: bool,
    watch: &dyn SweepWatch,
) -> Result<Finished, SweepError> {
    let experiment = Experiment { record_gram: false, ..experiment.clone() };
    let mut trial = Trial::on(experiment.clone(), population)?;
    if let (true, Some(simulator)) = (full_losses, trial.simulator_mut()) {
        simulator.set_full_losses(true);
    }
    let recorder = Recorder::new(&experiment, trial.header().count());
    let mut keep = Keep { recorder, watch };
    let ended = scores.tell(&mut trial).and_then(|()| trial.run(&mut [&mut keep]));
    let outcome = match ended {
        Ok(Some(summary)) => Outcome::Finished(Box::new(summary)),
        Ok(None) => return Err(SweepError::Stopped),
        Err(error) => failed(&experiment, &error)?,
    };
    Ok(Finished::new(&experiment, outcome, keep.recorder.finish())?)
}

/// What an error makes of a run: the end of one that diverges is a result, anything else is not.
fn failed(experiment: &Experiment, error: &Error) -> Result<Outcome, SweepError> {
    match error.is_divergence() {
        true => Ok(Outcome::Diverged(error.to_string())),
        false => Err(SweepError::Failed { key: key(experiment)?, why: error.to_string() }),
    }
}

/// Runs one cell of a sweep by itself, given its whole experiment as TOML, sharing nothing: what all
/// shortcuts are held against. Equal text gives equal bytes.
///
/// # Errors
/// When the experiment cannot be read, its data are not there, or it fails. A run that diverges is a
/// result.
pub fn run_cell(toml: &str) -> Result<Finished, SweepError> {
    alone(&Experiment::parse(toml, &[])?, None, &AloneScores::default(), false, &())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedstay::AgentId;

    #[test]
    fn only_a_run_that_diverges_is_a_result_without_a_summary() {
        let experiment = Experiment::parse("", &[]).unwrap();
        let agent = AgentId(1);
        let diverged = [
            Error::NotFinite { agent, what: "loss".into(), value: f64::NAN },
            Error::TooLarge { agent, what: "direction" },
            Error::StepOverflow { index: 0, value: f64::INFINITY, step_size: 1e300 },
            Error::Diverged { round: 3, why: "weight 7 is inf".into() },
        ];
        for error in diverged {
            assert!(matches!(failed(&experiment, &error), Ok(Outcome::Diverged(_))), "{error}");
        }
        let failures = [
            Error::Book("the disk is full".into()),
            Error::Engine { round: 3, why: "the data are gone".into() },
            Error::bad_parameter("rule.delta", -1, "0 or more"),
            Error::NeedsExactLoss { agent, rule: "retain", instead: "a lower bound" },
        ];
        for error in failures {
            let told = failed(&experiment, &error).unwrap_err().to_string();
            assert!(told.contains(&error.to_string()) && told.contains("not stored"), "{told}");
            assert!(told.contains(&key(&experiment).unwrap()), "{told}");
        }
    }
}

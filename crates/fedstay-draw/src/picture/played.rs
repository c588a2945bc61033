//! Runs for the tests of pictures.

use fedstay::record::{RoundLine, Summary};
use fedstay_sim::experiment::Experiment;
use fedstay_sim::run::{Recorded, Trial};

/// Runs an experiment and keeps every round.
pub(super) fn play(text: &str) -> (Recorded, Summary) {
    let mut trial = Trial::new(Experiment::parse(text, &[]).unwrap()).unwrap();
    let mut rounds: Vec<RoundLine> = Vec::new();
    let summary = trial.run(&mut [&mut rounds]).unwrap().unwrap();
    let recorded = Recorded { header: trial.header().clone(), rounds, unreadable: Vec::new() };
    (recorded, summary)
}

//! Runs for the tests of pictures.

use fedstay::RoundView;
use fedstay::record::{RoundLine, Summary};
use fedstay_sim::observe::Recorded;
use fedstay_sim::spec::Experiment;
use fedstay_sim::trial::{Trial, Watch};

#[derive(Default)]
struct Keep(Vec<RoundLine>);

impl Watch for Keep {
    fn round(&mut self, view: &RoundView<'_>) -> Result<(), fedstay::Error> {
        self.0.push(RoundLine::new(view));
        Ok(())
    }
}

/// Runs an experiment and keeps every round.
pub(super) fn play(text: &str) -> (Recorded, Summary) {
    let mut trial = Trial::new(Experiment::parse(text, &[]).unwrap()).unwrap();
    let mut keep = Keep::default();
    let summary = trial.run(&mut keep).unwrap();
    let recorded = Recorded { header: trial.header(), rounds: keep.0, unreadable: Vec::new() };
    (recorded, summary)
}

//! One run of many agents of whom few are asked, for `bench/population.py`.
//!
//! ```sh
//! population KEY=VALUE …
//! ```
//! Runs the experiment that these keys describe, without a folder, and prints one line of JSON: the
//! seconds until the first round began, those of every round but the first, which also measures, the
//! seconds of the summary, its length as JSON in bytes, the accuracy on the population, and the peak
//! memory of the process in megabytes.

use fedstay::{Book, Error, RoundRecord};
use fedstay_bench::{Outcome, peak_megabytes};
use fedstay_sim::experiment::Experiment;
use fedstay_sim::run::Trial;
use std::ops::ControlFlow;
use std::time::Instant;

/// When each round was over.
struct Laps(Vec<Instant>);

impl Book for Laps {
    fn round(&mut self, _: &RoundRecord<'_>) -> Result<ControlFlow<()>, Error> {
        self.0.push(Instant::now());
        Ok(ControlFlow::Continue(()))
    }
}

fn main() -> Outcome<()> {
    let mut sets = Vec::new();
    for set in std::env::args().skip(1) {
        let (key, value) = set.split_once('=').ok_or("usage: population KEY=VALUE …")?;
        sets.push((key.to_owned(), value.to_owned()));
    }
    let begun = Instant::now();
    let mut trial = Trial::new(Experiment::parse("", &sets)?)?;
    let start_up = begun.elapsed().as_secs_f64();
    let mut laps = Laps(Vec::new());
    let summary = trial.run(&mut [&mut laps])?.ok_or("it was ended")?;
    let last = laps.0.last().map_or(0.0, |last| last.elapsed().as_secs_f64());
    let seconds: Vec<f64> = laps.0.windows(2).map(|lap| (lap[1] - lap[0]).as_secs_f64()).collect();
    let accuracy = summary.population.as_ref().and_then(|population| population.of("accuracy"));
    let told = serde_json::json!({
        "start_up": start_up,
        "seconds": seconds,
        "summary": last,
        "summary_bytes": serde_json::to_string(&summary)?.len(),
        "listed": summary.agents.len(),
        "accuracy": accuracy,
        "peak": peak_megabytes()?,
    });
    println!("{told}");
    Ok(())
}

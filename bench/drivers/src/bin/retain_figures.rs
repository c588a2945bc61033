//! Runs experiments on digits and prints one line for each: the figures of docs/retain.md.
//!
//! ```text
//! cargo run --release -p fedstay-bench --bin retain_figures -- SEEDS KEY=VALUE …
//! ```
//!
//! `SEEDS` is a number of seeds, from 0. What is not set is as in `experiments/extreme.toml`. Beside what
//! a summary says, a line has the first round at whose weights everybody was within ε + δ, for the
//! slack δ = 0.02 of that experiment, and what a round takes: on the clock, over the whole run, and from the
//! second to the ninth round on the clock and in processor time.

use fedstay::{Book, Error, RoundRecord};
use fedstay_sim::experiment::Experiment;
use fedstay_sim::run::Trial;
use std::ops::ControlFlow;
use std::time::Instant;

/// The rounds that are also timed by themselves.
const TIMED: std::ops::RangeInclusive<usize> = 2..=9;

/// The first round whose losses were all within the slack of the target, and when each was over.
struct Near {
    agents: usize,
    within: f64,
    first: Option<u32>,
    laps: Vec<(Instant, f64)>,
}

impl Near {
    /// Milliseconds of the timed rounds, on the clock and of processor time.
    fn timed(&self) -> Option<(f64, f64)> {
        let (before, last) = (self.laps.get(TIMED.start() - 2)?, self.laps.get(TIMED.end() - 1)?);
        let each = |seconds: f64| 1e3 * seconds / TIMED.count() as f64;
        Some((each((last.0 - before.0).as_secs_f64()), each(last.1 - before.1)))
    }
}

impl Book for Near {
    fn round(&mut self, record: &RoundRecord<'_>) -> Result<ControlFlow<()>, Error> {
        self.laps.push((Instant::now(), fedstay_bench::cpu_seconds()));
        let losses = &record.line.loss;
        let all = losses.iter().all(|loss| loss.is_some_and(|loss| loss <= self.within));
        if self.first.is_none() && losses.len() == self.agents && all {
            self.first = Some(record.line.round);
        }
        Ok(ControlFlow::Continue(()))
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let seeds: u64 = arguments.next().and_then(|seeds| seeds.parse().ok()).unwrap_or(1);
    let sets: Vec<(String, String)> = arguments
        .map(|set| match set.split_once('=') {
            Some((key, value)) => (key.to_owned(), value.to_owned()),
            None => panic!("{set} is not KEY=VALUE"),
        })
        .collect();
    for seed in 0..seeds {
        let mut sets = sets.clone();
        sets.push(("seed".to_owned(), seed.to_string()));
        let mut text = include_str!("../../../../experiments/extreme.toml").to_owned();
        if sets.iter().any(|(key, _)| key == "partition.kind") {
            // The other partitions have no q.
            text = text.replace("q = 1.0\n", "");
        }
        let experiment = Experiment::parse(&text, &sets).unwrap_or_else(|error| panic!("{error}"));
        let epsilon = sets.iter().find(|(key, _)| key == "epsilon");
        let epsilon: f64 = epsilon.map_or(0.1, |(_, value)| value.parse().expect("a number"));
        let mut trial = Trial::new(experiment).unwrap_or_else(|error| panic!("{error}"));
        let begun = Instant::now();
        let agents = trial.header().count();
        let mut near = Near { agents, within: epsilon + 0.02, first: None, laps: Vec::new() };
        let summary = trial.run(&mut [&mut near]).expect("a run").expect("nobody ends it");
        let took = begun.elapsed().as_secs_f64() / f64::from(summary.rounds.max(1));
        let left: Vec<u32> = summary.left.iter().map(|left| left.round).collect();
        println!(
            "seed {seed} left {left:?} rounds {} {} {:?} near {:?} mean {:.4} worst {:.4} accuracy {} \
             population {} {:.1} ms/round{}",
            summary.rounds,
            summary.stop.name(),
            summary.landed,
            near.first,
            summary.score.loss.mean,
            summary.score.loss.max,
            summary
                .score
                .get("accuracy")
                .map_or(String::new(), |a| format!("{:.3}/{:.3}", a.min, a.mean)),
            summary
                .population
                .as_ref()
                .and_then(|p| p.of("accuracy"))
                .map_or(String::new(), |a| format!("{a:.3}")),
            took * 1e3,
            near.timed().map_or(String::new(), |(clock, cpu)| format!(
                ", rounds 2 to 9 {clock:.1} ms, {cpu:.1} ms of processor time"
            )),
        );
    }
}

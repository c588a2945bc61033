//! How a rule's cost grows with the number of agents asked, for `bench/rules.py`.
//!
//! ```sh
//! rules AGENTS ROUNDS KEY=VALUE …
//! ```
//! AGENTS agents with 16 images of CIFAR-10 each train a softmax regression of 30,730 weights, one
//! local step on their full data per round; the keys say under which rule and policy. Nobody leaves.
//! Prints one line of JSON: for every round but the first, which also measures accuracies, its seconds,
//! its seconds of processor time and how many agents were held; and the peak memory of the process.

use std::ops::ControlFlow;
use std::time::Instant;

use fedstay::{Book, Error, RoundRecord};
use fedstay_bench::{Outcome, cpu_seconds, peak_megabytes};
use fedstay_sim::experiment::Experiment;
use fedstay_sim::run::Trial;

const SETTING: &str = r#"
seed = 0
step_size = 0.01
epsilon = 1.0
eval_every = 1000000
data = { kind = "cifar10", per_agent = 16 }
partition.kind = "iid"
model.kind = "softmax-regression"
behaviour.kind = "never"
"#;

/// When each round was over, by the clock and in processor time, and how many it held.
struct Laps(Vec<(Instant, f64, usize)>);

impl Book for Laps {
    fn round(&mut self, record: &RoundRecord<'_>) -> Result<ControlFlow<()>, Error> {
        self.0.push((Instant::now(), cpu_seconds(), record.line.d.len()));
        Ok(ControlFlow::Continue(()))
    }
}

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(agents), Some(rounds)) = (arguments.next(), arguments.next()) else {
        return Err("usage: rules AGENTS ROUNDS KEY=VALUE …".into());
    };
    let mut sets = vec![("agents".to_owned(), agents.clone()), ("rounds".to_owned(), rounds)];
    for set in arguments {
        let (key, value) = set.split_once('=').ok_or(format!("{set} is not KEY=VALUE"))?;
        sets.push((key.to_owned(), value.to_owned()));
    }
    let mut trial = Trial::new(Experiment::parse(SETTING, &sets)?)?;
    let mut laps = Laps(Vec::new());
    let summary = trial.run(&mut [&mut laps])?.ok_or("nobody ends it")?;
    let pairs = laps.0.windows(2);
    let seconds: Vec<f64> = pairs.clone().map(|lap| (lap[1].0 - lap[0].0).as_secs_f64()).collect();
    let cpu: Vec<f64> = pairs.map(|lap| lap[1].1 - lap[0].1).collect();
    let held: Vec<usize> = laps.0.iter().skip(1).map(|lap| lap.2).collect();
    println!(
        "{{\"agents\": {agents}, \"seconds\": {seconds:?}, \"cpu\": {cpu:?}, \"held\": {held:?}, \
         \"stop\": \"{}\", \"left\": {}, \"loss\": {}, \"peak\": {}}}",
        summary.stop.name(),
        summary.left.len(),
        summary.score.loss.mean,
        peak_megabytes()?,
    );
    Ok(())
}

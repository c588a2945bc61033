//! The exact early exit over real training: the same rounds with full losses and without.
//!
//! ```sh
//! early_exit DECIDES_ON ROUNDS CHUNK
//! ```
//! Two servers train side by side in Figure 2's setting, one of agents that evaluate every loss in
//! full, one of agents that stop looking once the answer is certain. After every round all weights
//! must be the same bits and the same agents must have left. A third set of agents does the local
//! work only, so that the time spent in evaluation is known by difference.
//!
//! After every CHUNK rounds one line of JSON goes to standard output and a line is awaited on
//! standard input, so that whoever compares can work in between. Times are in seconds; the first
//! round, in which everything is measured for the record, is not among them.

mod common;

use std::io::{BufRead, Write};
use std::time::Instant;

use common::{Outcome, figure_two};
use fedstay::{Call, Engine, Losses, Server};
use fedstay_sim::simulator::Simulator;
use fedstay_sim::spec::Experiment;

/// A server with its agents.
struct Side {
    server: Server,
    agents: Simulator,
}

impl Side {
    fn new(experiment: &Experiment, full_losses: bool) -> Outcome<Self> {
        let mut agents = Simulator::new(experiment)?;
        agents.set_full_losses(full_losses);
        let start = agents.initial_weights();
        let server = Server::new(start, experiment.rule.clone(), experiment.step_size)?;
        Ok(Self { server, agents })
    }

    /// One round: its seconds, who left, and what the reports say of the losses.
    fn round(&mut self) -> Outcome<(f64, String, f64)> {
        let clock = Instant::now();
        let gathered = self.agents.gather(&Call {
            round: self.server.round() + 1,
            weights: self.server.weights(),
            step_size: self.server.step_size(),
            losses: self.server.losses(),
        })?;
        self.server.step(&gathered.reports)?;
        let seconds = clock.elapsed().as_secs_f64();
        let losses = gathered.reports.iter().filter_map(|report| match report.standing {
            fedstay::Standing::Open { loss, .. } => Some(loss.value()),
            _ => None,
        });
        let mean = losses.sum::<f64>() / gathered.reports.len() as f64;
        drop(gathered);
        Ok((seconds, self.agents.memory().to_string(), mean))
    }
}

/// The local work of a round and nothing else, in seconds.
fn work_only(agents: &mut Simulator, of: &Side) -> Outcome<f64> {
    agents.recall(&of.agents.memory())?;
    let clock = Instant::now();
    // No loss is near minus infinity, so none is looked at.
    let losses = Losses::Near { delta: f64::MIN, step: 0.0 };
    let round = of.server.round() + 1;
    let weights = of.server.weights();
    agents.gather(&Call { round, weights, step_size: of.server.step_size(), losses })?;
    Ok(clock.elapsed().as_secs_f64())
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [decides_on, rounds, chunk] = arguments.as_slice() else {
        return Err("usage: early_exit DECIDES_ON ROUNDS CHUNK".into());
    };
    let (rounds, chunk): (u32, u32) = (rounds.parse()?, chunk.parse()?);
    let experiment = figure_two(&[("decides_on", decides_on)])?;
    let idle = figure_two(&[("decides_on", decides_on), ("behaviour.kind", "never")])?;
    let (mut full, mut early) = (Side::new(&experiment, true)?, Side::new(&experiment, false)?);
    let mut workers = Simulator::new(&idle)?;

    let mut times: [Vec<f64>; 3] = Default::default();
    for round in 1..=rounds {
        let work = work_only(&mut workers, &early)?;
        let (full_seconds, full_left, loss) = full.round()?;
        let (early_seconds, early_left, _) = early.round()?;
        if round > 1 {
            for (times, seconds) in times.iter_mut().zip([full_seconds, early_seconds, work]) {
                times.push(seconds);
            }
        }
        let bits = |side: &Side| side.server.weights().iter().map(|w| w.to_bits()).collect();
        let (one, other): (Vec<u64>, Vec<u64>) = (bits(&full), bits(&early));
        assert!(one == other, "round {round}: other weights");
        assert_eq!(full_left, early_left, "round {round}: others left");
        if round % chunk == 0 || round == rounds {
            let [full, early, work] = &times;
            println!(
                "{{\"round\": {round}, \"loss\": {loss}, \"left\": {early_left}, \"full\": {full:?}, \"early\": {early:?}, \"work\": {work:?}}}"
            );
            std::io::stdout().flush()?;
            times.iter_mut().for_each(Vec::clear);
            std::io::stdin().lock().read_line(&mut String::new())?;
        }
    }
    Ok(())
}

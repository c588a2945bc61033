//! The exact early exit over real training: the same rounds with full losses and without.
//!
//! ```sh
//! early_exit DECIDES_ON ROUNDS CHUNK CLOCK
//! ```
//! Two servers train side by side in Figure 2's setting, one with agents that evaluate every loss
//! in full, one with agents that stop looking once the answer is certain. After every round all
//! weights must be the same bits and the same agents must have left. Further agents do the same
//! rounds with less to answer: whether they leave but not whether they are about to (`bare`), and
//! nothing but their local work (`work`), so that the time spent in evaluation follows by
//! difference.
//!
//! After every CHUNK rounds one line of JSON goes to standard output and a line is awaited on
//! standard input, so that the comparing program can work in between. Times are in seconds, by the
//! CLOCK `cpu` (what the process computed) or `wall`; the first round, in which everything is
//! measured for the record, is not among them.

use std::io::{BufRead, Write};
use std::ops::ControlFlow;

use fedstay::{
    About, Book, Broadcast, Call, Engine, Error, Losses, Memory, RoundRecord, Server, Session,
};
use fedstay_bench::{Outcome, cpu_seconds, figure_two};
use fedstay_sim::experiment::Experiment;
use fedstay_sim::simulator::Simulator;

/// A server with its agents.
struct Side(Session<Simulator>);

impl Side {
    fn new(experiment: &Experiment, full_losses: bool) -> Outcome<Self> {
        let mut agents = Simulator::new(experiment)?;
        agents.set_full_losses(full_losses);
        let start = agents.initial_weights();
        let server = Server::new(start, experiment.rule.clone(), experiment.step_size)?;
        Ok(Self(Session::new(server, agents, u32::MAX, About::default())?))
    }

    /// One round: its seconds, who has left, and the mean of the reported losses.
    fn round(&mut self, clock: fn() -> f64) -> Outcome<(f64, String, f64)> {
        let mut one = OneRound(0.0);
        let start = clock();
        self.0.run(&mut [&mut one])?;
        Ok((clock() - start, self.0.engine().save()?.to_json(), one.0))
    }
}

/// Ends a run after one round, and keeps the mean of the reported losses.
struct OneRound(f64);

impl Book for OneRound {
    fn round(&mut self, record: &RoundRecord<'_>) -> Result<ControlFlow<()>, Error> {
        self.0 = record.line.mean_loss().unwrap_or(f64::NAN);
        Ok(ControlFlow::Break(()))
    }
}

/// The seconds the agents of a side would take for its next round if asked for these losses,
/// without the server's part.
fn ask(
    agents: &mut Simulator,
    kind: &str,
    of: &Side,
    losses: Losses,
    clock: fn() -> f64,
) -> Outcome<f64> {
    // Agents of another kind take over who has left, and nothing else.
    let left = of.0.engine().save()?.to_json().replace("threshold", kind);
    agents.restore(&Memory::from_json(&left)?)?;
    let server = of.0.server();
    let (round, step_size) = (server.round() + 1, server.step_size());
    let broadcast = Broadcast::new(server.weights());
    let start = clock();
    agents.gather(&Call { round, broadcast, step_size, losses, loads: None })?;
    Ok(clock() - start)
}

fn wall_seconds() -> f64 {
    std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(0.0, |time| time.as_secs_f64())
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [decides_on, rounds, chunk, clock] = arguments.as_slice() else {
        return Err("usage: early_exit DECIDES_ON ROUNDS CHUNK CLOCK".into());
    };
    let clock: fn() -> f64 = if clock == "cpu" { cpu_seconds } else { wall_seconds };
    let (rounds, chunk): (u32, u32) = (rounds.parse()?, chunk.parse()?);
    let experiment = figure_two(&[("decides_on", decides_on)])?;
    let idle = figure_two(&[("decides_on", decides_on), ("behaviour.kind", "never")])?;
    let (mut full, mut early) = (Side::new(&experiment, true)?, Side::new(&experiment, false)?);
    let (mut deciders, mut workers) = (Simulator::new(&experiment)?, Simulator::new(&idle)?);

    let mut times: [Vec<f64>; 4] = Default::default();
    for round in 1..=rounds {
        // Without slack and step only content agents are about to leave; below minus infinity
        // nobody looks at all.
        let near = Losses::Near { delta: 0.0, step: 0.0 };
        let bare = ask(&mut deciders, "threshold", &early, near, clock)?;
        let none = Losses::Near { delta: f64::MIN, step: 0.0 };
        let work = ask(&mut workers, "never", &early, none, clock)?;
        let (full_seconds, full_left, loss) = full.round(clock)?;
        let (early_seconds, early_left, _) = early.round(clock)?;
        if round > 1 {
            let seconds = [full_seconds, early_seconds, bare, work];
            times.iter_mut().zip(seconds).for_each(|(times, seconds)| times.push(seconds));
        }
        let bits = |side: &Side| side.0.server().weights().iter().map(|w| w.to_bits()).collect();
        let (one, other): (Vec<u64>, Vec<u64>) = (bits(&full), bits(&early));
        assert!(one == other, "round {round}: other weights");
        assert_eq!(full_left, early_left, "round {round}: others left");
        if round % chunk == 0 || round == rounds {
            let [full, early, bare, work] = &times;
            println!(
                "{{\"round\": {round}, \"loss\": {loss}, \"left\": {early_left}, \"full\": {full:?}, \"early\": {early:?}, \"bare\": {bare:?}, \"work\": {work:?}}}"
            );
            std::io::stdout().flush()?;
            times.iter_mut().for_each(Vec::clear);
            std::io::stdin().lock().read_line(&mut String::new())?;
        }
    }
    Ok(())
}

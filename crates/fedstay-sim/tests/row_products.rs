//! Local steps by the Gram matrix of an agent's rows, in whole runs: the same bits whatever the threads,
//! the early exit, a restart.

use fedstay::{BetweenRounds, Book, Error, RoundRecord};
use fedstay_sim::experiment::Experiment;
use fedstay_sim::run::Trial;
use std::ops::ControlFlow;

/// Every round's weights, bit for bit, and who has left.
#[derive(Debug, Default, PartialEq)]
struct Trace(Vec<(Vec<u64>, Vec<u64>)>);

impl Book for Trace {
    fn round(&mut self, record: &RoundRecord<'_>) -> Result<ControlFlow<()>, Error> {
        let left = record.line.left.iter().map(|agent| agent.0).collect();
        let bits = record.received.iter().map(|value| value.to_bits()).collect();
        self.0.push((bits, left));
        Ok(ControlFlow::Continue(()))
    }
}

/// Digits with a first layer that is large enough, and steps enough; somebody leaves.
fn trial(steps: &str) -> Trial {
    let sets = [
        ("rounds", "10"),
        ("step_size", "0.05"),
        ("model.hidden", "1024"),
        ("local.steps", steps),
        ("local.batch", "10"),
        ("rule.kind", "fedavg"),
        ("epsilon", "1"),
    ];
    let sets = sets.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    Trial::new(Experiment::parse("", &sets.collect::<Vec<_>>()).unwrap()).unwrap()
}

fn used(trial: &mut Trial) -> bool {
    let simulator = trial.simulator_mut().unwrap();
    simulator.population().products(0).unwrap().are_computed()
}

fn play(mut trial: Trial) -> (Trace, bool) {
    let mut trace = Trace::default();
    trial.run(&mut [&mut trace]).unwrap().unwrap();
    let used = used(&mut trial);
    (trace, used)
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| play(trial("30")))
    };
    let (one, used) = on(1);
    assert!(used, "the steps were not taken by products");
    assert!(one.0.iter().any(|(_, left)| !left.is_empty()), "nobody left");
    assert_eq!(on(2), (one, true));
    assert_eq!(on(8), on(1));
}

#[test]
fn one_step_is_taken_directly() {
    assert!(!play(trial("1")).1);
}

#[test]
fn early_exit_changes_nothing() {
    let mut full = trial("30");
    full.simulator_mut().unwrap().set_full_losses(true);
    assert_eq!(play(full).0, play(trial("30")).0);
}

/// Stops after three rounds, and keeps the state as a checkpoint would.
struct Cut(u32, Option<String>);

impl Book for Cut {
    fn round(&mut self, _: &RoundRecord<'_>) -> Result<ControlFlow<()>, Error> {
        self.0 += 1;
        Ok(if self.0 == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    fn between(&mut self, moment: &BetweenRounds<'_>) -> Result<(), Error> {
        self.1 = Some(serde_json::to_string(&(moment.state)()?).unwrap());
        Ok(())
    }
}

#[test]
fn a_restart_changes_nothing() {
    let (whole, _) = play(trial("30"));
    let mut cut = Cut(0, None);
    assert_eq!(trial("30").run(&mut [&mut cut]).unwrap(), None);
    let mut resumed = trial("30");
    resumed.resume(serde_json::from_str(&cut.1.unwrap()).unwrap()).unwrap();
    assert_eq!(play(resumed).0.0, whole.0[3..]);
}

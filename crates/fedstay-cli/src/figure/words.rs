//! Sentences about training runs, for the terminal and the file of numbers.

use super::measured::{MeasuredRun, Sample};
use super::training::Done;
use fedstay_draw::words::{list, percent};

fn each(runs: &[MeasuredRun], of: impl Fn(&MeasuredRun) -> String) -> String {
    list(&runs.iter().map(of).collect::<Vec<_>>())
}

/// `seeds 0, 1 and 2`.
fn seeds(runs: &[MeasuredRun]) -> String {
    let plural = if runs.len() == 1 { "" } else { "s" };
    format!("seed{plural} {}", each(runs, |run| run.seed.to_string()))
}

/// The outcome of an arm on all its seeds: the accuracy before the first departure, its round, and
/// the accuracy at the end.
pub(super) fn outcome(done: &Done) -> String {
    let Done { arm, runs, .. } = done;
    let ends = each(runs, |run| percent(run.end.agents.mean));
    let head = format!("{}, {}", arm.name, seeds(runs));
    if runs.iter().all(|run| run.left.is_empty()) {
        return format!("{head}: nobody leaves, {ends} at the end");
    }
    let none = || "no departure".to_owned();
    let before = each(runs, |run| run.before().map_or_else(none, |s| percent(s.agents.mean)));
    let first = each(runs, |run| run.left.first().map_or_else(none, ToString::to_string));
    let left = each(runs, |run| run.left.len().to_string());
    format!(
        "{head}: at best {before} before the first departure (round {first}), {ends} at the end; {left} of {} \
         agents leave",
        runs[0].agents
    )
}

/// The arms' delivered models on the first seed: mean accuracy, and how many left when.
pub(super) fn ends(done: &[&Done]) -> String {
    let each: Vec<String> = done
        .iter()
        .map(|done| {
            let MeasuredRun { end: Sample { agents, .. }, left, .. } = done.first();
            let left = match (left.len(), left.first()) {
                (0, _) | (_, None) => "nobody leaves".to_owned(),
                (1, Some(round)) => format!("one leaves in round {round}"),
                (count, Some(round)) => format!("{count} leave, the first in round {round}"),
            };
            format!("{} {} ({left})", done.arm.name, percent(agents.mean))
        })
        .collect();
    list(&each)
}

/// Everything that is not one of the paper's curves, in one sentence.
pub(super) fn controls(done: &[Done]) -> String {
    let controls: Vec<&Done> = done.iter().filter(|done| !done.arm.main).collect();
    let seed = done.first().map_or(0, |done| done.first().seed);
    format!("Controls on seed {seed}, mean accuracy at the end: {}.", ends(&controls))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::measured::tests::fake;
    use crate::figure::training::{Arm, Asked};

    fn done(runs: Vec<MeasuredRun>) -> Done {
        let arm = Arm::main("FedAvg", "fedavg");
        let experiment = arm.experiment("", &Asked::default(), 0).unwrap();
        Done { arm, experiment, runs }
    }

    #[test]
    fn an_outcome_names_every_seed() {
        let stayed = MeasuredRun { left: Vec::new(), seed: 6, ..fake() };
        assert_eq!(
            outcome(&done(vec![fake(), stayed.clone()])),
            "FedAvg, seeds 5 and 6: at best 60.0% and no departure before the first departure \
             (round 7 and no departure), 30.0% and 30.0% at the end; 1 and 0 of 2 agents leave"
        );
        assert_eq!(outcome(&done(vec![stayed])), "FedAvg, seed 6: nobody leaves, 30.0% at the end");
    }

    #[test]
    fn ends_say_who_was_lost() {
        let done = done(vec![fake()]);
        assert_eq!(ends(&[&done]), "FedAvg 30.0% (one leaves in round 7)");
    }
}

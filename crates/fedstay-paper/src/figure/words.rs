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

/// On how many of its seeds an arm lost somebody.
fn lost(done: &Done) -> usize {
    done.runs.iter().filter(|run| !run.left.is_empty()).count()
}

/// `loses nobody`, `loses an agent`, `loses agents on 2 of 3 seeds`.
fn loses(done: &Done) -> String {
    match (lost(done), done.runs.len()) {
        (0, _) => "loses nobody".to_owned(),
        (lost, all) if lost < all => format!("loses agents on {lost} of {all} seeds"),
        _ if done.runs.iter().all(|run| run.left.len() == 1) => "loses an agent".to_owned(),
        _ => "loses agents".to_owned(),
    }
}

/// A title that says whom averaging and ADA-GD lost.
pub(super) fn who_loses(averaging: &Done, ada_gd: &Done) -> String {
    match (lost(averaging), lost(ada_gd)) {
        (0, 0) => "Neither averaging nor ADA-GD loses anybody".to_owned(),
        (some, 0) if some == averaging.runs.len() => {
            format!("Averaging {}, ADA-GD does not", loses(averaging))
        }
        _ => format!("Averaging {}, ADA-GD {}", loses(averaging), loses(ada_gd)),
    }
}

/// By how many points of mean accuracy an arm ends above another one, seed by seed.
pub(super) fn points(done: &Done, other: &Done) -> Vec<f64> {
    let pairs = done.runs.iter().zip(&other.runs);
    pairs.map(|(run, other)| 100.0 * (run.end.agents.mean - other.end.agents.mean)).collect()
}

/// A title that says how far an arm ends above another one, in the mean over the seeds.
pub(super) fn how_far(done: &Done, other: &Done, called: &str) -> String {
    let points = points(done, other);
    let mean = points.iter().sum::<f64>() / points.len() as f64;
    let name = done.arm.name.split(' ').next().unwrap_or_default();
    let (by, where_) = (format!("{:.1}", mean.abs()), if mean < 0.0 { "below" } else { "above" });
    match by.as_str() {
        "0.0" => format!("{name} ends within 0.05 points of {called}"),
        "1.0" => format!("{name} ends 1.0 point {where_} {called}"),
        _ => format!("{name} ends {by} points {where_} {called}"),
    }
}

/// A title that says what departures did to averaging.
pub(super) fn what_departures_cost(averaging: &Done) -> String {
    let fell = |run: &&MeasuredRun| {
        run.before().is_some_and(|before| run.end.agents.mean < before.agents.mean)
    };
    let fell = averaging.runs.iter().filter(fell).count();
    match (lost(averaging), averaging.runs.len()) {
        (0, _) => "Nobody leaves averaging".to_owned(),
        (lost, all) if lost == all && fell == all => {
            "Departures cost averaging accuracy".to_owned()
        }
        _ if fell == 0 => "Agents leave averaging, and it loses no accuracy by it".to_owned(),
        (lost, all) => format!(
            "Averaging loses agents on {lost} of {all} seeds, and accuracy with them on {fell}"
        ),
    }
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
    fn titles_say_what_the_runs_did_and_not_what_the_paper_found() {
        let (lost, stayed) = (fake(), MeasuredRun { left: Vec::new(), ..fake() });
        let both = MeasuredRun { left: vec![2, 3], ..fake() };
        let title = |averaging: &[&MeasuredRun], ada_gd: &[&MeasuredRun]| {
            let of = |runs: &[&MeasuredRun]| done(runs.iter().map(|run| (*run).clone()).collect());
            who_loses(&of(averaging), &of(ada_gd))
        };
        let papers = title(&[&lost, &lost], &[&stayed, &stayed]);
        assert_eq!(papers, "Averaging loses an agent, ADA-GD does not");
        assert_eq!(
            title(&[&lost, &both], &[&lost, &stayed]),
            "Averaging loses agents, ADA-GD loses agents on 1 of 2 seeds"
        );
        assert_eq!(title(&[&stayed], &[&lost]), "Averaging loses nobody, ADA-GD loses an agent");
        assert_eq!(title(&[&stayed], &[&stayed]), "Neither averaging nor ADA-GD loses anybody");
        let cost = |runs: Vec<MeasuredRun>| what_departures_cost(&done(runs));
        assert_eq!(cost(vec![lost.clone()]), "Departures cost averaging accuracy");
        assert_eq!(cost(vec![stayed.clone()]), "Nobody leaves averaging");
        let mut better = lost.clone();
        better.end.agents.mean = 0.95;
        let unharmed = cost(vec![better.clone(), stayed.clone()]);
        assert_eq!(unharmed, "Agents leave averaging, and it loses no accuracy by it");
        assert_eq!(
            cost(vec![lost, stayed, better]),
            "Averaging loses agents on 2 of 3 seeds, and accuracy with them on 1"
        );
    }

    #[test]
    fn a_title_says_how_far_apart_two_arms_end_in_the_mean_over_the_seeds() {
        let ending = |means: &[f64]| {
            let run = |mean: &f64| {
                let mut run = fake();
                run.end.agents.mean = *mean;
                run
            };
            done(means.iter().map(run).collect())
        };
        let title = |one: &[f64], other: &[f64]| how_far(&ending(one), &ending(other), "the other");
        assert_eq!(title(&[0.75, 0.80], &[0.70, 0.81]), "FedAvg ends 2.0 points above the other");
        assert_eq!(title(&[0.70], &[0.7312]), "FedAvg ends 3.1 points below the other");
        assert_eq!(title(&[0.70], &[0.7001]), "FedAvg ends within 0.05 points of the other");
        assert_eq!(points(&ending(&[0.5]), &ending(&[0.25])), [25.0]);
    }

    #[test]
    fn ends_say_who_was_lost() {
        let done = done(vec![fake()]);
        assert_eq!(ends(&[&done]), "FedAvg 30.0% (one leaves in round 7)");
    }
}

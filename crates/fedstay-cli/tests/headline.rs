//! The README's first table is what `experiments/headline.toml` gives, and is still true of this program.

use fedstay::record::Summary;
use fedstay_sim::experiment::{Experiment, read_table, under};
use fedstay_sim::run::Trial;
use std::collections::BTreeMap;
use std::path::Path;

fn read(file: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(file)).unwrap()
}

/// One run of the sweep.
#[derive(Debug, Clone, PartialEq)]
struct Run {
    seed: u64,
    left: f64,
    worst: f64,
    mean: f64,
    unseen: f64,
    rounds: f64,
}

/// The runs of every label, by step size.
fn runs() -> BTreeMap<String, Vec<(f64, Vec<Run>)>> {
    let text = read("docs/data/headline.csv");
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    let mut all: BTreeMap<String, Vec<(f64, Vec<Run>)>> = BTreeMap::new();
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        let cell = |name: &str| cells[header.iter().position(|column| *column == name).unwrap()];
        let number = |name: &str| cell(name).parse::<f64>().unwrap_or(f64::NAN);
        let run = Run {
            seed: cell("seed").parse().unwrap(),
            left: number("left"),
            worst: number("accuracy.min"),
            mean: number("accuracy.mean"),
            unseen: number("population.accuracy"),
            rounds: number("rounds"),
        };
        let steps = all.entry(cell("label").to_owned()).or_default();
        let size = number("step_size");
        match steps.iter_mut().find(|(step, _)| *step == size) {
            Some((_, runs)) => runs.push(run),
            None => steps.push((size, vec![run])),
        }
    }
    all
}

fn mean(runs: &[Run], of: impl Fn(&Run) -> f64) -> f64 {
    runs.iter().map(of).sum::<f64>() / runs.len() as f64
}

/// The step size whose worst agent is best on average. One at which some run diverged is not.
fn best(steps: &[(f64, Vec<Run>)]) -> &(f64, Vec<Run>) {
    let worst = |runs: &[Run]| Some(mean(runs, |run| run.worst)).filter(|mean| mean.is_finite());
    let better = |a: &&(f64, Vec<Run>), b: &&(f64, Vec<Run>)| {
        worst(&a.1).unwrap_or(-1.0).total_cmp(&worst(&b.1).unwrap_or(-1.0))
    };
    steps.iter().max_by(better).unwrap()
}

#[test]
fn the_readmes_table_is_the_best_of_every_rules_step_sizes() {
    let all = runs();
    let readme = read("README.md");
    assert_eq!(all.len(), 10);
    for (label, steps) in &all {
        assert_eq!(steps.len(), 5, "{label}");
        assert!(steps.iter().all(|(_, runs)| runs.len() == 10), "{label}");
        let (step, runs) = best(steps);
        let percent = |of: fn(&Run) -> f64| format!("{:.1}%", 100.0 * mean(runs, of));
        let row = format!(
            "| {step} | {:.1} | {} | {} | {} | {:.0} |",
            mean(runs, |run| run.left),
            percent(|run| run.worst),
            percent(|run| run.mean),
            percent(|run| run.unseen),
            mean(runs, |run| run.rounds),
        );
        let line = readme
            .lines()
            .find(|line| line.contains(&format!("`{label}`")) && line.starts_with('|'));
        let line = line.unwrap_or_else(|| panic!("the README has no row for {label}: {row}"));
        assert!(line.ends_with(&row), "{label}: the README says {line}, the runs {row}");
    }
}

fn run(label: &str, step: f64, seed: u64) -> Summary {
    let table = read_table(&read("experiments/extreme.toml")).unwrap();
    let text = toml::to_string(&under(table, label).unwrap()).unwrap();
    let set = [("step_size", step.to_string()), ("seed", seed.to_string())];
    let set: Vec<_> = set.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    let mut trial = Trial::new(Experiment::parse(&text, &set).unwrap()).unwrap();
    trial.run(&mut []).unwrap().unwrap()
}

#[test]
fn the_runs_behind_the_readmes_claim_come_out_the_same_today() {
    let all = runs();
    for label in ["fedavg+preview", "fedavg+never", "fedavg"] {
        let (step, runs) = best(&all[label]);
        let stored = &runs[0];
        let summary = run(label, *step, stored.seed);
        let accuracy = summary.accuracy.unwrap();
        assert_eq!(summary.left.len() as f64, stored.left, "{label}");
        // Other families of processors round single precision in another way.
        assert!((accuracy.min - stored.worst).abs() < 0.03, "{label}: {accuracy:?}, {stored:?}");
        assert!((accuracy.mean - stored.mean).abs() < 0.01, "{label}: {accuracy:?}, {stored:?}");
    }
}

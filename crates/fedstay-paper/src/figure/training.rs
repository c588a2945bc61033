//! Training runs behind a figure: one experiment under several rules, step sizes and seeds.

use super::measured::MeasuredRun;
use anyhow::{Context, Result};
use fedstay::record::RoundLine;
use fedstay::{Book, Error, RoundRecord, SLACK};
use fedstay_sim::experiment::{Experiment, read_table, under};
use fedstay_sim::run::Trial;
use fedstay_terminal::Progress;
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::path::PathBuf;

/// What the caller of a figure asks for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Asked {
    /// The seeds to run; by default the figure's own.
    pub seeds: Option<Vec<u64>>,
    /// Keys set on top of the experiment.
    pub set: Vec<(String, String)>,
    /// Whether to run every control on every seed, and whatever else takes long.
    pub full: bool,
    /// The sweep to draw from, for figures that are drawn from one.
    pub from: Option<PathBuf>,
    /// Its store, if not the default one.
    pub store: Option<PathBuf>,
    /// A table that was exported from it, to be drawn from instead.
    pub table: Option<PathBuf>,
    /// Whether a small version is asked for, of a figure that is drawn from a sweep.
    pub quick: bool,
    /// Whether progress is not to be shown.
    pub quiet: bool,
}

impl Asked {
    /// The seeds, or `0..default`.
    pub(super) fn seeds(&self, default: u64) -> Vec<u64> {
        self.seeds.clone().unwrap_or_else(|| (0..default).collect())
    }
}

/// One curve of a figure: the experiment under a rule, with keys set on top.
#[derive(Debug, Clone)]
pub(super) struct Arm {
    /// What the legend says.
    pub(super) name: String,
    /// The rule, as `compare` takes it.
    pub(super) label: &'static str,
    /// What differs from the experiment's file.
    pub(super) set: Vec<(&'static str, String)>,
    /// Whether it is one of the paper's curves, run on every seed; the others are controls.
    pub(super) main: bool,
}

impl Arm {
    /// One of the paper's curves.
    pub(super) fn main(name: impl Into<String>, label: &'static str) -> Self {
        Self { name: name.into(), label, set: Vec::new(), main: true }
    }

    /// A control, run on the first seed unless everything is asked for.
    pub(super) fn control(name: impl Into<String>, label: &'static str) -> Self {
        Self { main: false, ..Self::main(name, label) }
    }

    /// What averaging is compared with in every figure.
    pub(super) fn controls() -> [Self; 5] {
        [
            Self::control("nobody may leave", "fedavg+never"),
            Self::control("early stop", "fedavg+early-stop"),
            Self::control("keep best", "fedavg+keep-best"),
            Self::control("preview", "fedavg+preview"),
            // With its usual slack: where an experiment says one, it is ADA-GD's.
            Self::control("retain", "retain").with("rule.delta", SLACK),
        ]
    }

    /// Averaging as the paper prints it: agents decide on the model they receive, and take local
    /// steps of η/K.
    pub(super) fn as_printed() -> Self {
        Self::control("as printed", "fedavg")
            .with("decides_on", "received")
            .with("local.step", "eta/K")
    }

    /// The arm with a key set.
    #[must_use]
    pub(super) fn with(mut self, key: &'static str, value: impl ToString) -> Self {
        self.set.push((key, value.to_string()));
        self
    }

    /// The experiment of this arm. What the caller set comes last, so that it takes precedence.
    pub(super) fn experiment(&self, text: &str, asked: &Asked, seed: u64) -> Result<Experiment> {
        let table = read_table(text)?;
        let text = toml::to_string(&under(table, self.label)?)?;
        let mut set = vec![("seed".to_owned(), seed.to_string())];
        set.extend(self.set.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
        set.extend(asked.set.iter().cloned());
        Ok(Experiment::parse(&text, &set)?)
    }
}

/// An arm with its runs, the first seed's first.
#[derive(Debug, Clone)]
pub(super) struct Done {
    pub(super) arm: Arm,
    pub(super) experiment: Experiment,
    pub(super) runs: Vec<MeasuredRun>,
}

impl Done {
    /// The first seed's run.
    pub(super) fn first(&self) -> &MeasuredRun {
        &self.runs[0]
    }
}

/// Runs every arm on its seeds, with a progress bar each.
pub(super) fn study(text: &str, arms: Vec<Arm>, asked: &Asked, seeds: &[u64]) -> Result<Vec<Done>> {
    let first = &seeds[..seeds.len().min(1)];
    let of = |arm: &Arm| if arm.main || asked.full { seeds } else { first };
    // All are read before the first one runs: a typing error must not show up only after minutes.
    let mut planned = Vec::new();
    for arm in arms {
        let experiments: Vec<Experiment> = of(&arm)
            .iter()
            .map(|seed| arm.experiment(text, asked, *seed))
            .collect::<Result<_>>()?;
        planned.push((arm, experiments));
    }
    let all: usize = planned.iter().map(|(_, experiments)| experiments.len()).sum();
    let mut number = 0;
    let mut done = Vec::new();
    for (arm, experiments) in planned {
        let mut runs = Vec::new();
        let experiment = experiments.first().cloned().context("a figure needs a seed")?;
        for experiment in experiments {
            number += 1;
            let bar = format!("{number}/{all} {}, seed {}", arm.name, experiment.seed);
            runs.push(run(experiment, &bar, asked.quiet)?.with_context(|| bar.clone())?);
        }
        done.push(Done { arm, experiment, runs });
    }
    Ok(done)
}

/// One run. The outer error is about the experiment or its data; the inner one arose during
/// training, as when a step size is so large that the weights leave the floating-point range.
pub(super) fn run(
    experiment: Experiment,
    bar: &str,
    quiet: bool,
) -> Result<Result<MeasuredRun, Error>> {
    let mut trial = Trial::new(experiment)?;
    let mut progress = Progress::shown(&trial, bar, !quiet);
    let mut keep = Keep::default();
    let summary = trial.run(&mut [&mut progress, &mut keep]);
    progress.finish();
    match summary {
        Ok(summary) => Ok(Ok(MeasuredRun::new(&keep.0, &summary.context("interrupted")?))),
        Err(error) => Ok(Err(error)),
    }
}

/// Keeps the measured rounds.
#[derive(Default)]
struct Keep(Vec<RoundLine>);

impl Book for Keep {
    fn round(&mut self, record: &RoundRecord<'_>) -> Result<ControlFlow<()>, Error> {
        if record.assessment.is_some() {
            self.0.push(record.line.clone());
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// The numbers behind a figure: what was run, and every run's accuracies and departures.
pub(super) fn numbers(done: &[Done], paper: Value) -> Value {
    let arms: Vec<Value> = done
        .iter()
        .map(|Done { arm, experiment, runs }| {
            json!({
                "name": arm.name,
                "rule": arm.label,
                "experiment": experiment,
                "runs": runs.iter().map(MeasuredRun::numbers).collect::<Vec<_>>(),
            })
        })
        .collect();
    json!({ "paper": paper, "arms": arms })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retain_has_the_slack_of_an_experiment_that_says_none() {
        let plain = Experiment::parse("[rule]\nkind = \"retain\"\n", &[]).unwrap();
        assert_eq!(plain.rule.slack(), Some(SLACK));
        let text = "[rule]\nkind = \"ada-gd\"\ndelta = 0.0\n";
        let arms = Arm::controls();
        let arm = arms.iter().find(|arm| arm.label == "retain").unwrap();
        let experiment = arm.experiment(text, &Asked::default(), 0).unwrap();
        assert_eq!(experiment.rule.slack(), Some(SLACK));
    }
}

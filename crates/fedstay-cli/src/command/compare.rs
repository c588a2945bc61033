//! `fedstay compare`: the same federation under several rules.

use super::{INTERRUPTED, Source, Threads};
use crate::progress::Progress;
use crate::table;
use anyhow::{Context, Result};
use fedstay::record::{RoundLine, Summary};
use fedstay_draw::picture::{self, Compared};
use fedstay_draw::words::{departures, harm, percent};
use fedstay_sim::experiment::{DEFAULT, Experiment, read_table, under};
use fedstay_sim::run::{Recorded, Trial};
use fedstay_sim::text::printable;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;

/// The ceiling, averaging with what reviewers would try first, ADA-GD with its control, and what this
/// project adds: retain, and averaging under preview.
const DEFAULT_RULES: &str = "fedavg+never,fedavg,fedavg+early-stop,fedavg+keep-best,\
                             ada-gd+no-projection,ada-gd,ada-gd+halve,retain,fedavg+preview";

const EXAMPLES: &str = "\
Examples:
  fedstay compare                                          real digits, nine rules, a picture
  fedstay compare --rules fedavg,ada-gd+halve --set seed=1
  fedstay compare --set problem.kind=observation-3
  fedstay compare experiment.toml --rules fedavg,ada-gd --json
  fedstay compare --counterfactual                         what the departures cost, rule by rule

A rule may carry what to change about it: +halve and +no-projection (ada-gd), +early-stop,
+keep-best, +guard and +preview (the server's policy), +never (agents that never leave: the ceiling), or
another behaviour, as in retain+foresight (see `fedstay list behaviours`).";

/// Run the same federation under several rules.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Compare {
    #[command(flatten)]
    source: Source,
    /// The rules, separated by commas
    #[arg(long, default_value = DEFAULT_RULES, value_delimiter = ',')]
    rules: Vec<String>,
    /// The folder for the picture
    #[arg(long, value_name = "DIR", default_value = "figures")]
    out: PathBuf,
    /// Where somebody left, run again with nobody leaving, and say what the departures cost
    #[arg(long)]
    counterfactual: bool,
    /// Print the summaries as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    threads: Threads,
}

impl Compare {
    pub(super) fn run(self) -> Result<()> {
        self.threads.start()?;
        let (text, set) = self.source.read(DEFAULT)?;
        let mut experiments = Vec::new();
        for label in &self.rules {
            let table = read_table(&text).map_err(|error| self.source.locate(error))?;
            let table = under(table, label.trim())?;
            let text = toml::to_string(&table)?;
            let experiment =
                Experiment::parse(&text, &set).map_err(|error| self.source.locate(error))?;
            experiments.push((label.trim().to_owned(), experiment));
        }
        let mut compared = Vec::new();
        for (label, experiment) in experiments {
            let mut trial = Trial::new(experiment.clone())?;
            let mut progress = Progress::named(&trial, &label);
            let mut rounds: Vec<RoundLine> = Vec::new();
            let summary = trial.run(&mut [&mut progress, &mut rounds])?;
            let mut summary = summary.context(INTERRUPTED)?;
            progress.finish();
            if self.counterfactual && !summary.left.is_empty() {
                summary.counterfactual = Some(super::run::counterfactual(experiment)?);
            }
            let header = trial.header().clone();
            let recorded = Recorded { header, rounds, unreadable: Vec::new() };
            compared.push(Compared { label, recorded, summary });
        }
        self.print(&compared)
    }

    fn print(&self, compared: &[Compared]) -> Result<()> {
        let mut out = std::io::stdout().lock();
        if self.json {
            let summaries: Vec<&Summary> = compared.iter().map(|run| &run.summary).collect();
            return Ok(writeln!(out, "{}", serde_json::to_string_pretty(&summaries)?)?);
        }
        if let Some(first) = compared.first() {
            let agents = first.summary.agents.len();
            writeln!(
                out,
                "{}, {agents} agents, seed {}: each leaves for good once the model is good enough for it\n",
                first.summary.on, first.summary.seed
            )?;
            for note in &first.summary.notes {
                writeln!(out, "{}\n", printable(note))?;
            }
        }
        write!(out, "{}", comparison(compared))?;
        let mut told = BTreeSet::new();
        for Compared { label, summary, .. } in compared {
            for warning in summary.warnings.iter().filter(|warning| told.insert(warning.as_str())) {
                writeln!(out, "\nWARNING  {label}: {}", printable(warning))?;
            }
        }
        let files = picture::compare::write(compared, &self.out)?;
        for sentence in picture::compare::sentences(compared) {
            writeln!(out, "\n{sentence}")?;
        }
        for run in compared {
            if let Some(harm) = harm(&run.summary) {
                writeln!(out, "\n{}. {harm}", run.label)?;
            }
        }
        for file in files {
            writeln!(out, "picture {}", file.display())?;
        }
        Ok(())
    }
}

fn comparison(compared: &[Compared]) -> String {
    let accuracy = compared.iter().any(|run| run.summary.accuracy.is_some());
    let population = compared.iter().any(|run| run.summary.population.is_some());
    let mut headings =
        vec!["rule", "left", "verdict", "content", "stopped", "rounds", "loss mean", "worst"];
    if accuracy {
        headings.extend(["accuracy mean", "worst"]);
    }
    if population {
        headings.push("population");
    }
    let rows: Vec<Vec<String>> = compared
        .iter()
        .map(|Compared { label, summary, .. }| {
            let mut row = vec![
                label.clone(),
                departures(summary),
                summary.verdict.name().to_owned(),
                format!("{} of {}", summary.satisfied(), summary.agents.len()),
                summary.stop.name().to_owned(),
                summary.rounds.to_string(),
                format!("{:.3}", summary.loss.mean),
                format!("{:.3}", summary.loss.max),
            ];
            if accuracy {
                row.push(percent(summary.accuracy.map(|accuracy| accuracy.mean)));
                row.push(percent(summary.accuracy.map(|accuracy| accuracy.min)));
            }
            if population {
                row.push(percent(summary.population.and_then(|score| score.accuracy)));
            }
            row
        })
        .collect();
    table::table(&headings, &rows)
}

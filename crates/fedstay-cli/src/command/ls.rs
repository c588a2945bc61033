//! `fedstay ls`: the runs in a folder, one line each.

use super::Usage;
use crate::summary::tone;
use crate::terminal::{Cell, Column, Screen, Table};
use anyhow::Result;
use fedstay::record::Summary;
use fedstay_draw::words::{leavers, percent};
use fedstay_sim::run::{read_header, read_rounds};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  # every run in runs/
  fedstay ls
  fedstay ls studies/one --json
  # the best first
  fedstay ls --sort worst";

/// List runs: verdict, who left, how good the model is
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Ls {
    /// A folder with runs in it
    #[arg(default_value = "runs", value_name = "DIR")]
    folder: PathBuf,
    /// What to sort by
    #[arg(long, value_name = "COLUMN", default_value = "name")]
    sort: By,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum By {
    /// The folder's name
    Name,
    /// How many left, the fewest first
    Left,
    /// The worst agent's accuracy or loss, the best first
    Worst,
}

/// A run's folder and what can be read of it.
struct Found {
    name: String,
    /// The summary with the rule's label, or how many rounds there are without one.
    state: Result<(String, Box<Summary>), Unfinished>,
}

/// What is known of a run without a summary.
struct Unfinished {
    rounds: usize,
    why: Option<String>,
}

impl Ls {
    pub(super) fn run(self, screen: &Screen) -> Result<()> {
        let mut found = find(&self.folder)?;
        if found.is_empty() {
            let folder = self.folder.display();
            return Err(Usage(format!(
                "{folder} has no runs; `fedstay run` writes them to runs/ unless --out says otherwise"
            ))
            .into());
        }
        let worst = |run: &Found| match run.state.as_ref() {
            Ok((_, summary)) => summary.accuracy.map_or(summary.loss.max, |accuracy| -accuracy.min),
            Err(_) => f64::INFINITY,
        };
        match self.sort {
            By::Name => {}
            By::Left => found.sort_by_key(|run| {
                run.state.as_ref().map_or(usize::MAX, |(_, summary)| summary.leavers())
            }),
            By::Worst => found.sort_by(|a, b| worst(a).total_cmp(&worst(b))),
        }
        if self.json {
            let runs: Vec<Value> = found.iter().map(Found::json).collect();
            return screen.print(&format!("{}\n", serde_json::to_string_pretty(&runs)?));
        }
        screen.print(&screen.table(&table(&found)))
    }
}

/// The runs directly inside a folder, by name; the folder itself, if it is a run.
fn find(folder: &Path) -> Result<Vec<Found>> {
    let is_run = |path: &Path| path.join("rounds.jsonl").is_file();
    let named = |error: std::io::Error| Usage(format!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .map_err(named)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| is_run(path))
        .collect();
    if is_run(folder) {
        paths.push(folder.to_owned());
    }
    paths.sort();
    Ok(paths.iter().map(|path| Found::read(path)).collect())
}

impl Found {
    fn read(path: &Path) -> Self {
        let name = path
            .file_name()
            .map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned());
        let summary = std::fs::read(path.join("summary.json")).ok();
        let summary = summary.map(|bytes| serde_json::from_slice::<Box<Summary>>(&bytes));
        let state = match summary {
            Some(Ok(summary)) => {
                // What was added to the rule is in the header; the summary has the rule alone.
                let header = read_header(&path.join("rounds.jsonl"));
                Ok((header.map_or_else(|_| summary.rule.clone(), |header| header.rule), summary))
            }
            other => {
                let rounds = read_rounds(&path.join("rounds.jsonl"));
                let why = other.and_then(Result::err).map(|error| error.to_string());
                Err(Unfinished { rounds: rounds.map_or(0, |recorded| recorded.rounds.len()), why })
            }
        };
        Self { name, state }
    }

    fn json(&self) -> Value {
        match &self.state {
            Ok((rule, summary)) => json!({
                "name": self.name,
                "verdict": summary.verdict.name(),
                "rule": rule,
                "on": summary.on,
                "seed": summary.seed,
                "rounds": summary.rounds,
                "stop": summary.stop.name(),
                "agents": summary.count(),
                "left": summary.leavers(),
                "content": summary.satisfied(),
                "loss": summary.loss,
                "accuracy": summary.accuracy,
                "population": summary.population,
            }),
            Err(Unfinished { rounds, why }) => {
                json!({ "name": self.name, "verdict": null, "rounds": rounds, "unreadable": why })
            }
        }
    }
}

fn table(found: &[Found]) -> Table {
    let mut table = Table::new([
        Column::kept("run"),
        Column::dispensable("rule", 3),
        Column::dispensable("on", 5),
        Column::kept("verdict"),
        Column::kept("left"),
        Column::dispensable("content", 4),
        Column::dispensable("rounds", 2),
        Column::dispensable("mean", 1),
        Column::kept("worst"),
        Column::dispensable("population", 6),
    ]);
    for Found { name, state } in found {
        match state {
            Ok((rule, summary)) => {
                let (mean, worst) = match summary.accuracy {
                    Some(accuracy) => (percent(accuracy.mean), percent(accuracy.min)),
                    None => {
                        (format!("{:.3}", summary.loss.mean), format!("{:.3}", summary.loss.max))
                    }
                };
                let population = match summary.population {
                    Some(population) if summary.accuracy.is_some() => percent(population.accuracy),
                    Some(population) => format!("{:.3}", population.loss),
                    None => "–".to_owned(),
                };
                table.row([
                    Cell::from(name.clone()),
                    rule.clone().into(),
                    summary.on.clone().into(),
                    Cell::toned(summary.verdict.name(), tone(summary)),
                    leavers(summary).into(),
                    format!("{} of {}", summary.satisfied(), summary.known()).into(),
                    summary.rounds.to_string().into(),
                    mean.into(),
                    worst.into(),
                    population.into(),
                ]);
            }
            Err(Unfinished { rounds, why }) => {
                let state = if why.is_some() { "unreadable" } else { "not over" };
                let rounds = rounds.to_string();
                table.row([name, "", "", state, "", "", &rounds, "", "", ""].map(Cell::from));
            }
        }
    }
    table
}

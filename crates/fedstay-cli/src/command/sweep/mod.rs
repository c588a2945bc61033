//! `fedstay sweep`: many runs of one experiment, declared in one file, resumable, with no work done
//! twice.

mod export;
mod extract;
mod new;
mod parquet;
mod query;
mod run;
mod status;

use anyhow::Result;
use fedstay_sim::sweep::{Plan, Store, StoreError, usual_store};
use fedstay_terminal::{Screen, Usage, pair_of};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  # a commented file to start from; how many runs it has, and how long they take
  fedstay sweep new study.toml
  fedstay sweep study.toml --dry-run
  # compute what is missing; safe to interrupt: type it again to continue
  fedstay sweep study.toml
  # more seeds: only the new ones are computed
  fedstay sweep study.toml --set seed=0..20
  # results
  fedstay sweep status study.toml
  fedstay sweep query study.toml --by epsilon --of accuracy.mean,left
  fedstay sweep query study.toml --by epsilon --against epsilon=0.2
  fedstay sweep export study.toml --out study.parquet
  # runs with every round, to look at
  fedstay sweep extract study.toml --where seed=0 --all --out runs/all
  fedstay view runs/all

Results are written to sweeps/NAME.db, an SQLite file; --store names another. Several processes may work on \
one store at the same time.";

/// Run a study: a grid of experiments, resumable, with no work done twice
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct Sweep {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    run: run::SweepRun,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Write a commented starter file
    New(new::SweepNew),
    /// How much of a sweep is done, and how long it took
    Status(status::Status),
    /// Results as a table in the terminal: means, 95% confidence, paired differences
    Query(query::Query),
    /// Results as CSV or Parquet
    Export(export::Export),
    /// Turn stored runs into run folders, with every round, for `fedstay view`
    Extract(extract::Extract),
}

impl Sweep {
    pub(super) fn run(self, screen: &Screen) -> Result<()> {
        match self.action {
            None => self.run.run(screen),
            Some(Action::New(command)) => command.run(screen),
            Some(Action::Status(command)) => command.run(screen),
            Some(Action::Query(command)) => command.run(screen),
            Some(Action::Export(command)) => command.run(screen),
            Some(Action::Extract(command)) => command.run(screen),
        }
    }
}

/// Which sweep: its file, keys set on top of it, and its store.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Study {
    /// The sweep, a TOML file with a [grid]
    #[arg(required = true)]
    file: Option<PathBuf>,
    /// Set a key, or replace an axis: `--set rounds=100 --set seed=0..20`
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// The store, if not sweeps/NAME.db
    #[arg(long, value_name = "DB")]
    store: Option<PathBuf>,
}

impl Study {
    /// The study in a file, in its default store.
    pub(super) fn of(file: &Path, set: Vec<String>, store: Option<PathBuf>) -> Self {
        Self { file: Some(file.to_owned()), set, store }
    }

    fn file(&self) -> Result<&Path> {
        let why = "which sweep? Name its file: `fedstay sweep study.toml`; `fedstay sweep new \
                   study.toml` writes one to start from";
        Ok(self.file.as_deref().ok_or_else(|| Usage(why.to_owned()))?)
    }

    /// The runs.
    pub(super) fn plan(&self) -> Result<Plan> {
        let pairs = self.set.iter().map(|pair| pair_of("--set", pair));
        Ok(Plan::read(self.file()?, &pairs.collect::<Result<Vec<_>, _>>()?)?)
    }

    /// Where the results are kept.
    pub(super) fn store_path(&self) -> Result<PathBuf> {
        if let Some(store) = &self.store {
            return Ok(store.clone());
        }
        Ok(usual_store(self.file()?))
    }

    /// The results.
    fn read(&self) -> Result<Store> {
        Store::read(&self.store_path()?).map_err(told)
    }
}

/// A store that is missing, or is something else, is for the caller to put right.
fn told(error: StoreError) -> anyhow::Error {
    Usage(error.to_string()).into()
}

/// Settings to look for, with values as JSON; what is not JSON is a string.
fn wheres(pairs: &[String]) -> Result<Vec<(String, serde_json::Value)>, Usage> {
    let value = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| text.into());
    pairs
        .iter()
        .map(|pair| pair_of("--where", pair).map(|(key, text)| (key, value(&text))))
        .collect()
}

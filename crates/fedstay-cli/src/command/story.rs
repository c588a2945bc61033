//! `fedstay story`: what became of every agent of a run, in plain words.

use super::{INTERRUPTED, Threads};
use crate::progress::Progress;
use anyhow::{Context, Result};
use fedstay_draw::words::{harm, story};
use fedstay_sim::run::{Parting, Trial};
use fedstay_sim::text::printable;
use std::io::Write;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  fedstay story runs/digits-fedavg-s0          when each agent was first about to leave, how
                                               long it waited, what it gained over training alone
  fedstay story runs/digits-fedavg-s0 --json   the same as data

The run is computed again from its config.toml (same configuration and seed, same run), once with the
agents as they are, once with nobody leaving, and once with every agent alone.";

/// What became of every agent of a run.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Story {
    /// The folder of a run
    folder: PathBuf,
    /// Print the summary, with the stories, as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    threads: Threads,
}

impl Story {
    pub(super) fn run(self) -> Result<()> {
        self.threads.start()?;
        let experiment = super::recorded_experiment(&self.folder)?;
        let mut trial = Trial::new(experiment.clone())?;
        let mut progress = Progress::named(&trial, "as it was");
        let mut parting = Parting::default();
        let mut summary = trial.run(&mut [&mut progress, &mut parting])?.context(INTERRUPTED)?;
        progress.finish();
        trial.compare_with_alone(&mut summary, &parting, None)?;
        summary.counterfactual = Some(super::run::counterfactual(experiment)?);
        let mut out = std::io::stdout().lock();
        if self.json {
            return Ok(writeln!(out, "{}", serde_json::to_string_pretty(&summary)?)?);
        }
        write!(out, "{}", printable(&story(&summary)))?;
        if let Some(harm) = harm(&summary) {
            writeln!(out, "\n{harm}")?;
        }
        out.flush().context("cannot print")
    }
}

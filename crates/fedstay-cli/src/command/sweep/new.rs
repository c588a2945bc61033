//! `fedstay sweep new`: a file to start from.

use crate::command::new::write_schema;
use anyhow::Result;
use fedstay_sim::experiment::Experiment;
use fedstay_sim::run::write_whole;
use fedstay_terminal::{Screen, Usage};
use std::path::PathBuf;

/// The starter file: small enough to finish in seconds, with everything a sweep can say.
pub(super) const STARTER: &str = include_str!("starter.toml");

/// The name of the schema beside a sweep.
const SWEEP_SCHEMA: &str = "sweep.schema.json";

/// Write a commented starter file.
#[derive(Debug, clap::Args)]
pub(super) struct SweepNew {
    /// Where to write it
    #[arg(default_value = "sweep.toml")]
    file: PathBuf,
}

impl SweepNew {
    pub(super) fn run(self, screen: &Screen) -> Result<()> {
        let file = self.file.display();
        if self.file.exists() {
            return Err(Usage(format!("{file} already exists; choose another name")).into());
        }
        write_whole(&self.file, STARTER.as_bytes())?;
        screen.written(&self.file)?;
        write_schema(&self.file, SWEEP_SCHEMA, &Experiment::sweep_schema(), screen)?;
        screen.mention(&format!(
            "\nNext:\n  fedstay sweep {file} --dry-run\n  fedstay sweep {file}\n  fedstay sweep query {file}"
        ))
    }
}

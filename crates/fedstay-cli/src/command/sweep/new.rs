//! `fedstay sweep new`: a file to start from.

use crate::command::Usage;
use anyhow::Result;
use fedstay_sim::run::write_whole;
use std::io::Write;
use std::path::PathBuf;

/// The starter file: small enough to finish in seconds, with everything a sweep can say.
pub(super) const STARTER: &str = include_str!("starter.toml");

/// Write a commented starter file.
#[derive(Debug, clap::Args)]
pub(super) struct New {
    /// Where to write it
    #[arg(default_value = "sweep.toml")]
    file: PathBuf,
}

impl New {
    pub(super) fn run(self) -> Result<()> {
        let file = self.file.display();
        if self.file.exists() {
            return Err(Usage(format!("{file} already exists; choose another name")).into());
        }
        write_whole(&self.file, STARTER.as_bytes())?;
        let mut out = std::io::stdout().lock();
        writeln!(
            out,
            "wrote {file}\nnext: fedstay sweep {file} --dry-run, then fedstay sweep {file}"
        )?;
        Ok(())
    }
}

//! `fedstay man`: manual pages, one per command.

use super::Cli;
use anyhow::{Context, Result};
use clap::CommandFactory;
use fedstay_terminal::Screen;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  # read the manual of the whole command
  fedstay man | man -l -
  # install a page for every command
  fedstay man --out ~/.local/share/man/man1";

/// Print the manual page, or write one for every command
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Man {
    /// Write fedstay.1, fedstay-run.1 and so on into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl Man {
    pub(super) fn run(self, screen: &Screen) -> Result<()> {
        let Some(folder) = self.out else {
            return Ok(clap_mangen::Man::new(Cli::command()).render(&mut std::io::stdout().lock())?);
        };
        std::fs::create_dir_all(&folder)
            .and_then(|()| clap_mangen::generate_to(Cli::command(), &folder))
            .with_context(|| format!("cannot write to {}", folder.display()))?;
        screen.written(&folder)
    }
}

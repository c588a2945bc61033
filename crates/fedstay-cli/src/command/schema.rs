//! `fedstay schema`: what an experiment's file may say, for editors and other programs.

use anyhow::Result;
use fedstay_sim::experiment::Experiment;
use std::io::Write;

const EXAMPLES: &str = "\
Examples:
  fedstay schema > experiment.schema.json
  fedstay schema --sweep > sweep.schema.json

In an editor with TOML support, the first line of an experiment's file names it:
  #:schema ./experiment.schema.json
`fedstay new` and `fedstay sweep new` write both.";

/// Print the JSON schema of an experiment's file, for editors
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Schema {
    /// The schema of a sweep's file, with its grid
    #[arg(long)]
    sweep: bool,
}

impl Schema {
    pub(super) fn run(self) -> Result<()> {
        let schema = if self.sweep { Experiment::sweep_schema() } else { Experiment::schema() };
        let text = serde_json::to_string_pretty(&schema)?;
        Ok(writeln!(std::io::stdout().lock(), "{text}")?)
    }
}

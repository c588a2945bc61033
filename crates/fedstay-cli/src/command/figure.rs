//! `fedstay figure`: the paper's figures, from runs made here and now.

use super::Usage;
use crate::figure;
use anyhow::Result;
use std::io::Write;
use std::path::PathBuf;

/// Draw a figure of the paper.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  fedstay figure 4\n  fedstay figure bad-problem --out docs/img\n  fedstay list figures"
)]
pub struct Figure {
    /// Which one: see `fedstay list figures`
    name: String,
    /// The folder for NAME.svg, NAME.png and NAME.json
    #[arg(long, value_name = "DIR", default_value = "figures")]
    out: PathBuf,
}

impl Figure {
    pub(super) fn run(self) -> Result<()> {
        let Some(drawing) = figure::make(&self.name) else {
            let names: Vec<&str> = figure::LIST.iter().map(|entry| entry.name).collect();
            let why = format!("there is no figure `{}`; there are {}", self.name, names.join(", "));
            return Err(Usage(why).into());
        };
        let drawing = drawing?;
        let files = drawing.write(&self.out)?;
        let mut out = std::io::stdout().lock();
        for note in &drawing.notes {
            writeln!(out, "{note}")?;
        }
        for file in files {
            writeln!(out, "wrote {}", file.display())?;
        }
        Ok(())
    }
}

//! What a build without the feature `paper` says instead of `fedstay figure` and `fedstay tournament`.

use anyhow::Result;
use fedstay::list::Entry;
use fedstay_terminal::{Screen, Usage};
use std::ffi::OsString;

/// No figure can be listed.
pub(super) const FIGURES: &[Entry] = &[];

/// Whatever is typed after a command that is absent, `--help` included.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
struct Rest {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

/// Says that there are no figures.
#[derive(Debug, clap::Args)]
pub struct Figure {
    #[command(flatten)]
    rest: Rest,
}

/// Says that there is no tournament.
#[derive(Debug, clap::Args)]
pub struct Tournament {
    #[command(flatten)]
    rest: Rest,
}

impl Figure {
    pub(super) fn run(self, _: &Screen) -> Result<()> {
        Err(no("figures").into())
    }
}

impl Tournament {
    pub(super) fn run(self, _: &Screen) -> Result<()> {
        Err(no("tournament").into())
    }
}

/// That something is absent, and how to get it.
pub(super) fn no(what: &str) -> Usage {
    Usage(format!(
        "this build of fedstay has no {what}, like every wheel; in a clone of the repository, \
         `cargo install --locked --path crates/fedstay-cli` installs a command with {what}"
    ))
}

//! `fedstay view`: a live page about runs.

use super::Usage;
use crate::draw::Style;
use anyhow::Result;
use fedstay_view::{Look, ViewError};
use std::io::Write;
use std::net::IpAddr;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  fedstay view runs                    every run in runs/, those to come included
  fedstay view runs/a runs/b           two runs, side by side
  fedstay view runs --port 0           any free port
  fedstay view runs --host 0.0.0.0     for other machines too: the address then carries a token

Nothing is sent anywhere: the page asks this program only, and works offline.";

/// Watch runs on a live page.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct View {
    /// Folders of runs, or folders with such folders in them
    #[arg(required = true, value_name = "DIR")]
    folders: Vec<PathBuf>,
    /// The port
    #[arg(long, default_value_t = 8765)]
    port: u16,
    /// The address to listen on; other than this machine's own, it asks for a token
    #[arg(long, default_value = "127.0.0.1")]
    host: IpAddr,
}

impl View {
    pub(super) fn run(self) -> Result<()> {
        let Self { folders, port, host } = self;
        let view = fedstay_view::View { folders, host, port, look };
        let served = view.serve(|url| {
            let mut out = std::io::stdout().lock();
            // Somebody who closed standard output can still look.
            let _ = writeln!(out, "open {url}\n(Ctrl-C ends it)").and_then(|()| out.flush());
        });
        served.map_err(|error| match error {
            ViewError::Folder(_) | ViewError::Address { .. } => Usage(error.to_string()).into(),
            error => error.into(),
        })
    }
}

/// A rule looks on the page as it does in every drawing.
fn look(rule: &str) -> Look {
    let style = Style::of(rule);
    Look { colour: style.colour.hex(), dash: style.dash.lengths().to_vec() }
}

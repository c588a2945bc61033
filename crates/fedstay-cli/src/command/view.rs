//! `fedstay view`: a live page about runs.

use super::Usage;
use super::sweep::Study;
use crate::draw::Style;
use anyhow::{Context, Result};
use fedstay_sim::sweep::{Plan, Store, sketch};
use fedstay_view::{Look, ViewError};
use std::collections::HashSet;
use std::io::Write;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

const EXAMPLES: &str = "\
Examples:
  fedstay view runs                    every run in runs/, those to come included
  fedstay view runs/a runs/b           two runs, side by side
  fedstay view study.toml              the runs of a sweep, as they are finished
  fedstay view runs --port 0           any free port
  fedstay view runs --host 0.0.0.0     for other machines too: the address then carries a token

Of a sweep's runs the page shows what its store keeps: who left when, and how good the model was in the
rounds that were measured. `fedstay sweep extract` has every round.

Nothing is sent anywhere: the page asks this program only, and works offline.";

/// How often a sweep's store is looked at.
const BETWEEN_LOOKS: Duration = Duration::from_secs(2);

/// Watch runs on a live page.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct View {
    /// Folders of runs, folders with such folders in them, or sweeps' files
    #[arg(required = true, value_name = "DIR|SWEEP.toml")]
    places: Vec<PathBuf>,
    /// The port
    #[arg(long, default_value_t = 8765)]
    port: u16,
    /// The address to listen on; other than this machine's own, it asks for a token
    #[arg(long, default_value = "127.0.0.1")]
    host: IpAddr,
    /// The sweep's store, if not sweeps/NAME.db
    #[arg(long, value_name = "DB")]
    store: Option<PathBuf>,
}

impl View {
    pub(super) fn run(self) -> Result<()> {
        let Self { places, port, host, store } = self;
        // Kept until the page is closed: the folders go with them.
        let mut sweeps = Vec::new();
        let mut folders = Vec::new();
        for place in places {
            match place.extension().and_then(|ending| ending.to_str()) {
                Some("toml") => {
                    let sweep = Sketches::of(&place, store.clone())?;
                    folders.push(sweep.path().to_owned());
                    sweeps.push(sweep);
                }
                Some("db") if place.is_file() => {
                    let place = place.display();
                    return Err(Usage(format!(
                        "{place} is a sweep's store: name the sweep's file, with --store {place} if that \
                         is not its usual one"
                    ))
                    .into());
                }
                _ => folders.push(place),
            }
        }
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

/// The runs of a sweep as folders of a folder that goes away in the end.
struct Sketches(TempDir);

impl Sketches {
    /// Those that are there now, and from now on those that come.
    fn of(file: &Path, store: Option<PathBuf>) -> Result<Self> {
        let study = Study::of(file, Vec::new(), store);
        let plan = study.plan()?;
        let store = study.store_path()?;
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        let folder = tempfile::Builder::new()
            .prefix(&format!("fedstay-{stem}-"))
            .tempdir()
            .context("no room for the sweep's runs in the folder for temporary files")?;
        let path = folder.path().to_owned();
        let mut there = HashSet::new();
        look_again(&plan, &store, &path, &mut there)?;
        std::thread::spawn(move || {
            while path.exists() {
                std::thread::sleep(BETWEEN_LOOKS);
                // What cannot be read now may be readable in a moment: somebody is writing.
                let _ = look_again(&plan, &store, &path, &mut there);
            }
        });
        Ok(Self(folder))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

/// Draws the runs that have come since.
fn look_again(plan: &Plan, store: &Path, path: &Path, there: &mut HashSet<String>) -> Result<()> {
    // A sweep that has not begun has no store yet.
    if !store.exists() {
        return Ok(());
    }
    let store = Store::read(store)?;
    let keys = store.keys()?;
    for run in plan.runs.iter().filter(|run| keys.contains(&run.key)) {
        if there.contains(&run.key) {
            continue;
        }
        if let Some(finished) = store.get(&run.key)? {
            sketch(run, &finished, &path.join(plan.label(run)))?;
        }
        there.insert(run.key.clone());
    }
    Ok(())
}

/// A rule looks on the page as it does in every drawing.
fn look(rule: &str) -> Look {
    let style = Style::of(rule);
    Look { colour: style.colour.hex(), dash: style.dash.lengths().to_vec() }
}

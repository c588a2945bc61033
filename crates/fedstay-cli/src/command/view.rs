//! `fedstay view`: a live page about runs.

use super::sweep::Study;
use anyhow::{Context, Result};
use fedstay_sim::sweep::{Plan, Store, StoreError, sketch};
use fedstay_terminal::{Screen, Usage};
use fedstay_view::ViewError;
use std::collections::HashSet;
use std::io::Write;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tempfile::TempDir;

const EXAMPLES: &str = "\
Examples:
  # every run in runs/, including those to come
  fedstay view runs
  # two runs, side by side
  fedstay view runs/a runs/b
  # the runs of a sweep, as they are finished
  fedstay view study.toml
  # any free port
  fedstay view runs --port 0
  # for other machines too: the address then carries a token
  fedstay view runs --host 0.0.0.0

Of a sweep's runs the page shows what its store keeps: who left when, and how good the model was in the \
rounds that were measured. `fedstay sweep extract` has every round.

Nothing is sent anywhere: the page asks this program only, and works offline.";

/// How often a sweep's store is checked.
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
    /// The address to listen on; non-loopback addresses require a token
    #[arg(long, default_value = "127.0.0.1")]
    host: IpAddr,
    /// The sweep's store, if not sweeps/NAME.db
    #[arg(long, value_name = "DB")]
    store: Option<PathBuf>,
    /// Set a key of the sweep, or replace an axis, as it was computed: `--set seed=0..20`
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
}

impl View {
    pub(super) fn run(self, screen: &Screen) -> Result<()> {
        let Self { places, port, host, store, set } = self;
        // Kept until the page is closed: dropping them removes the folders.
        let mut sweeps = Vec::new();
        let mut folders = Vec::new();
        for place in places {
            match place.extension().and_then(|ending| ending.to_str()) {
                Some("toml") => {
                    let sweep = Sketches::of(&Study::of(&place, set.clone(), store.clone()))?;
                    folders.push(sweep.path().to_owned());
                    sweeps.push(sweep);
                }
                Some("db" | "sqlite") if place.is_file() => {
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
        let view = fedstay_view::View { folders, host, port };
        let served = view.serve(|url| {
            // The page works even if standard output was closed.
            let _ = screen.print(&format!("open {url}\n")).and_then(|()| {
                screen.mention("(Ctrl-C ends it)")?;
                Ok(std::io::stdout().flush()?)
            });
        });
        served.map_err(|error| match error {
            ViewError::Folder(_) | ViewError::Address { .. } => Usage(error.to_string()).into(),
            error => error.into(),
        })
    }
}

/// The runs of a sweep as folders inside a temporary folder.
struct Sketches {
    folder: TempDir,
    over: Arc<AtomicBool>,
    looking: Option<JoinHandle<()>>,
}

impl Sketches {
    /// Sketches the runs that are there and, for as long as this lives, those that come.
    fn of(study: &Study) -> Result<Self> {
        let (plan, store) = (study.plan()?, study.store_path()?);
        if store.exists() {
            Store::read(&store).map_err(|error| Usage(error.to_string()))?;
        }
        let folder = tempfile::Builder::new()
            .prefix("fedstay-sweep-")
            .tempdir()
            .context("no room for the sweep's runs in the folder for temporary files")?;
        let path = folder.path().to_owned();
        let over = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&over);
        let looking = std::thread::spawn(move || {
            let mut seen = HashSet::new();
            while !ended.load(Ordering::Relaxed) {
                // A store that cannot be read now may be readable in a moment: somebody is writing.
                let _ = look_again(&plan, &store, &path, &mut seen);
                std::thread::park_timeout(BETWEEN_LOOKS);
            }
        });
        Ok(Self { folder, over, looking: Some(looking) })
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for Sketches {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(looking) = self.looking.take() {
            looking.thread().unpark();
            // Otherwise it would write into a folder that is gone.
            let _ = looking.join();
        }
    }
}

/// Sketches the runs that have been added since.
fn look_again(
    plan: &Plan,
    store: &Path,
    path: &Path,
    seen: &mut HashSet<String>,
) -> Result<(), StoreError> {
    // A sweep that has not begun has no store yet.
    if !store.exists() {
        return Ok(());
    }
    let store = Store::read(store)?;
    let keys = store.keys()?;
    for run in plan.runs.iter().filter(|run| keys.contains(&run.key)) {
        if !seen.insert(run.key.clone()) {
            continue;
        }
        // A run that cannot be shown does not hide the others.
        let shown = match store.get(&run.key) {
            Ok(Some(finished)) => sketch(run, &finished, &path.join(plan.label(run)))
                .map_err(|error| error.to_string()),
            Ok(None) => Ok(false),
            Err(error) => Err(error.to_string()),
        };
        let why = match shown {
            Ok(true) => continue,
            Ok(false) => "it diverged".to_owned(),
            Err(why) => why,
        };
        let _ = writeln!(std::io::stderr(), "run {} is not shown: {why}", plan.label(run));
    }
    Ok(())
}

//! `fedstay data`: fetch data sets, and look at how they are dealt out.

use super::{Source, Usage};
use anyhow::Result;
use fedstay_sim::data::cache_dir;
use fedstay_sim::data::fetch::{Fetchable, fetch};
use fedstay_sim::simulator::Simulator;
use fedstay_sim::text::printable;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

/// Fetch data sets, and show how they are dealt to agents.
#[derive(Debug, clap::Subcommand)]
pub enum Data {
    /// Fetch a data set into the cache, check it, and say where it is
    #[command(
        after_help = "Examples:\n  fedstay data fetch cifar10\n  fedstay data fetch mnist --into /data/fedstay\n\nThe cache is $FEDSTAY_DATA, else $XDG_CACHE_HOME/fedstay, else ~/.cache/fedstay. Files that are\nalready complete are not fetched again."
    )]
    Fetch {
        /// cifar10, mnist or fashion-mnist
        kind: String,
        /// Another cache folder
        #[arg(long, value_name = "DIR")]
        into: Option<PathBuf>,
    },
    /// Show how many samples of each class every agent holds
    #[command(
        after_help = "Examples:\n  fedstay data show\n  fedstay data show --set partition.q=0.5\n  fedstay data show --set partition.kind=dirichlet --set partition.alpha=0.3"
    )]
    Show {
        #[command(flatten)]
        source: ShowSource,
    },
}

/// Which experiment to show.
#[derive(Debug, clap::Args)]
pub struct ShowSource {
    #[command(flatten)]
    source: Source,
    /// Show at most this many agents
    #[arg(long, default_value_t = 20)]
    most: usize,
}

impl Data {
    pub(super) fn run(self) -> Result<()> {
        match self {
            Self::Fetch { kind, into } => fetch_kind(&kind, into),
            Self::Show { source } => show(&source),
        }
    }
}

fn fetch_kind(kind: &str, into: Option<PathBuf>) -> Result<()> {
    let Some(what) = Fetchable::from_kind(kind) else {
        let kinds: Vec<&str> = Fetchable::ALL.iter().map(|what| what.kind()).collect();
        return Err(Usage(format!(
            "`{kind}` cannot be fetched; choose one of {}",
            kinds.join(", ")
        ))
        .into());
    };
    let cache = match into {
        Some(folder) => folder,
        None => cache_dir()?,
    };
    let bar = ProgressBar::new_spinner();
    bar.enable_steady_tick(Duration::from_millis(120));
    let known = ProgressStyle::with_template("{msg:40} {bar:30} {bytes}/{total_bytes} {eta}")?;
    let unknown = ProgressStyle::with_template("{spinner} {msg} {elapsed}")?;
    let fetched = fetch(what, &cache, &mut |progress| {
        match progress.total {
            Some(total) => {
                bar.set_style(known.clone());
                bar.set_length(total);
                bar.set_position(progress.done);
            }
            None => bar.set_style(unknown.clone()),
        }
        bar.set_message(progress.doing);
    });
    bar.finish_and_clear();
    let fetched = fetched?;
    let mut out = std::io::stdout().lock();
    match fetched.new.len() {
        0 => writeln!(out, "{kind} is already there and complete")?,
        files => writeln!(out, "{kind}: {files} files from {}, checksums match", fetched.from)?,
    }
    writeln!(out, "in {}", fetched.folder.display())?;
    Ok(())
}

fn show(source: &ShowSource) -> Result<()> {
    let experiment = source.source.experiment()?;
    let simulator = Simulator::new(&experiment)?;
    let mut out = std::io::stdout().lock();
    if let Some(training) = experiment.training() {
        let population = simulator.population();
        let (agents, rows) = (population.agents(), population.per_agent());
        writeln!(out, "{}: {agents} agents with {rows} samples each", experiment.on())?;
        writeln!(out, "{}\n", printable(&training.partition.describe()))?;
    }
    // Class names come from the data's file and may hold anything.
    write!(out, "{}", printable(&simulator.population().histogram().render(source.most)))?;
    Ok(())
}

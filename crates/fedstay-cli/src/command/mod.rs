//! One file per subcommand; [`Command`] is the list.

mod check;
mod compare;
mod data;
mod figure;
mod list;
mod report;
mod run;
mod schema;
pub mod step;
mod story;
pub(crate) mod sweep;
mod tournament;
mod view;

use anyhow::{Context, Result};
use fedstay_sim::experiment::{DEFAULT, Experiment, SpecError, check_threads, default_under};
use fedstay_sim::run::made_in_python;
use std::path::{Path, PathBuf};

/// The subcommands.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Run an experiment: a named problem or training on data
    Run(run::Run),
    /// Run the same federation under several rules: who left, and what it cost
    Compare(compare::Compare),
    /// Rules against behaviours: who left, what it cost, what everybody ended with
    Tournament(tournament::Tournament),
    /// What became of every agent of a run, in plain words
    Story(story::Story),
    /// Watch runs on a live page, while they train or afterwards
    View(view::View),
    /// Write runs to one self-contained page that can be passed on
    Report(report::Report),
    /// One server step: reports in, step out, as JSON
    Step(step::Step),
    /// See how close a problem or a recorded run comes to breaking the theorem's assumptions
    Check(check::Check),
    /// List what there is: rules, behaviours, problems, keys …
    List(list::List),
    /// Print the JSON schema of an experiment's file, for editors
    Schema(schema::Schema),
    /// Run a study: a grid of experiments, resumable, with no work done twice
    Sweep(sweep::Sweep),
    /// Draw a figure of the paper
    Figure(figure::Figure),
    /// Fetch data sets, and show how they are dealt to agents
    #[command(subcommand)]
    Data(data::Data),
}

impl Command {
    /// Runs the subcommand.
    ///
    /// # Errors
    /// With a message for the person at the terminal.
    pub fn run(self) -> Result<()> {
        match self {
            Self::Run(command) => command.run(),
            Self::Compare(command) => command.run(),
            Self::Tournament(command) => command.run(),
            Self::Story(command) => command.run(),
            Self::View(command) => command.run(),
            Self::Report(command) => command.run(),
            Self::Step(command) => command.run(),
            Self::Check(command) => command.run(),
            Self::List(command) => command.run(),
            Self::Schema(command) => command.run(),
            Self::Sweep(command) => command.run(),
            Self::Figure(command) => command.run(),
            Self::Data(command) => command.run(),
        }
    }
}

/// The message for a run that was interrupted.
const INTERRUPTED: &str = "interrupted";

/// The caller asked for something impossible: exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);

/// Which experiment: a file, and keys set on top of it.
#[derive(Debug, Clone, Default, clap::Args)]
struct Source {
    /// The experiment, a TOML file; by default, ten agents with the images of one digit each
    file: Option<PathBuf>,
    /// Set a key, as in the file: `--set rule.kind=ada-gd --set epsilon=0.1`
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Move every step to the nearest one that keeps everybody: `--set policy.kind=guard`
    #[arg(long)]
    guard: bool,
}

impl Source {
    /// The text of the file, or of the default, and the keys set on top.
    fn read(&self, default: &str) -> Result<(String, Vec<(String, String)>)> {
        let set = self.set.iter().map(|pair| pair_of("--set", pair));
        let mut set: Vec<(String, String)> = set.collect::<Result<_, _>>()?;
        if self.guard {
            set.push(("policy.kind".to_owned(), "guard".to_owned()));
        }
        let text = match &self.file {
            Some(path) => read_experiment(path)?,
            None => default_under(default, &set)?,
        };
        Ok((text, set))
    }

    fn experiment(&self) -> Result<Experiment> {
        let (text, set) = self.read(DEFAULT)?;
        Ok(Experiment::parse(&text, &set).map_err(|error| self.locate(error))?)
    }

    /// Names the file in which the error is.
    fn locate(&self, error: SpecError) -> SpecError {
        match &self.file {
            Some(path) => error.in_file(path),
            None => error,
        }
    }
}

/// The two sides of `KEY=VALUE`, as an option takes it.
fn pair_of(option: &str, pair: &str) -> Result<(String, String), Usage> {
    match pair.split_once('=') {
        Some((key, value)) => Ok((key.trim().to_owned(), value.trim().to_owned())),
        None => Err(Usage(format!("{option} {pair}: write it as {option} KEY=VALUE"))),
    }
}

fn read_experiment(path: &Path) -> Result<String> {
    std::fs::read_to_string(path)
        .map_err(|error| Usage(format!("{}: {error}", path.display())).into())
}

/// The experiment in the folder of a run, to be computed again.
fn recorded_experiment(folder: &Path) -> Result<Experiment> {
    let path = folder.join("config.toml");
    let text = std::fs::read_to_string(&path).map_err(|error| {
        Usage(format!(
            "{}: {error}; give the folder of a run, as `fedstay run` prints it",
            path.display()
        ))
    })?;
    if let Some(on) = made_in_python(&text) {
        return Err(Usage(format!(
            "the agents of the run in {0} are in Python ({on}), so it cannot be computed again here; \
             see what was recorded with `fedstay report {0}` or `fedstay view {0}`",
            folder.display()
        ))
        .into());
    }
    Ok(Experiment::parse(&text, &[])?)
}

/// The number of threads to use.
#[derive(Debug, Clone, Copy, clap::Args)]
struct Threads {
    /// Threads to compute with, at most 512; by default, all cores. Does not change results
    #[arg(long)]
    threads: Option<usize>,
}

impl Threads {
    /// The number of threads, for those that are started elsewhere.
    fn count(self) -> Result<usize> {
        match self.threads {
            Some(threads) => Ok(check_threads(threads)?),
            None => Ok(std::thread::available_parallelism().map_or(1, usize::from)),
        }
    }

    fn start(self) -> Result<()> {
        if let Some(threads) = self.threads {
            rayon::ThreadPoolBuilder::new()
                .num_threads(check_threads(threads)?)
                .build_global()
                .context("cannot start the threads")?;
        }
        Ok(())
    }
}

//! One file per subcommand; [`Command`] is the list.

mod check;
mod compare;
mod completions;
mod data;
mod figure;
mod list;
mod ls;
mod man;
mod new;
mod report;
mod run;
mod schema;
pub mod step;
mod story;
pub(crate) mod sweep;
mod tournament;
mod view;

use crate::terminal::{Screen, ScreenOptions};
use anyhow::{Context, Result};
use fedstay::record::Header;
use fedstay_draw::words;
use fedstay_sim::experiment::{DEFAULT, Experiment, SpecError, check_threads, default_under};
use fedstay_sim::run::made_in_python;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Federated learning that keeps its agents.
///
/// Agents leave as soon as the model is good enough for them, and take their data with them.
/// fedstay runs the same federation under rules that let this happen and rules that prevent it, and
/// reports who left, when, and what it cost.
#[derive(Debug, clap::Parser)]
#[command(name = "fedstay", version, after_help = EXAMPLES)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// How to print it.
    #[command(flatten)]
    pub screen: ScreenOptions,
}

const EXAMPLES: &str = "\
Examples:
  # what averaging loses, and what keeps it
  fedstay compare
  # one run on an example of the paper
  fedstay run --set problem.kind=observation-3
  # a commented experiment to start from, and a run of it in a folder
  fedstay new experiment.toml
  fedstay run experiment.toml --out runs/first
  # continue after a crash
  fedstay run --resume runs/first
  # watch runs, or pass them on
  fedstay view runs
  fedstay report runs/first
  # everything an experiment can say
  fedstay list keys";

/// The subcommands.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Write a commented experiment to start from
    New(new::New),
    /// Run an experiment: a named problem or training on data
    Run(run::Run),
    /// Run the same federation under several rules: who left, and what it cost
    Compare(compare::Compare),
    /// Rules against behaviours: who left, what it cost, what everybody ended with
    Tournament(tournament::Tournament),
    /// What became of every agent of a run, in plain words
    Story(story::Story),
    /// List runs: verdict, who left, how good the model is
    Ls(ls::Ls),
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
    /// Print the completions of a shell
    Completions(completions::Completions),
    /// Print the manual page, or write one for every command
    Man(man::Man),
}

impl Command {
    /// Runs the subcommand.
    ///
    /// # Errors
    /// With a message for the person at the terminal.
    pub fn run(self, screen: &Screen) -> Result<()> {
        match self {
            Self::New(command) => command.run(screen),
            Self::Ls(command) => command.run(screen),
            Self::Completions(command) => command.run(),
            Self::Man(command) => command.run(screen),
            Self::Run(command) => command.run(screen),
            Self::Compare(command) => command.run(screen),
            Self::Tournament(command) => command.run(screen),
            Self::Story(command) => command.run(screen),
            Self::View(command) => command.run(screen),
            Self::Report(command) => command.run(screen),
            Self::Step(command) => command.run(),
            Self::Check(command) => command.run(screen),
            Self::List(command) => command.run(screen),
            Self::Schema(command) => command.run(),
            Self::Sweep(command) => command.run(screen),
            Self::Figure(command) => command.run(screen),
            Self::Data(command) => command.run(screen),
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
    /// The experiment, a TOML file; by default, ten agents, each with mostly one digit
    file: Option<PathBuf>,
    /// Set a key, as in the file: `--set rule.kind=ada-gd --set epsilon=0.1`
    #[arg(short, long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
}

/// Which experiment, for what runs it: the guard can be put around its rule.
#[derive(Debug, Clone, Default, clap::Args)]
struct Guarded {
    #[command(flatten)]
    source: Source,
    /// Move every step to the nearest one that keeps everybody: `--set policy.kind=guard`
    #[arg(long)]
    guard: bool,
}

impl Guarded {
    /// The experiment, with what the options add to it.
    fn source(&self) -> Source {
        let mut source = self.source.clone();
        if self.guard {
            source.set.push("policy.kind=guard".to_owned());
        }
        source
    }
}

impl Source {
    /// The text of the file, or of the default, and the keys set on top.
    fn read(&self, default: &str) -> Result<(String, Vec<(String, String)>)> {
        let set = self.set.iter().map(|pair| pair_of("--set", pair));
        let set: Vec<(String, String)> = set.collect::<Result<_, _>>()?;
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
    let file = path.display();
    let told = |error: std::io::Error| match error.kind() {
        ErrorKind::InvalidData => format!("{file} is not text; an experiment is a TOML file"),
        ErrorKind::NotFound => {
            format!("{file}: {error}; `fedstay new {file}` writes an experiment to start from")
        }
        _ => format!("{file}: {error}"),
    };
    Ok(std::fs::read_to_string(path).map_err(|error| Usage(told(error)))?)
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

/// What became of the rows of the data set, where there is one: the first line about it.
fn rows_line(header: &Header) -> Option<String> {
    header.rows.as_ref().map(|rows| words::rows(rows, header.count()))
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

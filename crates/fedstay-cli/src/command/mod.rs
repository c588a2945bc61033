//! One file per subcommand; [`Command`] is the list.

#[cfg(not(feature = "paper"))]
mod absent;
mod check;
mod compare;
mod completions;
mod data;
mod list;
mod ls;
mod man;
mod new;
mod plan;
mod report;
mod run;
mod schema;
pub mod step;
mod story;
mod sweep;
mod view;

#[cfg(not(feature = "paper"))]
use absent::{Figure, Tournament};
use anyhow::Result;
use fedstay::record::Header;
use fedstay_draw::words;
#[cfg(feature = "paper")]
use fedstay_paper::{Figure, Tournament};
use fedstay_sim::experiment::Experiment;
use fedstay_sim::run::made_in_python;
use fedstay_terminal::{Screen, ScreenOptions, Usage};
use std::path::Path;

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
    /// Ask of a table with owners: would they hold together, who gains, what keeps them
    Plan(plan::PlanCommand),
    /// Run an experiment: a named problem or training on data
    Run(run::Run),
    /// Run the same federation under several rules: who left, and what it cost
    Compare(compare::Compare),
    /// Rules against behaviours: who left, what it cost, what everybody ended with
    #[cfg_attr(not(feature = "paper"), command(hide = true))]
    Tournament(Tournament),
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
    #[cfg_attr(not(feature = "paper"), command(hide = true))]
    Figure(Figure),
    /// Fetch data sets, read tables, and show how they are dealt to agents
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
            Self::Plan(command) => command.run(screen),
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

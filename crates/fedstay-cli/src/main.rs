//! The `fedstay` command.

use clap::Parser;
use fedstay_cli::command::{Command, Usage};
use fedstay_sim::experiment::SpecError;
use fedstay_sim::text::one_line;
use std::process::ExitCode;

/// Federated learning that keeps its agents.
///
/// Agents leave as soon as the model is good enough for them, and take their data with them.
/// fedstay runs the same federation under rules that let this happen and rules that prevent it, and
/// reports who left, when, and what it cost.
#[derive(Parser)]
#[command(name = "fedstay", version, max_term_width = 100, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  fedstay compare                                  what averaging loses and what keeps it
  fedstay run --set problem.kind=observation-3     one run on an example of the paper
  fedstay run experiment.toml --out runs/first     one run, kept in a folder
  fedstay run --resume runs/first                  continue after a crash
  fedstay figure 4                                 draw a figure of the paper
  fedstay list keys                                everything an experiment can say";

/// An error with its causes, except for those that its message already contains.
fn told(error: &anyhow::Error) -> String {
    let mut told = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !told.contains(&cause) {
            told = format!("{told}: {cause}");
        }
    }
    told
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match cli.command.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // A closed pipe (`fedstay list | head`) is what the reader wants, not an error.
            let pipe = error.downcast_ref::<std::io::Error>();
            if pipe.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe) {
                return ExitCode::SUCCESS;
            }
            eprintln!("fedstay: {}", one_line(&told(&error).replace('\n', " ")));
            ExitCode::from(if error.is::<Usage>() || error.is::<SpecError>() { 2 } else { 1 })
        }
    }
}

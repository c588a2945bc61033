//! The `fedstay` command.

use clap::{CommandFactory, FromArgMatches};
use fedstay_cli::command::Cli;
use fedstay_sim::experiment::SpecError;
use fedstay_sim::text::one_line;
use fedstay_terminal::{Colour, Screen, Usage, complain, help_columns};
use std::process::ExitCode;
use std::thread;

/// The stack of the thread that does the work, in bytes: what the system allows the first one may be far less.
const STACK: usize = 8 << 20;

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
    // Where no thread can be had, the first one has to do.
    match thread::Builder::new().name("fedstay".to_owned()).stack_size(STACK).spawn(work) {
        // A panic has been told already.
        Ok(worker) => worker.join().unwrap_or(ExitCode::from(101)),
        Err(_) => work(),
    }
}

fn work() -> ExitCode {
    let color = Colour::asked();
    let command = Cli::command().color(color.for_clap()).term_width(help_columns());
    let matches = command.get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match cli.command.run(&Screen::new(&cli.screen)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // A closed pipe (`fedstay list | head`) is what the reader wants, not an error.
            let pipe = error.downcast_ref::<std::io::Error>();
            if pipe.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe) {
                return ExitCode::SUCCESS;
            }
            let spec = error.downcast_ref::<SpecError>();
            let excerpt = spec.and_then(SpecError::excerpt);
            let message = one_line(&told(&error).replace('\n', " "));
            complain(color, &message, excerpt.as_deref());
            ExitCode::from(if error.is::<Usage>() || spec.is_some() { 2 } else { 1 })
        }
    }
}

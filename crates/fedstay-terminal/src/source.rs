//! What several commands take: an experiment with keys set on top of it, and the number of threads.

use anyhow::{Context, Result};
use fedstay_sim::experiment::{DEFAULT, Experiment, SpecError, check_threads, default_under};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The caller asked for something impossible: exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);

/// Which experiment: a file, and keys set on top of it.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Source {
    /// The experiment, a TOML file; by default, ten agents, each with mostly one digit
    pub file: Option<PathBuf>,
    /// Set a key, as in the file: `--set rule.kind=ada-gd --set epsilon=0.1`
    #[arg(short, long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

/// Which experiment, for what runs it: the guard can be put around its rule.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Guarded {
    /// The experiment.
    #[command(flatten)]
    pub source: Source,
    /// Move every step to the nearest one that keeps everybody: `--set policy.kind=guard`
    #[arg(long)]
    pub guard: bool,
}

impl Guarded {
    /// The experiment, with what the options add to it.
    pub fn source(&self) -> Source {
        let mut source = self.source.clone();
        if self.guard {
            source.set.push("policy.kind=guard".to_owned());
        }
        source
    }
}

impl Source {
    /// The text of the file, or of the default, and the keys set on top.
    ///
    /// # Errors
    /// When the file cannot be read, or a key is not written as KEY=VALUE.
    pub fn read(&self, default: &str) -> Result<(String, Vec<(String, String)>)> {
        let set = self.set.iter().map(|pair| pair_of("--set", pair));
        let set: Vec<(String, String)> = set.collect::<Result<_, _>>()?;
        let text = match &self.file {
            Some(path) => read_experiment(path)?,
            None => default_under(default, &set)?,
        };
        Ok((text, set))
    }

    /// The experiment.
    ///
    /// # Errors
    /// When the file cannot be read, or does not say an experiment.
    pub fn experiment(&self) -> Result<Experiment> {
        let (text, set) = self.read(DEFAULT)?;
        Ok(Experiment::parse(&text, &set).map_err(|error| self.locate(error))?)
    }

    /// Names the file in which the error is.
    pub fn locate(&self, error: SpecError) -> SpecError {
        match &self.file {
            Some(path) => error.in_file(path),
            None => error,
        }
    }
}

/// The two sides of `KEY=VALUE`, as an option takes it.
///
/// # Errors
/// When there is no `=`.
pub fn pair_of(option: &str, pair: &str) -> Result<(String, String), Usage> {
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

/// The number of threads to use.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct Threads {
    /// Threads to compute with, at most 512; by default, all cores. Does not change results
    #[arg(long)]
    threads: Option<usize>,
}

impl Threads {
    /// The number of threads, for those that are started elsewhere.
    ///
    /// # Errors
    /// When the number makes no sense.
    pub fn count(self) -> Result<usize> {
        match self.threads {
            Some(threads) => Ok(check_threads(threads)?),
            None => Ok(std::thread::available_parallelism().map_or(1, usize::from)),
        }
    }

    /// Starts that many threads, for everything that this process computes.
    ///
    /// # Errors
    /// When the number makes no sense, or they cannot be started.
    pub fn start(self) -> Result<()> {
        if let Some(threads) = self.threads {
            rayon::ThreadPoolBuilder::new()
                .num_threads(check_threads(threads)?)
                .build_global()
                .context("cannot start the threads")?;
        }
        Ok(())
    }
}

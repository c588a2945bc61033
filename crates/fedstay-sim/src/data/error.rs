//! What can go wrong between a file and an agent's rows.

use crate::text::quoted;
use std::path::{Path, PathBuf};

/// Why a data set cannot be found, read or dealt out.
///
/// One type serves loading, fetching and partitioning: who starts a run meets all three before
/// the first round, and every message names the file, the class or the key and says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// A file is missing.
    #[error("{} is not there: {hint}", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
        /// What to do about it.
        hint: String,
    },
    /// The system refused to read or write a file.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A file is not what its name promises.
    #[error("{}: expected {expected}, found {found}: {hint}", path.display())]
    Wrong {
        /// The file.
        path: PathBuf,
        /// What should have been there.
        expected: String,
        /// What was there.
        found: String,
        /// What to do about it.
        hint: String,
    },
    /// A file has the right size, but other contents than the published one.
    #[error("{}: expected MD5 {expected}, found {found}: {hint}", path.display())]
    Checksum {
        /// The file.
        path: PathBuf,
        /// The published sum.
        expected: String,
        /// The sum of the bytes that are there.
        found: String,
        /// What to do about it.
        hint: String,
    },
    /// A program that was asked to download something failed.
    #[error("{program} failed ({status}): {said}")]
    Program {
        /// The program.
        program: String,
        /// How it ended.
        status: String,
        /// The first lines it wrote.
        said: String,
    },
    /// No source of a data set could be used.
    #[error("{kind} could not be fetched. {tried}. {hint}")]
    Unreachable {
        /// The data set.
        kind: &'static str,
        /// Every source, and what became of it.
        tried: String,
        /// What to do about it.
        hint: String,
    },
    /// The data set does not have a class.
    #[error("{key}: there is no class {class}; {name} has {known}")]
    UnknownClass {
        /// The key that names it.
        key: &'static str,
        /// The class asked for.
        class: String,
        /// The data set.
        name: String,
        /// The classes it has.
        known: String,
    },
    /// A class has too few rows for the devices that need it.
    #[error(
        "class {class} has {has} training rows, but the devices need {needs} of it at \
         {per_agent} rows each: lower data.per_agent{fits}, or lower the number of devices"
    )]
    TooFewOfClass {
        /// The class.
        class: String,
        /// The rows there are.
        has: usize,
        /// The rows that were asked for.
        needs: usize,
        /// The rows each device was to have.
        per_agent: usize,
        /// " to … or less", where some size fits.
        fits: Fits,
    },
    /// There are too few rows for the devices.
    #[error(
        "there are {has} training rows, but {devices} devices of {per_agent} rows need {needs}: \
         lower data.per_agent{fits}, or lower the number of devices"
    )]
    TooFew {
        /// The rows there are.
        has: usize,
        /// The rows that were asked for.
        needs: usize,
        /// The devices.
        devices: usize,
        /// The rows each device was to have.
        per_agent: usize,
        /// " to … or less", where some size fits.
        fits: Fits,
    },
    /// A setting makes no sense, or not together with another.
    #[error("{key}: {why}")]
    Setting {
        /// The key, as it is typed.
        key: &'static str,
        /// What is wrong and what would be right.
        why: String,
    },
}

/// Text is cut here: longer quotations say nothing more.
const LONGEST_QUOTE: usize = 300;

/// What a file holds, made safe to quote.
fn visible(text: &str) -> String {
    quoted(text, LONGEST_QUOTE)
}

/// The largest `data.per_agent` that would have worked; 0 where none does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fits(pub usize);

impl std::fmt::Display for Fits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            0 => Ok(()),
            most => write!(f, " to {most} or less"),
        }
    }
}

impl DataError {
    /// Names the file an I/O error is about; for a missing file, adds `hint`.
    pub(crate) fn io(path: &Path, hint: &str, source: std::io::Error) -> Self {
        let path = path.to_path_buf();
        match source.kind() {
            std::io::ErrorKind::NotFound => DataError::Missing { path, hint: hint.to_owned() },
            _ => DataError::Io { path, source },
        }
    }

    /// Says that `path` holds `found` where `expected` should be.
    pub(crate) fn wrong(
        path: &Path,
        expected: impl Into<String>,
        found: impl Into<String>,
        hint: &str,
    ) -> Self {
        DataError::Wrong {
            path: path.to_path_buf(),
            expected: visible(&expected.into()),
            found: visible(&found.into()),
            hint: hint.to_owned(),
        }
    }

    /// Says what is wrong with a setting.
    pub(crate) fn setting(key: &'static str, why: impl Into<String>) -> Self {
        DataError::Setting { key, why: visible(&why.into()) }
    }

    /// Says that a data set has no such class.
    pub(crate) fn unknown_class(
        key: &'static str,
        class: &str,
        name: &str,
        classes: &[String],
    ) -> Self {
        let (class, name, known) = (visible(class), visible(name), visible(&classes.join(", ")));
        DataError::UnknownClass { key, class, name, known }
    }
}

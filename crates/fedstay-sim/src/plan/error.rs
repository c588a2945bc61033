//! What can be wrong with a question to a plan.

use crate::data::DataError;
use crate::experiment::SpecError;
use std::path::PathBuf;

/// What is wrong with a question. The message says what to type.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QuestionError {
    /// With its experiment or data.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// With a file.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// With what is in a file.
    #[error("{}: {error}", path.display())]
    In {
        /// The file.
        path: PathBuf,
        /// What is wrong there.
        error: Box<QuestionError>,
    },
    /// A grid over something else.
    #[error(
        "`{key}`: the [grid] of a plan has `label`, the ways, and `seed`; others are for `fedstay sweep`"
    )]
    Grid {
        /// The key.
        key: String,
    },
    /// A way that is no text.
    #[error("grid.label must be a list of ways, such as [\"fedavg\", \"fedavg+preview\"]")]
    Label,
    /// Seeds that are none.
    #[error("{asked} is not a number of seeds: ask for 1 to {most}")]
    Seeds {
        /// What was asked for.
        asked: String,
        /// The most.
        most: u64,
    },
    /// Nobody says who holds a row.
    #[error(
        "a plan asks what each owner of rows gains, and nobody says who owns which row: name the column \
         with --owner COLUMN (data.owner in a file)"
    )]
    NoOwners,
    /// No row is held back.
    #[error(
        "a plan judges models on rows that nobody trained on, and no owner has any: let a share of the \
         rows be held back, for example with --set data.test_share=0.3"
    )]
    NothingHeldBack,
}

impl From<DataError> for QuestionError {
    fn from(error: DataError) -> Self {
        Self::Spec(error.into())
    }
}

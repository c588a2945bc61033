//! What can be wrong with a sweep's file, besides its experiments.

use super::SpecError;
use std::path::PathBuf;

/// More runs than anybody would wait for are a typing error.
pub(crate) const MOST_RUNS: usize = 1_000_000;

/// What is wrong with a sweep's file. The message says what to type.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// One experiment where a sweep is asked for.
    #[error("there is no [grid]: this is one experiment, run it with `fedstay run`")]
    NoGrid,
    /// An axis without values.
    #[error("[grid]: `{key}` has no values")]
    NoValues {
        /// The axis.
        key: String,
    },
    /// A range that is empty, or of more runs than anybody would wait for.
    #[error(
        "[grid]: `{key} = \"{range}\"` is empty or too long: a range has 1 to {MOST_RUNS} values"
    )]
    Range {
        /// The axis.
        key: String,
        /// The range as it was typed.
        range: String,
    },
    /// More cells than anybody would wait for.
    #[error("the grid has more than {MOST_RUNS} cells; is there an axis too many?")]
    TooManyCells,
    /// Filters that leave nothing.
    #[error("every cell of the grid is filtered out; loosen [[skip]] or [[only]]")]
    NothingLeft,
    /// Something else where a list of tables belongs.
    #[error("`{key}` must be a list of tables, [[{key}]]")]
    NotAList {
        /// Its key.
        key: &'static str,
    },
    /// A condition that does not say when, or not what.
    #[error("[[when]] has two keys: match = {{ local.steps = 5 }} and set = {{ step_size = 0.1 }}")]
    When,
    /// A label that is not a text, or that is set for some cells instead of being an axis.
    #[error(
        "`label` is an axis of the [grid], of texts such as \"fedavg+guard\", and is not set otherwise"
    )]
    Label,
    /// A filter by a key that no cell has.
    #[error("a filter asks for `{key}`, which is neither in the [grid] nor in the base")]
    Filter {
        /// The key.
        key: String,
    },
    /// A base that is not the name of a file.
    #[error("`base` must be the name of an experiment's file")]
    BaseName,
    /// Files that stand on each other in a circle.
    #[error("`base` leads to `base` without an end")]
    BaseLoop,
    /// A base that cannot be read.
    #[error("base {}: {source}", path.display())]
    BaseUnreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A cell whose experiment cannot be.
    #[error("{error} (in the cell {cell})")]
    Cell {
        /// Its place in the grid: `epsilon = 0.2, seed = 0`.
        cell: String,
        /// What is wrong with it.
        #[source]
        error: Box<SpecError>,
    },
}

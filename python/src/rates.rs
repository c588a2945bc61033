//! `Rates`: how well a model serves two groups among an agent's rows.

use pyo3::prelude::*;

/// How well a model serves two groups among an agent's rows, in counts.
///
/// Parameters
/// ----------
/// right : pair of int
///     For each group, how many of the rows that count the model is right about. For equal
///     opportunity, those of the positive class count.
/// of : pair of int
///     For each group, how many rows count.
/// correct, rows : int
///     How many of all rows it is right about, and how many rows there are.
///
/// A server refuses the report of an agent whose counts cannot be.
///
/// >>> import fedstay
/// >>> fedstay.Rates(right=(3, 1), of=(4, 4), correct=5, rows=9).difference
/// 0.5
#[pyclass(frozen, eq, from_py_object, module = "fedstay")]
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Rates(pub(crate) fedstay::Rates);

#[pymethods]
impl Rates {
    #[new]
    #[pyo3(signature = (*, right, of, correct, rows))]
    fn new(right: [u64; 2], of: [u64; 2], correct: u64, rows: u64) -> Self {
        Self(fedstay::Rates { right, of, correct, rows })
    }

    /// For each group, how many of the rows that count the model is right about.
    #[getter]
    fn right(&self) -> (u64, u64) {
        self.0.right.into()
    }

    /// For each group, how many rows count.
    #[getter]
    fn of(&self) -> (u64, u64) {
        self.0.of.into()
    }

    /// How many of all rows it is right about.
    #[getter]
    fn correct(&self) -> u64 {
        self.0.correct
    }

    /// How many rows there are.
    #[getter]
    fn rows(&self) -> u64 {
        self.0.rows
    }

    /// By how much the two groups' rates differ; None if a group has no rows that count.
    #[getter]
    fn difference(&self) -> Option<f64> {
        self.0.difference()
    }

    fn __repr__(&self) -> String {
        let fedstay::Rates { right, of, correct, rows } = self.0;
        format!(
            "Rates(right=({}, {}), of=({}, {}), correct={correct}, rows={rows})",
            right[0], right[1], of[0], of[1]
        )
    }
}

//! What a run left, for Python: its records as JSON, and the delivered weights.

use crate::error::error;
use fedstay::record::{AsJson, Header, RoundLine, Summary};
use fedstay_draw::picture::{self, LossOf, PNG_SCALE};
use fedstay_draw::plot::png;
use fedstay_sim::run::{Recorded, read_rounds};
use numpy::{PyArray1, ToPyArray};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;

/// A finished run: header, rounds and summary as JSON, and the delivered weights.
#[pyclass(frozen, module = "fedstay")]
pub(crate) struct Outcome {
    header: String,
    rounds: Vec<String>,
    summary: String,
    weights: Vec<f64>,
}

impl Outcome {
    pub(crate) fn new(
        header: &Header,
        rounds: &[RoundLine],
        summary: &Summary,
        weights: &[f64],
    ) -> PyResult<Self> {
        let rounds: Result<Vec<String>, _> = rounds.iter().map(AsJson::to_json).collect();
        Ok(Self {
            header: header.to_json().map_err(error)?,
            rounds: rounds.map_err(error)?,
            summary: summary.to_json().map_err(error)?,
            weights: weights.to_vec(),
        })
    }
}

#[pymethods]
impl Outcome {
    /// The first line of rounds.jsonl.
    #[getter]
    fn header(&self) -> &str {
        &self.header
    }

    /// The other lines of rounds.jsonl.
    #[getter]
    fn rounds(&self) -> Vec<String> {
        self.rounds.clone()
    }

    /// The content of summary.json.
    #[getter]
    fn summary(&self) -> &str {
        &self.summary
    }

    /// The delivered weights.
    #[getter]
    fn weights<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.weights.to_pyarray(py)
    }
}

/// The header and rounds of a folder, as JSON, whether the run is over, running, or cut off.
#[pyfunction]
pub(crate) fn read_folder(path: PathBuf) -> PyResult<(String, Vec<String>)> {
    let recorded = read_rounds(&path.join("rounds.jsonl")).map_err(error)?;
    let rounds: Result<Vec<String>, _> = recorded.rounds.iter().map(AsJson::to_json).collect();
    Ok((recorded.header.to_json().map_err(error)?, rounds.map_err(error)?))
}

/// Draws a run from its header and rounds, as "svg" or "png"; one that is over ends in what its
/// summary says of the delivered model.
#[pyfunction]
#[pyo3(signature = (header, rounds, form, summary=None))]
pub(crate) fn draw<'py>(
    py: Python<'py>,
    header: &str,
    rounds: Vec<String>,
    form: &str,
    summary: Option<&str>,
) -> PyResult<Bound<'py, PyBytes>> {
    // The rounds are drawn even where the summary is of another version.
    let summary: Option<Summary> =
        summary.and_then(|text| Summary::from_json(text.as_bytes()).ok());
    let header = Header::from_json(header.as_bytes()).map_err(error)?;
    let on = LossOf::of(&header);
    let lines: Result<Vec<RoundLine>, _> =
        rounds.iter().map(|line| RoundLine::from_json(line.as_bytes())).collect();
    let recorded = Recorded { header, rounds: lines.map_err(error)?, unreadable: Vec::new() };
    let bytes = py.detach(|| {
        let figure = picture::run::figure(&recorded, summary.as_ref(), on);
        let svg = figure.to_svg();
        match form {
            "svg" => Ok(svg.into_bytes()),
            "png" => png(&svg, PNG_SCALE).map_err(|why| why.to_string()),
            _ => Err(format!("a picture is \"svg\" or \"png\", not \"{form}\"")),
        }
    });
    Ok(PyBytes::new(py, &bytes.map_err(error)?))
}

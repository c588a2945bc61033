//! `Round`: what a rule that is written in Python sees of a round.

use crate::report::Report;
use fedstay::Vector;
use numpy::{PyArray1, PyArray2, PyArrayMethods, ToPyArray};
use pyo3::prelude::*;

/// What a rule of your own sees of a round. Arrays are copies: yours to keep and to change.
#[pyclass(frozen, get_all, module = "fedstay")]
pub(crate) struct Round {
    /// The round, from 1.
    number: u32,
    /// The server's step size η.
    step_size: f64,
    /// The step size the run began with.
    initial_step_size: f64,
    /// The length of the last step; zero before the first.
    last_step: f64,
    /// The weights that were sent out.
    weights: Py<PyArray1<f64>>,
    /// The reports, sorted by agent: at least one.
    reports: Vec<Py<Report>>,
    /// The agents that left in this round.
    goodbyes: Vec<u64>,
}

impl Round {
    pub(crate) fn new(py: Python<'_>, round: &fedstay::Round<'_>) -> PyResult<Self> {
        let reports = round.reports.iter().map(|report| {
            let reach = Some(report.reach.unwrap_or(round.step_size));
            Py::new(py, Report::of_core(py, &fedstay::Report { reach, ..*report }))
        });
        Ok(Self {
            number: round.number,
            step_size: round.step_size,
            initial_step_size: round.initial_step_size,
            last_step: round.last_step,
            weights: round.weights.to_pyarray(py).unbind(),
            reports: reports.collect::<PyResult<_>>()?,
            goodbyes: round.reports.goodbyes().iter().map(|agent| agent.0).collect(),
        })
    }
}

#[pymethods]
impl Round {
    /// One row per report: what the agent's own work would add to the weights, −reach · direction.
    #[getter]
    fn displacements<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let columns = self.weights.bind(py).len()?;
        let mut values = Vec::with_capacity(self.reports.len() * columns);
        for report in &self.reports {
            let report = report.get();
            let scale = -report.reach.unwrap_or(self.step_size);
            match report.hold_direction(py)?.vector()? {
                Vector::F32(row) => values.extend(row.iter().map(|v| scale * f64::from(*v))),
                Vector::F64(row) => values.extend(row.iter().map(|v| scale * v)),
                Vector::BF16(row) => values.extend(row.iter().map(|v| scale * v.widen())),
            }
        }
        PyArray1::from_vec(py, values).reshape([self.reports.len(), columns])
    }

    fn __repr__(&self) -> String {
        format!("Round({}, {} reports)", self.number, self.reports.len())
    }
}

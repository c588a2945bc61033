//! What an engine in Python hears about its own run: every finished round.

use crate::error::{Raised, error};
use fedstay::record::AsJson;
use fedstay::{Book, Error, RoundRecord, StopReason, Vector, linalg};
use pyo3::prelude::*;
use std::ops::ControlFlow;

/// A book that tells a Python engine about every round, if it has `closed(line, promised)`, and
/// collects the `warnings()` that it has at the end.
pub(crate) struct Listener<'py> {
    object: Bound<'py, PyAny>,
    raised: Raised,
    /// Why the run should end, if the engine said so.
    pub(crate) stopped: Option<StopReason>,
}

impl<'py> Listener<'py> {
    pub(crate) fn new(object: Bound<'py, PyAny>, raised: Raised) -> Self {
        Self { object, raised, stopped: None }
    }

    /// What the engine has to warn about, once the run is over.
    pub(crate) fn warnings(&self) -> PyResult<Vec<String>> {
        match self.object.getattr_opt("warnings")? {
            Some(warnings) => warnings.call0()?.extract(),
            None => Ok(Vec::new()),
        }
    }

    fn tell(&self, record: &RoundRecord<'_>) -> PyResult<Option<StopReason>> {
        let Some(closed) = self.object.getattr_opt("closed")? else { return Ok(None) };
        let line = record.line.to_json().map_err(error)?;
        // By how much the step changes every agent's loss, to first order, as it reported it.
        let step = Vector::F64(record.step);
        let promised: Vec<(u64, f64)> = record
            .reports
            .iter()
            .map(|report| (report.agent.0, linalg::dot(report.slope(), step)))
            .collect();
        let told = closed.call1((line, promised))?;
        // The name of a reason, or anything that is true.
        let reason = match told.extract::<&str>() {
            Ok(name) if name == StopReason::TooFew.name() => StopReason::TooFew,
            _ => StopReason::EarlyStop,
        };
        Ok(told.is_truthy()?.then_some(reason))
    }
}

impl Book for Listener<'_> {
    fn round(&mut self, record: &RoundRecord<'_>) -> Result<ControlFlow<()>, Error> {
        let asked = self.tell(record).map_err(|why| {
            let text = why.to_string();
            self.raised.keep(why);
            Error::Engine { round: record.line.round, why: text }
        })?;
        // A run that ends by itself has its own reason.
        if asked.is_some() && record.line.stop.is_none() {
            self.stopped = asked;
            return Ok(ControlFlow::Break(()));
        }
        Ok(ControlFlow::Continue(()))
    }
}

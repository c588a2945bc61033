//! The one exception of the package.

use fedstay::AgentId;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

pyo3::create_exception!(
    fedstay,
    Error,
    PyException,
    "Something fedstay was given that it cannot use.\n\n\
     The message names the agent, what came and what to do; the attribute `agent` has the agent's\n\
     number, or None where no agent is to blame."
);

/// An error that no agent is to blame for.
pub(crate) fn error(message: impl ToString) -> PyErr {
    blame(message, None)
}

/// An error with the agent it names.
pub(crate) fn blame(message: impl ToString, agent: Option<AgentId>) -> PyErr {
    let error = Error::new_err(message.to_string());
    Python::attach(|py| {
        // A plain exception takes any attribute; were it not so, the message still names the agent.
        let _ = error.value(py).setattr("agent", agent.map(|agent| agent.0));
    });
    error
}

/// The core's errors, with the agent they carry.
pub(crate) fn from_core(error: fedstay::Error) -> PyErr {
    let agent = error.agent();
    blame(error, agent)
}

/// What went wrong, and why.
pub(crate) fn with_sources(error: &dyn std::error::Error) -> String {
    let sources = std::iter::successors(error.source(), |cause| cause.source());
    sources.fold(error.to_string(), |told, cause| format!("{told}: {cause}"))
}

//! The exceptions of the package.

use fedstay::AgentId;
use fedstay::record::Header;
use fedstay_sim::lock;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use std::sync::{Arc, Mutex};

pyo3::create_exception!(
    fedstay,
    Error,
    PyException,
    "Something fedstay was given that it cannot use.\n\n\
     The message names the agent, what came and what to do; the attribute `agent` has the agent's\n\
     number, or None where no agent is to blame."
);

pyo3::create_exception!(
    fedstay,
    RuleError,
    Error,
    "What a rule of your own is, or returned, cannot be used. The message names the rule."
);

/// Where an exception that was raised in Python waits while the core passes its error on.
#[derive(Clone, Default)]
pub(crate) struct Raised(Arc<Mutex<Option<PyErr>>>);

impl Raised {
    pub(crate) fn keep(&self, error: PyErr) {
        *lock(&self.0) = Some(error);
    }

    pub(crate) fn take(&self) -> Option<PyErr> {
        lock(&self.0).take()
    }

    /// The exception behind an error of the core, or the error itself.
    pub(crate) fn behind(&self, error: fedstay::Error) -> PyErr {
        self.take().unwrap_or_else(|| from_core(error))
    }

    /// The same for a run, whose agents may have names.
    pub(crate) fn behind_run(&self, error: fedstay::Error, header: &Header) -> PyErr {
        let agent = error.agent();
        let name = agent.and_then(|agent| header.name(agent));
        self.take().unwrap_or_else(|| blame(error.by_name(name), agent))
    }
}

/// An error that a rule of the caller's own is to blame for.
pub(crate) fn rule_error(message: impl ToString) -> PyErr {
    with_agent(RuleError::new_err(message.to_string()), None)
}

/// An error that no agent is to blame for.
pub(crate) fn error(message: impl ToString) -> PyErr {
    blame(message, None)
}

/// An error with the agent it names.
pub(crate) fn blame(message: impl ToString, agent: Option<AgentId>) -> PyErr {
    with_agent(Error::new_err(message.to_string()), agent)
}

fn with_agent(error: PyErr, agent: Option<AgentId>) -> PyErr {
    Python::attach(|py| {
        // A plain exception takes any attribute; even if it did not, the message names the agent.
        let _ = error.value(py).setattr("agent", agent.map(|agent| agent.0));
    });
    error
}

/// An error of the core, with the agent it carries.
pub(crate) fn from_core(error: fedstay::Error) -> PyErr {
    let agent = error.agent();
    blame(error, agent)
}

/// An error with what went wrong, and why.
pub(crate) fn with_sources(error: &dyn std::error::Error) -> String {
    let sources = std::iter::successors(error.source(), |cause| cause.source());
    sources.fold(error.to_string(), |told, cause| format!("{told}: {cause}"))
}

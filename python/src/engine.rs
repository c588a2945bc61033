//! An engine that is written in Python: the agents of `fedstay.simulate`, or those behind Flower.

use crate::error::Error as PyError;
use crate::lists::no_loads;
use crate::report::{HeldReport, Report};
use fedstay::record::{HeaderAgent, RoundLine};
use fedstay::{
    AgentId, Assessment, Call, Engine, Error, Evaluation, Gathered, Losses, Reports, StopReason,
};
use numpy::ToPyArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::rc::Rc;

/// Number, loss, accuracy, and the round of the loss where it is an old one.
type Told = (u64, f64, Option<f64>, Option<u32>);

/// What `gather` returns in Python: reports, goodbyes, who came back, faults, assessment, and why to
/// stop.
type Answer<'py> = (
    Vec<Bound<'py, Report>>,
    Vec<u64>,
    Vec<u64>,
    Vec<(u64, String)>,
    Option<Vec<Told>>,
    Option<String>,
);

/// Asks a Python object for everything; keeps the exception when it raises one.
pub(crate) struct PyEngine<'py> {
    object: Bound<'py, PyAny>,
    dimension: usize,
    held: Vec<HeldReport<'py>>,
    roll: Roll,
    unasked: Vec<(AgentId, u32)>,
    failure: RefCell<Option<PyErr>>,
    stopped: Option<RoundLine>,
}

/// Everybody who takes part so far, shared with whoever writes the header.
pub(crate) type Roll = Rc<RefCell<Vec<HeaderAgent>>>;

impl<'py> PyEngine<'py> {
    pub(crate) fn new(object: Bound<'py, PyAny>, dimension: usize) -> PyResult<Self> {
        let engine = Self {
            object,
            dimension,
            held: Vec::new(),
            roll: Roll::default(),
            unasked: Vec::new(),
            failure: RefCell::new(None),
            stopped: None,
        };
        engine.call_the_roll()?;
        Ok(engine)
    }

    pub(crate) fn roll(&self) -> Roll {
        Rc::clone(&self.roll)
    }

    /// The round in which the engine itself ended the run, if it did.
    pub(crate) fn stopped(&mut self) -> Option<RoundLine> {
        self.stopped.take()
    }

    /// The exception behind an error of the loop, or the error itself.
    pub(crate) fn exception(&self, error: Error) -> PyErr {
        self.failure.borrow_mut().take().unwrap_or_else(|| crate::error::from_core(error))
    }

    fn call_the_roll(&self) -> PyResult<()> {
        let agents: Vec<(u64, f64, Option<String>)> =
            self.object.call_method0("agents")?.extract()?;
        let agents = agents.into_iter();
        *self.roll.borrow_mut() = agents
            .map(|(id, epsilon, name)| HeaderAgent { id: AgentId(id), epsilon, name })
            .collect();
        Ok(())
    }

    fn failed(&self, round: u32, error: PyErr) -> Error {
        let why = error.to_string();
        *self.failure.borrow_mut() = Some(error);
        Error::Engine { round, why }
    }

    fn ask(&mut self, call: &Call<'_>) -> PyResult<Answer<'py>> {
        let py = self.object.py();
        // Ctrl-C between two rounds.
        py.check_signals()?;
        let arguments = PyDict::new(py);
        arguments.set_item("round", call.round)?;
        arguments.set_item("weights", call.weights.to_pyarray(py))?;
        arguments.set_item("step_size", call.step_size)?;
        arguments.set_item("exact", call.losses == Losses::Exact)?;
        if call.loads.is_some() {
            // The callers refuse such rules before the first round; this is for those to come.
            return Err(crate::error::error(no_loads("the rule", "agents in Python")));
        }
        let answer = self.object.call_method("gather", (), Some(&arguments))?.extract()?;
        self.call_the_roll()?;
        Ok(answer)
    }
}

fn assessment(told: &[Told]) -> Assessment {
    let agents = told.iter().map(|(agent, loss, accuracy, _)| Evaluation {
        agent: AgentId(*agent),
        loss: *loss,
        accuracy: *accuracy,
    });
    Assessment { agents: agents.collect(), population: None }
}

/// The line of a round in which too few answered to take a step: who left then is on record. Read
/// from JSON, where a field that does not apply is left out.
fn last_line(
    call: &Call<'_>,
    left: &[AgentId],
    faults: &[(AgentId, String)],
) -> Result<RoundLine, serde_json::Error> {
    let weights = (call.weights.len() <= fedstay::record::SMALL).then_some(call.weights);
    serde_json::from_value(json!({
        "round": call.round,
        "agents": [],
        "loss": [],
        "d": [],
        "case": null,
        "left": left,
        "faults": faults,
        "step_size": call.step_size,
        "step_norm": 0.0,
        "stop": StopReason::TooFew,
        "weights": weights,
    }))
}

impl Engine for PyEngine<'_> {
    fn agents(&self) -> Vec<(AgentId, f64)> {
        self.roll.borrow().iter().map(|agent| (agent.id, agent.epsilon)).collect()
    }

    fn gather(&mut self, call: &Call<'_>) -> Result<Gathered<'_>, Error> {
        self.held.clear();
        let answer = self.ask(call);
        let (reports, goodbyes, returned, faults, told, stop) =
            answer.map_err(|error| self.failed(call.round, error))?;
        let goodbyes: Vec<AgentId> = goodbyes.into_iter().map(AgentId).collect();
        let faults: Vec<(AgentId, String)> =
            faults.into_iter().map(|(agent, why)| (AgentId(agent), why)).collect();
        if let Some(why) = stop {
            let line = last_line(call, &goodbyes, &faults);
            let unwritten = |error: serde_json::Error| Error::Observer(error.to_string());
            self.stopped = Some(line.map_err(unwritten)?);
            return Err(Error::Engine { round: call.round, why });
        }
        let held: PyResult<Vec<_>> = reports.into_iter().map(HeldReport::new).collect();
        self.held = held.map_err(|error| self.failed(call.round, error))?;
        let reports: PyResult<Vec<_>> = self.held.iter().map(|held| held.read(None)).collect();
        let reports = reports.map_err(|error| self.failed(call.round, error))?;
        Ok(Gathered {
            reports: Reports::with_goodbyes(self.dimension, reports, goodbyes)?
                .with_returned(returned.into_iter().map(AgentId).collect())?,
            faults,
            assessment: told.as_deref().map(assessment),
        })
    }

    fn assess(&mut self, weights: &[f64]) -> Result<Assessment, Error> {
        let weights = weights.to_pyarray(self.object.py());
        let told: PyResult<Vec<Told>> =
            self.object.call_method1("assess", (weights,)).and_then(|told| told.extract());
        let told = told.map_err(|error| self.failed(0, error))?;
        self.unasked = told
            .iter()
            .filter_map(|(agent, _, _, round)| round.map(|round| (AgentId(*agent), round)))
            .collect();
        self.call_the_roll().map_err(|error| self.failed(0, error))?;
        let ids: Vec<AgentId> = told.iter().map(|told| AgentId(told.0)).collect();
        let roll: Vec<AgentId> = self.roll.borrow().iter().map(|agent| agent.id).collect();
        if ids != roll {
            let why = format!("`assess` told of agents {ids:?} where there are {roll:?}");
            return Err(self.failed(0, PyError::new_err(why)));
        }
        Ok(assessment(&told))
    }

    fn behaviours(&self) -> Vec<String> {
        let names = self.object.call_method0("behaviours").and_then(|names| names.extract());
        names.unwrap_or_else(|error: PyErr| {
            *self.failure.borrow_mut() = Some(error);
            Vec::new()
        })
    }

    fn unasked(&self) -> Vec<(AgentId, u32)> {
        self.unasked.clone()
    }

    /// An engine that can be told of dropped reports has agents that are strangers.
    fn drops_bad_reports(&self) -> bool {
        self.object.hasattr("dropped").unwrap_or(false)
    }

    fn dropped(&mut self, agent: AgentId, why: &str) {
        if let Err(error) = self.object.call_method1("dropped", (agent.0, why)) {
            *self.failure.borrow_mut() = Some(error);
        }
    }

    fn memory(&self) -> Value {
        let text: PyResult<String> =
            self.object.call_method0("memory").and_then(|text| text.extract());
        match text.map(|text| serde_json::from_str(&text)) {
            Ok(Ok(memory)) => memory,
            Ok(Err(error)) => {
                *self.failure.borrow_mut() = Some(crate::error::error(error));
                Value::Null
            }
            Err(error) => {
                *self.failure.borrow_mut() = Some(error);
                Value::Null
            }
        }
    }

    fn recall(&mut self, memory: &Value) -> Result<(), Error> {
        let recalled = self.object.call_method1("recall", (memory.to_string(),));
        recalled.map_err(|error| self.failed(0, error))?;
        self.call_the_roll().map_err(|error| self.failed(0, error))
    }
}

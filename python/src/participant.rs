//! The agent's side of a round, for agents that are written in Python.

use crate::error::{error, from_core};
use crate::lists::Behaviour;
use fedstay::{AgentId, Evidence};
use pyo3::prelude::*;

/// What an agent in Python finds out; looking ahead is left to Python.
pub(crate) struct Sight<'py> {
    loss: f64,
    step_size: f64,
    /// Gives the loss after a number of private steps of some size.
    descended: Option<Bound<'py, PyAny>>,
    failure: Option<PyErr>,
}

impl<'py> Sight<'py> {
    pub(crate) fn new(loss: f64, step_size: f64, descended: Option<Bound<'py, PyAny>>) -> Self {
        Self { loss, step_size, descended, failure: None }
    }

    /// Raises the exception that was raised while the agent looked.
    pub(crate) fn done(self) -> PyResult<()> {
        self.failure.map_or(Ok(()), Err)
    }

    fn after(&mut self, steps: u32, rate: f64, otherwise: f64) -> f64 {
        let Some(descended) = &self.descended else { return otherwise };
        let loss = descended.call1((steps, rate)).and_then(|loss| loss.extract::<f64>());
        loss.unwrap_or_else(|error| {
            self.failure = Some(error);
            otherwise
        })
    }
}

impl Evidence for Sight<'_> {
    fn loss(&mut self) -> f64 {
        self.loss
    }

    fn ahead_at_most(&mut self, steps: u32, rate: f64, bound: f64) -> bool {
        self.after(steps, rate, self.loss) <= bound
    }

    fn alone(&mut self, rounds: u32) -> f64 {
        self.after(rounds, self.step_size, f64::INFINITY)
    }
}

/// An agent as far as taking part goes: its target loss, how it decides, whether it has left.
///
/// >>> import fedstay
/// >>> agent = fedstay.Participant(0, 0.1, "threshold")
/// >>> agent.answer(loss=0.5, round=1), agent.answer(loss=0.1, round=2), agent.is_in
/// ('reports', 'leaves', False)
#[pyclass(module = "fedstay")]
pub(crate) struct Participant(fedstay::Participant);

#[pymethods]
impl Participant {
    #[new]
    #[pyo3(signature = (agent, epsilon, behaviour=None))]
    fn new(agent: u64, epsilon: f64, behaviour: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let behaviour = Behaviour::read(behaviour)?.inner().clone();
        if behaviour.needs_simulator() {
            return Err(error(format!(
                "`{}` is for experiments (`fedstay.run`): agents in Python know only their own loss, and \
                 send what they computed",
                behaviour.name()
            )));
        }
        Ok(Self(fedstay::Participant::new(AgentId(agent), epsilon, behaviour)))
    }

    /// Decides about the weights of a round, given its loss there: "reports", "returns", "leaves"
    /// or "stays-away".
    ///
    /// `descended(steps, rate)` gives its loss after this many private gradient steps, for
    /// behaviours that look ahead; `step_size` is the server's.
    #[pyo3(signature = (*, loss, round, step_size=0.0, descended=None))]
    fn answer(
        &mut self,
        loss: f64,
        round: u32,
        step_size: f64,
        descended: Option<Bound<'_, PyAny>>,
    ) -> PyResult<&'static str> {
        let mut sight = Sight::new(loss, step_size, descended);
        let answer = self.0.answer(round, &mut sight, false);
        sight.done()?;
        Ok(answer.name())
    }

    /// The loss it reports in the round it has just decided to stay in, which need not be the true
    /// one.
    fn told(&self, loss: f64) -> f64 {
        self.0.manner().told(loss)
    }

    /// Whether it works for the report of the round it has just decided to stay in; else it repeats
    /// its last direction.
    #[getter]
    fn works(&self) -> bool {
        self.0.manner().works
    }

    /// Whether it is taking part.
    #[getter]
    fn is_in(&self) -> bool {
        self.0.is_in()
    }

    /// Whether it takes note of a broadcast: it is in, or may come back.
    #[getter]
    fn looks(&self) -> bool {
        self.0.looks()
    }

    /// Whether, having left, it may come back.
    #[getter]
    fn comes_back(&self) -> bool {
        self.0.behaviour().comes_back()
    }

    /// Whether it may repeat its last direction.
    #[getter]
    fn repeats(&self) -> bool {
        self.0.behaviour().repeats()
    }

    /// Whether it only asks whether its loss is at most its target, and reports the truth.
    #[getter]
    fn is_plain(&self) -> bool {
        self.0.behaviour().is_plain()
    }

    /// Its target loss.
    #[getter]
    fn epsilon(&self) -> f64 {
        self.0.epsilon
    }

    /// The name of its behaviour.
    #[getter]
    fn behaviour(&self) -> &'static str {
        self.0.behaviour().name()
    }

    /// What must survive a restart, as JSON.
    fn save(&self) -> PyResult<String> {
        serde_json::to_string(&self.0.save()).map_err(error)
    }

    /// Takes up what `save` gave.
    fn restore(&mut self, saved: &str) -> PyResult<()> {
        self.0.restore(serde_json::from_str(saved).map_err(error)?).map_err(from_core)
    }
}

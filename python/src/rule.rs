//! A rule that is written in Python: any object with `aggregate(round)`.
//!
//! The core steps with a copy of its rule and drops it when the step fails. So does this:
//! `aggregate` is called on a deep copy, which replaces the object once the step is done.

use crate::convert::{Numbers, described};
use crate::error::{Raised, rule_error};
use crate::round::Round as PyRound;
use fedstay::{Aggregator, Decision, Error, Facts, Reports, Round, Rule, Split, StopReason};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};
use std::fmt;
use std::sync::Arc;

/// The stop reasons that a rule may decide on and that take no step.
const STOPS: [StopReason; 2] = [StopReason::Settled, StopReason::Stalled];

/// Reads a rule: one of the list, or an object of the caller's own, whose exceptions `raised`
/// keeps.
pub(crate) fn read(value: &Bound<'_, PyAny>, raised: &Raised) -> PyResult<Rule> {
    Ok(match own(value, raised)? {
        Some(rule) => Rule::from(rule),
        None => described(value, "rule", "ada-gd")?,
    })
}

/// Reads an object of the caller's own; `None` for a rule of the list.
pub(crate) fn own(
    value: &Bound<'_, PyAny>,
    raised: &Raised,
) -> PyResult<Option<Box<dyn Aggregator>>> {
    if !value.hasattr("aggregate")? {
        return Ok(None);
    }
    if let Ok(class) = value.cast::<PyType>() {
        let name = class.name()?;
        return Err(rule_error(format!("`{name}` is a class; give an object of it: {name}()")));
    }
    let name = name(value)?;
    if value.hasattr("save")? != value.hasattr("restore")? {
        return Err(rule_error(format!(
            "the rule {name} has only one of `save` and `restore`; give it both, or neither"
        )));
    }
    let object = Arc::new(copied(value, &name)?.unbind());
    Ok(Some(Box::new(PyRule { object, name, raised: raised.clone() })))
}

/// The name of the rule: its `name`, or else that of its class.
fn name(rule: &Bound<'_, PyAny>) -> PyResult<String> {
    let class = rule.get_type().name()?.to_string();
    let Some(given) = rule.getattr_opt("name")? else { return Ok(class) };
    let refuse = |why: &str| Err(rule_error(format!("the rule {class}: its `name` {why}")));
    let Ok(name) = given.cast::<PyString>() else { return refuse("must be a text") };
    let name: String = name.extract()?;
    if name.trim().is_empty() || name.chars().any(char::is_control) {
        return refuse("must be one line that is not empty");
    }
    match Rule::named(&name) {
        Some(_) => refuse(&format!("is \"{name}\", which is another rule; choose another one")),
        None => Ok(name),
    }
}

fn copied<'py>(rule: &Bound<'py, PyAny>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    let py = rule.py();
    py.import("copy")?.call_method1("deepcopy", (rule,)).map_err(|why| {
        let error = rule_error(format!(
            "the rule {name} cannot be copied ({why}), and a server works on a copy, so that a step \
             that fails changes nothing; give it a `__deepcopy__`"
        ));
        error.set_cause(py, Some(why));
        error
    })
}

/// Why a run under a rule cannot be continued.
fn not_saved(name: &str) -> PyErr {
    rule_error(format!(
        "the rule {name} has no `save` and `restore`, so what it remembers is not kept and its runs \
         cannot be resumed; give it both, or start again"
    ))
}

/// Refuses a server's state that nobody could continue from.
pub(crate) fn refuse_unsaved(rule: &Rule) -> PyResult<()> {
    match rule {
        Rule::Custom(custom) if rule.save().as_deref() == Some(NOTHING_SAVED) => {
            Err(not_saved(custom.name()))
        }
        _ => Ok(()),
    }
}

/// The JSON of an absent text: the run of a rule without `save` is kept even so.
const NOTHING_SAVED: &str = "null";

/// The step of a rule, as `fedstay.Step` has it.
#[derive(FromPyObject)]
struct Step<'py> {
    step: Option<Bound<'py, PyAny>>,
    stop: Option<String>,
    about_to_leave: Option<Vec<u64>>,
}

#[derive(Clone)]
struct PyRule {
    object: Arc<Py<PyAny>>,
    name: String,
    raised: Raised,
}

impl fmt::Debug for PyRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PyRule").field(&self.name).finish()
    }
}

impl PyRule {
    /// Does something with a copy of the object, which replaces the object if that succeeds.
    fn with_copy<T>(
        &mut self,
        act: impl FnOnce(&Self, &Bound<'_, PyAny>) -> PyResult<T>,
    ) -> Result<T, Error> {
        let done = Python::attach(|py| {
            let copy = copied(self.object.bind(py), &self.name)?;
            let done = act(self, &copy)?;
            self.object = Arc::new(copy.unbind());
            Ok(done)
        });
        done.map_err(|error: PyErr| self.failed(error))
    }

    fn failed(&self, error: PyErr) -> Error {
        let why = error.to_string();
        self.raised.keep(error);
        Error::Rule { rule: self.name.clone(), why }
    }

    fn bad(&self, why: impl fmt::Display) -> PyErr {
        rule_error(format!("the rule {}: {why}", self.name))
    }

    fn decide(
        &self,
        told: Bound<'_, PyAny>,
        round: &Round<'_>,
        step: &mut [f64],
    ) -> PyResult<Decision> {
        let told = if told.hasattr("about_to_leave")? {
            told.extract().map_err(|why| self.bad(why))?
        } else {
            Step { step: Some(told), stop: None, about_to_leave: None }
        };
        let stop = told.stop.map(|name| self.stop(&name)).transpose()?;
        match (told.step.filter(|step| !step.is_none()), stop) {
            (Some(told), None) => self.fill(step, &told)?,
            (None, Some(_)) => {}
            (None, None) => {
                return Err(self.bad("`aggregate` returned None; return the step, as many numbers as there are weights"));
            }
            (Some(_), Some(_)) => {
                return Err(
                    self.bad("a run that stops keeps its weights; with `stop`, `step` is None")
                );
            }
        }
        let split = match told.about_to_leave {
            Some(agents) => self.split(round.reports, &agents)?,
            None => round.forecast(step, 0.0),
        };
        Ok(Decision { stop, ..Decision::new(split, round.step_size) })
    }

    fn stop(&self, name: &str) -> PyResult<StopReason> {
        STOPS.into_iter().find(|stop| stop.name() == name).ok_or_else(|| {
            let [settled, stalled] = STOPS.map(StopReason::name);
            self.bad(format!("`stop` is \"{name}\", but must be \"{settled}\" or \"{stalled}\""))
        })
    }

    /// Reads the step, which must be finite and as long as the weights.
    fn fill(&self, step: &mut [f64], told: &Bound<'_, PyAny>) -> PyResult<()> {
        let read = Numbers::new(told, "its step", None).and_then(|n| n.widened(told.py()));
        let told = read.map_err(|why| self.bad(why.value(told.py())))?;
        let (got, expected) = (told.len(), step.len());
        if got != expected {
            return Err(self
                .bad(format!("its step has {got} components where the weights have {expected}")));
        }
        if let Some(index) = told.iter().position(|value| !value.is_finite()) {
            return Err(
                self.bad(format!("its step[{index}] is {}, not a finite number", told[index]))
            );
        }
        step.copy_from_slice(&told);
        Ok(())
    }

    fn split(&self, reports: &Reports<'_>, agents: &[u64]) -> PyResult<Split> {
        let there = |agent: u64| reports.iter().any(|report| report.agent.0 == agent);
        match agents.iter().find(|agent| !there(**agent)) {
            Some(agent) => {
                Err(self.bad(format!("agent {agent} is `about_to_leave`, and did not report")))
            }
            None => {
                Ok(Split::by(reports, |index| agents.contains(&reports.as_slice()[index].agent.0)))
            }
        }
    }
}

impl Aggregator for PyRule {
    fn aggregate(&mut self, round: &Round<'_>, step: &mut [f64]) -> Result<Decision, Error> {
        self.with_copy(|rule, object| {
            let shown = PyRound::new(object.py(), round)?;
            let told = object.call_method1("aggregate", (shown,))?;
            rule.decide(told, round, step)
        })
    }

    fn facts(&self) -> Facts {
        Facts { name: Some(self.name.clone()), ..Facts::default() }
    }

    /// A rule without `save` still has its runs kept; [`restore`](Self::restore) refuses them.
    fn save(&self) -> Option<String> {
        let saved = Python::attach(|py| {
            let object = self.object.bind(py);
            if !object.hasattr("save")? {
                return Ok(None);
            }
            let text = object.call_method0("save")?;
            let text: String = text.extract().map_err(|_| self.bad("`save` must return a text"))?;
            Ok(Some(text))
        });
        // The server then says that it cannot be saved, and the exception comes out instead.
        let saved = saved.map_err(|error: PyErr| self.raised.keep(error)).ok()?;
        serde_json::to_string(&saved).ok()
    }

    fn restore(&mut self, saved: &str) -> Result<(), Error> {
        self.with_copy(|rule, object| match serde_json::from_str(saved) {
            Ok(Some(text)) if object.hasattr("restore")? => {
                let text: String = text;
                object.call_method1("restore", (text,)).map(drop)
            }
            Ok(_) => Err(not_saved(&rule.name)),
            Err(why) => Err(rule.bad(why)),
        })
    }
}

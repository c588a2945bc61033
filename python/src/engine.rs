//! An engine that is written in Python: the agents of `fedstay.simulate`, or those behind Flower.

use crate::error::{Error as PyError, Raised};
use crate::report::{HeldReport, Report};
use crate::workers::machine;
use fedstay::record::{Constant, HeaderAgent, is_free};
use fedstay::{
    Abilities, AgentAssessment, AgentId, Assessment, Call, Engine, Error, Gathered, Losses,
    Measure, Memory, Reports, Score, StopReason,
};
use fedstay_sim::measure::describe;
use numpy::ToPyArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// One agent that takes part, as `fedstay.engine.Member` has it.
#[derive(FromPyObject, Clone, PartialEq)]
struct Member {
    id: u64,
    epsilon: f64,
    name: Option<String>,
    behaviour: Option<String>,
}

/// How good weights are for one agent, as `fedstay.engine.Assessed` has it.
#[derive(FromPyObject)]
struct Assessed {
    agent: u64,
    loss: f64,
    accuracy: Option<f64>,
    as_of: Option<u32>,
    measures: BTreeMap<String, f64>,
}

impl Assessed {
    /// How good the weights are.
    fn score(&self) -> Score {
        let mut score = Score::new(self.loss).with(Measure::ACCURACY.name, self.accuracy);
        for (name, value) in &self.measures {
            score.measures.set(describe(name).name, *value);
        }
        score
    }
}

/// What is known of a measure that an agent told of, if files can hold its name.
fn named(name: &str) -> PyResult<Measure> {
    match Measure::is_name(name) && is_free(name) {
        true => Ok(describe(name)),
        false => Err(PyError::new_err(format!(
            "{name:?} cannot be the name of a measure: use small letters, digits, _ and -, and no name that a \
             summary uses for something else"
        ))),
    }
}

/// What came back in a round, as `fedstay.engine.Gathered` has it.
#[derive(FromPyObject)]
struct Answers<'py> {
    reports: Vec<Bound<'py, Report>>,
    goodbyes: Vec<u64>,
    returned: Vec<u64>,
    faults: Vec<(u64, String)>,
    assessment: Option<Vec<Assessed>>,
    too_few: bool,
    absent: usize,
}

/// Asks a Python object for everything; `raised` keeps an exception that it raises.
pub(crate) struct PyEngine<'py> {
    object: Bound<'py, PyAny>,
    dimension: usize,
    held: Vec<HeldReport<'py>>,
    roll: Vec<Member>,
    /// What its agents told of besides the loss, in the order in which they did; accuracy before that.
    measures: Vec<Measure>,
    raised: Raised,
}

impl<'py> PyEngine<'py> {
    pub(crate) fn new(
        object: Bound<'py, PyAny>,
        dimension: usize,
        raised: Raised,
    ) -> PyResult<Self> {
        let roll = object.call_method0("agents")?.extract()?;
        let measures = Measure::usual();
        Ok(Self { object, dimension, held: Vec::new(), roll, measures, raised })
    }

    /// Asks who takes part now; returns whether that has changed.
    fn call_the_roll(&mut self) -> PyResult<bool> {
        let roll: Vec<Member> = self.object.call_method0("agents")?.extract()?;
        let changed = roll != self.roll;
        self.roll = roll;
        Ok(changed)
    }

    /// Whether the engine has an attribute of this name that is true.
    fn says(&self, name: &str) -> bool {
        self.object.getattr(name).and_then(|said| said.is_truthy()).unwrap_or(false)
    }

    fn failed(&self, round: u32, error: PyErr) -> Error {
        let why = error.to_string();
        self.raised.keep(error);
        Error::Engine { round, why }
    }

    fn ask(&mut self, call: &Call<'_>) -> PyResult<(Answers<'py>, bool)> {
        let py = self.object.py();
        // Ctrl-C is noticed between two rounds.
        py.check_signals()?;
        let arguments = PyDict::new(py);
        arguments.set_item("round", call.round)?;
        arguments.set_item("weights", call.broadcast.shared().to_pyarray(py))?;
        arguments.set_item("step_size", call.step_size)?;
        arguments.set_item("exact", call.losses == Losses::Exact)?;
        if self.says("personal") {
            let personal = PyDict::new(py);
            let newcomers = call.broadcast.newcomers().map(|weights| weights.to_pyarray(py));
            for member in &self.roll {
                let agent = AgentId(member.id);
                match (&newcomers, call.broadcast.is_new(agent)) {
                    // The same array: an engine may tell by that who is shown it.
                    (Some(weights), true) => personal.set_item(member.id, weights)?,
                    _ => {
                        if let Some(weights) = call.broadcast.personal(agent) {
                            personal.set_item(member.id, weights.to_pyarray(py))?;
                        }
                    }
                }
            }
            arguments.set_item("personal", personal)?;
            if self.says("newcomers") {
                arguments.set_item("newcomers", newcomers)?;
            }
        }
        if self.says("corrections") {
            let corrections = PyDict::new(py);
            for member in &self.roll {
                if let Some(by) = call.broadcast.correction(AgentId(member.id)) {
                    corrections.set_item(member.id, by.to_pyarray(py))?;
                }
            }
            arguments.set_item("corrections", corrections)?;
        }
        let answers = self.object.call_method("gather", (), Some(&arguments))?.extract()?;
        Ok((answers, self.call_the_roll()?))
    }

    /// How good the best constant prediction is, if the engine can say.
    fn constant(&self) -> PyResult<Option<Constant>> {
        let Some(constant) = self.object.getattr_opt("constant")? else { return Ok(None) };
        let told: Option<(f64, Option<f64>)> = constant.call0()?.extract()?;
        let score = |(loss, accuracy)| Score::new(loss).with(Measure::ACCURACY.name, accuracy);
        Ok(told.map(|told: (f64, Option<f64>)| Constant(score(told))))
    }

    fn assessment(&mut self, told: &[Assessed]) -> PyResult<Assessment> {
        let ids: Vec<u64> = told.iter().map(|told| told.agent).collect();
        let roll: Vec<u64> = self.roll.iter().map(|member| member.id).collect();
        if ids != roll {
            let why = format!("agents {ids:?} are assessed where there are {roll:?}");
            return Err(PyError::new_err(why));
        }
        let mut agents = Vec::new();
        for (member, told) in self.roll.iter().zip(told) {
            for name in told.measures.keys() {
                if self.measures.iter().all(|known| known.name != *name) {
                    self.measures.push(named(name)?);
                }
            }
            agents.push(AgentAssessment {
                id: AgentId(member.id),
                epsilon: member.epsilon,
                behaviour: member.behaviour.clone().map(Cow::Owned),
                score: told.score(),
                as_of: told.as_of,
                held_back: None,
            });
        }
        Ok(Assessment { agents, population: None, constant: None })
    }
}

fn numbered(agents: Vec<u64>) -> Vec<AgentId> {
    agents.into_iter().map(AgentId).collect()
}

impl Engine for PyEngine<'_> {
    fn agents(&self) -> Vec<HeaderAgent> {
        let listed = |member: &Member| HeaderAgent {
            id: AgentId(member.id),
            epsilon: member.epsilon,
            name: member.name.clone(),
        };
        self.roll.iter().map(listed).collect()
    }

    fn gather(&mut self, call: &Call<'_>) -> Result<Gathered<'_>, Error> {
        self.held.clear();
        let asked = self.ask(call);
        let (answers, changed) = asked.map_err(|error| self.failed(call.round, error))?;
        let Answers { reports, goodbyes, returned, faults, assessment, too_few, absent } = answers;
        let assessment = assessment.map(|told| self.assessment(&told)).transpose();
        let assessment = assessment.map_err(|error| self.failed(call.round, error))?;
        let roster = changed.then(|| self.agents());
        let held: PyResult<Vec<_>> = reports.into_iter().map(HeldReport::new).collect();
        self.held = held.map_err(|error| self.failed(call.round, error))?;
        let reports: PyResult<Vec<_>> = self.held.iter().map(|held| held.read(None)).collect();
        let reports = reports.map_err(|error| self.failed(call.round, error))?;
        Ok(Gathered {
            reports: Reports::with_machine(self.dimension, reports, numbered(goodbyes), machine())?
                .with_returned(numbered(returned))?
                .with_absent(absent)
                .with_newcomers(self.says("newcomers")),
            faults: faults.into_iter().map(|(agent, why)| (AgentId(agent), why)).collect(),
            absent: Vec::new(),
            arrived: Vec::new(),
            assessment,
            roster,
            stop: too_few.then_some(StopReason::TooFew),
        })
    }

    fn assess(&mut self, weights: &[f64]) -> Result<Assessment, Error> {
        let weights = weights.to_pyarray(self.object.py());
        let told: PyResult<Vec<Assessed>> =
            self.object.call_method1("assess", (weights,)).and_then(|told| told.extract());
        let told = told.map_err(|error| self.failed(0, error))?;
        let constant = self.constant().map_err(|error| self.failed(0, error))?;
        self.call_the_roll().map_err(|error| self.failed(0, error))?;
        let assessment = self.assessment(&told).map_err(|error| self.failed(0, error))?;
        Ok(Assessment { constant, ..assessment })
    }

    fn measures(&self) -> Vec<Measure> {
        self.measures.clone()
    }

    fn save(&self) -> Result<Memory, Error> {
        let text: PyResult<String> =
            self.object.call_method0("save").and_then(|text| text.extract());
        Memory::from_json(&text.map_err(|error| self.failed(0, error))?)
    }

    fn restore(&mut self, memory: &Memory) -> Result<(), Error> {
        let restored = self.object.call_method1("restore", (memory.to_json(),));
        restored.map_err(|error| self.failed(0, error))?;
        self.call_the_roll().map_err(|error| self.failed(0, error))?;
        Ok(())
    }

    /// An engine that can be told of dropped reports has agents that are strangers, and one that
    /// says `personal`, `corrections` or `rates` does what `fedstay.engine.Engine` says of them.
    fn abilities(&self) -> Abilities {
        Abilities {
            strangers: self.object.hasattr("dropped").unwrap_or(false),
            personal: self.says("personal"),
            corrections: self.says("corrections"),
            rates: self.says("rates"),
            ..Abilities::default()
        }
    }

    fn dropped(&mut self, agent: AgentId, why: &str) {
        if let Err(error) = self.object.call_method1("dropped", (agent.0, why)) {
            self.raised.keep(error);
        }
    }
}

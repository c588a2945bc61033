//! What a federation is measured against, from Python.

use crate::error::error;
use fedstay::record::called;
use fedstay::{AgentId, Score};
use fedstay_sim::experiment::{DEFAULT, Experiment, default_under};
use fedstay_sim::run::Trial;
use fedstay_sim::simulator::baseline::{BaselineScores, Restraint};
use fedstay_sim::simulator::{Made, Simulator};
use pyo3::prelude::*;
use serde_json::{Map, Value, json};

/// How good constant, alone and pooled are for every agent of an experiment, as JSON.
#[pyfunction]
#[pyo3(signature = (text, set=Vec::new()))]
pub(crate) fn baselines(
    py: Python<'_>,
    text: Option<&str>,
    set: Vec<(String, String)>,
) -> PyResult<String> {
    crate::workers::own();
    py.detach(|| {
        let text = text.map_or_else(|| default_under(DEFAULT, &set), |text| Ok(text.to_owned()));
        let experiment = text.and_then(|text| Experiment::parse(&text, &set)).map_err(error)?;
        let trial = Trial::new(experiment).map_err(error)?;
        let Some(simulator) = trial.simulator() else {
            return Err(error("a problem has no rows to fit: baselines need data"));
        };
        let scored = simulator.baselines().scored().map_err(error)?;
        let told =
            scored.iter().map(|baseline| (baseline.name.to_owned(), of(simulator, baseline)));
        Ok(Value::Object(told.collect()).to_string())
    })
}

fn of(simulator: &Simulator, baseline: &BaselineScores) -> Value {
    let agents = baseline.of.iter().zip(&baseline.restraints).enumerate();
    let agents = agents.map(|(agent, (made, restraint))| {
        let name = called(AgentId(agent as u64), simulator.population().name(agent));
        told(name, made, *restraint)
    });
    Value::Array(agents.collect())
}

fn told(name: String, made: &Made, restraint: Restraint) -> Value {
    let mut told = Map::from_iter([("name".to_owned(), Value::from(name))]);
    match restraint {
        Restraint::Constant => {}
        Restraint::Ridge(strength) => drop(told.insert("ridge".to_owned(), strength.into())),
        Restraint::Steps(steps) => drop(told.insert("steps".to_owned(), steps.into())),
    }
    told.insert("training".to_owned(), score(&made.score));
    let held_back = made.held_back.as_ref().map(|held_back| {
        let measures = held_back.measures.iter().map(|(name, interval)| {
            let values =
                json!({ "value": interval.value, "low": interval.low, "high": interval.high });
            (name.to_owned(), values)
        });
        json!({ "loss": held_back.loss, "measures": Map::from_iter(measures) })
    });
    told.insert("held_back".to_owned(), held_back.unwrap_or_default());
    Value::Object(told)
}

fn score(score: &Score) -> Value {
    let measures =
        score.measures.iter().map(|(name, value)| (name.to_owned(), Value::from(*value)));
    json!({ "loss": score.loss, "measures": Map::from_iter(measures) })
}

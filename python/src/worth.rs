//! What agents are worth, for runs whose agents are in Python: the core's book, with a judge from
//! outside.

use crate::error::{Raised, error, from_core};
use fedstay::Error;
use fedstay::worth::{Judge, Method, Worth};
use numpy::ToPyArray;
use pyo3::prelude::*;
use serde_json::Value;

/// The book for these methods, and their names as config.toml has them; none if nothing is asked.
pub(crate) fn book(
    methods: &[String],
    judge: Option<Py<PyAny>>,
    raised: &Raised,
) -> PyResult<Option<(Worth, Vec<String>)>> {
    if methods.is_empty() {
        return Ok(None);
    }
    let mut asked = methods.iter().map(|name| read(name)).collect::<PyResult<Vec<_>>>()?;
    asked.sort_unstable();
    asked.dedup();
    let needs: Vec<String> = asked.iter().filter(|m| m.needs_judge()).map(|m| name(*m)).collect();
    if let (false, None) = (needs.is_empty(), &judge) {
        return Err(error(format!(
            "{} ask how good models are on rows that nobody trains on: give \
             `fedstay.Worth(methods, judge=…)` whatever tells the loss of weights there",
            needs.join(", ")
        )));
    }
    let judge =
        judge.map(|object| Box::new(Outside { object, raised: raised.clone() }) as Box<dyn Judge>);
    let worth = Worth::new(&asked, judge).map_err(from_core)?;
    Ok(Some((worth, asked.into_iter().map(name).collect())))
}

/// The names of the methods, and whether each needs a judge.
#[pyfunction]
pub(crate) fn worth_methods() -> Vec<(String, bool)> {
    Method::ALL.into_iter().map(|method| (name(method), method.needs_judge())).collect()
}

fn name(method: Method) -> String {
    match serde_json::to_value(method) {
        Ok(Value::String(name)) => name,
        _ => format!("{method:?}"),
    }
}

fn read(text: &str) -> PyResult<Method> {
    serde_json::from_value(Value::String(text.to_owned())).map_err(|_| {
        let all = Method::ALL.map(name).join(", ");
        error(format!("`{text}` is not a way to say what agents are worth: {all}"))
    })
}

/// A judge that is a Python callable; `raised` keeps an exception that it raises.
struct Outside {
    object: Py<PyAny>,
    raised: Raised,
}

impl Judge for Outside {
    fn loss(&mut self, weights: &[f64]) -> Result<f64, Error> {
        let told = Python::attach(|py| {
            let weights = weights.to_pyarray(py);
            self.object.bind(py).call1((weights,))?.extract::<f64>()
        });
        told.map_err(|error| {
            let why = error.to_string();
            self.raised.keep(error);
            Error::Engine { round: 0, why }
        })
    }
}

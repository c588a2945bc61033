//! Between Python's values and ours.

use crate::error::{blame, error};
use fedstay::{AgentId, Vector};
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1, ToPyArray};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use serde::de::DeserializeOwned;

/// Reads a rule, a policy or a behaviour: a name, a dict as in TOML, or an object with `to_dict`.
pub(crate) fn described<T: DeserializeOwned>(
    value: &Bound<'_, PyAny>,
    what: &str,
    names: &[fedstay::list::Entry],
) -> PyResult<T> {
    let py = value.py();
    let dict: Bound<'_, PyAny> = if value.is_instance_of::<PyString>() {
        let dict = PyDict::new(py);
        dict.set_item("kind", value)?;
        dict.into_any()
    } else if value.hasattr("to_dict")? {
        value.call_method0("to_dict")?
    } else {
        value.clone()
    };
    let text: String = py.import("json")?.call_method1("dumps", (dict,))?.extract()?;
    serde_json::from_str(&text).map_err(|why| {
        let names: Vec<&str> = names.iter().map(|entry| entry.name).collect();
        error(format!("{text} is not a {what}: {why}; there are {}", names.join(", ")))
    })
}

/// A vector that belongs to Python, in one of the two precisions we read.
pub(crate) enum Numbers {
    F32(Py<PyArray1<f32>>),
    F64(Py<PyArray1<f64>>),
}

/// A vector that belongs to Python, borrowed for as long as it is read.
pub(crate) enum Held<'py> {
    F32(PyReadonlyArray1<'py, f32>),
    F64(PyReadonlyArray1<'py, f64>),
}

impl Numbers {
    /// Takes an array as it is where it is contiguous and of single or double precision; anything
    /// else that NumPy can read is converted.
    pub(crate) fn new(
        value: &Bound<'_, PyAny>,
        what: &str,
        agent: Option<AgentId>,
    ) -> PyResult<Self> {
        let numpy = value.py().import("numpy")?;
        let array = numpy.call_method1("asarray", (value,))?;
        let kind: String = array.getattr("dtype")?.getattr("kind")?.extract()?;
        let size: usize = array.getattr("dtype")?.getattr("itemsize")?.extract()?;
        let dtype = match (kind.as_str(), size) {
            ("f", 2 | 4) => "float32",
            ("f" | "i" | "u" | "b", _) => "float64",
            _ => {
                let got: String = array.getattr("dtype")?.str()?.extract()?;
                let who = agent.map_or(String::new(), |agent| format!("agent {agent}: "));
                let message = format!("{who}{what} must be numbers, but its dtype is {got}");
                return Err(blame(message, agent));
            }
        };
        let array =
            numpy.call_method1("ascontiguousarray", (array, dtype))?.call_method1("ravel", ())?;
        Ok(match dtype {
            "float32" => Self::F32(array.cast_into::<PyArray1<f32>>()?.unbind()),
            _ => Self::F64(array.cast_into::<PyArray1<f64>>()?.unbind()),
        })
    }

    /// A copy of a vector of ours, in its precision.
    pub(crate) fn copy(py: Python<'_>, vector: Vector<'_>) -> Self {
        match vector {
            Vector::F32(values) => Self::F32(values.to_pyarray(py).unbind()),
            Vector::F64(values) => Self::F64(values.to_pyarray(py).unbind()),
        }
    }

    pub(crate) fn hold<'py>(&self, py: Python<'py>) -> PyResult<Held<'py>> {
        Ok(match self {
            Self::F32(array) => Held::F32(array.bind(py).try_readonly()?),
            Self::F64(array) => Held::F64(array.bind(py).try_readonly()?),
        })
    }

    pub(crate) fn to_python(&self, py: Python<'_>) -> Py<PyAny> {
        match self {
            Self::F32(array) => array.clone_ref(py).into_any(),
            Self::F64(array) => array.clone_ref(py).into_any(),
        }
    }

    /// The numbers, widened into a vector of our own.
    pub(crate) fn widened(&self, py: Python<'_>) -> PyResult<Vec<f64>> {
        Ok(match self.hold(py)?.vector()? {
            Vector::F32(values) => values.iter().map(|value| f64::from(*value)).collect(),
            Vector::F64(values) => values.to_vec(),
        })
    }
}

impl Held<'_> {
    pub(crate) fn vector(&self) -> PyResult<Vector<'_>> {
        Ok(match self {
            Self::F32(array) => Vector::F32(array.as_slice()?),
            Self::F64(array) => Vector::F64(array.as_slice()?),
        })
    }
}

//! Between Python's values and ours.

use crate::bfloat16;
use crate::error::{blame, error};
use fedstay::numerics::Bf16;
use fedstay::record::called;
use fedstay::{AgentId, Vector};
use fedstay_sim::experiment::{check_section, from_toml};
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1, ToPyArray};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyMapping, PySequence, PyString, PyType};
use serde::de::DeserializeOwned;
use toml::{Table, Value};

/// Deeper than anything a section holds; something that contains itself is deeper still.
const DEEPEST: usize = 8;

/// Reads a rule, policies or a behaviour: a name, a dict as in TOML, an object with `to_dict`, or a list of
/// them where there may be several. What is
/// wrong is said in the words of the command line; `example` is a kind to try.
pub(crate) fn described<T: DeserializeOwned>(
    value: &Bound<'_, PyAny>,
    section: &str,
    example: &str,
) -> PyResult<T> {
    if let Ok(class) = value.cast::<PyType>() {
        let name = class.name()?;
        return Err(error(format!("`{name}` is a class; give an object of it: {name}()")));
    }
    let given = match in_toml(value, section, 0)? {
        Some(kind @ Value::String(_)) => {
            Value::Table(Table::from_iter([("kind".to_owned(), kind)]))
        }
        Some(table @ Value::Table(_)) => table,
        Some(several @ Value::Array(_)) if section == "policy" => several,
        _ => {
            return Err(error(format!(
                "`{section}` is {}, but must be a name such as \"{example}\", or a dict such as \
             {{\"kind\": \"{example}\"}}",
                value.repr()?
            )));
        }
    };
    check_section(section, &given).map_err(error)?;
    from_toml(given).map_err(|why| error(format!("`{section}`: {why}")))
}

/// A value as an experiment's file would have it; nothing for None, which is left out there.
fn in_toml(value: &Bound<'_, PyAny>, key: &str, depth: usize) -> PyResult<Option<Value>> {
    if depth > DEEPEST {
        return Err(error(format!("`{key}` is nested more than {DEEPEST} times")));
    }
    Ok(Some(if value.is_none() {
        return Ok(None);
    } else if !value.is_instance_of::<PyType>() && value.hasattr("to_dict")? {
        return in_toml(&value.call_method0("to_dict")?, key, depth + 1);
    } else if let Ok(text) = value.cast::<PyString>() {
        Value::String(text.extract()?)
    } else if let Ok(switch) = value.cast::<PyBool>() {
        Value::Boolean(switch.is_true())
    } else if let Ok(mapping) = value.cast::<PyMapping>() {
        let mut table = Table::new();
        for item in mapping.items()? {
            let (name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item.extract()?;
            let name = name.str()?.to_string();
            if let Some(value) = in_toml(&value, &format!("{key}.{name}"), depth + 1)? {
                table.insert(name, value);
            }
        }
        Value::Table(table)
    } else if let Ok(list) = value.cast::<PySequence>() {
        let values = list.try_iter()?.map(|value| in_toml(&value?, key, depth + 1));
        Value::Array(values.filter_map(Result::transpose).collect::<PyResult<_>>()?)
    } else if let Ok(whole) = value.extract::<i64>() {
        Value::Integer(whole)
    } else if let Ok(number) = value.extract::<f64>() {
        Value::Float(number)
    } else if value.hasattr("tolist")? {
        return in_toml(&value.call_method0("tolist")?, key, depth + 1);
    } else {
        let must = "a text, a number, True or False, a list or a dict";
        return Err(error(format!("`{key}` is {}, but must be {must}", value.repr()?)));
    }))
}

/// A vector that belongs to Python, in one of the precisions we read.
pub(crate) enum Numbers {
    F32(Py<PyArray1<f32>>),
    F64(Py<PyArray1<f64>>),
    /// The bits of bfloat16, which NumPy does not know, and the array as it was given.
    BF16(Py<PyArray1<u16>>, Py<PyAny>),
}

/// A vector that belongs to Python, borrowed for as long as it is read.
pub(crate) enum Held<'py> {
    F32(PyReadonlyArray1<'py, f32>),
    F64(PyReadonlyArray1<'py, f64>),
    BF16(PyReadonlyArray1<'py, u16>),
}

impl Numbers {
    /// Takes an array as it is where it is contiguous and of single or double precision or bfloat16;
    /// anything else that NumPy can read is converted.
    pub(crate) fn new(
        value: &Bound<'_, PyAny>,
        what: &str,
        agent: Option<AgentId>,
    ) -> PyResult<Self> {
        let numpy = value.py().import("numpy")?;
        if let Some(bits) = bfloat16::bits(value)? {
            let bits = numpy.call_method1("ascontiguousarray", (bits,))?.call_method0("ravel")?;
            let given = value.clone().unbind();
            return Ok(Self::BF16(bits.cast_into::<PyArray1<u16>>()?.unbind(), given));
        }
        let array = numpy.call_method1("asarray", (value,))?;
        let kind: String = array.getattr("dtype")?.getattr("kind")?.extract()?;
        let size: usize = array.getattr("dtype")?.getattr("itemsize")?.extract()?;
        let dtype = match (kind.as_str(), size) {
            ("f", 2 | 4) => "float32",
            ("f" | "i" | "u" | "b", _) => "float64",
            _ => {
                let got: String = array.getattr("dtype")?.str()?.extract()?;
                let who = agent.map_or(String::new(), |agent| format!("{}: ", called(agent, None)));
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

    /// A copy of a vector of ours, in its precision; single where that is bfloat16.
    pub(crate) fn copy(py: Python<'_>, vector: Vector<'_>) -> Self {
        match vector {
            Vector::F32(values) => Self::F32(values.to_pyarray(py).unbind()),
            Vector::F64(values) => Self::F64(values.to_pyarray(py).unbind()),
            Vector::BF16(values) => {
                let single: Vec<f32> = values.iter().map(|value| value.single()).collect();
                Self::F32(single.to_pyarray(py).unbind())
            }
        }
    }

    pub(crate) fn hold<'py>(&self, py: Python<'py>) -> PyResult<Held<'py>> {
        Ok(match self {
            Self::F32(array) => Held::F32(array.bind(py).try_readonly()?),
            Self::F64(array) => Held::F64(array.bind(py).try_readonly()?),
            Self::BF16(array, _) => Held::BF16(array.bind(py).try_readonly()?),
        })
    }

    pub(crate) fn to_python(&self, py: Python<'_>) -> Py<PyAny> {
        match self {
            Self::F32(array) => array.clone_ref(py).into_any(),
            Self::F64(array) => array.clone_ref(py).into_any(),
            Self::BF16(_, given) => given.clone_ref(py),
        }
    }

    /// The numbers, widened into a vector of our own.
    pub(crate) fn widened(&self, py: Python<'_>) -> PyResult<Vec<f64>> {
        Ok(match self.hold(py)?.vector()? {
            Vector::F32(values) => values.iter().map(|value| f64::from(*value)).collect(),
            Vector::F64(values) => values.to_vec(),
            Vector::BF16(values) => values.iter().map(|value| value.widen()).collect(),
        })
    }
}

impl Held<'_> {
    pub(crate) fn vector(&self) -> PyResult<Vector<'_>> {
        Ok(match self {
            Self::F32(array) => Vector::F32(array.as_slice()?),
            Self::F64(array) => Vector::F64(array.as_slice()?),
            Self::BF16(array) => Vector::BF16(Bf16::from_bits(array.as_slice()?)),
        })
    }
}

//! bfloat16, which NumPy does not have: where its bits are in what Python gives us.

use pyo3::prelude::*;

/// The bits of an array of bfloat16, as an array of uint16 in the same memory; `None` for anything
/// else. Three things are one: a tensor of PyTorch, an array with the type of `ml_dtypes`, and an array
/// of one field `bfloat16` of two bytes, for bits that come from a file.
pub(crate) fn bits<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = value.py();
    let Some(dtype) = value.getattr_opt("dtype")? else { return Ok(None) };
    if dtype.str()?.to_cow()? == "torch.bfloat16" {
        let tensor =
            value.call_method0("detach")?.call_method0("cpu")?.call_method0("contiguous")?;
        let integers = py.import("torch")?.getattr("int16")?;
        let array = tensor.call_method1("view", (integers,))?.call_method0("numpy")?;
        return array.call_method1("view", ("uint16",)).map(Some);
    }
    let numpy = py.import("numpy")?;
    if !dtype.is_instance(&numpy.getattr("dtype")?)?
        || dtype.getattr("itemsize")?.extract::<usize>()? != 2
    {
        return Ok(None);
    }
    let fields: Option<Vec<String>> = dtype.getattr("names")?.extract()?;
    let named = match fields {
        Some(fields) => fields == ["bfloat16"],
        None => dtype.getattr("name")?.extract::<String>()? == "bfloat16",
    };
    if !named {
        return Ok(None);
    }
    let array = numpy.call_method1("ascontiguousarray", (value,))?;
    let order: String = dtype.getattr("byteorder")?.extract()?;
    let swapped = match dtype.getattr("names")?.is_none() {
        true => order,
        false => dtype.get_item("bfloat16")?.getattr("byteorder")?.extract()?,
    };
    let bits = array.call_method1("view", (if swapped == ">" { ">u2" } else { "<u2" },))?;
    numpy.call_method1("asarray", (bits, "uint16")).map(Some)
}

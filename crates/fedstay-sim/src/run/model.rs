//! The delivered weights as safetensors, which PyTorch and others read.

use safetensors::tensor::{Dtype, TensorView};
use std::collections::HashMap;

/// The tensors of a model, names and shapes, in the order of the weights.
pub type TensorShapes = [(String, Vec<usize>)];

/// The file's bytes: `f32` tensors under their names, or one `f64` vector where no tensor is named.
pub(super) fn model_bytes(weights: &[f64], layout: &TensorShapes) -> Result<Vec<u8>, String> {
    let mut tensors: Vec<(&str, Dtype, Vec<usize>, Vec<u8>)> = Vec::new();
    let mut rest = weights;
    for (name, shape) in layout {
        let (values, after) = rest.split_at(shape.iter().product::<usize>().min(rest.len()));
        rest = after;
        let bytes = values.iter().flat_map(|value| (*value as f32).to_le_bytes()).collect();
        tensors.push((name, Dtype::F32, shape.clone(), bytes));
    }
    if layout.is_empty() {
        let bytes = weights.iter().flat_map(|value| value.to_le_bytes()).collect();
        tensors.push(("weights", Dtype::F64, vec![weights.len()], bytes));
    }
    let views: Result<Vec<(&str, TensorView<'_>)>, _> = tensors
        .iter()
        .map(|(name, dtype, shape, bytes)| {
            TensorView::new(*dtype, shape.clone(), bytes).map(|view| (*name, view))
        })
        .collect();
    let views = views.map_err(|error| error.to_string())?;
    let about = HashMap::from([("schema".to_owned(), "fedstay.model/1".to_owned())]);
    safetensors::serialize(views, Some(about)).map_err(|error| error.to_string())
}

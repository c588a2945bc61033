//! How often each row counts: once where a model is measured, and as often as it was drawn where rows
//! are drawn again.

/// How many rows there are.
pub(super) fn rows(weights: &[u32]) -> f64 {
    weights.iter().map(|weight| u64::from(*weight)).sum::<u64>() as f64
}

/// How many of them are such.
pub(super) fn sum_where(weights: &[u32], such: &[bool]) -> u64 {
    let counted = weights.iter().zip(such);
    counted.map(|(weight, such)| u64::from(*weight) * u64::from(*such)).sum()
}

/// The mean of what rows have; `None` without rows.
pub(super) fn mean(weights: &[u32], values: &[f64]) -> Option<f64> {
    let sum: f64 = weights.iter().zip(values).map(|(w, value)| f64::from(*w) * value).sum();
    let rows = rows(weights);
    (rows > 0.0).then(|| sum / rows)
}

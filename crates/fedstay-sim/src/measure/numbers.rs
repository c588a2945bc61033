//! What measures of numbers share: the errors, and the unit.

use crate::model::NumbersSaid;

/// By how much the model is too high, row by row, in deviations of the training rows.
pub(super) fn errors(said: &NumbersSaid) -> impl Iterator<Item = f64> {
    let rows = said.targets.iter().zip(&said.predictions);
    rows.map(|(own, said)| f64::from(*said) - f64::from(*own))
}

/// The same in the number's own unit.
pub(super) fn in_unit(said: &NumbersSaid, error: f64) -> f64 {
    said.scale.deviation * error
}

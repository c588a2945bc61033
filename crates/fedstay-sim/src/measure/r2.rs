//! R²: the share of the rows' variance that the model explains, 1 at most. It is 0 for a model that
//! says the mean of these very rows, and negative for a worse one. Where the numbers of all rows are
//! the same there is nothing to explain, and it is not defined.

use super::numbers::errors;
use super::weights::mean;
use super::{Listed, Over, Weighted};
use crate::model::{NumbersSaid, Reads};
use fedstay::{Better, Measure, Unit};

pub(super) const R2: Listed = Listed {
    measure: Measure::new("r2", "R²", Better::Higher, Unit::Number),
    about: "the share of the variance of a number that the model explains (R²)",
    reads: Reads::Hits,
    over: Over::Numbers(over),
};

fn over(said: &NumbersSaid) -> Weighted<'_> {
    let squares: Vec<f64> = errors(said).map(|error| error.powi(2)).collect();
    let targets: Vec<f64> = said.targets.iter().copied().map(f64::from).collect();
    Box::new(move |weights| {
        let middle = mean(weights, &targets)?;
        let around = weights.iter().zip(&targets);
        let spread: f64 = around.map(|(w, own)| f64::from(*w) * (own - middle).powi(2)).sum();
        let left: f64 =
            weights.iter().zip(&squares).map(|(w, square)| f64::from(*w) * square).sum();
        // Numbers are kept in 32 bits: what is below their resolution is no variance.
        let resolved = super::weights::rows(weights) * f64::from(f32::EPSILON).powi(2);
        (spread > resolved * middle.powi(2).max(1.0)).then(|| 1.0 - left / spread)
    })
}

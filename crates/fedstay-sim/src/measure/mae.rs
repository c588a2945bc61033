//! The mean absolute error, in the unit of the number that is predicted. A few rows that are far off
//! count for less than in the RMSE.

use super::numbers::{errors, in_unit};
use super::weights::mean;
use super::{Listed, Over, Weighted};
use crate::model::{NumbersSaid, Reads};
use fedstay::{Better, Measure, Unit};

pub(super) const MAE: Listed = Listed {
    measure: Measure::new("mae", "mean absolute error", Better::Lower, Unit::Number),
    about: "the mean absolute error of a number, in its own unit",
    reads: Reads::Hits,
    over: Over::Numbers(over),
};

fn over(said: &NumbersSaid) -> Weighted<'_> {
    let sizes: Vec<f64> = errors(said).map(f64::abs).collect();
    Box::new(move |weights| Some(in_unit(said, mean(weights, &sizes)?)))
}

//! The root of the mean squared error, in the unit of the number that is predicted.

use super::numbers::{errors, in_unit};
use super::weights::mean;
use super::{Listed, Over, Weighted};
use crate::model::{NumbersSaid, Reads};
use fedstay::{Better, Measure, Unit};

pub(super) const RMSE: Listed = Listed {
    measure: Measure::new("rmse", "RMSE", Better::Lower, Unit::Number),
    about: "the root of the mean squared error of a number, in its own unit",
    reads: Reads::Hits,
    over: Over::Numbers(over),
};

fn over(said: &NumbersSaid) -> Weighted<'_> {
    let squares: Vec<f64> = errors(said).map(|error| error.powi(2)).collect();
    Box::new(move |weights| Some(in_unit(said, mean(weights, &squares)?.sqrt())))
}

//! The log loss: the mean of −ln of the probability that the model gives to what happened. It is the
//! loss that is trained on, row by row; asked for by name, it can be told beside other measures, of
//! held-back rows with its interval.
//!
//! Reference: Good, *Rational decisions*, Journal of the Royal Statistical Society B 14, 1952.

use super::weights::mean;
use super::{Listed, Over, Weighted};
use crate::model::{ClassesSaid, Reads};
use fedstay::{Better, Measure, Unit};

pub(super) const LOG_LOSS: Listed = Listed {
    measure: Measure::new("log-loss", "log loss", Better::Lower, Unit::Number),
    about: "the mean of -ln of the probability given to what happened: the loss, as a measure",
    reads: Reads::Hits,
    over: Over::Classes(over),
};

fn over(said: &ClassesSaid) -> Weighted<'_> {
    let rows: Vec<f64> = said.losses.iter().copied().map(f64::from).collect();
    Box::new(move |weights| mean(weights, &rows))
}

//! The Brier score: the mean squared distance of the probability from what happened. Of two classes it
//! is that of the second class's probability, from 0 to 1; of more, the sum over all classes, from 0
//! to 2, as Brier defined it.
//!
//! Reference: Brier, *Verification of forecasts expressed in terms of probability*, Monthly Weather
//! Review 78, 1950.

use super::weights::mean;
use super::{Listed, Over, Weighted};
use crate::model::{ClassesSaid, Reads};
use fedstay::{Better, Measure, Unit};

pub(super) const BRIER: Listed = Listed {
    measure: Measure::new("brier", "Brier score", Better::Lower, Unit::Number),
    about: "the mean squared distance of the probabilities from what happened",
    reads: Reads::Probabilities,
    over: Over::Classes(over),
};

fn over(said: &ClassesSaid) -> Weighted<'_> {
    let of_row = |row: usize| {
        let label = said.labels[row] as usize;
        let apart = |class: usize| {
            let happened = f64::from(u8::from(class == label));
            (said.probability(row, class) - happened).powi(2)
        };
        if said.classes == 2 { apart(1) } else { (0..said.classes).map(apart).sum() }
    };
    let rows: Vec<f64> = (0..said.labels.len()).map(of_row).collect();
    Box::new(move |weights| mean(weights, &rows))
}

//! The area under the receiver operating characteristic: the probability that the model is surer of a
//! row of the class than of another row, ties counting half (Mann and Whitney's U). Of two classes it
//! is that of the second, and the same for the first. Of more classes it is the mean over the classes
//! that are there, each against all others. Where all rows are of one class it is not defined.
//!
//! Reference: Hanley, McNeil, *The meaning and use of the area under a receiver operating
//! characteristic (ROC) curve*, Radiology 143, 1982.

use super::ranks::{Ranked, over_classes};
use super::{Listed, Over};
use crate::model::Reads;
use fedstay::{Better, Measure, Unit};

pub(super) const AUROC: Listed = Listed {
    measure: Measure::new("auroc", "AUROC", Better::Higher, Unit::Number),
    about: "the probability that a row of the class is ranked above another row (area under the ROC)",
    reads: Reads::Probabilities,
    over: Over::Classes(|said| over_classes(said, of)),
};

fn of(ranked: &Ranked, weights: &[u32]) -> Option<f64> {
    // Twice the number of pairs in which the row of the class is the surer one: whole numbers.
    let (mut own, mut others, mut twice) = (0_u64, 0_u64, 0_u128);
    ranked.ties(weights, |tie| {
        twice += u128::from(tie.others) * u128::from(2 * own + tie.of);
        own += tie.of;
        others += tie.others;
    });
    let pairs = 2.0 * own as f64 * others as f64;
    (pairs > 0.0).then(|| twice as f64 / pairs)
}

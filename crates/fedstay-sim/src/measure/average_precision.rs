//! Average precision: the mean of the precision at every row of the class, from the row of which the
//! model is the surest down. Of two classes it is that of the second, in the order in which the data
//! (or `data.classes`) name them; of more, the mean over the classes that are there, each against all
//! others. A model that ranks by chance has the share of the class, not ½, so it tells more than AUROC
//! where a class is rare. Rows of which the model is equally sure count together. Where all rows are
//! of one class it is not defined.
//!
//! Reference: Davis, Goadrich, *The relationship between precision-recall and ROC curves*, ICML 2006.

use super::ranks::{Ranked, over_classes};
use super::{Listed, Over};
use crate::model::Reads;
use fedstay::{Better, Measure, Unit};

pub(super) const AVERAGE_PRECISION: Listed = Listed {
    measure: Measure::new("average-precision", "average precision", Better::Higher, Unit::Number),
    about: "the mean precision over the rows of the class, the surest first (area under precision-recall)",
    reads: Reads::Probabilities,
    over: Over::Classes(|said| over_classes(said, of)),
};

fn of(ranked: &Ranked, weights: &[u32]) -> Option<f64> {
    let (mut own, mut others, mut sum) = (0_u64, 0_u64, 0.0);
    ranked.ties(weights, |tie| {
        own += tie.of;
        others += tie.others;
        if tie.of > 0 {
            sum += tie.of as f64 * own as f64 / (own + others) as f64;
        }
    });
    (own > 0 && others > 0).then(|| sum / own as f64)
}

//! The share of the rows whose label gets the largest probability; of equals, the first counts. It is
//! counted while losses are added up, so it costs nothing.

use super::weights::{rows, sum_where};
use super::{Listed, Over, Weighted};
use crate::model::{ClassesSaid, Reads};
use fedstay::Measure;

pub(super) const ACCURACY: Listed = Listed {
    measure: Measure::ACCURACY,
    about: "the share of correct predictions",
    reads: Reads::Hits,
    over: Over::Classes(over),
};

fn over(said: &ClassesSaid) -> Weighted<'_> {
    Box::new(|weights| Some(sum_where(weights, &said.hits) as f64 / rows(weights)))
}

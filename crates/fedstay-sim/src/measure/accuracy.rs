//! The share of the rows whose label gets the largest probability; of equals, the first counts. It is
//! counted while losses are added up, so it costs nothing.

use super::Listed;
use crate::model::{Reads, Said};
use fedstay::Measure;

pub(super) const ACCURACY: Listed = Listed {
    measure: Measure::ACCURACY,
    about: "the share of correct predictions",
    reads: Reads::Hits,
    of,
};

fn of(said: &Said) -> Option<f64> {
    let correct = said.hits.iter().filter(|hit| **hit).count();
    Some(correct as f64 / said.hits.len() as f64)
}

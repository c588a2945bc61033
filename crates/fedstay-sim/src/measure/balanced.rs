//! Balanced accuracy: the mean, over the classes that are there, of the share of their rows that is
//! predicted correctly. A model that always answers the most frequent of two classes has ½, however
//! rare the other one is.
//!
//! Reference: Brodersen, Ong, Stephan, Buhmann, *The balanced accuracy and its posterior distribution*,
//! ICPR 2010.

use super::Listed;
use crate::model::{Reads, Said};
use fedstay::{Better, Measure, Unit};

pub(super) const BALANCED: Listed = Listed {
    measure: Measure::new("balanced", "balanced accuracy", Better::Higher, Unit::Share),
    about: "the mean over the classes of the share of their rows that is predicted correctly",
    reads: Reads::Hits,
    of,
};

fn of(said: &Said) -> Option<f64> {
    let mut classes = vec![(0_u32, 0_u32); said.classes];
    for (label, hit) in said.labels.iter().zip(&said.hits) {
        let (rows, correct) = &mut classes[*label as usize];
        *rows += 1;
        *correct += u32::from(*hit);
    }
    let there = || classes.iter().filter(|(rows, _)| *rows > 0);
    let recalls = there().map(|(rows, correct)| f64::from(*correct) / f64::from(*rows));
    Some(recalls.sum::<f64>() / there().count() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_that_is_there_counts_once() {
        let said = |labels: &[u32], hits: &[bool]| Said {
            classes: 4,
            labels: labels.to_vec(),
            hits: hits.to_vec(),
            probabilities: Vec::new(),
        };
        // Class 0 has three rows and two hits, class 2 one row and none; 1 and 3 are not there.
        let rare = said(&[0, 0, 0, 2], &[true, true, false, false]);
        assert_eq!(of(&rare), Some(0.5 * (2.0 / 3.0)));
        assert_eq!(of(&said(&[1, 1], &[true, false])), Some(0.5));
    }
}

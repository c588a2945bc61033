//! Balanced accuracy: the mean, over the classes that are there, of the share of their rows that is
//! predicted correctly. A model that always answers the most frequent of two classes has ½, however
//! rare the other one is.
//!
//! Reference: Brodersen, Ong, Stephan, Buhmann, *The balanced accuracy and its posterior distribution*,
//! ICPR 2010.

use super::{Listed, Over, Weighted};
use crate::model::{ClassesSaid, Reads};
use fedstay::{Better, Measure, Unit};

pub(super) const BALANCED: Listed = Listed {
    measure: Measure::new("balanced", "balanced accuracy", Better::Higher, Unit::Share),
    about: "the mean over the classes of the share of their rows that is predicted correctly",
    reads: Reads::Hits,
    over: Over::Classes(over),
};

fn over(said: &ClassesSaid) -> Weighted<'_> {
    Box::new(|weights| {
        let mut classes = vec![(0_u64, 0_u64); said.classes];
        for ((label, hit), weight) in said.labels.iter().zip(&said.hits).zip(weights) {
            let (rows, correct) = &mut classes[*label as usize];
            *rows += u64::from(*weight);
            *correct += u64::from(*weight) * u64::from(*hit);
        }
        let there = || classes.iter().filter(|(rows, _)| *rows > 0);
        let recalls = there().map(|(rows, correct)| *correct as f64 / *rows as f64);
        Some(recalls.sum::<f64>() / there().count() as f64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Said;

    #[test]
    fn every_class_that_is_there_counts_once() {
        let of = |labels: &[u32], hits: &[bool]| {
            let (labels, hits) = (labels.to_vec(), hits.to_vec());
            let said = ClassesSaid { classes: 4, labels, hits, ..ClassesSaid::default() };
            BALANCED.of(&Said::Classes(said))
        };
        // Class 0 has three rows and two hits, class 2 one row and none; 1 and 3 are not there.
        let rare = of(&[0, 0, 0, 2], &[true, true, false, false]);
        assert_eq!(rare, Some(0.5 * (2.0 / 3.0)));
        assert_eq!(of(&[1, 1], &[true, false]), Some(0.5));
    }
}

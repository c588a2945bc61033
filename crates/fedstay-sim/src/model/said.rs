//! What a model says of each row: what measures are computed from ([`crate::measure`]).

use super::LossSum;
use crate::data::{Output, Scale};
use std::ops::Range;

/// What a measure reads of what a model says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reads {
    /// Whether each row's label has the largest probability or, of numbers, what is predicted.
    Hits,
    /// Every class's probability too.
    Probabilities,
}

/// What a model says of some rows.
#[derive(Debug, Clone, PartialEq)]
pub enum Said {
    /// Which class each has.
    Classes(ClassesSaid),
    /// Which number each has.
    Numbers(NumbersSaid),
}

/// What a model says of rows that have classes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClassesSaid {
    /// How many classes there are.
    pub classes: usize,
    /// Each row's label.
    pub labels: Vec<u32>,
    /// Whether each row's label has the largest probability, the first of equals.
    pub hits: Vec<bool>,
    /// Each row's loss.
    pub losses: Vec<f32>,
    /// Each row's probabilities, class by class, one row after the other; empty unless some measure
    /// reads them.
    pub probabilities: Vec<f32>,
}

/// What a model says of rows that have numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct NumbersSaid {
    /// Each row's number, in units of `scale`.
    pub targets: Vec<f32>,
    /// What the model says instead, in the same units.
    pub predictions: Vec<f32>,
    /// Each row's loss.
    pub losses: Vec<f32>,
    /// What 0 and 1 mean.
    pub scale: Scale,
}

impl ClassesSaid {
    /// The probabilities of each row.
    pub fn rows(&self) -> impl Iterator<Item = &[f32]> {
        self.probabilities.chunks_exact(self.classes)
    }

    /// One row's probability of a class.
    pub fn probability(&self, row: usize, class: usize) -> f64 {
        f64::from(self.probabilities[row * self.classes + class])
    }
}

impl Said {
    /// Nothing said yet, by a model with this output, of numbers with this scale.
    #[must_use]
    pub fn nothing(output: Output, scale: Scale) -> Self {
        match output {
            Output::Classes(classes) => {
                Self::Classes(ClassesSaid { classes, ..ClassesSaid::default() })
            }
            Output::Number => {
                let (targets, predictions, losses) = (Vec::new(), Vec::new(), Vec::new());
                Self::Numbers(NumbersSaid { targets, predictions, losses, scale })
            }
        }
    }

    /// How many rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Classes(said) => said.labels.len(),
            Self::Numbers(said) => said.targets.len(),
        }
    }

    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Each row's loss.
    pub fn losses(&self) -> &[f32] {
        match self {
            Self::Classes(said) => &said.losses,
            Self::Numbers(said) => &said.losses,
        }
    }

    /// The mean loss, as an evaluation gives it.
    pub fn loss(&self) -> f64 {
        let mut sum = LossSum::default();
        self.losses().iter().for_each(|loss| sum.add(*loss));
        sum.mean(self.len())
    }

    /// Whether another model spoke of the same rows, as far as their targets tell.
    pub fn is_of_the_same_rows(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Classes(own), Self::Classes(other)) => own.labels == other.labels,
            (Self::Numbers(own), Self::Numbers(other)) => own.targets == other.targets,
            _ => false,
        }
    }

    /// What is said of some of the rows.
    #[must_use]
    pub fn part(&self, rows: Range<usize>) -> Self {
        match self {
            Self::Classes(said) => {
                let probabilities = match said.probabilities.is_empty() {
                    true => Vec::new(),
                    false => {
                        let range = rows.start * said.classes..rows.end * said.classes;
                        said.probabilities[range].to_vec()
                    }
                };
                Self::Classes(ClassesSaid {
                    classes: said.classes,
                    labels: said.labels[rows.clone()].to_vec(),
                    hits: said.hits[rows.clone()].to_vec(),
                    losses: said.losses[rows].to_vec(),
                    probabilities,
                })
            }
            Self::Numbers(said) => Self::Numbers(NumbersSaid {
                targets: said.targets[rows.clone()].to_vec(),
                predictions: said.predictions[rows.clone()].to_vec(),
                losses: said.losses[rows].to_vec(),
                scale: said.scale,
            }),
        }
    }

    /// What is said of the rows of all parts, in order, by one model; `None` without parts.
    #[must_use]
    pub fn together(parts: Vec<Self>) -> Option<Self> {
        parts.into_iter().reduce(|mut all, part| {
            match (&mut all, part) {
                (Self::Classes(all), Self::Classes(part)) => {
                    all.labels.extend(part.labels);
                    all.hits.extend(part.hits);
                    all.losses.extend(part.losses);
                    all.probabilities.extend(part.probabilities);
                }
                (Self::Numbers(all), Self::Numbers(part)) => {
                    all.targets.extend(part.targets);
                    all.predictions.extend(part.predictions);
                    all.losses.extend(part.losses);
                }
                // One model says one kind of thing.
                (Self::Classes(_), Self::Numbers(_)) | (Self::Numbers(_), Self::Classes(_)) => {}
            }
            all
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_what_is_said_make_up_the_whole() {
        let classes = Said::Classes(ClassesSaid {
            classes: 2,
            labels: vec![0, 1, 1],
            hits: vec![true, false, true],
            losses: vec![0.1, 2.0, 0.3],
            probabilities: vec![0.9, 0.1, 0.8, 0.2, 0.3, 0.7],
        });
        let numbers = Said::Numbers(NumbersSaid {
            targets: vec![0.0, 1.0, 2.0],
            predictions: vec![0.5, 1.0, 1.0],
            losses: vec![0.25, 0.0, 1.0],
            scale: Scale { mean: 10.0, deviation: 2.0 },
        });
        for said in [&classes, &numbers] {
            let parts = vec![said.part(0..1), said.part(1..3)];
            assert_eq!(Said::together(parts).as_ref(), Some(said));
            assert!(said.is_of_the_same_rows(said) && !said.is_of_the_same_rows(&said.part(0..2)));
        }
        assert_eq!(numbers.loss(), 1.25 / 3.0);
        assert!(!classes.is_of_the_same_rows(&numbers) && Said::together(Vec::new()).is_none());
    }
}

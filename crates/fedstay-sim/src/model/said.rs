//! What a model says of each row: what measures are computed from ([`crate::measure`]).

use std::ops::Range;

/// What a measure reads of what a model says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reads {
    /// Whether each row's label has the largest probability.
    Hits,
    /// Every class's probability too.
    Probabilities,
}

/// What a model says of some rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Said {
    /// How many classes there are.
    pub classes: usize,
    /// Each row's label.
    pub labels: Vec<u32>,
    /// Whether each row's label has the largest probability, the first of equals.
    pub hits: Vec<bool>,
    /// Each row's probabilities, class by class, one row after the other; empty unless some measure
    /// reads them.
    pub probabilities: Vec<f32>,
}

impl Said {
    /// The probabilities of each row.
    pub fn rows(&self) -> impl Iterator<Item = &[f32]> {
        self.probabilities.chunks_exact(self.classes)
    }

    /// What is said of some of the rows.
    #[must_use]
    pub fn part(&self, rows: Range<usize>) -> Self {
        let probabilities = match self.probabilities.is_empty() {
            true => Vec::new(),
            false => {
                let range = rows.start * self.classes..rows.end * self.classes;
                self.probabilities[range].to_vec()
            }
        };
        Self {
            classes: self.classes,
            labels: self.labels[rows.clone()].to_vec(),
            hits: self.hits[rows].to_vec(),
            probabilities,
        }
    }

    /// What is said of the rows of all parts, in order.
    #[must_use]
    pub fn together(parts: Vec<Self>) -> Self {
        let mut all = Self::default();
        for part in parts {
            all.classes = part.classes;
            all.labels.extend(part.labels);
            all.hits.extend(part.hits);
            all.probabilities.extend(part.probabilities);
        }
        all
    }
}

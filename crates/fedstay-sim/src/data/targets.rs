//! What a model is to say of every row: a class, or a number.
//!
//! Code that needs classes asks for them by type ([`Targets::classes`]) and gets none where rows have
//! numbers.

use std::ops::Range;

use super::dataset::{cut, permute};
use super::row_targets::{Output, RowTargets};

/// What a model is to say of every row.
#[derive(Debug, Clone, PartialEq)]
pub enum Targets {
    /// One of several classes.
    Classes {
        /// The class of every row, an index into `names`.
        of: Vec<u16>,
        /// The classes' names.
        names: Vec<String>,
    },
    /// A number.
    Numbers {
        /// The number of every row, in units of `scale`.
        of: Vec<f32>,
        /// What the number is called.
        name: String,
        /// What 0 and 1 mean.
        scale: Scale,
    },
}

/// What 0 and 1 mean in a number's own unit: `mean + deviation * number`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// What 0 means.
    pub mean: f64,
    /// How much 1 is.
    pub deviation: f64,
}

impl Default for Scale {
    /// The numbers as they are.
    fn default() -> Self {
        Self { mean: 0.0, deviation: 1.0 }
    }
}

/// The classes of some rows, for code that needs classes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Classes<'a> {
    /// The class of every row, an index into `names`.
    pub of: &'a [u16],
    /// The classes' names.
    pub names: &'a [String],
}

/// What a model is to say of some rows, with names.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TargetsOf<'a> {
    /// Classes.
    Classes(Classes<'a>),
    /// Numbers.
    Numbers {
        /// The number of every row.
        of: &'a [f32],
        /// What it is called.
        name: &'a str,
    },
}

impl Targets {
    /// Numbers in their own unit. They are kept relative to their mean and deviation, so that 32 bits
    /// suffice for large ones that differ little.
    pub(super) fn numbers(values: &[f64], name: String) -> Self {
        let scale = Scale::of(values.iter().copied());
        let of = values.iter().map(|value| scale.number(*value) as f32).collect();
        Self::Numbers { of, name, scale }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Classes { of, .. } => of.len(),
            Self::Numbers { of, .. } => of.len(),
        }
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The classes; `None` where rows have numbers.
    pub fn classes(&self) -> Option<Classes<'_>> {
        match self.first(self.len()) {
            TargetsOf::Classes(classes) => Some(classes),
            TargetsOf::Numbers { .. } => None,
        }
    }

    /// What a model is to say of the first rows.
    pub fn first(&self, rows: usize) -> TargetsOf<'_> {
        match self {
            Self::Classes { of, names } => TargetsOf::Classes(Classes { of: &of[..rows], names }),
            Self::Numbers { of, name, .. } => TargetsOf::Numbers { of: &of[..rows], name },
        }
    }

    /// What a model is to say of some rows, as it reads them.
    pub fn rows(&self, range: Range<usize>) -> RowTargets<'_> {
        match self {
            Self::Classes { of, .. } => RowTargets::Classes(&of[range]),
            Self::Numbers { of, .. } => RowTargets::Numbers(&of[range]),
        }
    }

    /// What 0 and 1 mean, where rows have numbers.
    pub fn scale(&self) -> Scale {
        match self {
            Self::Classes { .. } => Scale::default(),
            Self::Numbers { scale, .. } => *scale,
        }
    }

    /// What a model for these rows puts out.
    pub fn output(&self) -> Output {
        match self {
            Self::Classes { names, .. } => Output::Classes(names.len()),
            Self::Numbers { .. } => Output::Number,
        }
    }

    /// How many kinds of rows are counted apart: the classes, or one.
    pub(crate) fn kinds(&self) -> usize {
        self.first(0).kinds()
    }

    /// The kind of a row: its class, or 0.
    pub(crate) fn kind(&self, row: usize) -> usize {
        match self {
            Self::Classes { of, .. } => usize::from(of[row]),
            Self::Numbers { .. } => 0,
        }
    }

    /// How many of `rows` are of each kind.
    pub(crate) fn counts(&self, rows: Range<usize>) -> Vec<usize> {
        self.rows(rows).counts(self.kinds())
    }

    /// The targets of these rows, in this order; a row may come twice.
    pub(super) fn copies(&self, places: &[usize]) -> CopiedTargets {
        match self {
            Self::Classes { of, .. } => {
                CopiedTargets::Classes(places.iter().map(|place| of[*place]).collect())
            }
            Self::Numbers { of, .. } => {
                CopiedTargets::Numbers(places.iter().map(|place| of[*place]).collect())
            }
        }
    }

    /// Moves the target of row `order[k]` to place `k`, and keeps the first `kept`.
    pub(super) fn arrange(&mut self, order: &[usize], kept: usize) {
        match self {
            Self::Classes { of, .. } => {
                permute(of, 1, order);
                cut(of, kept);
            }
            Self::Numbers { of, .. } => {
                permute(of, 1, order);
                cut(of, kept);
            }
        }
    }

    /// Gives numbers mean 0 and deviation 1 over `rows` (the training rows). Classes stay as they are.
    pub(super) fn standardise(&mut self, rows: Range<usize>) {
        let Self::Numbers { of, scale, .. } = self else { return };
        let step = Scale::of(of[rows].iter().copied().map(f64::from));
        of.iter_mut().for_each(|value| *value = step.number(f64::from(*value)) as f32);
        let mean = scale.mean + scale.deviation * step.mean;
        *scale = Scale { mean, deviation: scale.deviation * step.deviation };
    }
}

impl TargetsOf<'_> {
    /// How many rows there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Classes(classes) => classes.of.len(),
            Self::Numbers { of, .. } => of.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many kinds of rows are counted apart: the classes, or one.
    pub(crate) fn kinds(&self) -> usize {
        match self {
            Self::Classes(classes) => classes.names.len(),
            Self::Numbers { .. } => 1,
        }
    }

    /// How many rows are of each kind.
    pub(crate) fn counts(&self) -> Vec<usize> {
        match self {
            Self::Classes(classes) => RowTargets::Classes(classes.of).counts(self.kinds()),
            Self::Numbers { of, .. } => vec![of.len()],
        }
    }
}

impl Scale {
    /// The mean and the deviation of some numbers; a deviation of 1 where they do not vary.
    fn of(values: impl Iterator<Item = f64> + Clone) -> Self {
        let count = values.clone().count().max(1) as f64;
        let mean = values.clone().map(|value| value / count).sum::<f64>();
        let variance = values.map(|value| (value - mean).powi(2) / count).sum::<f64>();
        Self { mean, deviation: if variance > 0.0 { variance.sqrt() } else { 1.0 } }
    }

    /// A value in its own unit as a number of this scale.
    fn number(self, value: f64) -> f64 {
        (value - self.mean) / self.deviation
    }
}

/// The targets of some rows, copied side by side.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum CopiedTargets {
    /// Classes.
    Classes(Vec<u16>),
    /// Numbers.
    Numbers(Vec<f32>),
}

impl CopiedTargets {
    /// As a model reads them.
    pub(crate) fn rows(&self) -> RowTargets<'_> {
        match self {
            Self::Classes(of) => RowTargets::Classes(of),
            Self::Numbers(of) => RowTargets::Numbers(of),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Prices that differ in the ninth digit, which 32 bits do not hold.
    #[test]
    fn numbers_are_standardised_over_the_training_rows_and_keep_their_unit() {
        let values = [1e9, 1e9 + 1.0, 1e9 + 2.0, 1e9 + 7.0];
        let mut targets = Targets::numbers(&values, "price".into());
        targets.standardise(0..3);
        let Targets::Numbers { of, scale, .. } = &targets else { panic!() };
        let mean = of[..3].iter().map(|value| f64::from(*value)).sum::<f64>() / 3.0;
        let variance =
            of[..3].iter().map(|value| (f64::from(*value) - mean).powi(2)).sum::<f64>() / 3.0;
        assert!(mean.abs() < 1e-6 && (variance - 1.0).abs() < 1e-5, "{mean} {variance}");
        for (number, value) in of.iter().zip(values) {
            let back = scale.mean + scale.deviation * f64::from(*number);
            assert!((back - value).abs() < 1e-4, "{back} for {value}");
        }
        assert!(targets.classes().is_none() && targets.output() == Output::Number);
        assert_eq!((targets.kinds(), targets.counts(1..4)), (1, vec![3]));
    }

    #[test]
    fn numbers_that_do_not_vary_stay_finite() {
        let mut targets = Targets::numbers(&[5.0, 5.0, 6.0], "dose".into());
        targets.standardise(0..2);
        let Targets::Numbers { of, scale, .. } = &targets else { panic!() };
        assert_eq!((of[0], of[1]), (0.0, 0.0));
        assert!((scale.mean + scale.deviation * f64::from(of[2]) - 6.0).abs() < 1e-6);
    }
}

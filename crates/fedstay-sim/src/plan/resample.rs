//! How sure a measure is: held-back rows are drawn again, and every model is judged on the same draws.
//!
//! A draw takes as many rows of every class as there are, with replacement, so that a measure that needs both
//! classes is defined on every draw. All models of a seed see the same draws: the difference of two models on
//! a draw is a draw of their difference.
//!
//! Seeds hold back rows of the same table, so the same row comes back on several seeds, and the mean over
//! seeds is less sure than if each had rows of its own. With a share ρ of rows that two seeds have in common,
//! the variance of a mean over S seeds is 1 + (S − 1)ρ times that of S independent ones: each row counts in c
//! seeds, and the mean of c² over the mean of c is just that. Intervals are widened by the root of it.
//!
//! Draws of n rows vary by (n − 1)/n of what n rows vary by, and their middle 95% take the variance to be known.
//! With few rows both make intervals too narrow. So draws are spread by the root of n/(n − 1), times Student's
//! quantile over the normal one: Hesterberg, *What teachers should know about the bootstrap*, The American
//! Statistician 69, 2015. n is that of the class with the fewest held-back rows.

use crate::measure::Listed;
use crate::model::Said;
use fedstay::{Interval, Seed};
use rand::Rng;

/// How often rows are drawn again.
pub(super) const RESAMPLES: u32 = 500;

/// A value on the rows there are, and on every draw of them.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Redrawn {
    pub(super) value: f64,
    again: Vec<f64>,
}

/// How often each row is in each draw.
pub(super) struct Redraws(Vec<Vec<u32>>);

impl Redraws {
    /// Draws rows again, class by class. `kinds` has the class of each.
    pub(super) fn new(kinds: &[u32], seed: u64, owner: usize) -> Self {
        let mut strata: Vec<Vec<u32>> = Vec::new();
        for (row, kind) in kinds.iter().enumerate() {
            let kind = *kind as usize;
            if strata.len() <= kind {
                strata.resize(kind + 1, Vec::new());
            }
            strata[kind].push(row as u32);
        }
        let mut rng = Seed(seed).stream("plan", 0, owner as u64);
        let mut draw = || {
            let mut counts = vec![0_u32; kinds.len()];
            for stratum in &strata {
                for _ in 0..stratum.len() {
                    // By the upper half of a product: no row is likelier by more than 2⁻³² rows.
                    let place = (u64::from(rng.next_u32()) * stratum.len() as u64) >> 32;
                    counts[stratum[place as usize] as usize] += 1;
                }
            }
            counts
        };
        Self((0..RESAMPLES).map(|_| draw()).collect())
    }

    /// Those of rows of which a model said this.
    pub(super) fn of(said: &Said, seed: u64, owner: usize) -> Self {
        match said {
            Said::Classes(said) => Self::new(&said.labels, seed, owner),
            Said::Numbers(said) => Self::new(&vec![0; said.targets.len()], seed, owner),
        }
    }

    /// A measure of what is said of the rows, on the rows and on every draw; `None` where it is not
    /// defined.
    pub(super) fn measure(&self, listed: &Listed, said: &Said) -> Option<Redrawn> {
        let weighted = listed.weighted(said)?;
        let finite = |counts: &[u32]| weighted(counts).filter(|value| value.is_finite());
        let value = finite(&vec![1; said.len()])?;
        let again = self.0.iter().map(|counts| finite(counts)).collect::<Option<_>>()?;
        Some(Redrawn { value, again })
    }
}

impl Redrawn {
    /// The difference, by draws of the same rows.
    pub(super) fn minus(&self, other: &Self) -> Self {
        let again = self.again.iter().zip(&other.again).map(|(own, other)| own - other);
        Self { value: self.value - other.value, again: again.collect() }
    }

    /// The same with the other sign where less is better, so that more is better.
    pub(super) fn times(&self, sign: f64) -> Self {
        let again = self.again.iter().map(|value| sign * value).collect();
        Self { value: sign * self.value, again }
    }

    /// The mean of several, by draw; `None` of none.
    pub(super) fn mean<'a>(all: impl IntoIterator<Item = &'a Self>) -> Option<Self> {
        let mut all = all.into_iter();
        let mut sum = all.next()?.clone();
        let mut count = 1.0;
        for one in all {
            sum.value += one.value;
            sum.again.iter_mut().zip(&one.again).for_each(|(sum, own)| *sum += own);
            count += 1.0;
        }
        Some(sum.times(1.0 / count))
    }

    /// The same with draws farther from the value by a factor.
    pub(super) fn spread(&self, factor: f64) -> Self {
        let again = self.again.iter().map(|value| self.value + factor * (value - self.value));
        Self { value: self.value, again: again.collect() }
    }

    /// The middle 95% of the draws.
    pub(super) fn interval(&self) -> Interval {
        let mut sorted = self.again.clone();
        sorted.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let place = share * (sorted.len() - 1) as f64;
            let (below, part) = (place.floor() as usize, place.fract());
            let above = (below + 1).min(sorted.len() - 1);
            sorted[below] + part * (sorted[above] - sorted[below])
        };
        // What is skewed may lie wholly on one side of the value.
        let (low, high) = (at(0.025).min(self.value), at(0.975).max(self.value));
        Interval { value: self.value, low, high }
    }
}

/// How sure a mean over seeds is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sureness {
    pub(super) seeds: usize,
    /// The share of their held-back rows that two seeds have in common.
    pub(super) in_common: f64,
}

impl Sureness {
    /// By how much the variance of a mean over seeds is larger than if each seed had rows of its own.
    fn inflation(self) -> f64 {
        1.0 + (self.seeds.max(1) - 1) as f64 * self.in_common
    }

    /// How much farther apart draws have to be, given how many held-back rows there are on a seed of the
    /// class that has fewest; `None` where draws of so few say nothing.
    pub(super) fn factor(self, rarest: usize) -> Option<f64> {
        const NORMAL: f64 = 1.959_963_984_540_054;
        let rows = rarest as f64;
        if rarest < 2 {
            return None;
        }
        // So many rows would say as much if none came back.
        let effective = rows * self.seeds.max(1) as f64 / self.inflation();
        // Student's quantile for the normal one, by Fisher's expansion.
        let (z, free) = (NORMAL, (effective - 1.0).max(1.0));
        let student = z
            + (z.powi(3) + z) / (4.0 * free)
            + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * free * free);
        Some((self.inflation() * rows / (rows - 1.0)).sqrt() * student / z)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ClassesSaid;

    /// What a model says of rows of two classes, given how sure it is of the second.
    fn said(rows: &[(u32, f32)]) -> Said {
        Said::Classes(ClassesSaid {
            classes: 2,
            labels: rows.iter().map(|(label, _)| *label).collect(),
            hits: rows.iter().map(|(label, sure)| (*label == 1) == (*sure > 0.5)).collect(),
            losses: vec![0.5; rows.len()],
            probabilities: rows.iter().flat_map(|(_, sure)| [1.0 - sure, *sure]).collect(),
        })
    }

    fn auroc(redraws: &Redraws, rows: &[(u32, f32)]) -> Redrawn {
        redraws.measure(Listed::find("auroc").unwrap(), &said(rows)).unwrap()
    }

    #[test]
    fn every_draw_has_as_many_rows_of_each_class() {
        let kinds = [0, 0, 0, 1, 1];
        for counts in &Redraws::new(&kinds, 7, 1).0 {
            let of = |kind| {
                let rows = counts.iter().zip(kinds).filter(|(_, own)| *own == kind);
                rows.map(|(count, _)| *count).sum::<u32>()
            };
            assert_eq!((of(0), of(1)), (3, 2));
        }
        assert_eq!(Redraws::new(&kinds, 7, 1).0, Redraws::new(&kinds, 7, 1).0);
        assert_ne!(Redraws::new(&kinds, 7, 1).0, Redraws::new(&kinds, 8, 1).0);
    }

    #[test]
    fn two_models_that_say_the_same_do_not_differ_on_any_draw() {
        let rows: Vec<(u32, f32)> =
            (0..40).map(|row| (row % 2, (row * 7 % 40) as f32 / 40.0)).collect();
        let redraws = Redraws::of(&said(&rows), 0, 0);
        let own = auroc(&redraws, &rows);
        let none = own.minus(&own).spread(2.0).interval();
        assert_eq!((none.value, none.low, none.high), (0.0, 0.0, 0.0));
        let interval = own.interval();
        assert!(interval.low < own.value && own.value < interval.high);
        let wide = own.spread(2.0).interval();
        assert!((wide.high - own.value - 2.0 * (interval.high - own.value)).abs() < 1e-12);
        // Less is better: the ends change places.
        let turned = own.times(-1.0).interval();
        assert!((turned.low + interval.high).abs() < 1e-12);
    }

    #[test]
    fn rows_that_come_back_on_every_seed_say_nothing_new() {
        let of = |seeds, in_common| Sureness { seeds, in_common };
        assert_eq!(of(1, 0.2).inflation(), 1.0);
        assert_eq!(of(5, 1.0).inflation(), 5.0, "the mean is as sure as one seed");
        assert!((of(5, 0.2).inflation() - 1.8).abs() < 1e-12);
    }

    #[test]
    fn few_rows_are_less_sure_than_their_draws_say() {
        let one = Sureness { seeds: 1, in_common: 1.0 };
        assert_eq!(one.factor(1), None);
        let factor = |rows| one.factor(rows).unwrap();
        // Student's t with 9 degrees of freedom is 2.262; the series for it is good to two thousandths.
        assert!(
            (factor(10) - (10.0_f64 / 9.0).sqrt() * 2.262 / 1.96).abs() < 3e-3,
            "{}",
            factor(10)
        );
        assert!((factor(100_000) - 1.0).abs() < 1e-4);
        let factors = [2, 3, 5, 10, 30].map(factor);
        assert!(factors.windows(2).all(|pair| pair[0] > pair[1]), "{factors:?}");
    }
}

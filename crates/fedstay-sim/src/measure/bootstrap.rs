//! How sure a value is: the rows are drawn again, with replacement and as many as there are, and the
//! measure is computed of every draw; the middle 95% of these values are the interval (the percentile
//! bootstrap). It says what other rows of the same kind would have given: not what another seed, and
//! so another split, would. Of a few dozen rows it is somewhat too narrow, and where all rows are
//! right it has no width at all.
//!
//! Reference: Efron, Tibshirani, *An introduction to the bootstrap*, Chapman & Hall 1993, chapter 13.

use super::Listed;
use crate::model::Said;
use fedstay::{Interval, Seed};
use rand::Rng;

/// How often the rows are drawn.
pub const DRAWS: usize = 1000;

/// Which rows are drawn: the same for the same seed, agent and number of rows, whatever is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draws {
    /// The seed of the experiment. The draws are a stream of their own and change nothing else.
    pub seed: Seed,
    /// Whose rows they are, by number.
    pub agent: u64,
}

impl Draws {
    /// Calls `with` once a draw, with how often each of so many rows was drawn.
    fn each(self, rows: usize, mut with: impl FnMut(&[u32])) {
        let mut rng = self.seed.stream("bootstrap", 0, self.agent);
        let mut counts = vec![0_u32; rows];
        for _ in 0..DRAWS {
            counts.fill(0);
            for _ in 0..rows {
                // A row by the upper half of a product: no row is likelier by more than 2⁻³² rows.
                let row = (u64::from(rng.next_u32()) * rows as u64) >> 32;
                counts[row as usize] += 1;
            }
            with(&counts);
        }
    }
}

/// The value of a measure on some rows with its 95% interval; `None` where it is not defined.
pub fn interval(listed: &Listed, said: &Said, draws: Draws) -> Option<Interval> {
    intervals(&[listed], said, draws).remove(0)
}

/// The same of several measures, on the same draws.
pub fn intervals(listed: &[&Listed], said: &Said, draws: Draws) -> Vec<Option<Interval>> {
    let each: Vec<_> = listed.iter().map(|listed| listed.weighted(said)).collect();
    let value = |weights: &[u32], place: usize| each[place].as_ref()?(weights);
    over_draws(each.len(), said.len(), draws, value)
}

/// By how much a measure of `to` is above that of `from`, two models on the same rows, with its 95%
/// interval. The rows are drawn once for both, so what makes a row hard for both cancels out. `None`
/// where the measure is not defined, or the rows are not the same.
pub fn difference(listed: &Listed, from: &Said, to: &Said, draws: Draws) -> Option<Interval> {
    if !from.is_of_the_same_rows(to) {
        return None;
    }
    let (own, other) = (listed.weighted(from)?, listed.weighted(to)?);
    let value = |weights: &[u32], _| Some(other(weights)? - own(weights)?);
    over_draws(1, from.len(), draws, value).remove(0)
}

/// Several values of the rows as they are, with their intervals over draws. A draw in which a value is
/// not defined, for instance because a class is missing, does not count for it.
fn over_draws(
    values: usize,
    rows: usize,
    draws: Draws,
    value: impl Fn(&[u32], usize) -> Option<f64>,
) -> Vec<Option<Interval>> {
    let finite = |value: Option<f64>| value.filter(|value| value.is_finite());
    let as_they_are = vec![1; rows];
    let own: Vec<_> = (0..values).map(|place| finite(value(&as_they_are, place))).collect();
    let mut drawn = vec![Vec::new(); values];
    if own.iter().any(Option::is_some) {
        draws.each(rows, |weights| {
            for (place, drawn) in drawn.iter_mut().enumerate().filter(|(at, _)| own[*at].is_some())
            {
                drawn.extend(finite(value(weights, place)));
            }
        });
    }
    let interval = |(own, mut drawn): (Option<f64>, Vec<f64>)| {
        let value = own?;
        drawn.sort_unstable_by(f64::total_cmp);
        let (low, high) = (quantile(&drawn, 0.025)?, quantile(&drawn, 0.975)?);
        // A measure that chance can only worsen may be worse in nearly every draw than in the rows.
        Some(Interval { value, low: low.min(value), high: high.max(value) })
    };
    own.into_iter().zip(drawn).map(interval).collect()
}

/// The value below which this share of sorted values lies, between two of them by a straight line.
fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let place = share * sorted.len().checked_sub(1)? as f64;
    let (below, part) = (sorted[place as usize], place.fract());
    let above = *sorted.get(place as usize + 1).unwrap_or(&below);
    Some(below + part * (above - below))
}

//! Sums of losses that do not depend on the order of the samples.
//!
//! A sample's loss is counted in units of 2⁻⁴⁰ (about 1e-12) and summed as an integer, so a sum is
//! exact, whatever the order, the tiles or the threads. As losses are never negative, a partial sum
//! is a lower bound of the whole one *in the same arithmetic*: when it alone shows that a mean is
//! above a bound, the full evaluation would have said the same, bit for bit.

/// The largest loss a sample can have, 2²³. One that is larger, or not a number (weights that
/// diverged), counts as this: the mean stays finite, and far above any bound anybody would set.
pub const LOSS_CEILING: f32 = 8_388_608.0;

const UNIT: f64 = 1.0 / (1u64 << 40) as f64;

/// A sum of per-sample losses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LossSum(u128);

impl LossSum {
    /// Adds one sample's loss.
    #[inline]
    pub fn add(&mut self, loss: f32) {
        // Written so that a NaN takes the ceiling.
        let loss = if loss < LOSS_CEILING { loss.max(0.0) } else { LOSS_CEILING };
        self.0 += u128::from((f64::from(loss) / UNIT) as u64);
    }

    /// Adds another sum: it then covers the samples of both.
    pub fn merge(&mut self, other: Self) {
        self.0 += other.0;
    }

    /// The mean over `samples` samples. It never decreases when the sum grows.
    #[must_use]
    pub fn mean(self, samples: usize) -> f64 {
        self.0 as f64 * UNIT / samples as f64
    }

    /// The largest sum whose mean over `samples` is at most `bound`, which must be a number; `None`
    /// if even an empty sum is above it.
    pub(crate) fn largest_at_most(bound: f64, samples: usize) -> Option<Self> {
        if bound < 0.0 {
            return None;
        }
        // `mean` rounds, so the guess may be slightly off: it is settled with `mean` itself. The
        // predicate is monotone, and the whole range is 128 bits wide.
        let (mut low, mut high) = (0u128, (samples as u128 * (LOSS_CEILING as u128 + 1)) << 40);
        if Self(high).mean(samples) <= bound {
            return Some(Self(high));
        }
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if Self(middle).mean(samples) <= bound {
                low = middle;
            } else {
                high = middle;
            }
        }
        Some(Self(low))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_threshold_is_the_comparison(bound in 0.0f64..20.0, samples in 1usize..100_000, off in -3i64..4) {
            let threshold = LossSum::largest_at_most(bound, samples).unwrap();
            let sum = LossSum(threshold.0.saturating_add_signed(off.into()));
            prop_assert_eq!(sum <= threshold, sum.mean(samples) <= bound);
        }

        #[test]
        fn order_does_not_matter(mut losses in prop::collection::vec(0f32..50.0, 1..200)) {
            let sum = |losses: &[f32]| {
                let mut sum = LossSum::default();
                losses.iter().for_each(|loss| sum.add(*loss));
                sum
            };
            let before = sum(&losses);
            let exact = losses.iter().map(|loss| f64::from(*loss)).sum::<f64>() / losses.len() as f64;
            prop_assert!((before.mean(losses.len()) - exact).abs() < 1e-11);
            losses.reverse();
            prop_assert_eq!(before, sum(&losses));
            let (left, right) = losses.split_at(losses.len() / 3);
            let mut merged = sum(left);
            merged.merge(sum(right));
            prop_assert_eq!(before, merged);
        }
    }

    #[test]
    fn divergence_is_a_large_number() {
        for loss in [f32::NAN, f32::INFINITY, 1e30] {
            let mut sum = LossSum::default();
            sum.add(loss);
            assert_eq!(sum.mean(1), f64::from(LOSS_CEILING));
        }
        assert_eq!(LossSum::largest_at_most(-1e-300, 3), None);
        assert_eq!(LossSum::largest_at_most(0.0, 3), Some(LossSum(0)));
        assert!(LossSum::largest_at_most(f64::INFINITY, 3).unwrap() > LossSum(1 << 64));
    }
}

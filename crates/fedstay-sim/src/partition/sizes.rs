//! How many rows each device gets.
//!
//! | `sizes` | shares of the rows | |
//! |---|---|---|
//! | `equal` | the same for all | |
//! | `power` | device i has (i + 1)^(−skew) | device 0 has the most |
//! | `dirichlet` | Dirichlet(1/skew) | drawn from the seed |
//!
//! `skew` says how unequal they are; 0 is equal in both. With ten devices and `skew = 1.5`, `power`
//! gives device 0 half of all rows. Every device gets at least one row (one shard), and as many rows
//! are dealt out as with equal sizes, if the classes have them.

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::dirichlet;
use crate::data::DataError;

/// How unequal the devices are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sizing {
    /// All devices have equally many rows.
    #[default]
    Equal,
    /// A power law: device 0 has the most.
    Power,
    /// Random shares.
    Dirichlet,
}

pub(super) fn one() -> f64 {
    1.0
}

/// Checks how unequal devices may be.
pub(super) fn check(skew: f64) -> Result<(), DataError> {
    if (0.0..=100.0).contains(&skew) {
        return Ok(());
    }
    let why = format!("{skew} must be a number from 0, which is equal, to 100");
    Err(DataError::setting("partition.skew", why))
}

/// Every device's share of the rows; `None` if all are equal.
pub(super) fn shares(
    (sizes, skew): (Sizing, f64),
    devices: usize,
    rng: &mut ChaCha8Rng,
) -> Result<Option<Vec<f64>>, DataError> {
    check(skew)?;
    match sizes {
        _ if skew == 0.0 => Ok(None),
        Sizing::Equal => Ok(None),
        Sizing::Power => {
            let weights: Vec<f64> = (1..=devices).map(|rank| (rank as f64).powf(-skew)).collect();
            let total: f64 = weights.iter().sum();
            Ok(Some(weights.into_iter().map(|weight| weight / total).collect()))
        }
        Sizing::Dirichlet => Ok(Some(dirichlet::shares(1.0 / skew, devices, rng))),
    }
}

/// Whole numbers in proportion to the shares that sum to `total`, which is at least one for each:
/// sums of the first few are rounded, and an empty share takes one row from the largest.
pub(super) fn counts(shares: &[f64], total: usize) -> Vec<usize> {
    let (mut sum, mut before) = (0.0, 0);
    let mut counts: Vec<usize> = Vec::with_capacity(shares.len());
    for (place, share) in shares.iter().enumerate() {
        sum += share;
        let last = place + 1 == shares.len();
        let upto = if last { total } else { (sum * total as f64).round() as usize };
        let upto = upto.clamp(before, total);
        counts.push(upto - before);
        before = upto;
    }
    while let Some(empty) = counts.iter().position(|count| *count == 0) {
        let largest = (0..counts.len()).rev().max_by_key(|place| counts[*place]);
        match largest.filter(|largest| counts[*largest] > 1) {
            Some(largest) => {
                counts[largest] -= 1;
                counts[empty] = 1;
            }
            None => break,
        }
    }
    counts
}

/// How the sizes are called in the head of an output; nothing where they are equal.
pub(super) fn describe((sizes, skew): (Sizing, f64)) -> String {
    match sizes {
        _ if skew == 0.0 => String::new(),
        Sizing::Equal => String::new(),
        Sizing::Power => format!("; rows by a power law, skew {skew}"),
        Sizing::Dirichlet => format!("; random numbers of rows, skew {skew}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::SeedableRng;

    #[test]
    fn a_power_of_three_halves_gives_the_first_of_ten_half_of_the_rows() {
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let power = shares((Sizing::Power, 1.5), 10, &mut rng).unwrap().unwrap();
        assert!((power[0] - 0.5).abs() < 2e-3, "{power:?}");
        assert!((power[0] / power[3] - 8.0).abs() < 1e-12);
        assert_eq!(shares((Sizing::Power, 0.0), 10, &mut rng).unwrap(), None);
        for bad in [-1.0, f64::NAN, 1e9] {
            let error = shares((Sizing::Power, bad), 3, &mut rng).unwrap_err().to_string();
            assert!(error.contains("partition.skew"), "{error}");
        }
    }

    #[test]
    fn random_shares_spread_with_the_skew() {
        // The variance of one share of n is (1 − 1/n)/(n(n/skew + 1)).
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        for skew in [0.1, 1.0, 4.0] {
            let mut squares = 0.0;
            for _ in 0..4000 {
                let drawn = shares((Sizing::Dirichlet, skew), 5, &mut rng).unwrap().unwrap();
                squares += (drawn[0] - 0.2).powi(2) / 4000.0;
            }
            let expected = 0.8 / (5.0 * (5.0 / skew + 1.0));
            assert!((squares / expected - 1.0).abs() < 0.12, "{skew}: {squares} {expected}");
        }
    }

    proptest! {
        #[test]
        fn counts_sum_up_are_near_their_shares_and_never_zero(
            weights in prop::collection::vec(0.001..1.0f64, 1..30),
            more in 0usize..2000,
        ) {
            let total = weights.len() + more;
            let sum: f64 = weights.iter().sum();
            let shares: Vec<f64> = weights.iter().map(|weight| weight / sum).collect();
            let counts = counts(&shares, total);
            prop_assert_eq!(counts.iter().sum::<usize>(), total);
            prop_assert!(counts.iter().all(|count| *count > 0));
            let given_away = weights.len() as f64;
            for (count, share) in counts.iter().zip(&shares) {
                let off = *count as f64 - share * total as f64;
                prop_assert!(off <= 1.5 && off >= -1.0 - given_away, "{} for {}", count, share);
            }
        }
    }
}

//! Every device has its own random mixture of the classes.
//!
//! Device i draws class shares p_i ~ Dirichlet(α, …, α); then the devices take turns, each drawing
//! a class from its p_i among those that still have rows, and one row of that class. Taking turns
//! spreads the leftovers over all devices instead of handing them to the last one. A device with more
//! rows has its turns more often.
//!
//! Reference: H. Hsu, H. Qi and M. Brown, *Measuring the Effects of Non-Identical Data Distribution
//! for Federated Visual Classification*, arXiv 1909.06335, 2019.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use std::ops::Range;

use super::sizes::{Sizing, one};
use super::{Deal, Dealing, Dealt, Law, Origin, Portions};
use crate::data::DataError;

pub(super) const ORIGIN: Origin = Origin {
    about: "every device draws its own mixture of classes, uneven for a small alpha",
    reference: "",
};

/// Random mixtures: close to one class per device for a small `alpha`, close to i.i.d. for a large
/// one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dirichlet {
    /// The concentration α, above 0.
    pub alpha: f64,
    /// How many rows the devices have.
    #[serde(default)]
    pub sizes: Sizing,
    /// How unequal that is; 0 is equal.
    #[serde(default = "one")]
    pub skew: f64,
}

impl Dirichlet {
    /// Checks the concentration.
    pub(super) fn check(&self) -> Result<(), DataError> {
        if self.alpha > 0.0 && self.alpha.is_finite() {
            return Ok(());
        }
        let why = format!("{} must be a number above 0", self.alpha);
        Err(DataError::setting("partition.alpha", why))
    }
}

impl Dealing for Dirichlet {
    fn sizing(&self) -> (Sizing, f64) {
        (self.sizes, self.skew)
    }

    fn describe(&self) -> String {
        format!("Dirichlet({}) mixtures", self.alpha)
    }

    fn deal(&self, portions: &Portions<'_>, rng: &mut ChaCha8Rng) -> Dealt {
        self.check()?;
        let classes = portions.deal.classes("dirichlet")?;
        let counts = portions.rows_each()?;
        let mut classes = Deal::shuffled(classes, rng);
        let mixtures: Vec<Vec<f64>> =
            counts.iter().map(|_| shares(self.alpha, classes.len(), rng)).collect();
        let mut devices: Vec<Vec<usize>> =
            counts.iter().map(|count| Vec::with_capacity(*count)).collect();
        for device in turns(&counts) {
            let class = draw(&mixtures[device], &classes, rng);
            devices[device].extend(classes[class].pop());
        }
        Ok(devices)
    }

    fn law(&self, deal: &Deal<'_>, _: usize, _: &[Range<usize>]) -> Result<Law, DataError> {
        deal.classes("dirichlet")?;
        self.check()?;
        Ok(Law::Mixture { alpha: self.alpha })
    }
}

/// Whose turn it is, row after row: the k-th of a device's n rows is dealt at the time (k + ½)/n, at
/// equal times to the first device first.
fn turns(counts: &[usize]) -> Vec<usize> {
    let of = |(device, count): (usize, &usize)| {
        let count = *count;
        (0..count).map(move |k| ((k as f64 + 0.5) / count as f64, device))
    };
    let mut turns: Vec<(f64, usize)> = counts.iter().enumerate().flat_map(of).collect();
    turns.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    turns.into_iter().map(|(_, device)| device).collect()
}

/// Draws a class from `mixture` among those with rows left. There is one: `rows_each` made sure of
/// it.
fn draw(mixture: &[f64], classes: &[Vec<usize>], rng: &mut ChaCha8Rng) -> usize {
    let open = || classes.iter().enumerate().filter(|(_, rows)| !rows.is_empty());
    let total: f64 = open().map(|(class, _)| mixture[class]).sum();
    let mut target = rng.random::<f64>() * total;
    let mut chosen = None;
    for (class, rows) in open() {
        // With nothing of its mixture left, a device takes from the class that has the most rows.
        if total > 0.0 {
            chosen = Some(class);
            target -= mixture[class];
            if target < 0.0 {
                break;
            }
        } else if chosen.is_none_or(|best: usize| rows.len() > classes[best].len()) {
            chosen = Some(class);
        }
    }
    chosen.expect("a class with rows is left")
}

/// One draw from the symmetric Dirichlet distribution. Gamma variates are kept as logarithms:
/// for a small α most of them are below the smallest float.
pub(super) fn shares(alpha: f64, classes: usize, rng: &mut ChaCha8Rng) -> Vec<f64> {
    let logs: Vec<f64> = (0..classes).map(|_| log_gamma_variate(alpha, rng)).collect();
    let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = logs.iter().map(|log| (log - largest).exp()).collect();
    let total: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / total).collect()
}

/// A Gamma(α, 1) variate.
pub(super) fn gamma_variate(alpha: f64, rng: &mut ChaCha8Rng) -> f64 {
    log_gamma_variate(alpha, rng).exp()
}

/// The logarithm of a Gamma(α, 1) variate. G. Marsaglia and W. Tsang, *A Simple Method for
/// Generating Gamma Variables*, 2000; with Gamma(α) = Gamma(α + 1)·U^(1/α).
fn log_gamma_variate(alpha: f64, rng: &mut ChaCha8Rng) -> f64 {
    let d = alpha + 1.0 - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    let positive = |rng: &mut ChaCha8Rng| 1.0 - rng.random::<f64>();
    loop {
        let radius = (-2.0 * positive(rng).ln()).sqrt();
        let normal = radius * (std::f64::consts::TAU * rng.random::<f64>()).cos();
        let v = (1.0 + c * normal).powi(3);
        let accepted =
            v > 0.0 && positive(rng).ln() < 0.5 * normal * normal + d * (1.0 - v + v.ln());
        if accepted {
            return (d * v).ln() + positive(rng).ln() / alpha;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn equal_devices_take_turns_and_a_larger_one_has_more_of_them() {
        assert_eq!(turns(&[2, 2, 2]), [0, 1, 2, 0, 1, 2]);
        assert_eq!(turns(&[4, 2, 1]), [0, 1, 0, 2, 0, 1, 0]);
    }

    #[test]
    fn shares_have_the_moments_of_the_distribution() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for alpha in [0.1, 1.0, 7.5] {
            let draws: Vec<f64> = (0..20_000).map(|_| shares(alpha, 4, &mut rng)[0]).collect();
            let mean = draws.iter().sum::<f64>() / draws.len() as f64;
            let square = draws.iter().map(|p| (p - mean).powi(2)).sum::<f64>() / draws.len() as f64;
            let expected = 0.25 * 0.75 / (4.0 * alpha + 1.0);
            assert!((mean - 0.25).abs() < 0.01, "{alpha}: {mean}");
            assert!((square / expected - 1.0).abs() < 0.05, "{alpha}: {square} {expected}");
        }
    }

    #[test]
    fn a_tiny_alpha_is_one_class_and_never_nan() {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        for _ in 0..100 {
            let drawn = shares(1e-6, 10, &mut rng);
            assert!((drawn.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{drawn:?}");
            assert!(drawn.iter().any(|&share| share > 0.999), "{drawn:?}");
        }
    }
}

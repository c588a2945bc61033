//! Differential privacy for reports: clipping, Gaussian noise, and what it costs.
//!
//! Before it reports, an agent clips its direction to length `clip` and adds Gaussian noise of
//! deviation `noise · clip` to every component; it clips its loss to `[0, loss_clip]` and adds
//! noise of deviation `noise · loss_clip / 2`. If it also reports a gradient, that is treated like
//! the direction. The noise is the agent's own: the server need not be trusted (local privacy), and
//! what is protected is the agent's *whole* data set, not one row of it.
//!
//! **Accounting.** Two data sets may differ in every row, so a clipped direction moves by up to
//! `2·clip` and a clipped loss by up to `loss_clip`: each of the `k` numbers or vectors of a report
//! is a Gaussian mechanism with sensitivity over deviation `2/noise`. Gaussian mechanisms compose
//! exactly, even when later queries depend on earlier answers: `T` reports are μ-GDP with
//! `μ = (2/noise)·√(k·T)`, and
//!
//! ```text
//! δ(ε) = Φ(−ε/μ + μ/2) − e^ε Φ(−ε/μ − μ/2)
//! ```
//!
//! is exact, not a bound (no library: the closed form). References: Borja Balle, Yu-Xiang Wang,
//! *Improving the Gaussian Mechanism for Differential Privacy*, ICML 2018, Theorem 8; Jinshuo Dong,
//! Aaron Roth, Weijie Su, *Gaussian Differential Privacy*, JRSS B 2022, Corollaries 1 and 3.
//!
//! **Not covered**: whether and when an agent leaves or comes back (it decides by its true loss),
//! its target loss, and how many reports it sent. Nor is the arithmetic hardened: noise in floating
//! point has holes (Mironov, CCS 2012), so this measures the price of privacy; it is not for
//! deployment.

use crate::{Error, Loss};
use fedstay_kernels::numerics::{Number, normals};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// What agents do to their reports.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Privacy {
    /// Directions are clipped to this length. Smaller: less noise for the same budget, more bias.
    pub clip: f64,
    /// Losses are clipped to at most this.
    pub loss_clip: f64,
    /// The noise's deviation, relative to what is clipped. 0 clips only and protects nothing.
    pub noise: f64,
    /// The δ for which the budget is stated.
    pub delta: f64,
}

impl Default for Privacy {
    fn default() -> Self {
        Self { clip: 1.0, loss_clip: 2.0, noise: 1.0, delta: 1e-5 }
    }
}

/// What a run's reports gave away.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    /// The ε of (ε, δ)-differential privacy; null where there is no noise.
    pub epsilon: Option<f64>,
    /// The δ of (ε, δ)-differential privacy.
    pub delta: f64,
    /// The μ of Gaussian differential privacy; null where there is no noise.
    pub mu: Option<f64>,
    /// The number of reports of the agent that sent the most.
    pub reports: u32,
    /// The clipping, and the noise relative to it.
    pub privacy: Privacy,
}

impl Privacy {
    /// Checks the parameters, once, before the first round.
    pub fn check(&self) -> Result<(), Error> {
        for (name, value) in [("privacy.clip", self.clip), ("privacy.loss_clip", self.loss_clip)] {
            if !(value.is_finite() && value > 0.0) {
                return Err(Error::bad_parameter(name, value, "a number above zero"));
            }
        }
        if !(self.noise.is_finite() && self.noise >= 0.0) {
            return Err(Error::bad_parameter("privacy.noise", self.noise, "zero or more"));
        }
        if !(self.delta > 0.0 && self.delta < 1.0) {
            return Err(Error::bad_parameter("privacy.delta", self.delta, "between 0 and 1"));
        }
        Ok(())
    }

    /// Clips a direction and adds noise to it.
    pub fn blur<T: Number>(&self, direction: &mut [T], rng: &mut ChaCha8Rng) {
        let square: f64 = direction.iter().map(|value| value.widen().powi(2)).sum();
        let shrink = (self.clip / square.sqrt()).min(1.0);
        // Every pair of uniform numbers gives two normal ones.
        for pair in direction.chunks_mut(2) {
            let noise = normals(rng);
            for (value, noise) in pair.iter_mut().zip(noise) {
                *value = T::narrow(shrink * value.widen() + self.noise * self.clip * noise);
            }
        }
    }

    /// Clips a loss and adds noise to it: what the server gets is an estimate and says so. It is
    /// never negative, which costs no privacy.
    pub fn blur_loss(&self, loss: f64, rng: &mut ChaCha8Rng) -> Loss {
        let standard_error = 0.5 * self.noise * self.loss_clip;
        let noise = standard_error * normals(rng)[0];
        let mean = (loss.clamp(0.0, self.loss_clip) + noise).max(0.0);
        if self.noise == 0.0 { Loss::Exact(mean) } else { Loss::Sampled { mean, standard_error } }
    }

    /// What `reports` reports of `parts` vectors or numbers each give away.
    pub fn budget(&self, reports: u32, parts: u32) -> Budget {
        let parts = f64::from(parts) * f64::from(reports);
        let mu = (self.noise > 0.0).then(|| 2.0 / self.noise * parts.sqrt());
        let epsilon = mu.map(|mu| epsilon(mu, self.delta));
        Budget { epsilon, delta: self.delta, mu, reports, privacy: *self }
    }
}

/// The smallest ε ≥ 0 with δ(ε) ≤ `delta` for a μ-GDP mechanism.
fn epsilon(mu: f64, delta: f64) -> f64 {
    let holds = |epsilon: f64| spent(epsilon, mu) <= delta;
    if mu == 0.0 || holds(0.0) {
        return 0.0;
    }
    let mut high = 1.0;
    while !holds(high) && high < 1e300 {
        high *= 2.0;
    }
    let mut low = 0.0;
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if holds(middle) { high = middle } else { low = middle }
    }
    high
}

/// δ(ε) of a μ-GDP mechanism.
fn spent(epsilon: f64, mu: f64) -> f64 {
    let first = log_normal_cdf(mu / 2.0 - epsilon / mu);
    let second = epsilon + log_normal_cdf(-mu / 2.0 - epsilon / mu);
    // e^first − e^second, without losing it where the two are close.
    if second >= first { 0.0 } else { first.exp() * -(second - first).exp_m1() }
}

/// ln Φ(x), good in the far lower tail too.
fn log_normal_cdf(x: f64) -> f64 {
    if x > -5.0 {
        return (0.5 * libm::erfc(-x / std::f64::consts::SQRT_2)).ln();
    }
    // Φ(x) = φ(x)/(−x + 1/(−x + 2/(−x + 3/(…)))), Laplace's continued fraction.
    let t = -x;
    let fraction = (1..=60).rev().fold(t, |below, k| t + f64::from(k) / below);
    -0.5 * x * x - 0.5 * std::f64::consts::TAU.ln() - fraction.ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Seed, Vector, linalg};

    fn length(direction: &[f64]) -> f64 {
        linalg::norm(Vector::F64(direction))
    }

    #[test]
    fn the_budget_agrees_with_another_implementation() {
        // From another implementation: for Δ = 1, ε = 1, δ = 1e-5 the σ is 3.730632.
        assert!((spent(1.0, 1.0 / 3.730_632) / 1e-5 - 1.0).abs() < 1e-4);
        assert!((epsilon(1.0 / 3.730_632, 1e-5) - 1.0).abs() < 1e-5);
        // Dong, Roth, Su 2022: δ(0) = Φ(μ/2) − Φ(−μ/2), the total variation.
        let (mu, phi) = (1.0, 0.691_462_461_274_013);
        assert!((spent(0.0, mu) - (2.0 * phi - 1.0)).abs() < 1e-12);
        // An ε below one.
        assert!((epsilon(1.0 / 30.749_566, 1e-5) - 0.1).abs() < 1e-3);
        // Far in the tail nothing overflows, and more reports cost more.
        let privacy = Privacy { noise: 0.01, ..Privacy::default() };
        let budgets: Vec<f64> =
            [1, 10, 1000, 100_000].map(|t| privacy.budget(t, 2).epsilon.unwrap()).to_vec();
        assert!(budgets.is_sorted() && budgets.iter().all(|e| e.is_finite() && *e > 1e4));
        assert_eq!(Privacy { noise: 0.0, ..privacy }.budget(5, 2).epsilon, None);
    }

    #[test]
    fn the_two_forms_of_the_tail_agree() {
        for x in [-5.000_001, -6.0, -8.0, -20.0] {
            let direct = (0.5 * libm::erfc(-x / std::f64::consts::SQRT_2)).ln();
            assert!((log_normal_cdf(x) - direct).abs() < 1e-11 * direct.abs(), "{x}");
        }
    }

    #[test]
    fn composition_is_one_mechanism_with_less_noise() {
        // T reports of noise σ are one report of noise σ/√T.
        let many = Privacy { noise: 10.0, ..Privacy::default() }.budget(25, 2).epsilon.unwrap();
        let one = Privacy { noise: 2.0, ..Privacy::default() }.budget(1, 2).epsilon.unwrap();
        assert!((many - one).abs() < 1e-9);
    }

    #[test]
    fn directions_are_clipped_and_noise_has_its_deviation_and_repeats() {
        let seed = |round| Seed(3).stream("privacy", round, 0);
        let only_clips = Privacy { noise: 0.0, clip: 2.0, ..Privacy::default() };
        let mut long = vec![3.0, 4.0];
        only_clips.blur(&mut long, &mut seed(1));
        assert!((length(&long) - 2.0).abs() < 1e-12);
        let mut short = vec![0.3, 0.4];
        only_clips.blur(&mut short, &mut seed(1));
        assert_eq!(short, [0.3, 0.4]);
        let noisy = Privacy { noise: 0.5, clip: 2.0, ..Privacy::default() };
        let draw = |round| {
            let mut zeros = vec![0.0; 20_000];
            noisy.blur(&mut zeros, &mut seed(round));
            zeros
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        assert!((length(&draw(1)) / 20_000f64.sqrt() - 1.0).abs() < 0.02);
    }

    #[test]
    fn a_blurred_loss_says_that_it_is_an_estimate() {
        let mut rng = Seed(0).stream("privacy", 1, 0);
        let privacy = Privacy { noise: 0.1, loss_clip: 2.0, ..Privacy::default() };
        let Loss::Sampled { mean, standard_error } = privacy.blur_loss(50.0, &mut rng) else {
            panic!("not an estimate")
        };
        assert!((mean - 2.0).abs() < 0.6 && standard_error == 0.1);
        let exact = Privacy { noise: 0.0, ..privacy }.blur_loss(0.5, &mut rng);
        assert_eq!(exact, Loss::Exact(0.5));
    }

    #[test]
    fn nonsense_is_refused_by_name() {
        let privacy = Privacy::default();
        for (bad, name) in [
            (Privacy { clip: 0.0, ..privacy }, "privacy.clip"),
            (Privacy { loss_clip: f64::NAN, ..privacy }, "privacy.loss_clip"),
            (Privacy { noise: -1.0, ..privacy }, "privacy.noise"),
            (Privacy { delta: 1.0, ..privacy }, "privacy.delta"),
        ] {
            assert!(bad.check().unwrap_err().to_string().contains(name));
        }
    }
}

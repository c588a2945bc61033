//! What a free rider sends instead of work, made from nothing but the models it received.
//!
//! | [`Forgery`] | the displacement it claims | |
//! |---|---|---|
//! | `Random` | uniform in [−range, range], times its reach | Lin et al. |
//! | `Delta` | `scale` times what the server's model last changed by | Lin et al.; scaled |
//! | `Noise` | normal, as large as the first change of the model it saw, times t^(−γ) | Fraboni et al. |
//!
//! Before it has seen a change of the model, the last two send nothing, which is also what an agent
//! that returns the model unchanged sends.
//!
//! References: Jierui Lin, Min Du, Jian Liu, *Free-riders in Federated Learning: Attacks and
//! Defenses*, arXiv 1911.12560, 2019. Yann Fraboni, Richard Vidal, Marco Lorenzi, *Free-rider Attacks
//! on Model Aggregation in Federated Learning*, AISTATS 2021.

use crate::packed;
use fedstay_kernels::numerics::{Number, normals, uniform};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// What is sent instead of work.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Forgery {
    /// A random direction.
    Random {
        /// The largest component of the direction.
        range: f64,
    },
    /// What the server's model last changed by.
    Delta {
        /// Times this.
        scale: f64,
    },
    /// Noise that fades.
    Noise {
        /// What it is multiplied by in this round.
        fades: f64,
    },
}

/// What a free rider remembers of the models it received.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SeenModels {
    /// The model it received last.
    #[serde(with = "packed")]
    last: Vec<f64>,
    /// The root mean square of the components of the first change that it saw.
    first: Option<f64>,
}

impl SeenModels {
    /// Whether it is of a model with this many weights, or of none yet.
    pub fn fits(&self, dimension: usize) -> bool {
        self.last.is_empty() || self.last.len() == dimension
    }

    /// Fills `direction` such that `−reach · direction` is the displacement it claims, and takes note
    /// of what it received.
    pub fn forge<T: Number>(
        &mut self,
        forgery: Forgery,
        received: impl Iterator<Item = f64>,
        reach: f64,
        rng: &mut ChaCha8Rng,
        direction: &mut [T],
    ) {
        let received: Vec<f64> = received.collect();
        let change = |index: usize| match self.last.get(index) {
            Some(before) => received[index] - before,
            None => 0.0,
        };
        let square: f64 = (0..received.len()).map(|index| change(index).powi(2)).sum();
        if self.first.is_none() && square > 0.0 {
            self.first = Some((square / received.len() as f64).sqrt());
        }
        let deviation = self.first.unwrap_or(0.0);
        for (index, value) in direction.iter_mut().enumerate() {
            *value = T::narrow(match forgery {
                Forgery::Random { range } => range * (2.0 * uniform(rng) - 1.0),
                Forgery::Delta { scale } => -scale * change(index) / reach,
                Forgery::Noise { fades } => fades * deviation * normals(rng)[0] / reach,
            });
        }
        self.last = received;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Seed;

    fn forged(seen: &mut SeenModels, forgery: Forgery, weights: &[f64], round: u64) -> Vec<f64> {
        let mut direction = vec![9.0; weights.len()];
        let mut rng = Seed(1).stream("free-riding", round, 0);
        seen.forge(forgery, weights.iter().copied(), 0.5, &mut rng, &mut direction);
        direction
    }

    #[test]
    fn a_delta_is_the_last_change_of_the_model_and_nothing_before_there_is_one() {
        for scale in [1.0, 0.25] {
            let (mut seen, delta) = (SeenModels::default(), Forgery::Delta { scale });
            assert!(forged(&mut seen, delta, &[1.0, 2.0], 1).iter().all(|value| *value == 0.0));
            let direction = forged(&mut seen, delta, &[1.5, 1.0], 2);
            // −reach·direction is the change, (0.5, −1), scaled.
            assert_eq!(direction, [-scale, 2.0 * scale]);
            assert!(seen.fits(2) && !seen.fits(3));
        }
    }

    #[test]
    fn noise_is_as_large_as_the_first_change_and_fades_and_random_stays_in_its_range() {
        let mut seen = SeenModels::default();
        let weights = |by: f64| vec![by; 20_000];
        forged(&mut seen, Forgery::Noise { fades: 1.0 }, &weights(0.0), 1);
        for (round, fades) in [(2, 1.0), (3, 0.5)] {
            let noise = Forgery::Noise { fades };
            let direction = forged(&mut seen, noise, &weights(0.2 * round as f64), round);
            let square: f64 = direction.iter().map(|value| (0.5 * value).powi(2)).sum();
            let deviation = (square / 20_000.0).sqrt();
            // The first change that it saw was 0.4 in every weight.
            assert!((deviation / (0.4 * fades) - 1.0).abs() < 0.03, "{deviation}");
        }
        let random = forged(&mut seen, Forgery::Random { range: 0.3 }, &weights(0.0), 4);
        let largest = random.iter().fold(0.0f64, |largest, value| largest.max(value.abs()));
        assert!(largest <= 0.3 && largest > 0.29, "{largest}");
    }
}

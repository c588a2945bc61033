//! Uniform and normal draws. Every seeded result depends on their bits.
//!
//! Reference: Box, Muller, *A Note on the Generation of Random Normal Deviates*, Annals of
//! Mathematical Statistics 29, 1958.

use rand::Rng;
use std::f64::consts::TAU;

/// Draws a number uniform in [0, 1), with 53 bits.
pub fn uniform(rng: &mut impl Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 * 2f64.powi(-53)
}

/// Draws a standard normal number; the second one of its pair is not used.
pub fn normal(rng: &mut impl Rng) -> f64 {
    let (radius, angle) = draw(rng);
    radius * angle.cos()
}

/// Draws two independent standard normal numbers.
pub fn normals(rng: &mut impl Rng) -> [f64; 2] {
    let (radius, angle) = draw(rng);
    let (sine, cosine) = angle.sin_cos();
    [radius * cosine, radius * sine]
}

fn draw(rng: &mut impl Rng) -> (f64, f64) {
    // The logarithm must not see a zero, and the draw is never one.
    let length = 1.0 - uniform(rng);
    polar(length, uniform(rng))
}

/// The radius and the angle at which two uniform numbers, the first above zero, put a pair of
/// standard normal ones.
pub fn polar(length: f64, turn: f64) -> (f64, f64) {
    ((-2.0 * length.ln()).sqrt(), TAU * turn)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Seed;

    #[test]
    fn the_draws_are_part_of_the_contract() {
        // A change here changes every seeded result: it needs a line in the changelog.
        let rng = || Seed(42).stream("start", 0, 0);
        let one = normal(&mut rng());
        assert_eq!(one.to_bits(), normals(&mut rng())[0].to_bits());
        assert_eq!(uniform(&mut rng()), 0.040_794_261_756_974_87);
    }

    #[test]
    fn they_have_the_moments_of_a_normal() {
        let mut rng = Seed(1).stream("normal", 0, 0);
        let draws: Vec<f64> = (0..20_000).flat_map(|_| normals(&mut rng)).collect();
        let moment =
            |power: i32| draws.iter().map(|x| x.powi(power)).sum::<f64>() / draws.len() as f64;
        assert!(moment(1).abs() < 0.02 && (moment(2) - 1.0).abs() < 0.03);
        assert!((moment(4) - 3.0).abs() < 0.2, "{}", moment(4));
        let pairs: f64 = draws.chunks(2).map(|pair| pair[0] * pair[1]).sum();
        assert!((pairs / 20_000.0).abs() < 0.03);
    }
}

//! Exponentials, logarithms and the activations made of them: branch-free `f32` polynomials that
//! the compiler turns into vector code.
//!
//! The polynomials are those of Moshier's Cephes library (`expf`, `logf`, `tanhf`). None of them
//! uses a fused multiply-add, so a value has the same bits on every machine and wherever in a
//! vector it happens to sit. Within the ranges given they agree with `f64` to a relative 3e-7.

use crate::Isa;
use crate::isa::dispatch;

/// What a hidden unit does with its input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activation {
    /// ln(1 + eˣ): smooth, and the paper's choice.
    #[default]
    Softplus,
    /// max(x, 0).
    Relu,
    /// The hyperbolic tangent.
    Tanh,
}

/// eˣ; below −87 the smallest normal number, above 88 the value there.
#[inline(always)]
#[must_use]
pub fn exp(x: f32) -> f32 {
    // Adding and subtracting 1.5 * 2^23 rounds to the nearest integer without a branch.
    const ROUND: f32 = 12_582_912.0;
    let x = x.clamp(-87.0, 88.0);
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = x - n * 0.693_359_4 - n * -2.121_944_4e-4;
    let p = 1.987_569_1e-4;
    let p = p * r + 1.398_199_9e-3;
    let p = p * r + 8.333_452e-3;
    let p = p * r + 4.166_579_6e-2;
    let p = p * r + 1.666_666_5e-1;
    let p = p * r + 5e-1;
    let mantissa = p * (r * r) + r + 1.0;
    // The integer n is in the low bits of the shifted number: move it to the exponent's place.
    mantissa * f32::from_bits((shifted.to_bits() << 23).wrapping_add(127 << 23))
}

/// ln(1 + u) for u ≥ 0, accurate even where u is tiny.
#[inline(always)]
#[must_use]
pub fn log1p(u: f32) -> f32 {
    const HALF_SQRT: i32 = 0x3f35_04f3; // the bits of sqrt(1/2)
    let s = 1.0 + u;
    let lost = (u - (s - 1.0)) / s;
    let shifted = s.to_bits() as i32 - HALF_SQRT;
    let exponent = (shifted >> 23) as f32;
    let f = f32::from_bits(((shifted & 0x007f_ffff) + HALF_SQRT) as u32) - 1.0;
    let p = 7.037_683_6e-2;
    let p = p * f - 1.151_461e-1;
    let p = p * f + 1.167_699_9e-1;
    let p = p * f - 1.242_014_1e-1;
    let p = p * f + 1.424_932_3e-1;
    let p = p * f - 1.666_805_8e-1;
    let p = p * f + 2.000_071_5e-1;
    let p = p * f - 2.499_999_4e-1;
    let p = p * f + 0.333_333_3;
    let square = f * f;
    let tail = p * f * square + exponent * -2.121_944_4e-4 - 0.5 * square + lost;
    f + tail + exponent * 0.693_359_4
}

/// ln(1 + u) for 0 ≤ u ≤ 1, cheaper than [`log1p`]: 2 artanh(t) with t = u / (2 + u) ≤ 1/3.
#[inline(always)]
fn log1p_of_unit(u: f32) -> f32 {
    let t = u / (2.0 + u);
    let square = t * t;
    let p = 2.0 / 13.0;
    let p = p * square + 2.0 / 11.0;
    let p = p * square + 2.0 / 9.0;
    let p = p * square + 2.0 / 7.0;
    let p = p * square + 2.0 / 5.0;
    let p = p * square + 2.0 / 3.0;
    2.0 * t + p * (square * t)
}

/// ln(1 + eˣ) and its derivative, the logistic function.
#[inline(always)]
#[must_use]
pub fn softplus(x: f32) -> (f32, f32) {
    let e = exp(-x.abs());
    let slope = if x >= 0.0 { 1.0 } else { e } / (1.0 + e);
    (positive_part(x) + log1p_of_unit(e), slope)
}

/// max(x, 0), except that a NaN stays NaN.
#[inline(always)]
fn positive_part(x: f32) -> f32 {
    if x < 0.0 { 0.0 } else { x }
}

/// max(x, 0) and its derivative (0 at 0).
#[inline(always)]
#[must_use]
pub fn relu(x: f32) -> (f32, f32) {
    (positive_part(x), if x > 0.0 { 1.0 } else { 0.0 })
}

/// The hyperbolic tangent and its derivative.
#[inline(always)]
#[must_use]
pub fn tanh(x: f32) -> (f32, f32) {
    let square = x * x;
    let p = -5.704_988_7e-3;
    let p = p * square + 2.063_909e-2;
    let p = p * square - 5.373_971_6e-2;
    let p = p * square + 1.333_144_2e-1;
    let p = p * square - 0.333_332_8;
    let near = p * square * x + x;
    let far = (1.0 - 2.0 / (exp(2.0 * x.abs()) + 1.0)).copysign(x);
    let value = if x.abs() < 0.625 { near } else { far };
    // 1 - tanh² = 4e / (1 + e)² with e = exp(-2|x|), which does not cancel.
    let e = exp(-2.0 * x.abs());
    (value, 4.0 * e / ((1.0 + e) * (1.0 + e)))
}

macro_rules! over_slices {
    ($value:ident, $with_slope:ident, $function:ident) => {
        dispatch! {
            fn $value(z: &mut [f32]) {
                for z in z {
                    *z = $function(*z).0;
                }
            }
        }
        dispatch! {
            fn $with_slope(z: &mut [f32], slope: &mut [f32]) {
                for (z, slope) in z.iter_mut().zip(slope) {
                    (*z, *slope) = $function(*z);
                }
            }
        }
    };
}
over_slices!(softplus_value, softplus_slope, softplus);
over_slices!(relu_value, relu_slope, relu);
over_slices!(tanh_value, tanh_slope, tanh);

impl Activation {
    /// Replaces every element by its activation.
    pub fn apply(self, isa: Isa, z: &mut [f32]) {
        match self {
            Self::Softplus => softplus_value(isa, z),
            Self::Relu => relu_value(isa, z),
            Self::Tanh => tanh_value(isa, z),
        }
    }

    /// Replaces every element by its activation and writes the derivative there to `slope`.
    pub fn apply_with_slope(self, isa: Isa, z: &mut [f32], slope: &mut [f32]) {
        match self {
            Self::Softplus => softplus_slope(isa, z, slope),
            Self::Relu => relu_slope(isa, z, slope),
            Self::Tanh => tanh_slope(isa, z, slope),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> impl Iterator<Item = f32> {
        let fine = (-60_000..=60_000).map(|i| i as f32 * 1e-3);
        let tiny = (-60..0).flat_map(|e| [2f32.powi(e), -(2f32.powi(e)) * 1.3]);
        fine.chain(tiny).chain([0.0, 0.625, -0.625])
    }

    fn worst(mut got: impl FnMut(f32) -> f32, want: impl Fn(f64) -> f64) -> f64 {
        let error = |(got, want): (f64, f64)| {
            if got == want { 0.0 } else { ((got - want) / want).abs() }
        };
        grid().map(|x| error((got(x).into(), want(x.into())))).fold(0.0, f64::max)
    }

    #[test]
    fn accurate_to_a_relative_3e_7() {
        assert!(worst(exp, f64::exp) < 3e-7);
        assert!(worst(|x| log1p(x.abs()), |x| x.abs().ln_1p()) < 3e-7);
        let reference = |x: f64| x.max(0.0) + (-x.abs()).exp().ln_1p();
        assert!(worst(|x| softplus(x).0, reference) < 3e-7);
        assert!(worst(|x| softplus(x).1, |x| 1.0 / (1.0 + (-x).exp())) < 3e-7);
        assert!(worst(|x| tanh(x).0, f64::tanh) < 3e-7);
        // Beyond 43 the derivative of tanh underflows.
        assert!(
            worst(|x| tanh(x.clamp(-40.0, 40.0)).1, |x| x.clamp(-40.0, 40.0).cosh().powi(-2))
                < 5e-7
        );
    }

    #[test]
    fn extremes_stay_finite() {
        for x in [f32::MAX, f32::MIN, 1e30, -1e30, 200.0, -200.0] {
            assert!(exp(x).is_finite() && exp(x) > 0.0);
            for (value, slope) in [softplus(x), relu(x), tanh(x)] {
                assert!(value.is_finite() && (0.0..=1.0).contains(&slope), "{x}");
            }
        }
        assert_eq!(log1p(0.0), 0.0);
        assert_eq!(tanh(0.0).0, 0.0);
        assert_eq!(relu(0.0), (0.0, 0.0));
    }

    #[test]
    fn same_bits_on_every_instruction_set() {
        let x: Vec<f32> = grid().collect();
        for activation in [Activation::Softplus, Activation::Relu, Activation::Tanh] {
            let (mut want, mut slopes) = (x.clone(), vec![0.0; x.len()]);
            activation.apply_with_slope(Isa::PORTABLE, &mut want, &mut slopes);
            for isa in Isa::available() {
                let mut got = x.clone();
                activation.apply(isa, &mut got);
                assert_eq!(got, want, "{activation:?} {isa:?}");
                let (mut got, mut slope) = (x.clone(), vec![0.0; x.len()]);
                activation.apply_with_slope(isa, &mut got, &mut slope);
                assert_eq!((got, &slope), (want.clone(), &slopes), "{activation:?} {isa:?}");
            }
        }
    }
}

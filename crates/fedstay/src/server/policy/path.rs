//! How an agent's pull at the server's weights follows from its pull at its preview.
//!
//! Cross-entropy near its floor is nearly exponential along its gradient, and its gradient
//! proportional to it. A loss that is `scale` times as large at the server's weights therefore has a
//! gradient that is `scale` times as long there.
//!
//! The mean direction `d` of a local path shrinks less, because a path slows down as its loss falls.
//! Gradient flow of length `s` down `L·exp(−κu)` covers `u = ln(1 + x)/κ` with `x = κ²Ls`: of the
//! gradient at its start, `⟨d, g⟩/‖g‖²` is left as `a = ln(1 + x)/x`. From a loss that is `scale`
//! times as large the same path covers `ln(1 + x·scale)/κ`. So the observed `a` gives x, and
//!
//! ```text
//! shrink = ln(1 + x·scale) / ln(1 + x)
//! ```
//!
//! which is `scale` for a single step (a = 1) and near 1 for paths that exhaust what they begin with.

/// A path that keeps this much of its first gradient is a single step.
const STRAIGHT: f64 = 1.0 - 1e-9;
/// Paths that keep less than this are taken to keep this much.
const LEAST_KEPT: f64 = 1e-3;

/// By how much a path's mean direction shrinks if its first loss is `scale` times as large, where it
/// keeps the share `kept` of the gradient at its start.
pub(super) fn shrink(kept: f64, scale: f64) -> f64 {
    let bends = kept < STRAIGHT;
    if !bends || scale >= 1.0 {
        return scale;
    }
    let x = steepness(kept.max(LEAST_KEPT));
    (x * scale).ln_1p() / x.ln_1p()
}

/// Solves `ln(1 + x)/x = kept` for x by bisection of its logarithm.
fn steepness(kept: f64) -> f64 {
    let (mut low, mut high) = (1e-10_f64, 1e5_f64);
    for _ in 0..60 {
        let middle = (low * high).sqrt();
        if middle.ln_1p() / middle > kept { low = middle } else { high = middle }
    }
    (low * high).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_what_many_small_steps_down_an_exponential_do() {
        let (steepness, reach, steps) = (6.0, 0.5, 100_000);
        let mean_direction = |first: f64| {
            let (mut along, rate) = (0.0, reach / f64::from(steps));
            for _ in 0..steps {
                along += rate * steepness * first * f64::exp(-steepness * along);
            }
            along / reach
        };
        let (shown, real) = (0.3, 0.05);
        let kept = mean_direction(shown) / (steepness * shown);
        let expected = mean_direction(real) / mean_direction(shown);
        let got = shrink(kept, real / shown);
        assert!((got - expected).abs() < 1e-3, "{got} {expected}");
        assert!(got > 2.0 * real / shown, "a path shrinks much less than a gradient");
    }

    #[test]
    fn a_single_step_shrinks_like_its_gradient_and_bad_numbers_do_no_harm() {
        assert_eq!(shrink(1.0, 0.2), 0.2);
        assert_eq!(shrink(1.7, 0.2), 0.2);
        assert_eq!(shrink(f64::NAN, 0.2), 0.2);
        assert_eq!(shrink(0.5, 1.0), 1.0);
        for kept in [-1.0, 0.0, 1e-12, 0.3, 1.0 - 1e-12] {
            let got = shrink(kept, 0.2);
            assert!((0.2..=1.0).contains(&got), "{kept}: {got}");
        }
    }
}

//! Means with 95% confidence, and paired differences.
//!
//! Runs are few, so intervals are Student's: `mean ± t · s/√n` with the t quantile of n − 1 degrees
//! of freedom. Runs of one seed share data, init and batches, so two cells are compared seed by
//! seed: the interval of the differences is much narrower than the difference of the intervals.

/// A mean with what is known about it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mean {
    /// How many values.
    pub n: usize,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation; NaN of one.
    pub deviation: f64,
    /// Half the width of the 95% interval; NaN of one.
    pub half_width: f64,
}

impl Mean {
    /// The mean of some values; `None` of none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let n = values.len();
        if n == 0 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / n as f64;
        if n == 1 {
            return Some(Self { n, mean, deviation: f64::NAN, half_width: f64::NAN });
        }
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = (squares / (n - 1) as f64).sqrt();
        let half_width = t_quantile(0.975, (n - 1) as f64) * deviation / (n as f64).sqrt();
        Some(Self { n, mean, deviation, half_width })
    }

    /// The interval; the mean itself of one value.
    pub fn interval(&self) -> (f64, f64) {
        let half = if self.half_width.is_nan() { 0.0 } else { self.half_width };
        (self.mean - half, self.mean + half)
    }
}

/// A paired difference: every pair shares a seed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// The mean difference with its interval.
    pub mean: Mean,
    /// The mean difference in units of its standard deviation (Cohen's d_z); NaN of one pair.
    pub effect: f64,
    /// The two-sided p-value of Student's paired test; NaN of one pair.
    pub p: f64,
}

impl Difference {
    /// The differences `second − first` of pairs; `None` without pairs.
    pub fn of(pairs: &[(f64, f64)]) -> Option<Self> {
        let differences: Vec<f64> = pairs.iter().map(|(first, second)| second - first).collect();
        let mean = Mean::of(&differences)?;
        let effect = mean.mean / mean.deviation;
        let degrees = (mean.n - 1) as f64;
        let p = match (mean.n, mean.deviation == 0.0) {
            (1, _) => f64::NAN,
            (_, true) if mean.mean == 0.0 => 1.0,
            (_, true) => 0.0,
            _ => 2.0 * (1.0 - t_probability((effect * (mean.n as f64).sqrt()).abs(), degrees)),
        };
        let effect = if mean.deviation == 0.0 && mean.mean == 0.0 { 0.0 } else { effect };
        Some(Self { mean, effect, p })
    }
}

/// The probability that Student's t with `degrees` degrees of freedom is at most `t`.
pub fn t_probability(t: f64, degrees: f64) -> f64 {
    let tail = 0.5 * incomplete_beta(degrees / (degrees + t * t), 0.5 * degrees, 0.5);
    if t > 0.0 { 1.0 - tail } else { tail }
}

/// The value below which Student's t lies with probability `p`, for `p` in (0.5, 1).
pub fn t_quantile(p: f64, degrees: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while t_probability(high, degrees) < p && high < 1e12 {
        high *= 2.0;
    }
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if t_probability(middle, degrees) < p { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// The regularised incomplete beta function I_x(a, b), by Lentz's continued fraction.
/// Reference: NIST Digital Library of Mathematical Functions, 8.17.22.
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    // The fraction converges fast below the mean; the other side follows by symmetry.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(1.0 - x, b, a);
    }
    let front = ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln();
    let keep = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let (mut c, mut d) = (1.0, 1.0 / keep(1.0 - (a + b) * x / (a + 1.0)));
    let mut fraction = d;
    for m in 1..500 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for term in [even, odd] {
            d = 1.0 / keep(1.0 + term * d);
            c = keep(1.0 + term / c);
            change = c * d;
            fraction *= change;
        }
        if (change - 1.0).abs() < 1e-15 {
            break;
        }
    }
    front.exp() * fraction / a
}

/// ln Γ by Stirling's series, after the argument is raised to where it is exact to 1e-15.
/// Reference: NIST Digital Library of Mathematical Functions, 5.11.1.
fn ln_gamma(x: f64) -> f64 {
    let (mut x, mut shift) = (x, 0.0);
    while x < 15.0 {
        shift -= x.ln();
        x += 1.0;
    }
    let inverse = 1.0 / (x * x);
    let series =
        1.0 / 12.0 - inverse * (1.0 / 360.0 - inverse * (1.0 / 1260.0 - inverse * (1.0 / 1680.0)));
    shift + (x - 0.5) * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI).ln() + series / x
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-9 * b.abs().max(1.0)
    }

    #[test]
    fn the_quantiles_are_the_printed_ones() {
        // One degree of freedom is Cauchy's distribution, two have a closed form.
        assert!(near(t_quantile(0.975, 1.0), (0.475 * std::f64::consts::PI).tan()));
        let two = |p: f64| (2.0 * p - 1.0) * (2.0 / (4.0 * p * (1.0 - p))).sqrt();
        assert!(near(t_quantile(0.975, 2.0), two(0.975)));
        for (degrees, printed) in [(3.0, 3.182446), (9.0, 2.262157), (29.0, 2.045230)] {
            assert!((t_quantile(0.975, degrees) - printed).abs() < 1e-6, "{degrees}");
        }
        assert!((t_quantile(0.975, 1e7) - 1.959964).abs() < 1e-5);
        for t in [-2.0, -0.5, 0.0, 0.3, 1.7] {
            assert!(near(t_probability(t, 7.0) + t_probability(-t, 7.0), 1.0));
        }
    }

    #[test]
    fn a_mean_of_few_is_wide() {
        let mean = Mean::of(&[1.0, 2.0, 3.0]).unwrap();
        assert_eq!((mean.n, mean.mean, mean.deviation), (3, 2.0, 1.0));
        assert!(near(mean.half_width, 4.302652729911275 / 3f64.sqrt()));
        assert!(Mean::of(&[1.0]).unwrap().half_width.is_nan());
        assert_eq!(Mean::of(&[1.0]).unwrap().interval(), (1.0, 1.0));
        assert_eq!(Mean::of(&[]), None);
    }

    #[test]
    fn pairs_take_the_seeds_spread_out() {
        let pairs = [(1.0, 1.5), (5.0, 5.6), (9.0, 9.4)];
        let difference = Difference::of(&pairs).unwrap();
        assert!(near(difference.mean.mean, 0.5));
        assert!(near(difference.mean.deviation, 0.1));
        assert!(near(difference.effect, 5.0));
        // t = 5√3 with two degrees of freedom.
        assert!(difference.p > 0.012 && difference.p < 0.014, "{}", difference.p);
        assert_eq!(Difference::of(&[(1.0, 1.0), (2.0, 2.0)]).unwrap().p, 1.0);
        assert!(Difference::of(&[(1.0, 2.0)]).unwrap().p.is_nan());
    }
}

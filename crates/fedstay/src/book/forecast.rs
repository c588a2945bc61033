//! When an agent's loss will reach its target loss, by its last exact losses: a range, or nothing.
//!
//! Losses fall ever more slowly, so a straight line through them arrives four to eight times too early. How much
//! they slow down is not known while it happens; it lies between an exponential (a straight line through log L) and
//! a hyperbola (one through 1/L, as when a separable problem is fitted). Both are fitted, and a curve between them,
//! L^(−1/3), which has the median of predicted over true wait near 1 on recorded runs (`tests/forecast.rs`). The
//! range goes from the first curve to the last, each with twice the standard error of its slope, and at least from
//! half to twice the wait between.
//!
//! It is the wait if nothing changes: no rule begins to hold the agent, and no other agent leaves.

use serde::Serialize;
use std::collections::VecDeque;

/// The number of losses that are fitted. Every departure brings the next forward, and with more losses those from before
/// it count for too long.
const MOST: usize = 8;
/// With fewer losses nothing is said.
const FEWEST: usize = 6;
/// The powers p of the curves L^(−p), of which 0 stands for the logarithm: soonest, likely, latest.
const POWERS: [f64; 3] = [0.0, 1.0 / 3.0, 1.0];
/// How many standard errors a slope may be off.
const ERRORS: f64 = 2.0;
/// The range is at least this factor to either side.
const LEAST_FACTOR: f64 = 2.0;
/// A range whose ends differ by more than this factor says nothing.
const MOST_FACTOR: f64 = 10.0;
/// Nobody waits for longer.
const FARTHEST: f64 = 1e6;

/// The rounds in which a loss is predicted to reach its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Forecast {
    /// The first round of the range.
    pub soonest: u32,
    /// The likeliest round.
    pub likely: u32,
    /// The last round of the range.
    pub latest: u32,
}

/// The last exact losses of one agent.
///
/// ```
/// let mut trail = fedstay::forecast::Trail::default();
/// for round in 1..=20 {
///     trail.learn(round, 2.0 * 0.9_f64.powi(round as i32));
/// }
/// // It is at 0.24 in round 20, and at 0.1 in round 29.
/// let forecast = trail.forecast(0.1).unwrap();
/// assert!(forecast.soonest <= 29 && 29 <= forecast.latest);
/// assert_eq!(trail.forecast(0.0), None, "which it never reaches");
/// ```
#[derive(Debug, Clone, Default)]
pub struct Trail {
    recent: VecDeque<(u32, f64)>,
}

impl Trail {
    /// Takes note of an exact loss. Of two in one round the later counts.
    pub fn learn(&mut self, round: u32, loss: f64) {
        if self.recent.back().is_some_and(|(last, _)| *last == round) {
            self.recent.pop_back();
        }
        self.recent.push_back((round, loss));
        if self.recent.len() > MOST {
            self.recent.pop_front();
        }
    }

    /// The last exact loss, with its round.
    pub fn last(&self) -> Option<(u32, f64)> {
        self.recent.back().copied()
    }

    /// When the loss reaches `epsilon`. `None` where that cannot be said: with few losses, if they do not fall for
    /// certain, if they are not positive (there is no logarithm), if it is there already, or if the range would be
    /// too wide to be of use.
    pub fn forecast(&self, epsilon: f64) -> Option<Forecast> {
        let (last, loss) = self.last()?;
        let positive = epsilon > 0.0 && self.recent.iter().all(|(_, loss)| *loss > 0.0);
        if self.recent.len() < FEWEST || !positive || loss <= epsilon {
            return None;
        }
        let waits = [-ERRORS, 0.0, ERRORS].into_iter().zip(POWERS);
        let waits: Option<Vec<f64>> =
            waits.map(|(errors, power)| self.wait(epsilon, power, errors)).collect();
        let [soonest, likely, latest] = waits?.try_into().ok()?;
        let soonest = soonest.min(likely / LEAST_FACTOR);
        let latest = latest.max(likely * LEAST_FACTOR);
        // One round more on either side: a wait of half a round is no better known than one of a round.
        if latest > FARTHEST || latest + 1.0 > MOST_FACTOR * (soonest + 1.0) {
            return None;
        }
        // Waits are below a million, so the casts are exact; it cannot leave in a round that is over.
        let after = |wait: f64| last.saturating_add((wait as u32).max(1));
        Some(Forecast {
            soonest: after(soonest.floor()),
            likely: after(likely.round()),
            latest: after(latest.ceil()),
        })
    }

    /// How many rounds after its last loss a curve is at `epsilon`, with its slope this number of standard errors off;
    /// `None` if it may not fall at all.
    fn wait(&self, epsilon: f64, power: f64, errors: f64) -> Option<f64> {
        let straight =
            |loss: f64| if power == 0.0 { loss.ln() } else { -loss.powf(-power) / power };
        let points =
            || self.recent.iter().map(|(round, loss)| (f64::from(*round), straight(*loss)));
        let n = self.recent.len() as f64;
        let (sum_x, sum_y) = points().fold((0.0, 0.0), |(x, y), (a, b)| (x + a, y + b));
        let (mean_x, mean_y) = (sum_x / n, sum_y / n);
        let (mut xx, mut xy) = (0.0, 0.0);
        for (x, y) in points() {
            xx += (x - mean_x) * (x - mean_x);
            xy += (x - mean_x) * (y - mean_y);
        }
        let slope = xy / xx;
        let off = |(x, y): (f64, f64)| y - mean_y - slope * (x - mean_x);
        let squares: f64 = points().map(|point| off(point) * off(point)).sum();
        let error = (squares / (n - 2.0) / xx).sqrt();
        // Only a slope that is certain to be one; a comparison with NaN is false.
        let falls = slope + ERRORS * error < 0.0;
        let (last, _) = self.last()?;
        let now = mean_y + slope * (f64::from(last) - mean_x);
        let wait = (straight(epsilon) - now) / (slope + errors * error);
        (falls && wait.is_finite()).then(|| wait.max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trail(losses: impl Iterator<Item = f64>) -> Trail {
        let mut trail = Trail::default();
        losses.zip(1..).for_each(|(loss, round)| trail.learn(round, loss));
        trail
    }

    #[test]
    fn a_curve_of_the_family_is_met_exactly_and_others_are_within_the_range() {
        // L = (t + 2)^−3 is the curve for p = 1/3: at 0.001 when t + 2 = 10.
        let own = trail((1..=6).map(|t| f64::from(t + 2).powi(-3)));
        assert_eq!(own.forecast(1e-3).unwrap().likely, 8);
        // An exponential and a hyperbola, both at 0.1 in round 30.
        let rate = 30.0_f64.recip() * 20.0_f64.ln();
        let exponential = trail((1..=15).map(|t| 2.0 * (-rate * f64::from(t)).exp()));
        let hyperbola = trail((1..=15).map(|t| 3.0 / f64::from(t)));
        for curve in [exponential, hyperbola] {
            let forecast = curve.forecast(0.1).unwrap();
            assert!(forecast.soonest <= 30 && forecast.latest >= 30, "{forecast:?}");
        }
    }

    #[test]
    fn nothing_is_said_where_the_losses_do_not_support_it() {
        let falling = |count: i32| trail((0..count).map(|t| 0.9_f64.powi(t)));
        assert!(falling(6).forecast(0.1).is_some());
        assert_eq!(falling(5).forecast(0.1), None, "too few");
        assert_eq!(trail([0.6; 12].into_iter()).forecast(0.5), None, "it stands still");
        assert_eq!(
            trail((0..12).map(|t| 0.6 + 0.01 * f64::from(t))).forecast(0.5),
            None,
            "it rises"
        );
        let shaken = (0..12).map(|t| 1.0 - 0.01 * f64::from(t) + 0.3 * f64::from(t % 2));
        assert_eq!(trail(shaken).forecast(0.5), None, "noise");
        assert_eq!(trail((0..12).map(|t| 5.0 - f64::from(t))).forecast(1.0), None, "it is there");
        assert_eq!(falling(12).forecast(-1.0), None, "no logarithm");
        assert_eq!(
            trail((0..12).map(|t| 1.0 - 1e-9 * f64::from(t))).forecast(0.1),
            None,
            "too far"
        );
        assert_eq!(falling(12).forecast(f64::NAN), None);
        assert_eq!(trail([f64::INFINITY; 12].into_iter()).forecast(0.1), None);
    }
}

//! The price κ of a member that is above its target, and the cap on its pull that follows from it.

use super::lines::PricedLine;
use serde::{Deserialize, Serialize};

/// The least and the most that κ comes to by itself: averaging, and nearly `level`.
const LEAST: f64 = 1.0;
const MOST: f64 = 1e4;
/// What is left of κ when the total excess rose, and by how much it grows when promises are worth something.
const FALL: f64 = 0.5;
const RISE: f64 = 1.5;
/// Promises are worth something when this share of them came.
const CAME: f64 = 0.3;
/// A rise below this share is rounding.
const ROUNDING: f64 = 1e-9;
/// Nobody pulls by more than this many times what the middle one would under averaging.
pub(super) const LONGEST: f64 = 3.0;
/// The excess of one member counts at most this many times the middle gap at the start.
pub(super) const WORST: f64 = 5.0;

/// The total excess over targets: in the last round, as it was promised for now, and as it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Excess {
    pub(super) before: f64,
    pub(super) promised: f64,
    pub(super) now: f64,
}

impl Excess {
    /// What κ is after this.
    pub(super) fn revise(self, price: f64) -> f64 {
        if self.now > self.before * (1.0 + ROUNDING) {
            return (price * FALL).max(LEAST.min(price));
        }
        let (promised, came) = (self.before - self.promised, self.before - self.now);
        match promised > 0.0 && came > CAME * promised {
            true => (price * RISE).min(MOST.max(price)),
            false => price,
        }
    }
}

/// Everybody's cap: `κ/M · reach · min(1, 3·median/‖reach·g‖)`, where the median is over those that reach anywhere.
pub(super) fn caps(lines: &[PricedLine<'_>], price: f64) -> Vec<f64> {
    let far = |line: &PricedLine<'_>| line.reach * line.length;
    let middle = median(lines.iter().map(far).filter(|far| *far > 0.0).collect());
    let each = price / lines.len().max(1) as f64;
    let cap = |line: &PricedLine<'_>| {
        let far = far(line);
        let share = if far > LONGEST * middle { LONGEST * middle / far } else { 1.0 };
        each * line.reach * share
    };
    lines.iter().map(cap).collect()
}

/// The middle one, or the mean of the two in the middle; zero of none.
pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    match values.len() {
        0 => 0.0,
        n if n % 2 == 1 => values[half],
        _ => values[half - 1] + (values[half] - values[half - 1]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_price_falls_when_excess_rose_and_rises_when_a_third_of_it_came() {
        let excess = |promised, now| Excess { before: 1.0, promised, now };
        assert_eq!(excess(0.5, 1.1).revise(8.0), 4.0);
        assert_eq!(excess(0.5, 0.8).revise(8.0), 12.0);
        assert_eq!(excess(0.5, 0.9).revise(8.0), 8.0);
        assert_eq!(excess(0.5, 1.1).revise(1.5), 1.0, "never below averaging");
        assert_eq!(excess(0.5, 1.1).revise(0.5), 0.5, "unless it was told to begin there");
        assert_eq!(excess(0.5, 0.6).revise(9e3), 1e4);
        assert_eq!(excess(0.5, 0.6).revise(1e9), 1e9);
        assert_eq!(Excess::default().revise(8.0), 8.0, "nobody is above its target");
    }

    #[test]
    fn the_middle_of_an_even_number_is_between_two() {
        assert_eq!(median(vec![4.0, 1.0, 2.0, 9.0]), 3.0);
        assert_eq!((median(vec![]), median(vec![f64::MAX, f64::MAX])), (0.0, f64::MAX));
    }
}

//! A value with the interval in which it lies for other rows of the same kind.

use serde::{Deserialize, Serialize};

/// A value with its 95% interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The value on the rows there are.
    pub value: f64,
    /// Where the interval begins.
    pub low: f64,
    /// Where it ends.
    pub high: f64,
}

impl Interval {
    /// The same with every number made another, and the ends in order.
    #[must_use]
    pub fn map(self, of: impl Fn(f64) -> f64) -> Self {
        let (low, high) = (of(self.low), of(self.high));
        Self { value: of(self.value), low: low.min(high), high: low.max(high) }
    }

    /// Whether a value lies in it, its ends included.
    pub fn contains(self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

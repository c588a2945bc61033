//! `random`: every agent is there with probability p, in every round anew.

use super::{Attend, Origin, PATTERNS, When, check_share};
use crate::Error;
use rand::RngExt;
use serde::{Deserialize, Serialize};

pub(super) const ORIGIN: Origin = Origin {
    about: "every agent is there with probability p, in every round anew",
    reference: PATTERNS,
};

/// Every agent is there by chance.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Random {
    /// The probability that an agent is there.
    pub p: f64,
}

impl Default for Random {
    fn default() -> Self {
        Self { p: 0.5 }
    }
}

impl Attend for Random {
    fn is_there(&self, when: When) -> bool {
        chance(when) < self.p
    }

    fn check(&self) -> Result<(), Error> {
        check_share("schedule.p", self.p)
    }
}

/// The agent's own draw in the round, from 0 to 1.
pub(super) fn chance(when: When) -> f64 {
    when.seed.stream("schedule", u64::from(when.round), when.agent).random()
}

#[cfg(test)]
mod tests {
    use super::super::tests::attendance;
    use super::*;
    use crate::schedule::Schedule;

    #[test]
    fn the_share_is_p_and_its_ends_are_always_and_never() {
        let there = |p: f64| {
            let rows = attendance(&Schedule::Random(Random { p }), 10, 1000, 3);
            rows.iter().flat_map(|row| row.chars()).filter(|letter| *letter == 'x').count()
        };
        assert_eq!((there(0.0), there(1.0)), (0, 10_000));
        // Five deviations of a binomial count.
        assert!(there(0.3).abs_diff(3000) < 230, "{}", there(0.3));
    }
}

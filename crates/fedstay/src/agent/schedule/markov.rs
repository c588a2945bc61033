//! `markov`: an agent that is there stays there with probability `stay`, and one that is away stays
//! away with probability `away`, round after round. Before the first round it is there with the
//! probability that it has in the long run, (1 − away)/((1 − stay) + (1 − away)).
//!
//! Nothing is remembered. An agent's draw u of a round says "there" whatever was before if it is below
//! both stay and 1 − away, and "away" if it is above both; otherwise it keeps or turns what was. So one
//! goes back to the last round whose draw decided by itself, which is near.

use super::random::chance;
use super::{Attend, Origin, PATTERNS, When, check_share};
use crate::Error;
use serde::{Deserialize, Serialize};

pub(super) const ORIGIN: Origin = Origin {
    about: "an agent stays there with probability `stay`, and stays away with probability `away`",
    reference: PATTERNS,
};

/// Agents come and go by chance, for several rounds in a row.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Markov {
    /// The probability that an agent that is there is there in the next round too.
    pub stay: f64,
    /// The probability that an agent that is away is away in the next round too.
    pub away: f64,
}

impl Default for Markov {
    fn default() -> Self {
        Self { stay: 0.8, away: 0.8 }
    }
}

impl Attend for Markov {
    fn is_there(&self, when: When) -> bool {
        let comes = 1.0 - self.away;
        let leaves = 1.0 - self.stay;
        let usual = if comes + leaves > 0.0 { comes / (comes + leaves) } else { 0.5 };
        let mut turned = false;
        for round in (2..=when.round).rev() {
            let draw = chance(When { round, ..when });
            // Whether it would be there if it had been there, or away, in the round before.
            match (draw < self.stay, draw < comes) {
                (true, true) => return !turned,
                (false, false) => return turned,
                (true, false) => {}
                (false, true) => turned = !turned,
            }
        }
        (chance(When { round: 1, ..when }) < usual) != turned
    }

    fn check(&self) -> Result<(), Error> {
        check_share("schedule.stay", self.stay)?;
        check_share("schedule.away", self.away)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::attendance;
    use super::*;
    use crate::Seed;
    use crate::schedule::Schedule;
    use proptest::prelude::*;

    proptest! {
        /// Against the chain itself, one round after the other.
        #[test]
        fn it_is_the_chain(stay in 0.0..=1.0f64, away in 0.0..=1.0f64, seed: u64, agent in 0u64..9) {
            let schedule = Markov { stay, away };
            let when = |round| When { round, agent, agents: 9, seed: Seed(seed) };
            let (leaves, comes) = (1.0 - stay, 1.0 - away);
            let usual = if leaves + comes > 0.0 { comes / (leaves + comes) } else { 0.5 };
            let mut there = chance(when(1)) < usual;
            for round in 2..60 {
                prop_assert_eq!(schedule.is_there(when(round - 1)), there);
                there = chance(when(round)) < if there { stay } else { comes };
            }
        }
    }

    #[test]
    fn it_stays_as_long_as_it_says() {
        let rows = attendance(&Schedule::Markov(Markov { stay: 0.9, away: 0.7 }), 10, 2000, 1);
        let (mut there, mut kept) = (0, 0);
        for row in rows.iter().map(|row| row.as_bytes()) {
            for pair in row.windows(2).filter(|pair| pair[0] == b'x') {
                there += 1;
                kept += usize::from(pair[1] == b'x');
            }
        }
        assert!((kept as f64 / there as f64 - 0.9).abs() < 0.01, "{kept} of {there}");
        assert!((there as f64 / 19_990.0 - 0.75).abs() < 0.03, "{there}");
        // The converse: with equal chances from either state it is `random`.
        let even = attendance(&Schedule::Markov(Markov { stay: 0.5, away: 0.5 }), 5, 50, 4);
        let random = Schedule::Random(super::super::Random { p: 0.5 });
        assert_eq!(even, attendance(&random, 5, 50, 4));
    }
}

//! `round-robin`: groups of agents take turns.
//!
//! Agent m belongs to group m mod turns, and every group has its turn for `every` rounds. With as many
//! turns as agents one agent is there at a time.

use super::{Attend, Origin, PATTERNS, When, check_every};
use crate::Error;
use serde::{Deserialize, Serialize};

pub(super) const ORIGIN: Origin = Origin {
    about: "groups take turns: agent m is there in every turns-th stretch of `every` rounds",
    reference: PATTERNS,
};

/// Groups of agents take turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RoundRobin {
    /// How many groups there are.
    pub turns: u32,
    /// The rounds that a turn lasts.
    pub every: u32,
}

impl Default for RoundRobin {
    fn default() -> Self {
        Self { turns: 2, every: 1 }
    }
}

impl Attend for RoundRobin {
    fn is_there(&self, when: When) -> bool {
        let (turns, every) = (u64::from(self.turns.max(1)), self.every.max(1));
        let turn = u64::from(when.round.saturating_sub(1) / every);
        turn % turns == when.agent % turns
    }

    fn check(&self) -> Result<(), Error> {
        if self.turns == 0 {
            return Err(Error::bad_parameter("schedule.turns", self.turns, "one group or more"));
        }
        check_every(self.every)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::attendance;
    use super::*;
    use crate::schedule::Schedule;

    #[test]
    fn they_take_turns_and_one_turn_is_always() {
        let schedule = Schedule::RoundRobin(RoundRobin { turns: 2, every: 2 });
        assert_eq!(attendance(&schedule, 3, 8, 0), ["xx..xx..", "..xx..xx", "xx..xx.."]);
        let one = Schedule::RoundRobin(RoundRobin { turns: 1, every: 3 });
        assert_eq!(attendance(&one, 2, 5, 0), ["xxxxx", "xxxxx"]);
    }
}

//! `arrive`: agents come one after the other.
//!
//! Agent 0 is there from the first round, agent m from round 1 + m·every on. With `at`, a list of
//! rounds, the last agents come in these rounds, one each and in order, and all others are there from
//! the start. An agent that has not come yet has not been asked, so its target loss and its behaviour
//! begin with its first round.

use super::{Attend, Origin, PATTERNS, When, check_every};
use crate::Error;
use serde::{Deserialize, Serialize};

pub(super) const ORIGIN: Origin = Origin {
    about: "agents come one after the other: agent m from round 1 + m·every on",
    reference: PATTERNS,
};

/// Agents come one after the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Arrive {
    /// The rounds between two arrivals.
    pub every: u32,
    /// The rounds in which the last agents come, instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Vec<u32>>,
}

impl Default for Arrive {
    fn default() -> Self {
        Self { every: 10, at: None }
    }
}

impl Attend for Arrive {
    fn is_there(&self, when: When) -> bool {
        let Some(at) = &self.at else {
            return u64::from(when.round) > when.agent.saturating_mul(u64::from(self.every));
        };
        // The last of them comes in the last of these rounds.
        let place = (when.agent + at.len() as u64).checked_sub(when.agents);
        let first = place.and_then(|place| at.get(place as usize));
        first.is_none_or(|first| when.round >= *first)
    }

    fn check(&self) -> Result<(), Error> {
        check_every(self.every)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::attendance;
    use super::*;
    use crate::schedule::Schedule;

    #[test]
    fn each_comes_later_and_stays() {
        let schedule = Schedule::Arrive(Arrive { every: 2, at: None });
        assert_eq!(attendance(&schedule, 3, 6, 0), ["xxxxxx", "..xxxx", "....xx"]);
        let schedule = Schedule::Arrive(Arrive { at: Some(vec![5, 3]), ..Arrive::default() });
        assert_eq!(attendance(&schedule, 3, 6, 0), ["xxxxxx", "....xx", "..xxxx"]);
        let more = Schedule::Arrive(Arrive { at: Some(vec![9, 2, 3]), ..Arrive::default() });
        assert_eq!(attendance(&more, 2, 3, 0), [".xx", "..x"], "more rounds than agents");
    }
}

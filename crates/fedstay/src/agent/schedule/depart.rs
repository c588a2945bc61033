//! `depart`: agents are there no more, one after the other, without a goodbye.
//!
//! Agent m is there through round (m + 1)·every; the last agent always is. They have not left: nobody
//! decided anything, and the delivered model owes them what it owes everybody.

use super::{Attend, Origin, PATTERNS, When, check_every};
use crate::Error;
use serde::{Deserialize, Serialize};

pub(super) const ORIGIN: Origin = Origin {
    about: "agents fall away one after the other: agent m after round (m + 1)·every; the last stays",
    reference: PATTERNS,
};

/// Agents fall away one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Depart {
    /// The rounds after which one more is there no more.
    pub every: u32,
}

impl Default for Depart {
    fn default() -> Self {
        Self { every: 10 }
    }
}

impl Attend for Depart {
    fn is_there(&self, when: When) -> bool {
        let upto = (when.agent + 1).saturating_mul(u64::from(self.every));
        u64::from(when.round) <= upto || when.agent + 1 >= when.agents
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
    fn each_is_there_longer_and_the_last_to_the_end() {
        let schedule = Schedule::Depart(Depart { every: 2 });
        assert_eq!(attendance(&schedule, 3, 7, 0), ["xx.....", "xxxx...", "xxxxxxx"]);
    }
}

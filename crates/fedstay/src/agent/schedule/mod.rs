//! Schedules: when an agent can be reached at all.
//!
//! An agent that is absent is not asked, does not look at the model, and cannot decide to leave: it is
//! as it was when it comes back. Absence is never a departure, in no table and in no picture. One file
//! per schedule; [`Schedule`] is the list. Whether an agent is there is a function of the seed, the
//! round and the agent, so there is nothing to save, and a resumed run is the same bytes.
//!
//! The patterns are those of DPFL, arXiv 2511.16523.

mod always;
mod arrive;
mod depart;
mod markov;
mod random;
mod round_robin;
mod trace;

pub use always::Always;
pub use arrive::Arrive;
pub use depart::Depart;
pub use markov::Markov;
pub use random::Random;
pub use round_robin::RoundRobin;
pub use trace::Trace;

use crate::list::{Origin, listed};
use crate::{Error, Seed};

/// The paper that the patterns are after.
const PATTERNS: &str = "after the patterns of arXiv 2511.16523";

/// Which agent, in which round.
#[derive(Debug, Clone, Copy)]
pub struct When {
    /// The round, from 1.
    pub round: u32,
    /// The agent's number, from 0.
    pub agent: u64,
    /// How many agents there are.
    pub agents: u64,
    /// The experiment's seed.
    pub seed: Seed,
}

/// Says when agents are there.
trait Attend {
    /// Whether the agent can be reached in the round.
    fn is_there(&self, when: When) -> bool;

    /// Checks the parameters, once, before the first round.
    fn check(&self) -> Result<(), Error> {
        Ok(())
    }
}

listed! {
    /// Every schedule, under the name it has in a configuration.
    pub enum Schedule: Attend, "kind", Always {
        /// Everybody, in every round.
        Always(Always) = "always", always::ORIGIN;
        /// One after the other comes.
        Arrive(Arrive) = "arrive", arrive::ORIGIN;
        /// One after the other is there no more.
        Depart(Depart) = "depart", depart::ORIGIN;
        /// Groups take turns.
        RoundRobin(RoundRobin) = "round-robin", round_robin::ORIGIN;
        /// Everybody by chance.
        Random(Random) = "random", random::ORIGIN;
        /// Everybody by chance, for several rounds in a row.
        Markov(Markov) = "markov", markov::ORIGIN;
        /// As a file says.
        Trace(Trace) = "trace", trace::ORIGIN;
    }
}

impl Schedule {
    /// Whether the agent can be reached in the round.
    pub fn is_there(&self, when: When) -> bool {
        self.inner().is_there(when)
    }

    /// Checks the parameters.
    ///
    /// # Errors
    /// With a message that names the key.
    pub fn check(&self) -> Result<(), Error> {
        self.inner().check()
    }

    /// Whether everybody is there in every round.
    pub fn is_always(&self) -> bool {
        matches!(self, Self::Always(_))
    }
}

/// Checks a number of rounds between two changes.
fn check_every(every: u32) -> Result<(), Error> {
    match every {
        0 => Err(Error::bad_parameter("schedule.every", every, "one round or more")),
        _ => Ok(()),
    }
}

/// Checks a probability.
fn check_share(name: &str, share: f64) -> Result<(), Error> {
    match (0.0..=1.0).contains(&share) {
        true => Ok(()),
        false => Err(Error::bad_parameter(name, share, "a share, from 0 to 1")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every_schedule() -> Vec<Schedule> {
        let named = |entry: &crate::list::Entry| {
            let path = if entry.name == "trace" { Some("times.csv") } else { None };
            let mut table = serde_json::json!({ "kind": entry.name });
            if let Some(path) = path {
                table["path"] = path.into();
            }
            serde_json::from_value(table).unwrap()
        };
        Schedule::LIST.iter().map(named).collect()
    }

    /// Who is there, as one row of letters per agent.
    pub(super) fn attendance(
        schedule: &Schedule,
        agents: u64,
        rounds: u32,
        seed: u64,
    ) -> Vec<String> {
        let seed = Seed(seed);
        let letter = |agent, round| {
            let there = schedule.is_there(When { round, agent, agents, seed });
            if there { 'x' } else { '.' }
        };
        (0..agents).map(|agent| (1..=rounds).map(|round| letter(agent, round)).collect()).collect()
    }

    #[test]
    fn the_list_and_the_enum_are_the_same_and_chance_comes_from_the_seed_alone() {
        for (schedule, entry) in every_schedule().iter().zip(Schedule::LIST) {
            assert_eq!(schedule.name(), entry.name);
            schedule.check().unwrap();
            let one = attendance(schedule, 6, 80, 1);
            assert_eq!(one, attendance(schedule, 6, 80, 1), "{}", entry.name);
            let chance = matches!(entry.name, "random" | "markov");
            assert_eq!(one != attendance(schedule, 6, 80, 2), chance, "{}", entry.name);
            let text = serde_json::to_string(schedule).unwrap();
            assert_eq!(serde_json::from_str::<Schedule>(&text).unwrap(), *schedule);
        }
    }

    #[test]
    fn nonsense_is_refused_by_name() {
        for (table, name) in [
            (serde_json::json!({ "kind": "arrive", "every": 0 }), "schedule.every"),
            (serde_json::json!({ "kind": "round-robin", "turns": 0 }), "schedule.turns"),
            (serde_json::json!({ "kind": "random", "p": 1.5 }), "schedule.p"),
            (serde_json::json!({ "kind": "markov", "away": -0.1 }), "schedule.away"),
        ] {
            let schedule: Schedule = serde_json::from_value(table).unwrap();
            let error = schedule.check().unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
    }
}

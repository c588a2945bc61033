//! The ledger: what happened to each agent, counted once, from the lines of the rounds.
//!
//! The summary of a run and the live page both read it, so no number is counted in two places.

mod summary;
mod warnings;

pub use summary::Ended;

use crate::message::is_default;
use crate::rule::{Landing, Why};
use crate::run::record::{Arrival, Departure, Forgotten, Return, RoundLine};
use crate::{AgentId, StopReason};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The longest reason for a fault that is kept, in characters: agents choose these words.
const LONGEST_REASON: usize = 200;

/// Above this ratio of known to reporting agents, agents are looked up one by one.
const FEW: usize = 8;

/// What is counted about each agent.
///
/// These fields appear among the agent's own in `summary.json`, in Python's `summary["agents"]` and
/// in what the live page receives, under the names they have here. A field that an older file lacks
/// is read as zero or none.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentEntry {
    /// The round in which it left; null for an agent that stayed or has come back.
    pub left: Option<u32>,
    /// The round in which it last came back.
    #[serde(skip_serializing_if = "is_default")]
    pub returned: Option<u32>,
    /// In how many rounds it was about to leave.
    pub rounds_in_d: u32,
    /// The first round in which it was about to leave.
    #[serde(skip_serializing_if = "is_default")]
    pub first_in_d: Option<u32>,
    /// In how many rounds it reported.
    pub reports: u32,
    /// In how many rounds its report moved the model: all rounds in which it reported, except those
    /// in which a rule with cases found it about to leave.
    #[serde(skip_serializing_if = "is_default")]
    pub moved: u32,
    /// In how many rounds it should have answered and did not.
    #[serde(skip_serializing_if = "is_default")]
    pub faults: u32,
    /// Why it last did not answer.
    #[serde(skip_serializing_if = "is_default")]
    pub fault: Option<String>,
    /// In how many rounds it could not be reached by its schedule, or sat out. It had not left.
    #[serde(skip_serializing_if = "is_default")]
    pub absent: u32,
    /// What it found when it came, where models are kept for newcomers.
    #[serde(skip_serializing_if = "is_default")]
    pub arrival: Option<Arrival>,
    /// In how many rounds its reports contradicted themselves, in runs that look.
    #[serde(skip_serializing_if = "is_default")]
    pub flags: u32,
    /// The first loss it told exactly.
    #[serde(skip_serializing_if = "is_default")]
    pub first_loss: Option<f64>,
    /// In how many rounds it was shown other weights than the server's.
    #[serde(skip_serializing_if = "is_default")]
    pub previewed: u32,
    /// The round from which on the rule left it out of its constraints.
    #[serde(skip_serializing_if = "is_default")]
    pub benched: Option<u32>,
    /// Its loss at what it was last shown, if that was not the server's weights.
    #[serde(skip_serializing_if = "is_default")]
    pub last_shown: Option<f64>,
    /// In how many of these rounds it was shown the same as before because the nearest preview was
    /// farther away than `policy.cap` allows.
    #[serde(skip_serializing_if = "is_default")]
    pub capped: u32,
}

/// Keeps the books of a run: what happened to each agent, and to the run as a whole.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Ledger {
    rounds: u32,
    stop: Option<StopReason>,
    left: Vec<Departure>,
    returned: Vec<Return>,
    /// The number of agents that were about to leave in the round before their first departure.
    foreseen: u32,
    /// The agents that were about to leave in the last round.
    in_d: BTreeSet<AgentId>,
    /// Whether a step was ever taken.
    #[serde(default)]
    moved: bool,
    /// Every agent that a round named.
    agents: BTreeMap<AgentId, AgentEntry>,
    landed: Option<Landing>,
    /// Whether every step so far kept everybody, as far as gradients tell.
    kept: Option<bool>,
    /// Rounds in which the guard changed the rule's step.
    guarded: u32,
    /// Predictions that missed, for rules that make them.
    misses: Option<u32>,
    /// How far above their target losses everybody has to stay, as far as was proved.
    #[serde(default, skip_serializing_if = "is_default")]
    least: Option<f64>,
    /// Within which distance that was proved; none if at any.
    #[serde(default, skip_serializing_if = "is_default")]
    within: Option<f64>,
    /// The mean loss of the first weights over all agents, where the engine measured it.
    start: Option<f64>,
    /// The agents that asked to be forgotten.
    #[serde(default, skip_serializing_if = "is_default")]
    forgotten: Vec<Forgotten>,
}

impl Ledger {
    /// Why the run ended, if a round said so.
    pub(crate) fn stop(&self) -> Option<StopReason> {
        self.stop
    }

    /// The departures so far, in order.
    pub fn left(&self) -> &[Departure] {
        &self.left
    }

    /// How many predictions missed so far, for rules that rest on them.
    pub fn misses(&self) -> Option<u32> {
        self.misses
    }

    /// What is counted about an agent; `None` for one that no round has named.
    pub fn agent(&self, id: AgentId) -> Option<&AgentEntry> {
        self.agents.get(&id)
    }

    /// Adds a round, seen or read back from its line.
    pub fn add(&mut self, line: &RoundLine) {
        self.rounds = line.round;
        // A length that is not known is not zero.
        self.moved |= line.step_norm != 0.0;
        self.note_departures(line);
        self.in_d = line.d.iter().copied().collect();
        self.note_agents(line);
        self.note_forgotten(line);
        if let (1, Some(assessment)) = (line.round, &line.assessment) {
            self.start = assessment.spread().map(|score| score.loss.mean);
        }
        self.stop = line.stop;
        self.landed = line.landed;
        self.guarded += u32::from(line.guarded);
        if let Some(missed) = &line.missed {
            *self.misses.get_or_insert(0) += missed.len() as u32;
        }
        self.least = line.least.or(self.least);
        self.within = line.within.or(self.within);
        if let Some(kept) = line.kept {
            self.kept = Some(kept && self.kept != Some(false));
        }
    }

    fn note_departures(&mut self, line: &RoundLine) {
        for agent in &line.left {
            let entry = self.agents.entry(*agent).or_default();
            // An agent that is gone cannot leave again, whatever a file from elsewhere says.
            if entry.left.is_some() {
                continue;
            }
            // Predictions are counted per agent, so only an agent's first departure counts.
            let first = entry.returned.is_none();
            self.foreseen += u32::from(first && self.in_d.contains(agent));
            entry.left = Some(line.round);
            self.left.push(Departure { agent: *agent, round: line.round });
        }
        for agent in &line.returned {
            let entry = self.agents.entry(*agent).or_default();
            if entry.returned == Some(line.round) {
                continue;
            }
            (entry.left, entry.returned) = (None, Some(line.round));
            self.returned.push(Return { agent: *agent, round: line.round });
        }
    }

    /// Whether the others have recovered from forgetting somebody, and who is to be forgotten now.
    fn note_forgotten(&mut self, line: &RoundLine) {
        let told = line.mean_loss().filter(|_| line.at_least.is_empty());
        for known in self.forgotten.iter_mut().filter(|known| known.recovered.is_none()) {
            if let (Some(now), Some(then)) = (told, known.rest)
                && now <= then
            {
                known.recovered = Some(line.round - known.round);
            }
        }
        for agent in &line.forgot {
            self.forgotten.push(Forgotten {
                agent: *agent,
                round: line.round,
                how: String::new(),
                rest: told,
                recovered: None,
                loss: None,
                membership: None,
            });
        }
    }

    /// Counts what the round says about each agent. `in_d` is already that of the round.
    fn note_agents(&mut self, line: &RoundLine) {
        let Self { agents, in_d, .. } = self;
        let mut bounded = line.at_least.clone();
        bounded.sort_unstable();
        let count = |entry: &mut AgentEntry, agent: &AgentId, loss: &Option<f64>| {
            entry.reports += 1;
            entry.moved += u32::from(line.case.is_none() || !in_d.contains(agent));
            if let (None, Some(loss)) = (entry.first_loss, loss)
                && bounded.binary_search(agent).is_err()
            {
                entry.first_loss = Some(*loss);
            }
        };
        // Line and entries are both in the order of the agents: one walk along both of them is
        // several times as fast as looking each agent up, unless the line names few of many.
        let few = agents.len() > FEW * line.agents.len();
        let mut known = agents.iter_mut().take(if few { 0 } else { usize::MAX }).peekable();
        let mut unknown = Vec::new();
        for (agent, loss) in line.agents.iter().zip(&line.loss) {
            while known.next_if(|(id, _)| *id < agent).is_some() {}
            match known.next_if(|(id, _)| *id == agent) {
                Some((_, entry)) => count(entry, agent, loss),
                None => unknown.push((agent, loss)),
            }
        }
        for (agent, loss) in unknown {
            count(agents.entry(*agent).or_default(), agent, loss);
        }
        for shown in &line.shown {
            let entry = agents.entry(shown.agent).or_default();
            entry.previewed += 1;
            entry.capped += u32::from(shown.capped);
            let place = line.agents.iter().position(|agent| *agent == shown.agent);
            entry.last_shown = place.and_then(|place| line.loss[place]);
        }
        for doubted in line.doubted.iter().filter(|doubted| doubted.why == Why::Benched) {
            agents.entry(doubted.agent).or_default().benched = Some(line.round);
        }
        for agent in in_d.iter() {
            let entry = agents.entry(*agent).or_default();
            entry.rounds_in_d += 1;
            entry.first_in_d.get_or_insert(line.round);
        }
        for (agent, why) in &line.faults {
            let entry = agents.entry(*agent).or_default();
            entry.faults += 1;
            entry.fault = Some(why.chars().take(LONGEST_REASON).collect());
        }
        for arrival in &line.arrived {
            agents.entry(arrival.agent).or_default().arrival = Some(*arrival);
        }
        for agent in &line.absent {
            agents.entry(*agent).or_default().absent += 1;
        }
        let flagged: BTreeSet<AgentId> = line.flags.iter().map(|flag| flag.agent).collect();
        for agent in flagged {
            agents.entry(agent).or_default().flags += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::record::AgentSummary;
    use serde_json::json;

    fn ledger(lines: &[&str]) -> Ledger {
        let mut ledger = Ledger::default();
        for line in lines {
            let line = format!(r#"{{"step_size":0.1,"step_norm":1,{line}}}"#);
            ledger.add(&serde_json::from_str(&line).unwrap());
        }
        ledger
    }

    #[test]
    fn an_entry_has_what_the_rounds_said_about_its_agent() {
        let ledger = ledger(&[
            r#""round":1,"agents":[0,1,2],"loss":[1.0,null,0.9],"at_least":[2],"d":[0],"case":null"#,
            r#""round":2,"agents":[0,1],"loss":[0.8,0.7],"d":[0],"case":1,"faults":[[2,"no answer"]],
                "doubted":[{"agent":0,"why":"benched"},{"agent":1,"why":"capped"}],
                "flags":[{"agent":1,"doubt":"below-tangent","by":1},{"agent":1,"doubt":"implausible","by":2}]"#,
            r#""round":4,"agents":[0],"loss":[0.7],"case":2,"left":[1],"faults":[[2,"not connected"]],
                "absent":[3]"#,
        ]);
        let zero = AgentEntry {
            rounds_in_d: 2,
            first_in_d: Some(1),
            reports: 3,
            moved: 2,
            first_loss: Some(1.0),
            benched: Some(2),
            ..AgentEntry::default()
        };
        let one = AgentEntry {
            left: Some(4),
            reports: 2,
            moved: 2,
            flags: 1,
            first_loss: Some(0.7),
            ..AgentEntry::default()
        };
        let two = AgentEntry {
            reports: 1,
            moved: 1,
            faults: 2,
            fault: Some("not connected".into()),
            ..AgentEntry::default()
        };
        let three = AgentEntry { absent: 1, ..AgentEntry::default() };
        let entries = [0, 1, 2, 3, 4].map(|id| ledger.agent(AgentId(id)));
        assert_eq!(entries, [Some(&zero), Some(&one), Some(&two), Some(&three), None]);
        assert_eq!(ledger.left().len(), 1, "absence is no departure");
    }

    #[test]
    fn the_others_have_recovered_once_their_mean_loss_is_what_it_was() {
        let ledger = ledger(&[
            r#""round":1,"agents":[0,1],"loss":[1.0,0.6],"left":[2],"forgot":[2]"#,
            r#""round":2,"agents":[0,1],"loss":[2.0,2.0]"#,
            r#""round":3,"agents":[0,1],"loss":[0.1,0.1],"at_least":[1]"#,
            r#""round":4,"agents":[0,1],"loss":[0.9,0.7]"#,
            r#""round":5,"agents":[0],"loss":[0.9],"left":[1],"forgot":[1]"#,
        ]);
        let rests: Vec<_> =
            ledger.forgotten.iter().map(|f| (f.agent.0, f.round, f.rest, f.recovered)).collect();
        assert_eq!(rests, [(2, 1, Some(0.8), Some(3)), (1, 5, Some(0.9), None)]);
    }

    #[test]
    fn one_that_came_back_is_not_gone_and_was_foreseen_at_most_once() {
        let gone = r#""round":2,"agents":[],"loss":[],"left":[0]"#;
        let back = r#""round":5,"agents":[0],"loss":[0.9],"returned":[0],"d":[0]"#;
        let again = r#""round":6,"agents":[],"loss":[],"left":[0]"#;
        let left = |lines: &[&str]| {
            let ledger = ledger(lines);
            let entry = ledger.agent(AgentId(0)).unwrap();
            (entry.left, entry.returned, ledger.foreseen, ledger.left().len())
        };
        assert_eq!(left(&[gone]), (Some(2), None, 0, 1));
        assert_eq!(left(&[gone, back]), (None, Some(5), 0, 1));
        assert_eq!(left(&[gone, back, again]), (Some(6), Some(5), 0, 2), "not its first");
        let twice = r#""round":3,"agents":[],"loss":[],"left":[0,0]"#;
        assert_eq!(left(&[gone, twice]), (Some(2), None, 0, 1), "it was gone");
        let held = r#""round":1,"agents":[0],"loss":[0.9],"d":[0]"#;
        assert_eq!(left(&[held, gone, back, again]), (Some(6), Some(5), 1, 2));
    }

    #[test]
    fn an_agent_of_a_summary_has_its_entry_among_its_own_fields() {
        let old = json!({ "id": 3, "epsilon": 0.5, "loss": 0.4, "accuracy": null, "left": null,
            "rounds_in_d": 2, "reports": 7 });
        let mut agent: AgentSummary = serde_json::from_value(old.clone()).unwrap();
        assert_eq!((agent.entry.rounds_in_d, agent.entry.reports), (2, 7));
        assert_eq!(serde_json::to_value(&agent).unwrap(), old, "what is zero or none is not added");
        (agent.entry.first_in_d, agent.entry.moved) = (Some(4), 5);
        let new = serde_json::to_value(&agent).unwrap();
        assert_eq!((&new["first_in_d"], &new["moved"]), (&json!(4), &json!(5)));
        assert_eq!(serde_json::from_value::<AgentSummary>(new).unwrap(), agent);
        let oldest = json!({ "id": 3, "accuracy": null, "left": 9, "rounds_in_d": 0 });
        let oldest: AgentSummary = serde_json::from_value(oldest).unwrap();
        assert_eq!((oldest.entry.left, oldest.entry.reports), (Some(9), 0));
    }
}

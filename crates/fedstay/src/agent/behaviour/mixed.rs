//! `mixed`: a population of different agents.
//!
//! ```toml
//! [behaviour]
//! kind = "mixed"
//! of = [
//!     { kind = "threshold", share = 0.7 },
//!     { kind = "foresight", share = 0.3, steps = 10 },
//!     { kind = "lying", agents = [4] },
//! ]
//! ```
//!
//! A part names its agents, or has a share of those that no part names; the shares sum to one.
//! Numbers of agents are rounded so that they add up (largest remainders first), and which agent
//! gets which behaviour is drawn from the experiment's seed.

use super::{Behaviour, Choice, Decide, Origin, View};
use crate::{Error, Seed};
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

pub(super) const ORIGIN: Origin = Origin {
    about: "shares of the others, or named agents, in one population",
    reference: "this project",
};

/// A population of different agents.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Mixed {
    /// The parts of the population.
    pub of: Vec<PopulationPart>,
}

/// A part of a mixed population.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PopulationPart {
    /// The part's share of the agents that no part names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// The part's agents, counted from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents: Option<Vec<usize>>,
    /// How the part's agents behave.
    #[serde(flatten)]
    pub behaviour: Behaviour,
}

impl Decide for Mixed {
    /// A population decides nothing; its agents decide, once they are assigned.
    fn decide(&mut self, _: &mut View<'_>) -> Choice {
        Choice::Stay
    }

    fn check(&self) -> Result<(), Error> {
        let refused = |value: String, must: &str| {
            Err(Error::bad_parameter("behaviour.of", value, must.to_owned()))
        };
        if self.of.is_empty() {
            let must = "a list of parts, as in [{ kind = \"threshold\", share = 1.0 }]";
            return refused("empty".into(), must);
        }
        for part in &self.of {
            let name = part.behaviour.name();
            match (&part.behaviour, part.share, &part.agents) {
                (Behaviour::Mixed(_), ..) => return refused(name.into(), "of unmixed behaviours"),
                (_, Some(share), None) if share.is_finite() && share >= 0.0 => {}
                (_, None, Some(_)) => {}
                _ => {
                    let must = "a `share` (zero or more) or `agents` (a list) for each part";
                    return refused(format!("unclear for {name}"), must);
                }
            }
            part.behaviour.check()?;
        }
        let shares: f64 = self.of.iter().filter_map(|part| part.share).sum();
        if self.of.iter().any(|part| part.share.is_some()) && (shares - 1.0).abs() > 1e-6 {
            return refused(format!("of shares that sum to {shares}"), "of shares that sum to 1");
        }
        Ok(())
    }
}

impl Mixed {
    /// One behaviour per agent.
    pub(super) fn assign(&self, agents: usize, seed: Seed) -> Result<Vec<Behaviour>, Error> {
        let parts = self.parts(agents, seed)?;
        Ok(parts.iter().map(|part| self.of[usize::from(*part)].behaviour.clone()).collect())
    }

    /// The part that each agent belongs to.
    ///
    /// # Errors
    /// If an agent is named twice or does not exist, or nothing is said about one.
    pub fn parts(&self, agents: usize, seed: Seed) -> Result<Vec<u16>, Error> {
        if self.of.len() > usize::from(u16::MAX) {
            let must = "of at most 65535 parts";
            return Err(Error::bad_parameter("behaviour.of", self.of.len(), must));
        }
        let mut assigned: Vec<Option<u16>> = vec![None; agents];
        for (number, part) in (0..).zip(&self.of) {
            for agent in part.agents.iter().flatten() {
                let must = match assigned.get(*agent) {
                    Some(None) => {
                        assigned[*agent] = Some(number);
                        continue;
                    }
                    Some(Some(_)) => "named in one part only".to_owned(),
                    None => format!("one of the {agents} agents, numbered from 0"),
                };
                return Err(Error::bad_parameter("an agent in behaviour.of", agent, must));
            }
        }
        let mut free: Vec<usize> = (0..agents).filter(|agent| assigned[*agent].is_none()).collect();
        let shared = (0..).zip(&self.of).filter_map(|(number, part)| Some((number, part.share?)));
        let (shared, shares): (Vec<u16>, Vec<f64>) = shared.unzip();
        if shared.is_empty() && !free.is_empty() {
            let must = "of a part for every agent: add one with share = 1.0 for the others";
            return Err(Error::bad_parameter("behaviour.of", format!("silent on {free:?}"), must));
        }
        free.shuffle(&mut seed.stream("behaviour", 0, 0));
        let mut rest = free.into_iter();
        for (number, count) in shared.iter().zip(apportion(&shares, rest.len())) {
            for agent in rest.by_ref().take(count) {
                assigned[agent] = Some(*number);
            }
        }
        Ok(assigned.into_iter().flatten().collect())
    }
}

/// Whole numbers that are proportional to the shares and sum to `total`: largest remainders first,
/// ties to the first part.
fn apportion(shares: &[f64], total: usize) -> Vec<usize> {
    let all: f64 = shares.iter().sum();
    let exact = shares.iter().map(|share| share / all.max(f64::MIN_POSITIVE) * total as f64);
    let exact: Vec<f64> = exact.collect();
    let mut counts: Vec<usize> = exact.iter().map(|exact| exact.floor() as usize).collect();
    let mut order: Vec<usize> = (0..shares.len()).collect();
    order.sort_by(|a, b| (exact[*b].fract()).total_cmp(&exact[*a].fract()));
    let mut missing = total.saturating_sub(counts.iter().sum());
    for part in order.iter().cycle().take(shares.len() * (total + 1)) {
        if missing == 0 {
            break;
        }
        if shares[*part] > 0.0 {
            counts[*part] += 1;
            missing -= 1;
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mixed(of: serde_json::Value) -> Behaviour {
        serde_json::from_value(serde_json::json!({ "kind": "mixed", "of": of })).unwrap()
    }

    fn names(behaviour: &Behaviour, agents: usize, seed: u64) -> Vec<&'static str> {
        behaviour.assign(agents, Seed(seed)).unwrap().iter().map(Behaviour::name).collect()
    }

    #[test]
    fn shares_are_kept_and_the_seed_says_who() {
        let population = mixed(serde_json::json!([
            { "kind": "threshold", "share": 0.5 },
            { "kind": "foresight", "share": 0.3, "steps": 7 },
            { "kind": "lying", "share": 0.2 },
        ]));
        for seed in 0..5 {
            let names = names(&population, 10, seed);
            let count = |name| names.iter().filter(|n| **n == name).count();
            assert_eq!((count("threshold"), count("foresight"), count("lying")), (5, 3, 2));
        }
        assert_eq!(names(&population, 10, 1), names(&population, 10, 1));
        assert!((0..9).any(|seed| names(&population, 10, seed) != names(&population, 10, 9)));
        let foresight = population.assign(10, Seed(0)).unwrap();
        assert!(foresight.iter().any(|b| matches!(b, Behaviour::Foresight(f) if f.steps == 7)));
    }

    #[test]
    fn named_agents_come_first_and_the_rest_is_shared() {
        let population = mixed(serde_json::json!([
            { "kind": "lying", "agents": [2], "offset": 0.1 },
            { "kind": "never", "share": 1.0 },
        ]));
        assert_eq!(names(&population, 3, 0), ["never", "never", "lying"]);
    }

    #[test]
    fn counts_add_up() {
        for (shares, total) in [(&[0.34, 0.33, 0.33][..], 10), (&[0.5, 0.5], 3), (&[0.0, 1.0], 4)] {
            assert_eq!(apportion(shares, total).iter().sum::<usize>(), total);
        }
        assert_eq!(apportion(&[0.0, 1.0], 4), [0, 4]);
    }

    #[test]
    fn nonsense_is_refused_by_name() {
        for (of, expected) in [
            (serde_json::json!([]), "a list of parts"),
            (serde_json::json!([{ "kind": "never" }]), "`share`"),
            (serde_json::json!([{ "kind": "never", "share": 0.5 }]), "sum to 1"),
            (serde_json::json!([{ "kind": "mixed", "share": 1.0 }]), "unmixed"),
            (serde_json::json!([{ "kind": "never", "agents": [9] }]), "one of the 3"),
            (serde_json::json!([{ "kind": "never", "agents": [0, 0] }]), "one part only"),
            (serde_json::json!([{ "kind": "never", "agents": [0] }]), "every agent"),
        ] {
            let error = mixed(of).assign(3, Seed(0)).unwrap_err().to_string();
            assert!(error.contains(expected) && error.contains("behaviour.of"), "{error}");
        }
        let unknown =
            serde_json::json!({ "kind": "mixed", "of": [{ "kind": "never", "shar": 1 }] });
        assert!(serde_json::from_value::<Behaviour>(unknown).is_err());
    }
}

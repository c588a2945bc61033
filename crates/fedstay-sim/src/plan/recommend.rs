//! What follows from what was found: a pure function. It may say that nobody should federate.
//!
//! The order of the questions is the order of a steering committee: is there anybody to federate with, does
//! the federation start at all, does anybody gain, does anybody leave, does it matter who leaves, and what
//! keeps them without costing those who gain more than it brings.

use super::answer::{AVERAGING, Findings, Gains, OwnerFinding, WayFinding};
use fedstay::Interval;
use serde::{Deserialize, Serialize};

/// What is recommended, and what it rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Advice {
    /// The way to run it, such as `stay+preview`; `do-not-federate` where there is none.
    pub label: String,
    /// What to do.
    pub action: Action,
    /// Those who gain, as far as can be told.
    pub gainers: Vec<String>,
    /// Those who gain nothing.
    pub nothing: Vec<String>,
    /// Those of whom it cannot be told.
    pub unknown: Vec<String>,
    /// Those who leave under averaging on at least half of the seeds.
    pub leavers: Vec<String>,
    /// On how many seeds nobody leaves this way.
    pub kept_all: u32,
    /// Of how many.
    pub seeds: u32,
    /// What departures under averaging cost those who gain; positive is worse.
    pub cost_of_leaving: Option<Interval>,
    /// How far this way stays behind the ceiling for those who gain; positive is worse.
    pub price: Option<Interval>,
    /// In how many rounds an owner works.
    pub rounds: f64,
    /// How many bytes go to an owner and back.
    pub bytes: f64,
}

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// There is one owner: nobody to federate with.
    Alone,
    /// Everybody has its target before the first round: the target asks for nothing.
    RaiseTarget,
    /// Nobody gains: do not federate.
    NobodyGains,
    /// Nobody can be shown to gain: do not federate on this evidence.
    NotShown,
    /// Nobody leaves under averaging: run it.
    Average,
    /// Some leave under averaging, and it costs those who gain nothing that counts: let them.
    LetGo,
    /// Some leave under averaging and it costs: run the way that keeps them.
    Keep,
    /// Some leave under averaging and it costs, but keeping them by the model costs more or does not work:
    /// run averaging and give them another reason to stay.
    Pay,
}

/// The label where it is recommended not to federate.
pub const DO_NOT: &str = "do-not-federate";
/// The way that is recommended where others are not measurably better.
pub const PREFERRED: &str = "stay+preview";

/// What follows from what was found.
pub fn recommend(found: &Findings) -> Advice {
    let of = |gains| found.names(|owner| owner.gains == gains);
    let averaging = found.way(AVERAGING);
    let (action, way) = decide(found, averaging);
    let told = way.or(averaging);
    Advice {
        label: way.map_or_else(|| DO_NOT.to_owned(), |way| way.label.clone()),
        action,
        gainers: of(Gains::Yes),
        nothing: of(Gains::No),
        unknown: of(Gains::Unknown),
        leavers: averaging.map(|way| way.left.clone()).unwrap_or_default(),
        kept_all: told.map_or(0, |way| way.kept_all),
        seeds: found.method.seeds.len() as u32,
        cost_of_leaving: averaging.and_then(|way| way.behind),
        price: way.and_then(|way| way.behind),
        rounds: told.map_or(0.0, |way| way.rounds),
        bytes: told.map_or(0.0, |way| way.bytes),
    }
}

/// What to do, and the way to run it.
fn decide<'a>(
    found: &'a Findings,
    averaging: Option<&'a WayFinding>,
) -> (Action, Option<&'a WayFinding>) {
    if found.owners.len() < 2 {
        return (Action::Alone, None);
    }
    let at_start = |share: f64| {
        let leaves = |owner: &OwnerFinding| {
            owner.leaves.is_some_and(|leaves| leaves.share >= share && leaves.last <= 1)
        };
        found.owners.iter().all(leaves)
    };
    if at_start(1.0) {
        return (Action::RaiseTarget, None);
    }
    let some_gain = found.owners.iter().any(|owner| owner.gains == Gains::Yes);
    if !some_gain {
        let mean_gains = found.mean_gain.is_some_and(|gain| gain.low > 0.0);
        let none = found.owners.iter().all(|owner| owner.gains == Gains::No);
        match (none, mean_gains) {
            (true, _) => return (Action::NobodyGains, None),
            (false, false) => return (Action::NotShown, None),
            (false, true) => {}
        }
    }
    let Some(averaging) = averaging else {
        return match best_keeping(found) {
            Some(way) => (Action::Keep, Some(way)),
            None => (Action::NotShown, None),
        };
    };
    if averaging.leavers.is_empty() {
        return (Action::Average, Some(averaging));
    }
    // What departures cost those who gain; where that cannot be told, they are taken to matter.
    let harmless = averaging.behind.is_some_and(|cost| cost.high <= found.least);
    if harmless {
        return (Action::LetGo, Some(averaging));
    }
    match best_keeping(found) {
        Some(way) if is_worth_it(found, averaging, way) => (Action::Keep, Some(way)),
        _ => (Action::Pay, Some(averaging)),
    }
}

/// The way that keeps the most, of equals the preferred one unless another is better by what counts, and
/// then the best for those who gain.
fn best_keeping(found: &Findings) -> Option<&WayFinding> {
    let candidates = || {
        let tried = found.ways.iter().filter(|way| way.may_leave && way.label != AVERAGING);
        tried.filter(|way| way.diverged == 0)
    };
    let fewest = candidates().map(|way| way.mean_left).min_by(f64::total_cmp)?;
    let keeping = || candidates().filter(|way| way.mean_left <= fewest + 1e-9);
    let behind = |way: &WayFinding| way.behind.map_or(f64::INFINITY, |behind| behind.value);
    let best = keeping().min_by(|a, b| behind(a).total_cmp(&behind(b)))?;
    let preferred = keeping().find(|way| way.label == PREFERRED);
    let preferred = preferred.filter(|way| behind(way) <= behind(best) + found.least);
    Some(preferred.unwrap_or(best))
}

/// Whether a way keeps more than averaging does, and leaves those who gain no worse off than departures
/// would, by more than what counts.
fn is_worth_it(found: &Findings, averaging: &WayFinding, way: &WayFinding) -> bool {
    let keeps_more = way.mean_left < averaging.mean_left;
    let no_worse = match (way.behind, averaging.behind) {
        (Some(own), Some(departures)) => own.value <= departures.value + found.least,
        _ => true,
    };
    keeps_more && no_worse
}

#[cfg(test)]
mod tests;

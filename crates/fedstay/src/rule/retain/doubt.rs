//! A bounded answer to one agent that lies.
//!
//! * **A cap.** For aims and floors a loss counts as at most ten times the median of everybody's
//!   first loss, whatever its own first loss was. A smaller loss still is a valid cut, so nothing that
//!   is proved is lost; an honest agent with a larger loss is only asked for less at a time.
//! * **Heed.** An agent whose loss does not fall, though the last step promised it, is asked for half
//!   as much of its way the next time, and for twice as much when it does. (Where there is a trust
//!   region, that does the same for all.)
//! * **A bench.** Where aims and floors cannot be met together, and for some rounds the median agent
//!   has not come nearer to its target, each agent of the contradiction is left out in turn. If the
//!   others can then be served, the one without which the step is shortest is benched: it is no
//!   longer aimed for, held or landed, and may therefore leave. At most one agent is, once, and the
//!   record says which.
//!
//! Against several liars who agree, or one whose lies contradict nobody, this does nothing.

use crate::memory::inside::pairs;
use crate::message::is_default;
use crate::rule::floors::{Aimed, Floors, Source};
use crate::{AgentId, Reports};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A loss counts as at most this many times what is usual.
const MOST: f64 = 10.0;
/// Below this share of what was promised, an agent is asked for less …
const POOR: f64 = 0.1;
/// … but not for less than this share of its way.
const LEAST_HEED: f64 = 1e-3;
/// The fewest agents of whom one can be called unusual.
const FEWEST_TO_CAP: usize = 3;
/// The fewest agents of whom one may be benched.
const FEWEST_TO_BENCH: usize = 6;
/// Rounds without progress after which somebody may be benched.
const PATIENCE: u32 = 5;
/// The median excess must fall to this share of the best so far to count as progress.
const PROGRESS: f64 = 0.98;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Doubt {
    /// Everybody's first loss.
    #[serde(default, with = "pairs", skip_serializing_if = "BTreeMap::is_empty")]
    first: BTreeMap<AgentId, f64>,
    /// The smallest median distance from the target so far.
    #[serde(default, skip_serializing_if = "is_default")]
    best: Option<f64>,
    /// Rounds since, in which aims and floors contradicted each other.
    #[serde(default, skip_serializing_if = "is_default")]
    idle: u32,
    #[serde(default, skip_serializing_if = "is_default")]
    benched: Option<AgentId>,
    /// What share of its way an agent is asked for, where that is less than all of it.
    #[serde(default, with = "pairs", skip_serializing_if = "BTreeMap::is_empty")]
    heed: BTreeMap<AgentId, f64>,
}

impl Doubt {
    /// The agent that is left out, if one is.
    pub(super) fn benched(&self) -> Option<AgentId> {
        self.benched
    }

    /// Caps the losses of a round, and says whose.
    pub(super) fn cap(&mut self, floors: &mut Floors<'_>) -> Vec<AgentId> {
        let heard = floors.source.iter().take_while(|source| **source == Source::Heard).count();
        for line in 0..heard {
            self.first.entry(floors.agent[line]).or_insert(floors.loss[line]);
        }
        if heard < FEWEST_TO_CAP {
            return Vec::new();
        }
        let usual = median(self.first.values().copied().collect());
        if usual.is_nan() || usual <= 0.0 {
            return Vec::new();
        }
        let most = MOST * usual;
        let mut capped = Vec::new();
        for line in 0..heard {
            if floors.loss[line] > most {
                floors.loss[line] = most;
                capped.push(floors.agent[line]);
            }
        }
        capped
    }

    /// What share of its way an agent is asked for.
    pub(super) fn heed(&self, agent: AgentId) -> f64 {
        self.heed.get(&agent).copied().unwrap_or(1.0)
    }

    /// Compares an agent's loss with what the last step promised it.
    pub(super) fn learn(&mut self, agent: AgentId, before: f64, promised: f64, loss: f64) {
        let heed = self.heed(agent);
        let heed = match before - loss >= POOR * (before - promised) {
            true => (2.0 * heed).min(1.0),
            false => (0.5 * heed).max(LEAST_HEED),
        };
        if heed < 1.0 {
            self.heed.insert(agent, heed);
        } else {
            self.heed.remove(&agent);
        }
    }

    /// Takes note of a round's progress, and says whether it is time to doubt somebody.
    pub(super) fn idles(&mut self, floors: &Floors<'_>, met: bool, stands: bool) -> bool {
        let heard = floors.source.iter().take_while(|source| **source == Source::Heard).count();
        let above = (0..heard).map(|line| floors.loss[line] - floors.precision[line]);
        let excess = median(above.collect());
        match self.best {
            Some(best) if excess > PROGRESS * best => self.idle += u32::from(!met),
            _ => (self.best, self.idle) = (Some(excess), 0),
        }
        let due = !met && (stands || self.idle >= PATIENCE);
        due && self.benched.is_none() && heard >= FEWEST_TO_BENCH
    }

    /// Benches the agent of the contradiction without which the step is shortest.
    pub(super) fn bench(
        &mut self,
        floors: &mut Floors<'_>,
        aimed: &Aimed,
        aims: &[f64],
        slack: f64,
        keep: bool,
        dimension: usize,
    ) -> Option<AgentId> {
        let mut best: Option<(f64, AgentId)> = None;
        for line in aimed.against.iter().copied() {
            if floors.source[line] != Source::Heard {
                continue;
            }
            let length = floors.without(line, aims, slack, keep, dimension);
            if let Some(length) = length.filter(|l| best.is_none_or(|(shortest, _)| *l < shortest))
            {
                best = Some((length, floors.agent[line]));
            }
        }
        self.benched = best.map(|(_, agent)| agent);
        self.idle = 0;
        self.benched
    }
}

/// These reports without the agent that is left out.
pub(super) fn without<'a>(reports: &Reports<'a>, benched: Option<AgentId>) -> Option<Reports<'a>> {
    let benched = benched?;
    let mut others = reports.clone();
    others.remove(benched);
    let others = others.with_absent(reports.absent());
    (others.len() < reports.len() && !others.is_empty()).then_some(others)
}

/// The upper median.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

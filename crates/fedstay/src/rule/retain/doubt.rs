//! What is done about an agent that lies.
//!
//! * **A cap.** For aims and floors an agent is at most ten times as far from its target loss as the median agent was at
//!   first, whatever loss and target it tells. A smaller loss still is a valid cut, so nothing that
//!   is proved is lost; an honest agent that is farther away is only asked for less at a time.
//! * **The first target.** An agent has one target loss. If it tells another one later, the first one counts, unless
//!   most agents do so together.
//! * **Heed.** An agent whose loss does not fall, though the last step promised it, is asked for half
//!   as much of its way the next time, and for twice as much when it does. (Where there is a trust
//!   region, that does the same for all.)
//! * **A bench.** Where aims and floors cannot be met together, and for some rounds the median agent
//!   has not come nearer to its target, each agent of the contradiction is left out in turn. If the
//!   others can then be served by a step of usual length, the one without which the step is shortest is benched: it is
//!   no longer aimed for, held or landed, and may therefore leave. So is an agent that alone, again and again, rises against its
//!   own gradient (`best.rs`). At most one agent is, once, and the record says which. If its first
//!   distance was believed, it is taken back as soon as it has been driven farther from its target than anybody was at first.
//!
//! Several liars who agree, or one whose reports could be an honest agent's, are not found out. They can hold
//! everybody up; how far they can drive anybody is bounded by `best.rs`.

use crate::memory::inside::pairs;
use crate::message::is_default;
use crate::rule::floors::{Aimed, Floors, Source};
use crate::{AgentId, Report, Reports, Standing};
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
pub(super) struct Distrust {
    /// How far everybody was from its target at first.
    #[serde(default, with = "pairs", skip_serializing_if = "BTreeMap::is_empty")]
    gaps: BTreeMap<AgentId, f64>,
    /// Everybody's first target loss.
    #[serde(default, with = "pairs", skip_serializing_if = "BTreeMap::is_empty")]
    target: BTreeMap<AgentId, f64>,
    /// The smallest median distance from the target so far.
    #[serde(default, skip_serializing_if = "is_default")]
    best: Option<f64>,
    /// Rounds since, in which aims and floors contradicted each other.
    #[serde(default, skip_serializing_if = "is_default")]
    idle: u32,
    #[serde(default, skip_serializing_if = "is_default")]
    benched: Option<AgentId>,
    /// Whether that agent was no farther from its target than others at first: then it may not be driven farther.
    #[serde(default, skip_serializing_if = "is_default")]
    minded: bool,
    /// Whether somebody was benched and is no longer.
    #[serde(default, skip_serializing_if = "is_default")]
    spent: bool,
    /// What share of its way an agent is asked for, where that is less than all of it.
    #[serde(default, with = "pairs", skip_serializing_if = "BTreeMap::is_empty")]
    heed: BTreeMap<AgentId, f64>,
}

impl Distrust {
    /// The reports of a round as they are read, if that is not as they came: without the agent that is left out, and
    /// with everybody's first target loss. Then who told another one.
    pub(super) fn read<'a>(
        &mut self,
        reports: &Reports<'a>,
    ) -> (Option<Reports<'a>>, Vec<AgentId>) {
        self.take_back(reports);
        let others = without(reports, self.benched);
        let read = others.as_ref().unwrap_or(reports);
        let told = |report: &Report<'_>| Some((report.agent, report.epsilon()?));
        for (agent, epsilon) in read.iter().filter_map(told) {
            self.target.entry(agent).or_insert(epsilon);
        }
        let moves = |(agent, epsilon): &(AgentId, f64)| self.target[agent] != *epsilon;
        let moved: Vec<(AgentId, f64)> = read.iter().filter_map(told).filter(moves).collect();
        let few = self.target.len() < FEWEST_TO_CAP;
        // What most do together is not one agent's doing.
        if few || (moved.len() > 1 && 2 * moved.len() > read.len()) {
            self.target.extend(moved);
            return (others, Vec::new());
        }
        if moved.is_empty() {
            return (others, Vec::new());
        }
        let read = read.translated(|_, report, _| {
            if let Standing::Open { epsilon, .. } = &mut report.standing {
                *epsilon = self.target[&report.agent];
            }
            None
        });
        (Some(read), moved.into_iter().map(|(agent, _)| agent).collect())
    }

    /// Takes an agent back that was benched, once the others have driven it farther from its target than anybody was
    /// at first.
    fn take_back(&mut self, reports: &Reports<'_>) {
        let Some(benched) = self.benched.filter(|_| self.minded) else { return };
        let (target, highest) = (self.target.get(&benched).copied(), self.highest());
        let loss = reports.iter().find(|report| report.agent == benched).and_then(Report::loss);
        let above = loss.zip(target).map(|(loss, target)| loss.cautious() - target);
        if above.is_some_and(|above| above > highest) {
            (self.benched, self.spent) = (None, true);
        }
    }

    /// Whether an agent was benched and taken back.
    pub(super) fn takes_back(&self) -> bool {
        self.spent
    }

    /// Leaves an agent out from here on.
    fn leave_out(&mut self, agent: AgentId) {
        let believed = self.gaps.get(&agent).is_some_and(|gap| *gap <= self.highest());
        (self.benched, self.minded) = (Some(agent), believed);
    }

    /// How far from its target an agent counts as at most.
    fn most(&self) -> f64 {
        let usual = median(self.gaps.values().copied().collect());
        if self.gaps.len() >= FEWEST_TO_CAP && usual > 0.0 { MOST * usual } else { f64::INFINITY }
    }

    /// Caps the losses of a round, and says whose.
    pub(super) fn cap(&mut self, floors: &mut Floors<'_>) -> Vec<AgentId> {
        let heard = heard(floors);
        for line in 0..heard {
            let above = (floors.loss[line] - floors.precision[line]).clamp(f64::MIN, f64::MAX);
            self.gaps.entry(floors.agent[line]).or_insert(above);
        }
        let farthest = self.most();
        let mut capped = Vec::new();
        for line in 0..heard {
            let most = floors.precision[line] + farthest;
            if floors.loss[line] > most {
                floors.loss[line] = most;
                capped.push(floors.agent[line]);
            }
        }
        capped
    }

    /// Whether a line is as far from its target as anybody counts.
    pub(super) fn is_capped(&self, floors: &Floors<'_>, line: usize) -> bool {
        floors.loss[line] >= floors.precision[line] + self.most()
    }

    /// The farthest that anybody was from its target at first, as far as that is believed.
    pub(super) fn highest(&self) -> f64 {
        let most = self.most();
        self.gaps.values().copied().filter(|gap| *gap <= most).fold(0.0, f64::max)
    }

    /// Benches an agent that stands alone, if somebody may be.
    pub(super) fn bench_alone(&mut self, agent: AgentId, heard: usize) -> bool {
        let may = self.may_bench(heard);
        if may {
            self.leave_out(agent);
        }
        may
    }

    /// Whether somebody may be benched where this number were heard.
    fn may_bench(&self, heard: usize) -> bool {
        self.benched.is_none() && !self.spent && heard >= FEWEST_TO_BENCH
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
        let heard = heard(floors);
        let above = (0..heard).map(|line| floors.loss[line] - floors.precision[line]);
        let excess = median(above.collect());
        match self.best {
            Some(best) if excess > PROGRESS * best => self.idle += u32::from(!met),
            _ => (self.best, self.idle) = (Some(excess), 0),
        }
        let due = !met && (stands || self.idle >= PATIENCE);
        due && self.may_bench(heard)
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
        let way =
            |line: usize| (floors.loss[line] - aims[line]).max(0.0) / floors.bundle.lengths()[line];
        let ways = (0..aims.len()).filter(|line| floors.source[*line] == Source::Heard).map(way);
        let ways: Vec<f64> = ways.filter(|way| way.is_finite()).collect();
        let most = ways.len() as f64 * median(ways);
        let mut best: Option<(f64, AgentId)> = None;
        for line in aimed.against.iter().copied() {
            if floors.source[line] != Source::Heard {
                continue;
            }
            let length = floors.without(line, aims, slack, keep, dimension);
            let shortest = best.map_or(most, |(shortest, _)| shortest);
            if let Some(length) = length.filter(|length| *length < shortest) {
                best = Some((length, floors.agent[line]));
            }
        }
        self.idle = 0;
        self.leave_out(best?.1);
        self.benched
    }
}

/// These reports without the agent that is left out.
fn without<'a>(reports: &Reports<'a>, benched: Option<AgentId>) -> Option<Reports<'a>> {
    let benched = benched?;
    let mut others = reports.clone();
    others.remove(benched);
    let others = others.with_absent(reports.absent());
    (others.len() < reports.len() && !others.is_empty()).then_some(others)
}

/// How many lines are reports of this round: the first ones.
fn heard(floors: &Floors<'_>) -> usize {
    floors.source.iter().take_while(|source| **source == Source::Heard).count()
}

/// The upper median.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

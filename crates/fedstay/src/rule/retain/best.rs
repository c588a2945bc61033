//! Never worse than before: the best weights so far, and the way back to them.
//!
//! The level base goes to where all cuts say that everybody is nearly content. Where targets exclude each
//! other, where the model is too small, or where a report is a lie, there is no such place, and what the
//! cuts promise may lie thousands of times farther away than anything they hold for. So what a step
//! brought is compared with the best so far, by what everybody lacks to its level, in the sense of squares:
//!
//! ```text
//! Q(w) = Σ (h_m · min(F_max, max(0, F_m(w) − level_m)))²
//! ```
//!
//! where nobody counts as lacking more than `F_max`, the farthest that anybody was from its target at first, and `h_m` is 1, or
//! less for an agent whose distance is capped and who has broken promises (`doubt.rs`).
//!
//! * **Nothing happens** while what is lacking stays within [`GROWN`] times the least so far: rounds in which
//!   an agent rises for a while are usual, and such a run comes out as if this file did not exist.
//! * **Back.** Once it has grown beyond that, the rule returns to the best weights, and from there on it is a
//!   trust-region method (Conn, Gould, Toint, *Trust-Region Methods*, 2000): no step is longer than a
//!   radius, which follows what promises came to, and every step after which Q is larger, or somebody has
//!   risen above everybody's first loss, is taken back. The usual step, shortened, is a direction in which Q
//!   falls, so some radius is small enough, if the reports are true.
//! * **Nothing but standing still is left** where no step lowers Q. The run then ends `stalled`, at its best.
//! * **Who alone stands against it.** If one agent's loss rises although its own gradient said that it falls, again
//!   and again while steps become ever shorter, and the others have come nearer each time, then what that
//!   agent says contradicts itself. It may then be benched (`doubt.rs`).
//!
//! Everybody who is still in was above its target at the best weights, so to return there keeps everybody. Among
//! agents of which only some are heard, those are compared that were heard both times.

use crate::message::is_default;
use crate::packed;
use crate::rule::Round;
use crate::rule::floors::Floors;
use crate::{AgentId, Vector, linalg};
use serde::{Deserialize, Serialize};

/// How many times more may be lacking than at the best weights (the root of the mean of squares) before
/// the rule returns, …
const GROWN: f64 = 4.0;
/// … if it also is more than this share of the farthest that anybody was from its target at first: near the end a step that
/// went wrong is soon made good (on digits with ε = 0.001, from 0.09 to 0.56 and on to 0.04); …
const MUCH: f64 = 0.25;
/// … how many times farther from its target than anybody was at first an agent may rise …
const GROWN_ALONE: f64 = 4.0;
/// … and for how many rounds in a row more than this many times may be lacking, or somebody be farther than that; …
const LATE: f64 = 1.2;
const PATIENCE: u32 = 20;
/// … beside this many δ, within which losses come and go near their targets.
const HAIR: f64 = 2.0;
/// What is left of the radius after a step that was taken back.
const TOO_LONG: f64 = 0.25;
/// Below this share of what was promised for Q the radius is halved …
const POOR: f64 = 0.1;
/// … and above this one doubled.
const GOOD: f64 = 0.5;
/// How often in a row one agent alone must have contradicted itself.
const STRIKES: u32 = 5;
/// What rounding may do to a sum.
const ROUNDING: f64 = 1e-9;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct BestWeights {
    /// The best weights so far; empty before the first round.
    #[serde(with = "packed")]
    weights: Vec<f64>,
    /// Everybody's loss there, by agent.
    losses: Vec<(AgentId, f64)>,
    /// How long a step may be, once the rule had to return.
    #[serde(default, skip_serializing_if = "is_default")]
    radius: Option<f64>,
    /// Whether the last step led back.
    #[serde(default, skip_serializing_if = "is_default")]
    back: bool,
    /// Whether more is lacking at the present weights than at the best.
    #[serde(default, skip_serializing_if = "is_default")]
    behind: bool,
    /// For how many rounds in a row clearly more has been lacking.
    #[serde(default, skip_serializing_if = "is_default")]
    late: u32,
    /// Who alone stood against the last steps, and how many.
    #[serde(default, skip_serializing_if = "is_default")]
    strikes: Option<(AgentId, u32)>,
}

/// What to do in a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Judged {
    /// Continue from here.
    On,
    /// Return to the best weights.
    Back,
    /// Return; this agent alone stood against every step.
    Alone(AgentId),
}

/// One agent that was heard, here and at the best weights.
struct Compared {
    agent: AgentId,
    line: usize,
    loss: f64,
    before: f64,
    /// The square of what is lacking here, and at the best weights.
    now: f64,
    then: f64,
    /// How far its loss is above its target.
    above: f64,
}

/// What everybody lacks to its level, and how much that counts, line by line.
pub(super) struct Lacking {
    pub(super) levels: Vec<f64>,
    pub(super) heed: Vec<f64>,
    pub(super) most: f64,
}

impl Lacking {
    /// What a line lacks at this loss.
    pub(super) fn at(&self, line: usize, loss: f64) -> f64 {
        (loss - self.levels[line]).max(0.0).min(self.most)
    }

    fn square(&self, line: usize, loss: f64) -> f64 {
        (self.heed[line] * self.at(line, loss)).powi(2)
    }

    /// The sum of squares after a step, as far as the cuts tell.
    pub(super) fn after(&self, floors: &Floors<'_>, step: &[f64]) -> f64 {
        let lines = floors.loss.iter().zip(floors.bundle.along(step)).enumerate();
        lines.map(|(line, (loss, along))| self.square(line, loss + along)).sum()
    }
}

impl BestWeights {
    /// Compares a round with the best so far. `promised` has the losses before the last step, and after it as they were
    /// predicted.
    pub(super) fn judge(
        &mut self,
        round: &Round<'_>,
        floors: &Floors<'_>,
        lacking: &Lacking,
        promised: &[(AgentId, f64, f64)],
        delta: f64,
    ) -> Judged {
        if self.weights.is_empty() {
            self.take(round, floors);
            return Judged::On;
        }
        let compared = self.compared(round, floors, lacking);
        let now: f64 = compared.iter().map(|agent| agent.now).sum();
        let then: f64 = compared.iter().map(|agent| agent.then).sum();
        let risen = |times: f64, hair: f64| {
            let most = times * lacking.most * (1.0 + ROUNDING) + hair;
            compared.iter().any(|agent| agent.loss > agent.before && agent.above > most)
        };
        self.behind = risen(1.0, 0.0) || now > then * (1.0 + ROUNDING);
        if self.back || !self.behind {
            if !self.back && self.radius.is_some() {
                self.follow(then - now, &compared, lacking, promised);
            }
            if !self.back {
                self.strikes = None;
            }
            self.take(round, floors);
            return Judged::On;
        }
        let root = |sum: f64| (sum / compared.len().max(1) as f64).sqrt();
        let grown = |times: f64| root(now) > times * root(then) + HAIR * delta;
        self.late = if grown(LATE) || risen(1.0, HAIR * delta) { self.late + 1 } else { 0 };
        let is_worse = self.radius.is_some()
            || (grown(GROWN) && root(now) > MUCH * lacking.most)
            || risen(GROWN_ALONE, HAIR * delta)
            || self.late >= PATIENCE;
        if !is_worse {
            return Judged::On;
        }
        let alone = alone(&compared, promised);
        let sampled = floors.loss.iter().zip(&floors.upper).any(|(loss, upper)| loss < upper);
        self.strikes = match (alone.filter(|_| !sampled), self.strikes) {
            (Some(agent), Some((same, times))) if agent == same => Some((agent, times + 1)),
            (Some(agent), _) => Some((agent, 1)),
            (None, _) => None,
        };
        match self.strikes {
            Some((agent, STRIKES..)) => Judged::Alone(agent),
            _ => Judged::Back,
        }
    }

    /// Those that were heard here and at the best weights.
    fn compared(&self, round: &Round<'_>, floors: &Floors<'_>, lacking: &Lacking) -> Vec<Compared> {
        let heard = 0..round.reports.len();
        let lines = heard.filter_map(|line| {
            let agent = floors.agent[line];
            let known = self.losses.binary_search_by_key(&agent, |(agent, _)| *agent).ok()?;
            let (loss, before) = (floors.loss[line], self.losses[known].1);
            let (now, then) = (lacking.square(line, loss), lacking.square(line, before));
            let above = loss - floors.precision[line];
            Some(Compared { agent, line, loss, before, now, then, above })
        });
        lines.collect()
    }

    /// Takes the present weights for the best.
    fn take(&mut self, round: &Round<'_>, floors: &Floors<'_>) {
        (self.back, self.behind, self.late) = (false, false, 0);
        self.weights.clear();
        self.weights.extend_from_slice(round.weights);
        self.losses.retain(|(agent, _)| !round.reports.goodbyes().contains(agent));
        for (agent, loss) in floors.agent.iter().zip(&floors.loss).take(round.reports.len()) {
            match self.losses.binary_search_by_key(agent, |(agent, _)| *agent) {
                Ok(known) => self.losses[known].1 = *loss,
                Err(place) => self.losses.insert(place, (*agent, *loss)),
            }
        }
    }

    /// Lets the radius follow what came of the last step.
    fn follow(
        &mut self,
        brought: f64,
        compared: &[Compared],
        lacking: &Lacking,
        promised: &[(AgentId, f64, f64)],
    ) {
        let hope = |agent: &Compared| {
            let (_, after) = said(promised, agent.agent)?;
            Some(agent.then - lacking.square(agent.line, after))
        };
        let hoped: f64 = compared.iter().filter_map(hope).sum();
        let Some(radius) = self.radius.as_mut().filter(|_| hoped > 0.0) else { return };
        if brought < POOR * hoped {
            *radius *= 0.5;
        } else if brought > GOOD * hoped {
            *radius = (2.0 * *radius).min(f64::MAX);
        }
    }

    /// Fills `step` with the way back, and shortens the steps to come.
    pub(super) fn lead_back(&mut self, round: &Round<'_>, step: &mut [f64]) {
        for ((step, best), here) in step.iter_mut().zip(&self.weights).zip(round.weights) {
            *step = best - here;
        }
        let way = linalg::norm(Vector::F64(step)).min(f64::MAX);
        let last = if round.last_step > 0.0 { way.min(round.last_step) } else { way };
        self.radius = Some(TOO_LONG * self.radius.map_or(last, |radius| radius.min(last)));
        (self.back, self.behind) = (true, false);
    }

    /// Continues without an agent that stood against it, as if nothing had happened.
    pub(super) fn begin_anew(&mut self) {
        (self.radius, self.strikes) = (None, None);
    }

    /// Judges strictly from here on, as after a step that was taken back.
    pub(super) fn insist(&mut self) {
        self.radius.get_or_insert(f64::MAX);
    }

    /// How long a step may be, if one has failed.
    pub(super) fn radius(&self) -> Option<f64> {
        self.radius
    }

    /// Whether everybody is worse off here than at the best weights, taken together.
    pub(super) fn is_behind(&self) -> bool {
        self.behind
    }

    /// The weights to deliver instead of those after a step of which nothing is known yet: once a step has failed, or while
    /// clearly more is lacking.
    pub(super) fn weights(&self) -> Option<&[f64]> {
        (self.radius.is_some() || self.late > 0).then_some(&*self.weights)
    }
}

/// Shortens a step to a radius.
pub(super) fn shorten(step: &mut [f64], radius: f64) {
    let length = linalg::norm(Vector::F64(step));
    if length > radius {
        linalg::scale(step, radius / length);
    }
}

/// What was promised to an agent: its loss before the last step, and after.
fn said(promised: &[(AgentId, f64, f64)], agent: AgentId) -> Option<(f64, f64)> {
    let known = promised.binary_search_by_key(&agent, |(agent, ..)| *agent).ok()?;
    Some((promised[known].1, promised[known].2))
}

/// The one agent whose loss rose against its own promise, if the others have come nearer without it.
fn alone(compared: &[Compared], promised: &[(AgentId, f64, f64)]) -> Option<AgentId> {
    let rise = |agent: &Compared| agent.now - agent.then;
    let most = compared.iter().max_by(|a, b| rise(a).total_cmp(&rise(b)))?;
    let others: f64 = compared.iter().filter(|agent| agent.agent != most.agent).map(rise).sum();
    let (before, after) = said(promised, most.agent)?;
    (others < 0.0 && after < before && most.loss > before).then_some(most.agent)
}

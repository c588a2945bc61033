//! `preview`: the server's own model moves as if nobody could leave, and whoever would be content
//! with it is shown another one until the end.
//!
//! Every agent m that is about to be content receives its *preview* `w̃_m` instead of `w`: the
//! nearest point to `w` at which its loss is predicted to be its floor,
//!
//! ```text
//! floor_m = ε_m + δ + margin + pace·(1 − round/rounds) + what predictions about m have missed by
//! ```
//!
//! and what it reports about the preview is translated to `w` before the rule sees it. At the end,
//! everyone who stayed is given `w`. Agents know this: it is a rule of the federation.
//!
//! **By cut**, where m reports the exact loss L and gradient g at what it received: with `w⁺` the
//! server's new weights,
//!
//! ```text
//! c  = L + ⟨g, w⁺ − w̃⟩             m's loss at w⁺, predicted; a lower bound if it is convex
//! w̃⁺ = w⁺ + max(0, floor − c)/‖g‖² · g
//! ```
//!
//! **Certified.** For convex losses `F_m(w̃⁺) ≥ L + ⟨g, w̃⁺ − w̃⟩ ≥ floor_m > ε_m`: nobody leaves,
//! whatever the step, the number of agents and of dimensions. Only an agent that is content with the
//! first weights of all, before it has reported anything, cannot be held.
//!
//! **By rewind**, where m sends only a loss and where its training ended: see `rewind.rs`.
//!
//! A preview that cannot be trusted (a gradient of zero, an offset longer than all steps so far) is
//! not sent. The agent is then shown once more what it was shown before, with which it was not
//! content. An agent that is silent keeps its last cut. Only agents that are held cost memory: one
//! vector each; where some are silent in a round, all that are still in do.
//!
//! **Landing.** For H-smooth losses `F_m(w) ≤ c + ½H‖w − w̃‖² `. When that is at most ε_m for
//! everybody, `w` satisfies all of them: certified if H is known, the losses are convex and the
//! reports exact. It holds for small δ only, so δ is halved whenever `c ≤ ε_m − δ` for all m.
//!
//! Theory and measurements: `docs/preview.md`.

mod landing;
mod offset;
mod rewind;
mod translation;

pub(crate) use translation::Translation;

use super::Wrap;
use crate::list::Origin;
use crate::memory::inside::{is_default, pairs};
use crate::numerics::normal;
use crate::rule::{Decision, Facts, Landing, Miss, Round, Split, StopReason};
use crate::server::{Personal, Shown};
use crate::{AgentId, Error, Loss, Report, Reports, Seed, Standing, Vector, linalg};
use landing::Balls;
use offset::Offset;
use rewind::Rewind;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub(super) const ORIGIN: Origin = Origin {
    about: "let the model move freely; show those about to be content the nearest model they are not content with",
    reference: "this project, after Karimireddy et al., arXiv 2207.04557",
};

/// A miss is worth a line of the record above this share of δ.
const WORTH_TELLING: f64 = 0.5;
/// How much of the largest miss of an agent is still reckoned with one round later.
const REMEMBERED: f64 = 0.9;
/// While landing the slack may fall to this share of δ.
const SMALLEST_SLACK: f64 = 1e-9;
/// The rounds over which `pace` falls, if nobody says how many there are.
const USUAL_ROUNDS: u32 = 1000;

/// Show agents that would be content something else until the end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Preview {
    /// How far above its target loss every agent is kept.
    pub delta: f64,
    /// More of the same, against agents that leave early or tell too large a loss. It must be larger
    /// than what they gain by it.
    pub margin: f64,
    /// How previews are made.
    pub by: By,
    /// By how much the loss shown falls over the whole run, a little in every round, so that
    /// impatient agents see progress. 0 is none.
    pub pace: f64,
    /// The rounds over which it falls: those of the run, unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over: Option<u32>,
    /// When to deliver.
    pub until: Until,
    /// No preview is farther from the server's weights than this many times the way they have come.
    pub cap: f64,
    /// A constant H such that every loss is H-smooth, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smoothness: Option<f64>,
    #[serde(skip_serializing_if = "is_default")]
    memory: PreviewMemory,
}

/// How previews are made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// By cut for agents that report an exact gradient at what they received, else by rewind.
    #[default]
    Auto,
    /// Up the gradient at what the agent received.
    Cut,
    /// On the way from what the agent received to the server's weights.
    Rewind,
    /// What the agent was shown last: the control that shows what moving a preview is worth.
    Stale,
    /// As far as by cut, in a random direction: the control that shows what the gradient is worth.
    Noise,
}

/// When the server's weights are delivered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Until {
    /// After the last round.
    #[default]
    Rounds,
    /// As soon as they satisfy everybody: provably, where a smoothness is given, or else as far as
    /// can be predicted.
    Content,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct PreviewMemory {
    /// The slack while landing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    delta: Option<f64>,
    /// The length of the way that the server's weights have come.
    travelled: f64,
    /// What is known about every agent that has been heard and is still in.
    #[serde(with = "pairs")]
    agents: BTreeMap<AgentId, Known>,
    /// What some agents are shown, by id.
    personal: Vec<(AgentId, Personal)>,
}

/// What the server knows about an agent from its last report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Known {
    epsilon: f64,
    /// Its loss at the server's weights, predicted; a lower bound if it is convex.
    at_server: f64,
    /// Its loss at what it is shown, predicted likewise.
    promised: f64,
    /// The length of its gradient.
    norm: f64,
    /// How far below their prediction its losses have been lately.
    missed: f64,
    /// For how many rounds in a row it has been shown the same.
    stood: u32,
    #[serde(default, skip_serializing_if = "is_default")]
    rewind: Rewind,
}

impl Default for Preview {
    fn default() -> Self {
        Self {
            delta: 0.01,
            margin: 0.0,
            by: By::Auto,
            pace: 0.1,
            over: None,
            until: Until::Rounds,
            cap: 1.0,
            smoothness: None,
            memory: PreviewMemory::default(),
        }
    }
}

/// One report, with where it was made.
struct Heard<'a> {
    report: &'a Report<'a>,
    loss: f64,
    epsilon: f64,
    /// What is known from the reports before.
    before: Option<Known>,
    /// What it was shown, if not the server's weights.
    shown: Option<Personal>,
}

impl Preview {
    fn slack(&self) -> f64 {
        self.memory.delta.unwrap_or(self.delta)
    }

    /// What an agent is kept above in the round after `round`, apart from its own misses.
    fn floor(&self, epsilon: f64, round: u32) -> f64 {
        let over = f64::from(self.over.unwrap_or(USUAL_ROUNDS).max(1));
        let left = (1.0 - f64::from(round) / over).max(0.0);
        epsilon + self.slack() + self.margin + self.pace * left
    }

    /// Whether previews for this agent are made from the gradient at what it received.
    fn cuts(&self, report: &Report<'_>) -> bool {
        match self.by {
            By::Auto => report.gradient.is_some(),
            By::Rewind => false,
            By::Cut | By::Stale | By::Noise => true,
        }
    }

    fn personal_of(&self, agent: AgentId) -> Option<&Personal> {
        let personal = &self.memory.personal;
        let place = personal.binary_search_by_key(&agent, |(agent, _)| *agent).ok()?;
        Some(&personal[place].1)
    }

    /// What the next broadcast shows an agent that was heard, and what is known about it then.
    fn next(
        &self,
        heard: Heard<'_>,
        round: &Round<'_>,
        step: &[f64],
        gap: &Offset,
        keep: bool,
    ) -> Next {
        let Heard { report, loss, epsilon, before, shown } = heard;
        let mut missed = before.as_ref().map_or(0.0, |known| known.missed * REMEMBERED);
        let mut miss = None;
        if let Some(known) = &before {
            let by = known.promised - loss;
            if by > WORTH_TELLING * self.slack() {
                miss = Some(Miss { agent: report.agent, predicted: known.promised, loss });
            }
            missed = missed.max(by);
        }
        let floor = self.floor(epsilon, round.number) + missed;
        let slope = report.slope();
        let norm = linalg::norm(slope);
        let along = linalg::dot(slope, Vector::F64(&gap.way));
        let mut known = Known {
            epsilon,
            at_server: loss + along,
            promised: loss + along,
            norm,
            missed,
            stood: 0,
            rewind: before.as_ref().map(|known| known.rewind.clone()).unwrap_or_default(),
        };
        let cuts = self.cuts(report);
        let mut personal = None;
        let mut certain = cuts && self.by != By::Noise;
        if !cuts {
            let by = known.rewind.next(loss, epsilon, along, floor);
            certain = false;
            match by {
                rewind::Move::ToServer => {}
                rewind::Move::Part { share, promised } => {
                    known.promised = promised;
                    personal = Some(Personal::Fixed(gap.part(round.weights, step, share)));
                }
                rewind::Move::Stand => {
                    known.promised = loss;
                    personal = Some(stand(shown, round.weights));
                    known.stood = before.map_or(0, |known| known.stood) + 1;
                }
            }
        } else if known.at_server < floor {
            let times = (floor - known.at_server) / (norm * norm);
            let length = times * norm;
            let longest = self.cap * (self.memory.travelled + gap.step);
            if self.by == By::Stale || !(length <= longest) {
                known.promised = loss;
                personal = Some(stand(shown, round.weights));
                known.stood = before.map_or(0, |known| known.stood) + 1;
            } else {
                known.promised = floor;
                let mut direction = vec![0.0; round.weights.len()];
                linalg::add_scaled(&mut direction, 1.0, slope);
                if self.by == By::Noise {
                    randomise(&mut direction, norm, round.number, report.agent);
                }
                personal = Some(Personal::Shifted { times, along: direction });
            }
        } else if keep {
            let mut direction = vec![0.0; round.weights.len()];
            linalg::add_scaled(&mut direction, 1.0, slope);
            personal = Some(Personal::Shifted { times: 0.0, along: direction });
        }
        Next { known, personal, certain, miss }
    }

    /// Lets an agent that was not heard keep its last cut while the server moves on.
    fn drift(
        &self,
        mut known: Known,
        shown: Option<Personal>,
        round: &Round<'_>,
        step: &[f64],
    ) -> Next {
        let floor = self.floor(known.epsilon, round.number) + known.missed;
        let personal = match shown {
            Some(Personal::Shifted { along, .. }) => {
                known.at_server += linalg::dot(Vector::F64(&along), Vector::F64(step));
                let times = ((floor - known.at_server) / (known.norm * known.norm)).max(0.0);
                let times = if times.is_finite() { times } else { 0.0 };
                known.promised = known.at_server.max(floor);
                Some(Personal::Shifted { times, along })
            }
            Some(fixed) => {
                known.stood += 1;
                Some(fixed)
            }
            None => {
                let after = known.at_server - known.norm * linalg::norm(Vector::F64(step));
                if after >= floor {
                    known.at_server = after;
                    known.promised = after;
                    None
                } else {
                    // What the step does to it is not known any more; what it is without it, is.
                    known.promised = known.at_server;
                    Some(Personal::Fixed(round.weights.to_vec()))
                }
            }
        };
        Next { known, personal, certain: self.by != By::Noise, miss: None }
    }
}

/// What an agent is shown next.
struct Next {
    known: Known,
    personal: Option<Personal>,
    /// Whether for convex losses it proves that the agent stays.
    certain: bool,
    miss: Option<Miss>,
}

/// What the agent was shown last, once more.
fn stand(shown: Option<Personal>, weights: &[f64]) -> Personal {
    match shown {
        None => Personal::Fixed(weights.to_vec()),
        Some(Personal::Shifted { times, along }) => {
            let mut point = weights.to_vec();
            linalg::add_scaled(&mut point, times, Vector::F64(&along));
            Personal::Fixed(point)
        }
        Some(fixed) => fixed,
    }
}

/// A random direction of the same length.
fn randomise(direction: &mut [f64], norm: f64, round: u32, agent: AgentId) {
    let mut rng = Seed(0).stream("preview", u64::from(round), agent.0);
    direction.iter_mut().for_each(|value| *value = normal(&mut rng));
    let length = linalg::norm(Vector::F64(direction));
    linalg::scale(direction, norm / length.max(f64::MIN_POSITIVE));
}

/// The loss that a careful server plans with, and the target loss.
fn open(report: &Report<'_>) -> Result<(f64, f64), Error> {
    report.exact_loss("preview")?;
    match report.standing {
        Standing::Open { loss, epsilon } => Ok((loss.cautious(), epsilon)),
        Standing::Private { .. } => unreachable!("it has an exact loss"),
    }
}

impl Wrap for Preview {
    fn check(&self) -> Result<(), Error> {
        let named = [("delta", self.delta), ("margin", self.margin), ("pace", self.pace)];
        for (name, value) in named.into_iter().chain([("cap", self.cap)]) {
            super::check_not_negative(&format!("policy.{name}"), value)?;
        }
        if let Some(smoothness) = self.smoothness {
            super::check_not_negative("policy.smoothness", smoothness)?;
        }
        if self.over == Some(0) {
            return Err(Error::bad_parameter("policy.over", 0, "one round or more"));
        }
        Ok(())
    }

    fn expect(&mut self, rounds: u32) {
        self.over.get_or_insert(rounds.max(1));
    }

    fn personal(&self) -> &[(AgentId, Personal)] {
        &self.memory.personal
    }

    fn translate(
        &self,
        weights: &[f64],
        reports: &Reports<'_>,
        facts: &Facts,
    ) -> Result<Option<Translation>, Error> {
        if self.memory.personal.is_empty() {
            return Ok(None);
        }
        let of = |agent| self.personal_of(agent);
        Translation::new(weights, reports, facts.cuts, &of).map(Some)
    }

    fn apply(
        &mut self,
        round: &Round<'_>,
        step: &mut [f64],
        decision: &mut Decision,
    ) -> Result<(), Error> {
        let mut heard = Vec::with_capacity(round.reports.len());
        for report in round.reports.iter() {
            heard.push((report, open(report)?));
        }
        let mut landing = Arrival::new(self.smoothness, self.slack());
        let mut gap = Offset::new(step);
        for (report, (loss, epsilon)) in &heard {
            gap.from(round.weights, step, self.personal_of(report.agent));
            landing.look(report, *loss, *epsilon, &gap.way);
        }
        let unheard = round.reports.absent() > 0;
        if unheard {
            landing.unheard();
        }
        if self.until == Until::Content && decision.stop.is_none() {
            landing.come_down(step);
        }
        let mut gap = Offset::new(step);
        let mut old: BTreeMap<AgentId, Personal> =
            std::mem::take(&mut self.memory.personal).into_iter().collect();
        let mut agents = std::mem::take(&mut self.memory.agents);
        for agent in round.reports.goodbyes() {
            old.remove(agent);
            agents.remove(agent);
        }
        // Whoever may be silent next needs its gradient kept.
        let keep = unheard;
        let (mut next, mut shown, mut missed) = (Vec::new(), Vec::new(), Vec::new());
        let (mut certain, mut held) = (true, Vec::new());
        for (report, (loss, epsilon)) in heard {
            let (before, own) = (agents.remove(&report.agent), old.remove(&report.agent));
            gap.from(round.weights, step, own.as_ref());
            if let Some(own) = own.as_ref().filter(|own| own.differs()) {
                shown.push(shown_line(report, loss, own, before.as_ref(), round.weights));
            }
            let heard = Heard { report, loss, epsilon, before, shown: own };
            let coming = self.next(heard, round, step, &gap, keep);
            certain &= coming.certain;
            missed.extend(coming.miss);
            held.push(coming.personal.as_ref().is_some_and(Personal::differs));
            next.push((report.agent, coming));
        }
        for (agent, known) in agents {
            let coming = self.drift(known, old.remove(&agent), round, step);
            certain &= coming.certain;
            next.push((agent, coming));
        }
        next.sort_by_key(|(agent, _)| *agent);
        self.memory.travelled += gap.step;
        for (agent, coming) in next {
            self.memory.agents.insert(agent, coming.known);
            self.memory.personal.extend(coming.personal.map(|personal| (agent, personal)));
        }
        // Only a proof needs less slack than was asked for.
        let finer = self.smoothness.is_some() && self.slack() > self.delta * SMALLEST_SLACK;
        if landing.below && finer {
            self.memory.delta = Some(self.slack() / 2.0);
        }
        decision.kept = Some(certain);
        decision.shown = shown;
        decision.missed = Some(missed);
        decision.split = Split::by(round.reports, |index| held[index]);
        let arrived = landing.verdict();
        let last = self.over == Some(round.number);
        decision.landed = Some(Landing::No);
        let enough = match self.smoothness {
            Some(_) => arrived == Landing::Certified,
            None => arrived != Landing::No,
        };
        if decision.stop.is_none() && self.until == Until::Content && enough {
            decision.stop = Some(StopReason::Landed);
        }
        if last || decision.stop.is_some() {
            decision.landed = Some(arrived);
        }
        Ok(())
    }

    fn heard_nobody(&mut self, round: &Round<'_>) -> Result<(), Error> {
        for agent in round.reports.goodbyes() {
            self.memory.agents.remove(agent);
            self.memory.personal.retain(|(other, _)| other != agent);
        }
        Ok(())
    }
}

/// What an agent was shown in this round, for the record.
fn shown_line(
    report: &Report<'_>,
    loss: f64,
    own: &Personal,
    before: Option<&Known>,
    weights: &[f64],
) -> Shown {
    let offset = offset::of(own, weights);
    let along = linalg::dot(report.slope(), Vector::F64(&offset));
    Shown {
        agent: report.agent,
        distance: linalg::norm(Vector::F64(&offset)),
        real: translation::estimate(loss, along),
        stood: before.map_or(0, |known| known.stood),
    }
}

/// Whether the server's new weights satisfy everybody.
struct Arrival<'a> {
    slack: f64,
    balls: Option<Balls<'a>>,
    /// Everybody provably is satisfied.
    proven: bool,
    /// Everybody is, as far as can be predicted.
    likely: bool,
    /// Every cut lies below the target loss by the slack: what is missing is a smaller slack.
    below: bool,
}

impl<'a> Arrival<'a> {
    fn new(smoothness: Option<f64>, slack: f64) -> Self {
        let balls = smoothness.map(Balls::new);
        Self { slack, proven: false, balls, likely: true, below: true }
    }

    /// An agent's report, and the way from where it was made to the server's new weights.
    fn look(&mut self, report: &Report<'a>, loss: f64, epsilon: f64, way: &[f64]) {
        let along = linalg::dot(report.slope(), Vector::F64(way));
        self.likely &= translation::estimate(loss, -along) <= epsilon;
        self.below &= loss + along <= epsilon - self.slack;
        match (report.loss(), report.gradient) {
            (Some(Loss::Exact(_)), Some(gradient @ Vector::F64(_))) => {
                if let Some(balls) = &mut self.balls {
                    balls.add(loss, epsilon, gradient, way);
                }
            }
            _ => self.balls = None,
        }
    }

    /// Somebody who is still in was not heard.
    fn unheard(&mut self) {
        (self.balls, self.likely, self.below) = (None, false, false);
    }

    /// Changes the step to one after which everybody provably is content; or, when everybody is
    /// predicted to be and nothing is proven, to where more can be.
    fn come_down(&mut self, step: &mut [f64]) {
        let Some(balls) = self.balls.as_ref().filter(|_| self.likely) else { return };
        let (more, met) = balls.step();
        if met || self.below {
            linalg::add_scaled(step, 1.0, Vector::F64(&more));
            // What they prove is about the step before.
            (self.proven, self.balls) = (met, None);
        }
    }

    /// How sure it is, after the step as it now is.
    fn verdict(&self) -> Landing {
        let here = || self.balls.as_ref().is_some_and(|balls| balls.prove_here());
        match (self.proven || here(), self.likely) {
            (true, _) => Landing::Certified,
            (_, true) => Landing::Estimated,
            _ => Landing::No,
        }
    }
}

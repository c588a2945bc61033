//! `retain`: keep everybody above their floor, and nothing more.
//!
//! ADA-GD freezes the agents about to leave. But a step only has to keep everybody *above* the
//! floor, which is a half-space for each agent, not a subspace:
//!
//! ```text
//! minimise ½‖s − s0‖²  subject to  F_m + ⟨g_m, s⟩ ≥ ε_m + δ  for every agent m still in
//! ```
//!
//! and `s` stays in the span of the reports: still a first-order rule.
//!
//! **Where to go** if no floor is in the way:
//!
//! * `level`, the default: the shortest step after which everybody is predicted to be at most
//!   `ε_m + 1.5δ`, found in one projection together with the floors (see `floors.rs`). A cut of a
//!   convex loss lies below it, so whatever satisfies everybody is on the far side of all cuts
//!   (projection onto level sets: Polyak, *USSR Comput. Math.* 9, 1969). It looks at the gradients
//!   at the received weights only: what agents found by several local steps is not used, except for
//!   the first radius.
//! * `descent`: `s0 = −η ·` the mean of the directions of those with `F_m > ε_m + 2δ`. It is the one
//!   that uses the agents' local paths where they take several local steps.
//!
//! **Certified.** For convex losses and exact gradients the constraint is a proof:
//! `F_m(w + s) ≥ F_m + ⟨g_m, s⟩ ≥ ε_m + δ > ε_m`, at *any* step size. So η may be as large as the
//! optimiser likes.
//!
//! **Estimated.** For nets and sampled gradients it is a prediction, and a trust region keeps it
//! honest (see `region.rs`): nobody is asked for more than three quarters of its way in one step. The
//! losses re-anchor the constraints every round, so errors do not pile up. Agents that take several
//! local steps should report the gradient at the received weights as well as their path
//! (`local.exact_gradient`): predictions made from the path miss.
//!
//! **Silence.** An agent that was not heard is held, aimed for and landed by its last report
//! (`cuts.rs`). An agent counts as settled or landed only if it was heard at these weights, or its
//! last report covers them.
//!
//! **Landing.** Above the floor nobody is content yet. When everybody is within 2δ of their target
//! loss the slack is halved, though never below what predictions have just missed by, nor at all where
//! losses or gradients are sampled; and as soon as one step can bring everybody to it, that step is
//! taken:
//!
//! ```text
//! minimise ‖s‖²  subject to  F_m + ⟨g_m, s⟩ + ½H‖s‖² ≤ ε_m  for every agent m still in
//! ```
//!
//! All are content in the same broadcast, so leaving is benign by definition. With `smoothness = H`
//! given and exact reports this too is a proof (`landed: certified`); otherwise H is twice the
//! strongest curvature seen along the steps (`landed: estimated`). A sampled loss counts as two standard errors
//! higher for landing and two lower for floors, and certifies nothing.
//!
//! **Unrealizable.** With `convex = true`, cuts that contradict each other prove that no model within
//! a radius satisfies everybody; the radius is said (`common_level.rs`).
//!
//! **Never worse than before.** Where its levels cannot be reached, because targets exclude each other, the model is too
//! small or somebody lies, what the cuts promise is worth nothing. The rule remembers the best weights so far, returns to
//! them when it has gone wrong, and keeps to a radius from there on (`best.rs`). What it then delivers is its best.
//!
//! **One liar** is capped, paid less heed, or benched, see `doubt.rs`.
//!
//! The server must know: every agent's loss, target loss, direction and gradient. It stops
//! `landed`; or `settled` when everybody is within 2δ and no landing was found (or none was asked
//! for); or `unrealizable`; or `stalled` when the constraints cannot be met together and no step
//! violates them less than standing still.
//!
//! Theory and measurements: `docs/retain.md`.
//!
//! Reference: this project; the constraint is Lemma 3 of arXiv 2311.16459, read backwards.

mod best;
mod bound;
mod common_level;
mod cuts;
mod doubt;
mod landing;
mod lowest;
mod options;
mod region;

pub use options::{Base, OnUnrealizable, Trust};

use super::floors::{Aimed, Floors, Source};
use super::{
    Aggregator, Decision, Doubted, Facts, LabelChange, Landing, Measured, Origin, Round, SLACK,
    Split, StopReason, Why, safety,
};
use crate::message::is_default;
use crate::{Error, Loss, Vector, linalg};
use best::{BestWeights, Judged, Lacking};
use bound::Bound;
use common_level::Unrealizable;
use cuts::Cuts;
use doubt::Distrust;
use fedstay_kernels::numerics::slabs::Room;
use region::Region;
use serde::{Deserialize, Serialize};

pub(super) const ORIGIN: Origin = Origin {
    about: "the shortest step to where all are nearly content that keeps each above its floor; a proof for convex losses",
    reference: "this project",
};

/// What a label may change about the rule, as in ADA-GD.
const CHANGES: &[LabelChange] = &[LabelChange { name: "horizon", set: "horizon = 0.1" }];

/// The level base aims this many δ above everybody's target loss: between the floor and where an
/// agent counts as far.
const LEVEL: f64 = 1.5;
/// While predictions are only predictions, nobody is asked for more than this share of its way to
/// the level in one step: from far away a linear forecast of the whole of it misses by more than δ.
const SHARE_OF_WAY: f64 = 0.75;
/// Where no smoothness is given, a landing reckons with this many times the strongest curvature seen.
/// Losses may bend more along the landing than along the steps so far: with 1 some agents ended just
/// above their target loss, with 2 the landing comes one or two rounds later.
const RESERVE: f64 = 2.0;
/// While landing the slack may fall to this share of δ.
const SMALLEST_SLACK: f64 = 1e-3;

/// From this many reports on, a round is decided where its sums are shared out.
const MANY: usize = 128;

/// Keep everybody above their floor.
///
/// ```
/// use fedstay::{AgentId, Loss, Report, Reports, Retain, Server, Vector};
///
/// let near = Report::new(AgentId(0), Loss::Exact(0.2).leaves_at(0.1), Vector::F64(&[1.0, 0.0]));
/// let far = Report::new(AgentId(1), Loss::Exact(3.0).leaves_at(0.1), Vector::F64(&[1.0, 1.0]));
/// let mut server = Server::new(vec![0.0, 0.0], Retain::default(), 0.1)?;
/// let decision = server.step(&Reports::new(2, vec![near, far])?)?;
/// // Nobody is predicted to leave, and the loss of the other falls.
/// assert_eq!(decision.kept, Some(true));
/// assert!(server.weights()[0] + server.weights()[1] < 0.0);
/// # Ok::<(), fedstay::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Retain {
    /// How far above its target loss every agent is kept. Larger: more room for misses, and agents
    /// end farther from their target loss (within 2δ).
    pub delta: f64,
    /// Where to go if no floor is in the way.
    pub base: Base,
    /// Whether floors are kept at all. `false` is the same optimiser for agents that never leave:
    /// the control that shows what keeping everybody costs.
    pub floors: bool,
    /// Whether predictions are checked and the step's length follows them.
    pub trust: Trust,
    /// Whether to bring everybody to their target loss at the end.
    pub landing: bool,
    /// Added to every agent's target loss for its floor, as in ADA-GD: a defence against agents
    /// that leave a little early (see `behaviour/foresight.rs`).
    pub margin: f64,
    /// Also adds `horizon · ‖g_m‖²`, as in ADA-GD.
    pub horizon: f64,
    /// A constant H such that every loss is H-smooth, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smoothness: Option<f64>,
    /// Whether every loss is known to be convex. Reports that contradict each other then prove that
    /// no model within a radius satisfies everybody.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub convex: Option<bool>,
    /// What to do once that is proved.
    pub on_unrealizable: OnUnrealizable,
    /// Whether one agent may be left out of all constraints when the others cannot be served
    /// because of it. It may then leave.
    pub bench: bool,
    #[serde(skip_serializing_if = "is_default")]
    memory: Box<RetainMemory>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct RetainMemory {
    /// How far predictions are trusted, and what was last predicted.
    #[serde(flatten)]
    region: Region,
    /// The slack while landing, once everybody has been within 2δ.
    delta: Option<f64>,
    /// How far above their target losses everybody has to stay, as far as is proved.
    #[serde(default, skip_serializing_if = "is_default")]
    least: Option<f64>,
    #[serde(default, skip_serializing_if = "is_default")]
    cuts: Cuts,
    #[serde(default, skip_serializing_if = "is_default")]
    doubt: Distrust,
    #[serde(default, skip_serializing_if = "is_default")]
    bound: Bound,
    #[serde(default, skip_serializing_if = "is_default")]
    best: BestWeights,
    #[serde(skip)]
    room: Room,
}

impl Default for Retain {
    fn default() -> Self {
        Self {
            delta: SLACK,
            base: Base::default(),
            floors: true,
            trust: Trust::Auto,
            landing: true,
            margin: 0.0,
            horizon: 0.0,
            smoothness: None,
            convex: None,
            on_unrealizable: OnUnrealizable::default(),
            bench: true,
            memory: Box::default(),
        }
    }
}

impl Retain {
    /// The rule with slack δ.
    pub fn new(delta: f64) -> Self {
        Self { delta, ..Self::default() }
    }

    /// The slack in force.
    fn slack(&self) -> f64 {
        self.memory.delta.unwrap_or(self.delta)
    }

    fn trusts_a_region(&self, round: &Round<'_>) -> bool {
        match self.trust {
            Trust::Region => true,
            Trust::Proof => false,
            Trust::Auto => round.reports.iter().any(|r| !matches!(r.slope(), Vector::F64(_))),
        }
    }
}

impl Retain {
    /// Whether cuts are lower bounds on the losses, so that what they say is a proof.
    fn is_convex(&self) -> bool {
        self.convex == Some(true)
    }

    /// Every line's level.
    fn levels(&self, floors: &Floors<'_>) -> Vec<f64> {
        let above = LEVEL * self.slack() + self.memory.least.unwrap_or(0.0);
        floors.epsilon.iter().map(|epsilon| epsilon + above).collect()
    }

    /// What every line lacks to its level, and what that counts.
    fn lacking(&self, floors: &Floors<'_>, trusting: bool) -> Lacking {
        let doubt = &self.memory.doubt;
        // Of an honest agent that stands against the others, less heed would be less than its due.
        let heed = |line: usize| match !trusting && doubt.is_capped(floors, line) {
            true => doubt.heed(floors.agent[line]),
            false => 1.0,
        };
        Lacking {
            levels: self.levels(floors),
            heed: (0..floors.loss.len()).map(heed).collect(),
            most: doubt.highest(),
        }
    }

    /// What every line should come down to: its level, or part of the way there.
    fn aims(&self, floors: &Floors<'_>, trusting: bool) -> Vec<f64> {
        let levels = self.levels(floors);
        let aim = |line: usize| {
            let (loss, level) = (floors.loss[line], levels[line]);
            let share = match trusting {
                true => SHARE_OF_WAY,
                false => self.memory.doubt.heed(floors.agent[line]),
            };
            if loss > level { loss - share * (loss - level) } else { level }
        };
        (0..floors.loss.len()).map(aim).collect()
    }

    /// Which lines of agents that are still in are far from their target loss.
    fn far(&self, floors: &Floors<'_>) -> Vec<bool> {
        let above = 2.0 * self.slack() + self.memory.least.unwrap_or(0.0);
        let far = |line: usize| {
            floors.source[line] != Source::Earlier
                && floors.loss[line] > floors.epsilon[line] + above
        };
        (0..floors.loss.len()).map(far).collect()
    }

    /// Tries to land; says whether it did.
    fn land(
        &self,
        floors: &mut Floors<'_>,
        trusting: bool,
        step: &mut [f64],
        decision: &mut Decision,
    ) -> bool {
        let smoothness = self.smoothness.unwrap_or(RESERVE * self.memory.region.curvature);
        if !landing::step(floors, smoothness, step) {
            return false;
        }
        decision.stop = Some(StopReason::Landed);
        let proved = self.smoothness.is_some() && !trusting && !floors.exact.contains(&false);
        decision.landed = Some(if proved { Landing::Certified } else { Landing::Estimated });
        true
    }

    /// One round; `cuts` are those of the rounds before.
    fn decide(
        &mut self,
        round: &Round<'_>,
        cuts: &Cuts,
        step: &mut [f64],
    ) -> Result<Decision, Error> {
        let lines = cuts.lines(round);
        let mut floors = Floors::with_lines(round.reports, "retain", &lines)?;
        floors.raise(self.margin, self.horizon);
        floors.bundle.furnish(&self.memory.room);
        let decision = self.decide_by(&mut floors, round, step);
        floors.bundle.leave(&self.memory.room);
        let mut decision = decision?;
        let gives_up =
            matches!(decision.stop, Some(StopReason::Stalled | StopReason::Unrealizable));
        if gives_up && self.memory.best.is_behind() {
            decision.stop = None;
            self.go_back(round, step, &mut decision);
        }
        if decision.stop.is_some() {
            self.memory.best = BestWeights::default();
        }
        Ok(decision)
    }

    /// Returns to the best weights so far.
    fn go_back(&mut self, round: &Round<'_>, step: &mut [f64], decision: &mut Decision) {
        self.memory.best.lead_back(round, step);
        self.memory.region.forget();
        decision.reverted = true;
        decision.measured = None;
        // Everybody who is still in has reported there, and stayed.
        decision.kept = Some(true);
        decision.split = Split::by(round.reports, |_| false);
    }

    /// Compares with the best weights so far, and says whether it returned to them.
    fn returns(
        &mut self,
        floors: &Floors<'_>,
        round: &Round<'_>,
        trusting: bool,
        step: &mut [f64],
        decision: &mut Decision,
    ) -> bool {
        let lacking = self.lacking(floors, trusting);
        if self.memory.doubt.takes_back() {
            self.memory.best.insist();
        }
        let promised = self.memory.region.predicted();
        let judged = self.memory.best.judge(round, floors, &lacking, promised, self.delta);
        if judged == Judged::On {
            return false;
        }
        self.go_back(round, step, decision);
        let may = self.bench && !self.is_convex();
        if let Judged::Alone(agent) = judged
            && may
            && self.memory.doubt.bench_alone(agent, round.reports.len())
        {
            decision.doubted.push(Doubted { agent, why: Why::Benched });
            self.memory.best.begin_anew();
        }
        true
    }

    /// One round by these floors.
    fn decide_by(
        &mut self,
        floors: &mut Floors<'_>,
        round: &Round<'_>,
        step: &mut [f64],
    ) -> Result<Decision, Error> {
        let reports = round.reports.as_slice();
        let capped = self.memory.doubt.cap(floors);
        let trusting = self.trusts_a_region(round);
        let slack = self.slack();
        if !trusting {
            for (agent, before, promised) in self.memory.region.predicted() {
                let line = floors.agent[..reports.len()].binary_search(agent);
                if let Some(line) = line.ok().filter(|_| promised < before) {
                    self.memory.doubt.learn(*agent, *before, *promised, floors.loss[line]);
                }
            }
        }
        let missed = self.memory.region.learn(round, floors, slack, self.base);

        let everybody = Split::by(round.reports, |_| true);
        let capped = capped.into_iter().map(|agent| Doubted { agent, why: Why::Capped });
        let silent: Vec<usize> =
            (0..floors.loss.len()).filter(|l| floors.source[*l] == Source::Silent).collect();
        let mut decision = Decision {
            landed: Some(Landing::No),
            missed: Some(missed),
            doubted: capped.collect(),
            by_cut: silent.iter().map(|line| floors.agent[*line]).collect(),
            least: self.memory.least,
            ..Decision::new(everybody, round.step_size)
        };
        if self.returns(floors, round, trusting, step, &mut decision) {
            return Ok(decision);
        }
        // Whether everybody who is still in was heard, now or earlier; and at these weights.
        let known = silent.len() >= round.reports.absent();
        let present = known && silent.iter().all(|line| floors.since[*line] == 0.0);
        // Samples miss however short the step is, so with them the slack is not halved. A direction in
        // single precision without a gradient beside it may be one.
        let sampled = reports.iter().any(|report| {
            let drawn = matches!(report.loss(), Some(Loss::Sampled { .. }));
            drawn || (trusting && report.gradient.is_none())
        });
        let smallest = (self.delta * SMALLEST_SLACK).max(self.memory.region.short);
        let mut is_far = self.far(floors);
        let near = !is_far.contains(&true);
        if self.landing && self.memory.least.is_none() && (near || self.memory.delta.is_some()) {
            if known && self.land(floors, trusting, step, &mut decision) {
                return Ok(decision);
            }
            while present && !sampled && !is_far.contains(&true) && self.slack() > smallest {
                self.memory.delta = Some((self.slack() / 2.0).max(smallest));
                is_far = self.far(floors);
            }
        }
        if !is_far.contains(&true) {
            // A slack that only the last misses keep from shrinking may shrink after a round in which
            // nothing moves, and so nothing misses.
            let waits = self.landing
                && !sampled
                && self.memory.least.is_none()
                && smallest > self.delta * SMALLEST_SLACK;
            if present && !waits {
                decision.stop = Some(match self.memory.least {
                    None => StopReason::Settled,
                    Some(_) => StopReason::Unrealizable,
                });
            }
            self.memory.region.predict(reports, floors, &floors.bundle.along(step));
            return Ok(decision);
        }

        // By descent first, whose length also is the first radius.
        let mut usual = 0.0;
        if self.base == Base::Descent || self.memory.region.is_new() {
            let count = is_far.iter().filter(|far| **far).count() as f64;
            for (report, _) in reports.iter().zip(&is_far).filter(|(_, far)| **far) {
                linalg::add_scaled(step, -round.step_size / count, report.direction);
            }
            usual = linalg::norm(Vector::F64(step));
        }
        let aimed = match self.base {
            Base::Level => {
                step.fill(0.0);
                self.memory.bound.expect(floors, reports.len());
                let aimed = self.aim(floors, round, trusting, step, &mut decision);
                self.memory.bound.note(floors, reports.len(), &aimed.pulls);
                aimed
            }
            Base::Descent => {
                if trusting {
                    self.memory.region.shorten(step, usual, self.base);
                }
                match self.floors {
                    true => floors.keep(step, self.slack()).into(),
                    false => Aimed::nothing(floors.loss.len()),
                }
            }
        };
        if decision.stop.is_some() {
            return Ok(decision);
        }
        match (trusting, self.base) {
            (false, _) => {}
            (true, Base::Level) => self.memory.region.shorten(step, usual, self.base),
            (true, Base::Descent) => self.memory.region.bound(step),
        }
        let aimed = self.brake(floors, trusting, aimed, step);
        // Measured once, for the check, the predictions and the record.
        let mut along = floors.bundle.along(step);
        let mut measured = Some(measure(&along[..reports.len()], step));
        if self.floors {
            safety::shorten_measured(round.reports, step, self.slack(), &mut measured);
        }
        let still = linalg::norm(Vector::F64(step)) <= 1e-12 * self.shortest_way(floors, &is_far);
        if still {
            step.fill(0.0);
            // Standing still is not the end while somebody may still say something new, somebody was
            // benched, or the level was just raised to where everybody is.
            let benched = decision.doubted.iter().any(|doubted| doubted.why == Why::Benched);
            let far = self.far(floors).contains(&true);
            decision.stop = (present && !benched && far).then_some(StopReason::Stalled);
        }
        if measured.is_none() || still {
            along = floors.bundle.along(step);
            measured = Some(measure(&along[..reports.len()], step));
        }
        self.memory.region.predict(reports, floors, &along);
        decision.measured = measured;
        decision.split = Split::by(round.reports, |index| aimed.pulls[index] > 0.0);
        Ok(decision)
    }

    /// Once a step has failed: the step that brings everybody nearest within the radius, be it the usual one or
    /// another.
    fn brake(
        &self,
        floors: &mut Floors<'_>,
        trusting: bool,
        aimed: Aimed,
        step: &mut [f64],
    ) -> Aimed {
        let Some(radius) = self.memory.best.radius() else { return aimed };
        let lacking = self.lacking(floors, trusting);
        best::shorten(step, radius);
        let mut other = vec![0.0; step.len()];
        if !lowest::within(floors, &lacking, radius, &mut other) {
            return aimed;
        }
        let held = match self.floors {
            true => floors.keep(&mut other, self.slack()).into(),
            false => Aimed::nothing(floors.loss.len()),
        };
        best::shorten(&mut other, radius);
        if lacking.after(floors, &other) < lacking.after(floors, step) {
            step.copy_from_slice(&other);
            return held;
        }
        aimed
    }

    /// The projection onto levels and floors, and what follows if there is none.
    fn aim(
        &mut self,
        floors: &mut Floors<'_>,
        round: &Round<'_>,
        trusting: bool,
        step: &mut [f64],
        decision: &mut Decision,
    ) -> Aimed {
        let mut aims = self.aims(floors, trusting);
        let mut aimed = floors.toward(step, &aims, self.slack(), self.floors);
        if !aimed.met && self.is_convex() && !trusting {
            let from = self.memory.least.unwrap_or(0.0);
            let proved = common_level::prove(floors, round.weights, from);
            if let Some(Unrealizable { least, within }) = proved {
                decision.least = Some(least);
                decision.within = Some(within).filter(|within| within.is_finite());
                step.fill(0.0);
                match self.on_unrealizable {
                    OnUnrealizable::Stop => decision.stop = Some(StopReason::Unrealizable),
                    OnUnrealizable::Least => {
                        self.memory.least = Some(least);
                        aims = self.aims(floors, trusting);
                        aimed = floors.toward(step, &aims, self.slack(), self.floors);
                    }
                }
            }
            return aimed;
        }
        let stands = linalg::norm(Vector::F64(step)) == 0.0;
        if self.memory.doubt.idles(floors, aimed.met, stands) && self.bench && !self.is_convex() {
            let (slack, keep, dimension) = (self.slack(), self.floors, step.len());
            let benched = self.memory.doubt.bench(floors, &aimed, &aims, slack, keep, dimension);
            if let Some(agent) = benched {
                decision.doubted.push(Doubted { agent, why: Why::Benched });
                step.fill(0.0);
            }
        }
        aimed
    }

    /// The shortest way that somebody who is far would have to its level alone.
    fn shortest_way(&self, floors: &Floors<'_>, is_far: &[bool]) -> f64 {
        let far = (0..is_far.len()).filter(|line| is_far[*line]);
        let ways = far
            .map(|line| (floors.loss[line] - floors.epsilon[line]) / floors.bundle.lengths()[line]);
        let shortest = ways.filter(|way| way.is_finite()).fold(f64::INFINITY, f64::min);
        if shortest.is_finite() { shortest } else { f64::MIN_POSITIVE }
    }
}

/// What is known of a step, given the inner products of all reports with it.
fn measure(along: &[f64], step: &[f64]) -> Measured {
    let slopes = along.iter().copied().map(Some).collect();
    Measured { length: linalg::norm(Vector::F64(step)), slopes }
}

impl Aggregator for Retain {
    fn aggregate(&mut self, round: &Round<'_>, step: &mut [f64]) -> Result<Decision, Error> {
        let cuts = std::mem::take(&mut self.memory.cuts);
        let (others, moved) = self.memory.doubt.read(round.reports);
        let round = Round { reports: others.as_ref().unwrap_or(round.reports), ..*round };
        let mut decision = match round.reports.as_slice().len() {
            0..MANY => self.decide(&round, &cuts, step)?,
            _ => round.reports.machine().host(|| self.decide(&round, &cuts, step))?,
        };
        // Of all reports, or of none.
        decision.measured = decision.measured.filter(|_| others.is_none());
        decision.doubted.extend(moved.into_iter().map(|agent| Doubted { agent, why: Why::Moved }));
        self.memory.cuts = cuts;
        self.memory.cuts.advance(&round, step, self.is_convex());
        Ok(decision)
    }

    fn deliver(&self) -> Option<&[f64]> {
        self.memory.best.weights()
    }

    fn facts(&self) -> Facts {
        Facts {
            takes_smoothness: true,
            takes_convexity: true,
            keeps: self.floors,
            changes: CHANGES,
            ..Facts::keeping(self.delta)
        }
    }

    fn check(&self) -> Result<(), Error> {
        if let Some(smoothness) = self.smoothness.filter(|h| !(h.is_finite() && *h >= 0.0)) {
            return Err(Error::bad_parameter("rule.smoothness", smoothness, "zero or more"));
        }
        super::check_not_negative("rule.margin", self.margin)?;
        super::check_not_negative("rule.horizon", self.horizon)?;
        super::check_delta(self.delta)
    }
}

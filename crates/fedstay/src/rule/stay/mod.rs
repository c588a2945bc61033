//! `stay`: levels with a price on every member, for servers that keep members by previews.
//!
//! `level` asks that every member's prediction comes down to its target, whatever that takes; averaging
//! lets everybody pull equally, whatever it achieves. Here every member has a price:
//!
//! ```text
//! minimise ½‖s‖² + Σ κ_m · max(0, F_m + ⟨g_m, s⟩ − (ε_m − 2δ_m))
//! κ_m = κ · η/M · min(1, 3·median‖g‖/‖g_m‖)
//! ```
//!
//! Its dual is the projection of `level` in a box: `s = −Σ λ_m g_m` with `0 ≤ λ_m ≤ κ_m`
//! (`fedstay_kernels::numerics::capped`). So
//!
//! * for κ → ∞ it is `level`, where levels can be met;
//! * with κ = 1, while everybody is farther above its level than one step goes, it is averaging over
//!   those that are not content;
//! * where one model can satisfy all by 2δ, every step brings the weights nearer to each such model,
//!   whatever κ is (convex losses);
//! * where targets exclude each other it lowers the penalised excess `Σ κ_m max(0, F_m − ε_m + 2δ_m)`,
//!   as soft margins do, and does not diverge;
//! * one member, whatever it says, moves the weights by at most `3κη/M · median‖g‖` in a round.
//!
//! With several local steps η is what a member reached, `K·η`, and so in the median.
//!
//! **The price** κ begins at `price`. It is halved when the total excess over the targets rose, and grows by
//! half when a third of what was promised came (`price.rs`). What is clipped in that total, and how, keeps
//! one member from steering it.
//!
//! **The slack** δ_m is `share` of how far above its target the member was when it was first heard,
//! or `delta` for all. It is halved, three times at most, when everybody is predicted below `ε_m − δ_m`.
//!
//! A member is held to the target loss it told first.
//!
//! **Trust.** With `watch`, a member whose exact reports contradict convexity loses three quarters of its cap, and
//! gets it back slowly (`trust.rs`). An honest member is not doubted for being in the way of others.
//! Where more than a third contradict themselves the losses are not convex, and nobody is doubted.
//!
//! **Silence.** A member that was not heard counts by its last report (`lines.rs`).
//!
//! On its own it loses everybody, as averaging does: it is meant for the policy `preview`, under which an
//! experiment runs it unless it names another, or for members that never leave. It never stops by itself.
//! The server must know every member's loss, target loss and gradient.
//!
//! Theory and measurements: `docs/stay.md`.
//!
//! Reference: this project; exact penalties: Han, Mangasarian, *Math. Programming* 17, 1979.

mod lines;
mod member;
mod price;
#[cfg(test)]
mod tests;
mod trust;

use super::{Aggregator, Decision, Doubted, Facts, Origin, Round, Why};
use crate::memory::inside::pairs;
use crate::message::{check_not_negative, is_default};
use crate::packed;
use crate::{AgentId, Error, Vector, linalg};
use fedstay_kernels::numerics::capped::{Priced, capped};
use lines::{PricedLine, Silent};
use member::{PricedMember, Said};
use price::Excess;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use trust::Agreement;

pub(super) const ORIGIN: Origin = Origin {
    about: "the shortest step to where all are predicted content, at a price that caps what one of them may cost; goes with previews",
    reference: "this project",
};

/// Previews by the same measure: floors at the share above everybody's target. A member that sees its loss fall all the
/// time needs a `pace`, which takes its cuts farther away from the model.
const POLICY: &str = "kind = \"preview\"\nrelative = true\ndelta = 0.05\npace = 0.0";

/// While everybody is content the slack may fall to this share of what it was, as that of its previews.
const SMALLEST_SLACK: f64 = 0.125;
/// Where more than this share of all contradict themselves, losses are not convex.
const TOO_MANY: f64 = 1.0 / 3.0;
/// The fewest members of whom one that tells another target loss than at first is held to the first.
const FEWEST_TO_HOLD: usize = 3;

/// Levels with a price on every member.
///
/// ```
/// use fedstay::rule::Stay;
/// use fedstay::{AgentId, Loss, Report, Reports, Server, Vector};
///
/// let report = |id, loss, gradient| {
///     Report::new(AgentId(id), Loss::Exact(loss).leaves_at(0.1), Vector::F64(gradient))
/// };
/// // The third claims a loss and a gradient that would carry everybody away.
/// let wild = report(2, 1e6, &[0.0, 1e3]);
/// let reports = vec![report(0, 3.0, &[1.0, 0.0]), report(1, 3.0, &[1.0, 0.0]), wild];
/// let most = 3.0 * Stay::default().price * 0.1 / 3.0;
/// let mut server = Server::new(vec![0.0, 0.0], Stay::default(), 0.1)?;
/// server.step(&Reports::new(2, reports)?)?;
/// // It moves the model by no more than 3κη/M times the median gradient's length, which is 1.
/// assert!((-1.001 * most..0.0).contains(&server.weights()[1]));
/// # Ok::<(), fedstay::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Stay {
    /// The slack δ of each member, as a share of how far above its target loss it was when it was first heard.
    pub share: f64,
    /// The slack δ of all, in units of the loss, instead of the share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delta: Option<f64>,
    /// κ at the start: how many times harder than under averaging a member may pull.
    pub price: f64,
    /// Whether a member whose reports contradict each other loses part of its pull.
    pub watch: bool,
    #[serde(skip_serializing_if = "is_default")]
    memory: Box<StayMemory>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct StayMemory {
    /// κ.
    price: Option<f64>,
    /// How often the slack was halved.
    halved: u32,
    /// The weights of the last round, and the length of the step that was asked for there.
    #[serde(with = "packed", skip_serializing_if = "Vec::is_empty")]
    weights: Vec<f64>,
    asked: f64,
    #[serde(with = "pairs")]
    members: BTreeMap<AgentId, PricedMember>,
    #[serde(skip_serializing_if = "is_default")]
    silent: Silent,
}

impl Default for Stay {
    fn default() -> Self {
        Self { share: 0.05, delta: None, price: 8.0, watch: true, memory: Box::default() }
    }
}

impl Stay {
    /// The rule with a price of κ.
    pub fn new(price: f64) -> Self {
        Self { price, ..Self::default() }
    }

    fn price(&self) -> f64 {
        self.memory.price.unwrap_or(self.price)
    }

    fn slack(&self, agent: AgentId) -> f64 {
        let gap = || self.memory.members.get(&agent).map_or(0.0, |member| member.first.max(0.0));
        let whole = self.delta.unwrap_or_else(|| self.share * gap());
        whole * 0.5f64.powi(i32::try_from(self.memory.halved).unwrap_or(i32::MAX))
    }

    /// How the weights came to be what they are since the last round, and whether that is the step that was asked for.
    fn way(&self, round: &Round<'_>) -> (Vec<f64>, bool) {
        let memory = &self.memory;
        if memory.weights.len() != round.weights.len() {
            return (vec![0.0; round.weights.len()], false);
        }
        let way: Vec<f64> = round.weights.iter().zip(&memory.weights).map(|(a, b)| a - b).collect();
        let length = linalg::norm(Vector::F64(&way));
        (way, (length - memory.asked).abs() <= 1e-6 * memory.asked)
    }

    /// Takes up who is new, forgets who is gone, and holds everybody to the target loss it told first. Says who told
    /// another one; what most do together is not one member's doing.
    fn meet(&mut self, round: &Round<'_>, lines: &mut [PricedLine<'_>]) -> Vec<Doubted> {
        let known: BTreeSet<AgentId> = lines.iter().map(|line| line.agent).collect();
        let goodbyes = round.reports.goodbyes();
        let still = |agent: &AgentId| round.reports.absent() > 0 && !goodbyes.contains(agent);
        let members = &mut self.memory.members;
        members.retain(|agent, _| known.contains(agent) || still(agent));
        for line in &*lines {
            members.entry(line.agent).or_insert_with(|| PricedMember::new(line));
        }
        let first = |line: &PricedLine<'_>| members.get(&line.agent).map(|member| member.epsilon);
        let moved = |line: &PricedLine<'_>| first(line).is_some_and(|first| first != line.epsilon);
        let others: Vec<usize> = (0..lines.len()).filter(|at| moved(&lines[*at])).collect();
        if members.len() < FEWEST_TO_HOLD || (others.len() > 1 && 2 * others.len() > lines.len()) {
            for at in others {
                if let Some(member) = members.get_mut(&lines[at].agent) {
                    member.epsilon = lines[at].epsilon;
                }
            }
            return Vec::new();
        }
        let hold = |at: usize| {
            let line = &mut lines[at];
            line.epsilon = first(line).unwrap_or(line.epsilon);
            Doubted { agent: line.agent, why: Why::Moved }
        };
        others.into_iter().map(hold).collect()
    }

    /// Compares what members say with what they said, and says who lost trust.
    fn watch(&mut self, lines: &[PricedLine<'_>], along: &[f64], as_asked: bool) -> Vec<Doubted> {
        let usual = self.far_above(lines);
        let judge = |(line, change): (&PricedLine<'_>, &f64)| {
            let member = self.memory.members.get(&line.agent)?;
            let said = member.said.filter(|_| line.exact)?;
            let loss = line.loss + line.fall.unwrap_or_default();
            let now = Said { loss, change: *change, fall: line.fall };
            Some((line.agent, Agreement::of(said, now, as_asked, usual)))
        };
        let judged: Vec<(AgentId, Agreement)> = lines.iter().zip(along).filter_map(judge).collect();
        let against =
            judged.iter().filter(|(_, agreement)| *agreement == Agreement::Contradiction).count();
        // Of all, not of those that can be judged: who is shown a preview cannot be.
        let too_many = against as f64 > TOO_MANY * lines.len().max(3) as f64;
        let mut doubted = Vec::new();
        for (agent, agreement) in judged {
            let Some(member) = self.memory.members.get_mut(&agent) else { continue };
            if agreement != Agreement::Contradiction || !too_many {
                member.trust = agreement.revise(member.trust);
            }
            if member.trust < 1.0 {
                doubted.push(Doubted { agent, why: Why::Contradicts });
            }
        }
        doubted
    }

    /// As far above its target as nobody counts: five times the middle gap at the start.
    fn far_above(&self, lines: &[PricedLine<'_>]) -> f64 {
        let firsts = lines.iter().filter_map(|line| self.memory.members.get(&line.agent));
        price::WORST * price::median(firsts.map(|member| member.first.max(0.0)).collect())
    }

    /// The total excess over targets, each as far as it is trusted and clipped alike. Whoever is silent is where it was
    /// predicted to be.
    fn excess(&self, lines: &[PricedLine<'_>], far: f64) -> Excess {
        let most = self.far_above(lines);
        let mut total = Excess::default();
        for line in lines {
            let Some(member) = self.memory.members.get(&line.agent) else { continue };
            let counts = |above: f64| member.trust * above.min(most).max(0.0);
            total.before += counts(member.above);
            total.promised += counts(member.above + far * (member.promised - member.above));
            total.now += counts(line.above());
        }
        total
    }

    /// Halves the slack while everybody is predicted to be below its target by it.
    fn refine(&mut self, lines: &[PricedLine<'_>]) {
        let halvings = (1.0 / SMALLEST_SLACK).log2() as u32;
        if self.memory.halved < halvings
            && lines.iter().all(|line| line.above() <= -self.slack(line.agent))
        {
            self.memory.halved += 1;
        }
    }

    /// The step, and everybody's prediction along it.
    fn solve(&mut self, round: &Round<'_>, lines: &[PricedLine<'_>], step: &mut [f64]) -> Vec<f64> {
        let caps = price::caps(lines, self.price());
        let bound = |(line, cap): (&PricedLine<'_>, f64)| {
            let member = self.memory.members.get(&line.agent);
            Priced {
                lacking: line.above() + 2.0 * self.slack(line.agent),
                cap: cap * member.map_or(1.0, |member| member.trust),
                begin: member.map_or(1.0, |member| member.share),
            }
        };
        let bounds: Vec<Priced> = lines.iter().zip(caps).map(bound).collect();
        let slopes: Vec<Vector<'_>> = lines.iter().map(|line| line.slope).collect();
        let lengths: Vec<f64> = lines.iter().map(|line| line.length).collect();
        let machine = round.reports.machine();
        let pulls = capped(machine, &slopes, &lengths, &bounds, step);
        for ((line, bound), pull) in lines.iter().zip(&bounds).zip(pulls) {
            if let Some(member) = self.memory.members.get_mut(&line.agent) {
                let share = pull / bound.cap;
                member.share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
            }
        }
        machine.along(&slopes, step)
    }

    /// Remembers what was said, and what is promised.
    fn note(&mut self, round: &Round<'_>, lines: &[PricedLine<'_>], along: &[f64], step: &[f64]) {
        for (line, along) in lines.iter().zip(along) {
            let Some(member) = self.memory.members.get_mut(&line.agent) else { continue };
            let loss = line.loss + line.fall.unwrap_or_default();
            let said = Said { loss, change: *along, fall: line.fall };
            member.said = (line.exact && along.is_finite() && loss.is_finite()).then_some(said);
            member.above = line.above();
            let promised = line.above() + along;
            member.promised = if promised.is_finite() { promised } else { line.above() };
        }
        self.memory.weights = round.weights.to_vec();
        let length = linalg::norm(Vector::F64(step));
        self.memory.asked = if length.is_finite() { length } else { 0.0 };
    }
}

impl Aggregator for Stay {
    fn aggregate(&mut self, round: &Round<'_>, step: &mut [f64]) -> Result<Decision, Error> {
        let (way, as_asked) = self.way(round);
        let mut silent = std::mem::take(&mut self.memory.silent);
        silent.follow(round, &way);
        let mut lines = lines::heard(round)?;
        lines.extend(silent.lines());
        let mut doubted = self.meet(round, &mut lines);
        if self.watch && self.memory.asked > 0.0 {
            let heard: Vec<Vector<'_>> =
                lines.iter().filter(|line| line.heard).map(|line| line.slope).collect();
            let along = round.reports.machine().along(&heard, &way);
            doubted.extend(self.watch(&lines, &along, as_asked));
        }
        // Behind an optimiser the step has another length than the one that was asked for.
        let far = if self.memory.asked > 0.0 { round.last_step / self.memory.asked } else { 0.0 };
        let excess = self.excess(&lines, if far.is_finite() { far } else { 0.0 });
        self.memory.price = Some(excess.revise(self.price()));
        self.refine(&lines);
        let along = self.solve(round, &lines, step);
        self.note(round, &lines, &along, step);
        self.memory.silent = lines::kept(round, &lines);
        let decision = Decision::new(round.forecast(step, 0.0), round.step_size);
        Ok(Decision { doubted, ..decision })
    }

    fn facts(&self) -> Facts {
        Facts { cuts: true, reads_gradients: true, policy: Some(POLICY), ..Facts::default() }
    }

    fn check(&self) -> Result<(), Error> {
        check_not_negative("rule.share", self.share)?;
        check_not_negative("rule.price", self.price)?;
        self.delta.map_or(Ok(()), super::check_delta)
    }
}

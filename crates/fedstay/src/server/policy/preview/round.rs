//! One round of `preview`, after the rule's step.

use super::arrival::Arrival;
use super::known::{Known, Slope};
use super::offset::{self, Offset};
use super::showing::{Heard, Stage};
use super::{Preview, Rewind, Until, translation};
use crate::message::{Personal, Shown};
use crate::rule::{Decision, Landing, Round, Split, StopReason};
use crate::{AgentId, Error, Report, Standing, Vector, linalg};
use std::collections::BTreeMap;

/// While landing the slack may fall to this share of δ.
const SMALLEST_SLACK: f64 = 1e-9;

impl Preview {
    /// Looks at all reports, moves the previews, and says how things are.
    pub(super) fn take_round(
        &mut self,
        round: &Round<'_>,
        step: &mut [f64],
        decision: &mut Decision,
    ) -> Result<(), Error> {
        let mut heard = Vec::with_capacity(round.reports.len());
        for report in round.reports.iter() {
            heard.push((report, open(report)?));
        }
        let mut arrival = Arrival::new(self.smoothness, self.slack());
        let mut gap = Offset::new(step);
        for (report, standing) in &heard {
            gap.from(round.weights, step, self.memory.personal_of(report.agent));
            arrival.look(report, self.slope(report), *standing, &gap.way);
        }
        let some_silent = round.reports.absent() > 0;
        if some_silent {
            arrival.unheard();
        }
        if self.until == Until::Content && decision.stop.is_none() {
            arrival.come_down(step);
        }
        let mut gap = Offset::new(step);
        self.memory.travelled += gap.step;
        let stage = Stage {
            round,
            step,
            longest: self.cap * self.memory.travelled,
            // Whoever may be silent next needs its gradient kept.
            keep: some_silent,
        };
        self.forget(round.reports.goodbyes());
        let mut own: BTreeMap<AgentId, Personal> =
            std::mem::take(&mut self.memory.personal).into_iter().collect();
        let mut agents = std::mem::take(&mut self.memory.agents);
        let (mut next, mut shown, mut missed) = (Vec::new(), Vec::new(), Vec::new());
        let (mut certain, mut held) = (true, Vec::new());
        for (report, (loss, epsilon)) in heard {
            let before = agents.remove(&report.agent);
            let own = own.remove(&report.agent).or_else(|| match before {
                None => self.memory.first.clone(),
                Some(_) => None,
            });
            gap.from(round.weights, step, own.as_ref());
            if let Some(own) = own.as_ref().filter(|own| own.differs()) {
                let rewind = before.as_ref().map(|known| &known.rewind);
                let fresh = Rewind::default();
                let rewind = (!self.cuts(report)).then(|| rewind.unwrap_or(&fresh));
                let slope = Slope::new(report, rewind);
                let offset = offset::of(own, round.weights);
                shown.push(line(report.agent, (loss, slope), before.as_ref(), &offset));
            }
            let heard = Heard { report, loss, epsilon, before, shown: own };
            let coming = self.after(heard, &stage, &gap);
            missed.extend(coming.miss);
            held.push(coming.personal.as_ref().is_some_and(Personal::differs));
            next.push((report.agent, coming));
        }
        let strangers = round.reports.absent() > agents.len();
        for (agent, known) in agents {
            next.push((agent, self.unheard(known, own.remove(&agent), &stage)));
        }
        next.sort_by_key(|(agent, _)| *agent);
        self.await_newcomers(strangers, round);
        // Nothing is known about agents that are shown the server's weights before they were heard.
        certain &= !strangers || self.memory.first.is_some();
        for (agent, coming) in next {
            certain &= coming.certain;
            let known = Known { certain: coming.certain, ..coming.known };
            self.memory.agents.insert(agent, known);
            let same = self.memory.first.is_some().then_some(Personal::Same);
            let personal = coming.personal.or(same);
            self.memory.personal.extend(personal.map(|personal| (agent, personal)));
        }
        // Only a proof needs less slack than was asked for.
        let finer = self.smoothness.is_some() && self.slack() > self.delta * SMALLEST_SLACK;
        if arrival.below && finer {
            self.memory.delta = Some(self.slack() / 2.0);
        }
        decision.kept = Some(certain);
        decision.shown = shown;
        decision.missed = Some(missed);
        decision.split = Split::by(round.reports, |index| held[index]);
        let arrived = arrival.verdict();
        let enough = match self.smoothness {
            Some(_) => arrived == Landing::Certified,
            None => arrived != Landing::No,
        };
        if decision.stop.is_none() && self.until == Until::Content && enough {
            decision.stop = Some(StopReason::Landed);
        }
        let last = self.memory.rounds == Some(round.number) || decision.stop.is_some();
        decision.landed = Some(if last { arrived } else { Landing::No });
        Ok(())
    }
}

/// The loss that a careful server plans with, and the target loss.
fn open(report: &Report<'_>) -> Result<(f64, f64), Error> {
    report.exact_loss("preview")?;
    match report.standing {
        Standing::Open { loss, epsilon } => Ok((loss.cautious(), epsilon)),
        Standing::Private { .. } => unreachable!("it has an exact loss"),
    }
}

/// What an agent was shown in this round, for the record.
fn line(
    agent: AgentId,
    (loss, slope): (f64, Slope<'_>),
    before: Option<&Known>,
    offset: &[f64],
) -> Shown {
    Shown {
        agent,
        distance: linalg::norm(Vector::F64(offset)),
        real: translation::estimate(loss, slope.along(offset)),
        stood: before.map_or(0, |known| known.stood),
        capped: before.is_some_and(|known| known.capped),
    }
}

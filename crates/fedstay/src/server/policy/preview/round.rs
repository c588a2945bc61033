//! One round of `preview`, after the rule's step.

use super::arrival::ArrivalCheck;
use super::known::KnownAgent;
use super::offset::Offset;
use super::showing::{Heard, Next, Stage};
use super::{Preview, Until, estimate};
use crate::message::{Personal, Shown};
use crate::rule::{Decision, Landing, Round, Split, StopReason};
use crate::{AgentId, Error, Report, Standing, Vector, linalg};
use std::collections::BTreeMap;

/// While landing the slack may fall to this share of δ.
const SMALLEST_SLACK: f64 = 1e-9;
/// The same where nothing is to be proved.
const SMALLEST_SHARE: f64 = 0.125;

impl Preview {
    /// Looks at all reports, moves the previews, and says how things are.
    pub(super) fn take_round(
        &mut self,
        round: &Round<'_>,
        step: &mut [f64],
        decision: &mut Decision,
    ) -> Result<(), Error> {
        let told = |report| Ok(OpenReport { report, standing: open(report)? });
        let heard: Vec<OpenReport<'_>> =
            round.reports.iter().map(told).collect::<Result<_, Error>>()?;
        let free = decision.stop.is_none() && self.until == Until::Content;
        let arrival = self.arrive(round, &heard, step, free);
        decision.shown = heard.iter().filter_map(|told| self.line(told, round.weights)).collect();
        self.memory.travelled += linalg::norm(Vector::F64(step));
        let next = self.next(&heard, &self.stage(round, step));
        decision.missed = Some(next.iter().filter_map(|(_, next)| next.miss).collect());
        decision.split = Split::by(round.reports, |index| next[index].1.differs());
        decision.kept = Some(self.remember(next, heard.len(), round));
        // A proof needs less slack than was asked for; and where slacks are wide, as shares may be, cuts are taken the
        // nearer to the model the smaller they are.
        let finer = match self.smoothness {
            Some(_) => self.slack() > self.delta * SMALLEST_SLACK,
            None => self.relative && self.slack() > self.delta * SMALLEST_SHARE,
        };
        if arrival.below && finer {
            self.memory.delta = Some(self.slack() / 2.0);
        }
        let arrived = arrival.verdict();
        let enough = match self.smoothness {
            Some(_) => arrived == Landing::Certified,
            None => arrived != Landing::No,
        };
        if free && enough {
            decision.stop = Some(StopReason::Landed);
        }
        let last = self.memory.rounds == Some(round.number) || decision.stop.is_some();
        decision.landed = Some(if last { arrived } else { Landing::No });
        Ok(())
    }

    /// Finds out whether the server's new weights satisfy everybody, and if the step is free to, changes
    /// it so that they do.
    fn arrive<'a>(
        &self,
        round: &Round<'_>,
        heard: &[OpenReport<'a>],
        step: &mut [f64],
        free: bool,
    ) -> ArrivalCheck<'a> {
        let mut arrival = ArrivalCheck::new(self.smoothness);
        let mut gap = Offset::new(step);
        for OpenReport { report, standing } in heard {
            gap.from(round.weights, step, self.memory.layer().of(report.agent));
            let first = self.memory.agents.get(&report.agent).and_then(|known| known.first);
            let slack = self.unit(standing.1, first) * self.slack();
            arrival.look(report, self.slope(report), *standing, slack, &gap.way);
        }
        if round.reports.absent() > 0 {
            arrival.unheard();
        }
        if free {
            arrival.come_down(step);
        }
        arrival
    }

    fn stage<'a>(&self, round: &'a Round<'a>, step: &'a [f64]) -> Stage<'a> {
        let longest = self.cap * self.memory.travelled;
        // The gradient of an agent that may be silent next is kept.
        Stage { round, step, longest, keep: round.reports.absent() > 0 }
    }

    /// What everybody who is still in is shown next: first the agents that were heard, in the order of
    /// their reports, then the others. What was known about them is used up.
    fn next(&mut self, heard: &[OpenReport<'_>], stage: &Stage<'_>) -> Vec<(AgentId, Next)> {
        self.forget(stage.round.reports.goodbyes());
        let mut shown: BTreeMap<AgentId, Personal> =
            std::mem::take(&mut self.memory.personal).into_iter().collect();
        let mut known = std::mem::take(&mut self.memory.agents);
        let mut gap = Offset::new(stage.step);
        let after = heard.iter().map(|OpenReport { report, standing: (loss, epsilon) }| {
            let agent = report.agent;
            let before = known.remove(&agent);
            let first = match before {
                None => self.memory.first.clone(),
                Some(_) => None,
            };
            let shown = shown.remove(&agent).or(first);
            gap.from(stage.round.weights, stage.step, shown.as_ref());
            let heard = Heard { report, loss: *loss, epsilon: *epsilon, before, shown };
            (agent, self.after(heard, stage, &gap))
        });
        let mut next: Vec<(AgentId, Next)> = after.collect();
        next.extend(
            known
                .into_iter()
                .map(|(agent, known)| (agent, self.unheard(known, shown.remove(&agent), stage))),
        );
        next
    }

    /// Remembers what agents are shown next, of whom the first `heard` were heard, and says whether for
    /// convex losses that proves that everybody stays.
    fn remember(
        &mut self,
        mut next: Vec<(AgentId, Next)>,
        heard: usize,
        round: &Round<'_>,
    ) -> bool {
        let strangers = round.reports.absent() > next.len() - heard;
        self.await_newcomers(strangers, round);
        let waits = self.memory.first.is_some();
        // Nothing is known about agents that are shown the server's weights before they were heard.
        let mut certain = !strangers || waits;
        next.sort_by_key(|(agent, _)| *agent);
        for (agent, Next { known, personal, certain: proven, .. }) in next {
            certain &= proven;
            self.memory.agents.insert(agent, KnownAgent { certain: proven, ..known });
            let personal = personal.or(waits.then_some(Personal::Same));
            self.memory.personal.extend(personal.map(|personal| (agent, personal)));
        }
        certain
    }

    /// What an agent was shown in this round, for the record, if not the server's weights.
    fn line(&self, told: &OpenReport<'_>, weights: &[f64]) -> Option<Shown> {
        let OpenReport { report, standing: (loss, _) } = told;
        let own = self.memory.layer().of(report.agent).filter(|own| own.differs())?;
        let (offset, slope) = (own.offset(weights), self.slope(report));
        let before = self.memory.agents.get(&report.agent);
        Some(Shown {
            agent: report.agent,
            distance: linalg::norm(Vector::F64(&offset)),
            real: estimate(*loss, slope.along(&offset)),
            stood: before.map_or(0, |known| known.stood),
            capped: before.is_some_and(|known| known.capped),
        })
    }
}

/// A report, with the loss that a careful server plans with, and the target loss.
struct OpenReport<'a> {
    report: &'a Report<'a>,
    standing: (f64, f64),
}

/// The loss that a careful server plans with, and the target loss.
fn open(report: &Report<'_>) -> Result<(f64, f64), Error> {
    report.exact_loss("preview")?;
    match report.standing {
        Standing::Open { loss, epsilon } => Ok((loss.cautious(), epsilon)),
        Standing::Private { .. } => unreachable!("it has an exact loss"),
    }
}

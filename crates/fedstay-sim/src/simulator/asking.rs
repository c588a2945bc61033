//! Asking: everybody of a cohort takes part, each at its desk, on all threads.

use super::agent::{Seat, Task};
use super::cohort::Cohort;
use super::desk::Desk;
use super::population::AgentRows;
use super::{Simulator, Worked};
use crate::model::{Loaded, Workspace};
use crate::training::DecidesOn;
use fedstay::{AgentId, Answer, Assessment, Call, Losses};
use rayon::prelude::*;
use std::collections::HashMap;

/// What is the same for everybody who is asked in a round.
pub(super) struct Asking<'a> {
    pub(super) call: &'a Call<'a>,
    pub(super) shared: &'a Loaded,
    pub(super) losses: Losses,
    /// The share of all agents that have left.
    pub(super) gone: f64,
    /// Each listed agent's share of the usual work.
    pub(super) loads: HashMap<AgentId, f64>,
}

impl Simulator {
    /// The loss of an agent that was measured at the weights it received.
    fn known_loss(
        &self,
        assessment: Option<&Assessment>,
        call: &Call<'_>,
        index: usize,
    ) -> Option<f64> {
        let agent = AgentId(index as u64);
        // Measured at the shared weights, so of no use to an agent that is shown others.
        let received = self.training.decides_on == DecidesOn::Received;
        let same = received && call.broadcast.personal(agent).is_none();
        let measured = assessment.filter(|_| same)?.of(agent)?;
        Some(measured.score.loss)
    }

    /// For every agent that is asked, the mean of the losses that the others told last, where
    /// somebody looks at it.
    pub(super) fn company(&self, asked: &[usize]) -> Vec<Option<f64>> {
        if !self.roster.somebody_compares() {
            return vec![None; asked.len()];
        }
        let (sum, heard) =
            self.roster.told().fold((0.0, 0u32), |(sum, heard), told| (sum + told, heard + 1));
        // Without its own, if it told one; once for all, because there may be many agents.
        let others = |index: &usize| {
            let own = self.roster.told_by(*index);
            let (own, heard) = own.map_or((0.0, heard), |own| (own, heard - 1));
            (heard > 0).then(|| (sum - own) / f64::from(heard))
        };
        asked.iter().map(others).collect()
    }

    /// Lets an agent do something at its desk, with everything it has to know.
    fn seated(
        &self,
        round: &Asking<'_>,
        (seat, known_loss, others): (&mut Seat, Option<f64>, Option<f64>),
        must_stay: bool,
        act: impl FnOnce(&mut Seat, &Task<'_>, &mut Workspace) -> Worked,
    ) -> Worked {
        let Asking { call, shared, losses, gone, loads } = round;
        let agent = seat.desk.agent;
        let rows = self.seen(agent.0 as usize, call.round);
        let rows = rows.view()?;
        let held_back = self.decides_by(agent.0 as usize);
        let held_back = held_back.as_ref().map(AgentRows::view).transpose()?;
        let personal = call.broadcast.personal(agent);
        let personal = personal.map(|weights| self.network.load(&weights)).transpose()?;
        let correction = call.broadcast.correction(agent);
        let correction: Option<Vec<f32>> =
            correction.map(|values| values.into_iter().map(|value| value as f32).collect());
        let local = &self.training.local;
        let loaded = loads.get(&agent).map(|share| local.with_load(*share, rows.len()));
        let task = Task {
            network: &self.network,
            weights: personal.as_ref().unwrap_or(shared),
            rows: &rows,
            judged: held_back.as_ref().unwrap_or(&rows),
            holds_back: held_back.is_some(),
            local: loaded.as_ref().unwrap_or(local),
            decides_on: self.training.decides_on,
            stands: self.stands,
            seed: self.seed,
            round: call.round,
            step_size: call.step_size,
            losses: *losses,
            tells: self.tells || self.full_losses,
            known_loss,
            must_stay,
            privacy: self.privacy,
            company: (*gone, others),
            correction: correction.as_deref(),
            groups: self.groups.as_ref(),
        };
        self.workspaces.with(|work| act(seat, &task, work))
    }

    /// Sits those who are asked down, at the desks of the last round and at new ones.
    pub(super) fn seat(&mut self, asked: &[usize]) -> Vec<Seat> {
        let parameters = self.network.layout().parameters();
        self.spare.append(&mut self.desks);
        let mut seat = |index: &usize| {
            let desk = self.spare.pop().unwrap_or_else(|| Desk::new(parameters));
            Seat::new(self.roster.take(*index), desk)
        };
        asked.iter().map(&mut seat).collect()
    }

    /// Lets everybody who is asked take part. Agents that would all leave at once, where the last one
    /// stays, are asked again by the caller.
    pub(super) fn ask(
        &self,
        round: &Asking<'_>,
        cohort: &Cohort,
        (assessment, others): (Option<&Assessment>, &[Option<f64>]),
        seats: &mut [Seat],
    ) -> Worked {
        let last_stays = self.training.last_stays;
        let must_stay = self.nobody_leaves || last_stays && cohort.present == 1;
        seats.par_iter_mut().zip(&cohort.asked).zip(others).try_for_each(
            |((seat, index), others)| {
                let known = self.known_loss(assessment, round.call, *index);
                self.seated(round, (seat, known, *others), must_stay, Seat::take_part)
            },
        )?;
        let would_leave = |seats: &[Seat]| {
            let leaves = |seat: &&Seat| seat.desk.answer == Answer::Leaves;
            seats.iter().filter(leaves).count() == cohort.present
        };
        let returns = seats.iter().any(|seat| seat.desk.answer == Answer::Returns);
        if last_stays && !returns && would_leave(seats) {
            // All would leave at once: the one with the highest number continues.
            let mut leaving = seats.iter_mut().rev();
            let last = leaving.find(|seat| seat.desk.answer == Answer::Leaves);
            if let Some(last) = last {
                self.seated(round, (last, None, None), true, Seat::stay)?;
            }
        }
        Ok(())
    }
}

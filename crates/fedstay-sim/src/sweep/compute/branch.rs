//! A shared trajectory: one server and one set of agents for all runs ("lanes") that have seen the
//! same departures so far.
//!
//! Each round everybody who is in works once and looks at its loss as far as the largest ε asks.
//! From that follows, for every lane, exactly what its run alone would have seen: a loss is exact
//! there iff it is at most the lane's own reach (see `reach_of`), and an agent leaves iff that loss
//! is at most its ε in this lane. Lanes whose leavers differ part here; the others go on together.
//! A law (`tests/sweep.rs`) holds every summary and series against the run alone, bit for bit.

use crate::experiment::{Epsilon, Experiment, SpecError};
use crate::run::about;
use crate::simulator::population::Population;
use crate::simulator::{Simulator, Yardsticks, reach_of};
use crate::sweep::results::series::Recorder;
use crate::sweep::{Finished, Outcome, Planned};
use fedstay::ledger::{Ended, Ledger};
use fedstay::linalg::dot;
use fedstay::record::RoundLine;
use fedstay::rule::{carries, stays};
use fedstay::{
    AgentId, Answer, Call, Engine, Error, Evidence, Gathered, Loss, Losses, Participant, Report,
    Reports, Server, Split, Standing, StopReason, Vector, step_with,
};
use std::sync::Arc;

/// One run on a shared trajectory.
struct Lane {
    run: Arc<Planned>,
    /// Every agent's.
    epsilon: Vec<f64>,
    ledger: Ledger,
    recorder: Recorder,
}

/// Runs that have seen the same departures, between two rounds.
pub(in crate::sweep) struct Branch {
    server: Server,
    left: Vec<Option<u32>>,
    lanes: Vec<Lane>,
}

/// Local steps: what was computed, and what it stands for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::sweep) struct Steps {
    /// Taken.
    pub(in crate::sweep) taken: u64,
    /// What the same runs would have taken each alone.
    pub(in crate::sweep) alone: u64,
    /// What they would have taken had nobody left.
    pub(in crate::sweep) nobody_leaves: u64,
}

impl Steps {
    pub(in crate::sweep) fn add(&mut self, other: Self) {
        self.taken += other.taken;
        self.alone += other.alone;
        self.nobody_leaves += other.nobody_leaves;
    }
}

/// What a round brought.
pub(in crate::sweep) struct Grown {
    /// Those who go on: one branch for each set of leavers.
    pub(in crate::sweep) branches: Vec<Branch>,
    /// The runs that ended.
    pub(in crate::sweep) finished: Vec<Finished>,
    /// What it took.
    pub(in crate::sweep) steps: Steps,
}

/// Lanes that lose the same agents in this round.
struct Group {
    leaving: Vec<AgentId>,
    lanes: Vec<Lane>,
}

/// The round of one group.
struct Stepped {
    server: Server,
    stop: Option<StopReason>,
    group: Group,
}

impl Branch {
    /// The runs of a family before their first round.
    pub(in crate::sweep) fn start(
        runs: &[Arc<Planned>],
        simulator: &Simulator,
    ) -> Result<Self, SpecError> {
        let experiment = &runs[0].experiment;
        let agents = simulator.population().agents();
        let server = experiment.server(simulator.initial_weights())?;
        let known = Yardsticks::new(simulator, experiment.step_size, experiment.rounds);
        let lane = |run: &Arc<Planned>| {
            let epsilon = run.experiment.epsilon.each(&known)?;
            let recorder = Recorder::new(&run.experiment, agents);
            Ok(Lane { run: Arc::clone(run), epsilon, ledger: Ledger::default(), recorder })
        };
        let lanes = runs.iter().map(lane).collect::<Result<_, SpecError>>()?;
        Ok(Self { server, left: vec![None; agents], lanes })
    }

    /// The runs on it.
    pub(in crate::sweep) fn runs(&self) -> Vec<Arc<Planned>> {
        self.lanes.iter().map(|lane| Arc::clone(&lane.run)).collect()
    }

    /// How many rounds it has behind it.
    pub(in crate::sweep) fn round(&self) -> u32 {
        self.server.round()
    }

    /// Lets a simulator of the family go on with this branch.
    pub(in crate::sweep) fn take_over(&self, simulator: &mut Simulator) {
        let largest = |agent: usize| {
            let of = |lane: &Lane| lane.epsilon[agent];
            self.lanes.iter().map(of).fold(f64::NEG_INFINITY, f64::max)
        };
        let epsilon: Vec<f64> = (0..self.left.len()).map(largest).collect();
        simulator.steer(&self.left, &epsilon);
    }

    /// One round for all lanes. `simulator` has been taken over by this branch.
    ///
    /// # Errors
    /// When training leaves the floating-point range in some lane; which one, only running them
    /// alone can say.
    pub(in crate::sweep) fn grow(self, simulator: &mut Simulator) -> Result<Grown, Error> {
        let Self { server, mut left, lanes } = self;
        let experiment = Arc::clone(&lanes[0].run);
        let experiment = &experiment.experiment;
        let losses = server.losses();
        let gathered = simulator.gather(&Call::next(&server, None))?;
        let present = left.iter().filter(|left| left.is_none()).count();
        let round = server.round() + 1;
        let seen = Seen { round, gathered: &gathered, losses, experiment, present };
        let worked = gathered.reports.len() as u64;
        let mut groups = group(lanes, &seen);
        let steps = count(experiment, worked, &groups);
        let mut stepped = Vec::with_capacity(groups.len());
        let last = groups.pop();
        for group in groups {
            stepped.push(seen.step(server.clone(), group)?);
        }
        if let Some(group) = last {
            stepped.push(seen.step(server, group)?);
        }
        drop(gathered);

        let mut grown = Grown { branches: Vec::new(), finished: Vec::new(), steps };
        for Stepped { server, stop, group } in stepped {
            let over = server.round() >= experiment.rounds;
            let stop = stop.or(over.then_some(StopReason::RoundLimit));
            if let Some(stop) = stop {
                let rest = u64::from(experiment.rounds - server.round()) * group.lanes.len() as u64;
                grown.steps.nobody_leaves +=
                    rest * crate::sweep::plan::family::round_steps(experiment);
                grown.finished.extend(finish(&server, stop, group.lanes, simulator)?);
                continue;
            }
            for agent in &group.leaving {
                left[agent.0 as usize] = Some(server.round());
            }
            let branch = Self { left: left.clone(), server, lanes: group.lanes };
            for agent in &group.leaving {
                left[agent.0 as usize] = None;
            }
            grown.branches.push(branch);
        }
        Ok(grown)
    }
}

/// What an agent found out while it looked as far as the largest ε asks: its loss, or that its loss is
/// above every ε.
struct Looked(Option<Loss>);

impl Evidence for Looked {
    fn loss(&mut self) -> f64 {
        match self.0 {
            Some(Loss::Exact(loss) | Loss::Sampled { mean: loss, .. }) => loss,
            _ => f64::INFINITY,
        }
    }
}

/// What everybody reported, as all lanes see it.
struct Seen<'a> {
    round: u32,
    gathered: &'a Gathered<'a>,
    losses: Losses,
    experiment: &'a Experiment,
    /// How many agents are in.
    present: usize,
}

impl Seen<'_> {
    /// The loss that an agent reports at the target loss `epsilon`.
    fn loss(&self, report: &Report<'_>, norm: f64, epsilon: f64) -> Loss {
        use crate::training::DecidesOn::Received;
        let decides_on = self.experiment.training().map(|training| training.decides_on);
        // Measured anyway in rounds that look, whatever anybody's ε.
        let measured = self.gathered.assessment.as_ref();
        let measured = measured.is_some_and(|measured| measured.of(report.agent).is_some());
        let known = measured && decides_on == Some(Received);
        let bound = reach_of(self.losses, epsilon, norm);
        match report.loss() {
            Some(loss @ (Loss::Exact(value) | Loss::Sampled { mean: value, .. }))
                if known || value <= bound =>
            {
                loss
            }
            _ => Loss::AtLeast(bound),
        }
    }

    /// Who leaves a lane.
    fn leaving(&self, lane: &Lane) -> Vec<AgentId> {
        let last_stays = self.experiment.training().is_some_and(|t| t.last_stays);
        if last_stays && self.present == 1 {
            return Vec::new();
        }
        let leaves = |report: &&Report<'_>| {
            let epsilon = lane.epsilon[report.agent.0 as usize];
            let behaviour = self.experiment.behaviour.clone();
            let mut agent = Participant::new(report.agent, epsilon, behaviour);
            agent.answer(self.round, &mut Looked(report.loss()), false) == Answer::Leaves
        };
        let mut leaving: Vec<AgentId> =
            self.gathered.reports.iter().filter(leaves).map(|report| report.agent).collect();
        if last_stays && leaving.len() == self.present {
            // All would leave at once: the last by number continues.
            leaving.pop();
        }
        leaving
    }

    /// The server's step in a group, and every lane's books about it.
    fn step(&self, mut server: Server, mut group: Group) -> Result<Stepped, Error> {
        let stays = |report: &&Report<'_>| !group.leaving.contains(&report.agent);
        let norms = self.gathered.reports.norms();
        let staying: Vec<(Report<'_>, f64)> = self
            .gathered
            .reports
            .iter()
            .zip(norms)
            .filter(|(report, _)| stays(report))
            .map(|(report, norm)| (*report, *norm))
            .collect();
        // The step does not depend on a lane's ε, so one lane's reports serve all.
        let first = &group.lanes[0].epsilon;
        let mut reports = Vec::with_capacity(staying.len());
        for (report, norm) in &staying {
            let epsilon = first[report.agent.0 as usize];
            let loss = self.loss(report, *norm, epsilon);
            let standing = match report.standing {
                Standing::Open { .. } => Standing::Open { loss, epsilon },
                // It tells nothing, under any ε.
                silent => silent,
            };
            reports.push(Report { standing, ..*report });
        }
        let reports =
            Reports::with_goodbyes(server.weights().len(), reports, group.leaving.clone())?
                .with_absent(self.present - self.gathered.reports.len());
        let gathered = Gathered {
            faults: self.gathered.faults.clone(),
            absent: self.gathered.absent.clone(),
            assessment: self.gathered.assessment.clone(),
            ..Gathered::new(reports)
        };
        let (decision, line) = step_with(&gathered, &mut server)?;
        let mut slopes =
            Slopes { staying: &staying, step: server.displacement(), known: Vec::new() };
        for (index, lane) in group.lanes.iter_mut().enumerate() {
            if index == 0 {
                lane.ledger.add(&line);
                lane.recorder.add(&line);
                continue;
            }
            let line = self.line_of(lane, &line, &mut slopes);
            lane.ledger.add(&line);
            lane.recorder.add(&line);
        }
        Ok(Stepped { stop: decision.stop, server, group })
    }

    /// Another lane's line of the same round: its own losses and its own forecast.
    fn line_of(&self, lane: &Lane, line: &RoundLine, slopes: &mut Slopes<'_>) -> RoundLine {
        let mut line = RoundLine { loss: Vec::new(), at_least: Vec::new(), ..line.clone() };
        let margin = crate::sweep::plan::family::margin(&self.experiment.rule).unwrap_or(0.0);
        let mut split = Split::default();
        let (mut crossed, mut unknown) = (false, false);
        for (place, (report, norm)) in slopes.staying.iter().enumerate() {
            let epsilon = lane.epsilon[report.agent.0 as usize];
            if report.loss().is_none() {
                line.loss.push(None);
                continue;
            }
            let loss = self.loss(report, *norm, epsilon);
            line.loss.push(Some(loss.value()));
            if matches!(loss, Loss::AtLeast(_)) {
                line.at_least.push(report.agent);
            }
            if carries(loss, || slopes.of(place), epsilon, margin) {
                split.d.push(report.agent);
            }
            match stays(loss, || slopes.of(place), epsilon) {
                Some(stays) => crossed |= !stays,
                None => unknown = true,
            }
        }
        line.d = split.d;
        line.kept = (crossed || !unknown).then_some(!crossed);
        line
    }
}

/// ⟨g, s⟩ for every agent that stays, each computed once and only when asked for.
struct Slopes<'a> {
    staying: &'a [(Report<'a>, f64)],
    step: &'a [f64],
    known: Vec<Option<f64>>,
}

impl Slopes<'_> {
    fn of(&mut self, place: usize) -> f64 {
        self.known.resize(self.staying.len(), None);
        *self.known[place]
            .get_or_insert_with(|| dot(self.staying[place].0.slope(), Vector::F64(self.step)))
    }
}

/// Lanes with the same leavers together, in the order in which they came.
fn group(lanes: Vec<Lane>, seen: &Seen<'_>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for lane in lanes {
        let leaving = seen.leaving(&lane);
        match groups.iter_mut().find(|group| group.leaving == leaving) {
            Some(group) => group.lanes.push(lane),
            None => groups.push(Group { leaving, lanes: vec![lane] }),
        }
    }
    groups
}

fn count(experiment: &Experiment, worked: u64, groups: &[Group]) -> Steps {
    let Some(training) = experiment.training() else { return Steps::default() };
    let local = training.usual_steps();
    let received = training.decides_on == crate::training::DecidesOn::Received;
    let alone = |group: &Group| {
        // Who decides on its own model has worked before it leaves.
        let left = if received { group.leaving.len() as u64 } else { 0 };
        (worked - left) * group.lanes.len() as u64
    };
    let lanes: usize = groups.iter().map(|group| group.lanes.len()).sum();
    Steps {
        taken: worked * local,
        alone: groups.iter().map(alone).sum::<u64>() * local,
        nobody_leaves: lanes as u64 * crate::sweep::plan::family::round_steps(experiment),
    }
}

/// Measures the delivered weights once and sums up every lane.
fn finish(
    server: &Server,
    stop: StopReason,
    lanes: Vec<Lane>,
    simulator: &mut Simulator,
) -> Result<Vec<Finished>, Error> {
    let assessment = simulator.assess(server.delivered())?;
    let roll = simulator.agents();
    let failed = |error: SpecError| Error::Book(error.to_string());
    let sum_up = |lane: Lane| {
        let experiment = &lane.run.experiment;
        // Everything but ε is the same in every lane.
        let mut assessment = assessment.clone();
        for agent in &mut assessment.agents {
            agent.epsilon = lane.epsilon[agent.id.0 as usize];
        }
        let agents = lane.epsilon.len();
        let (assessment, roll) = (&assessment, roll.as_slice());
        let measures = simulator.measures();
        let ended = Ended { server, assessment, measures, roll, agents, stop, proves: false };
        let summary = lane.ledger.summary(&ended, &about(experiment, Some(simulator.population())));
        let outcome = Outcome::Finished(Box::new(summary));
        Finished::new(experiment, outcome, lane.recorder.finish()).map_err(failed)
    };
    lanes.into_iter().map(sum_up).collect()
}

/// A simulator for a family, over data that may be shared with others.
pub(in crate::sweep) fn simulator(
    run: &Planned,
    population: Population,
) -> Result<Simulator, SpecError> {
    // Every lane brings its own ε; a plain number keeps the simulator from training for one.
    let experiment = Experiment { epsilon: Epsilon::One(0.0), ..run.experiment.clone() };
    Simulator::on(&experiment, population)
}

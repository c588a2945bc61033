//! The engine for named problems: agents with exact oracles, in this process, one after the other.

use super::{Instance, Oracle};
use crate::record::{HeaderAgent, called};
use crate::schedule::When;
use crate::worth::Judge;
use crate::{
    Abilities, AgentAssessment, AgentId, Answer, Assessment, Behaviour, Call, Engine, Error,
    Evidence, Gathered, Loss, Measure, Memory, Participant, ParticipantState, Privacy, Report,
    Reports, Schedule, Score, Seed, SeenModels, Sends, Standing, Vector, linalg, packed,
};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::Arc;

struct Member {
    participant: Participant,
    oracle: Arc<dyn Oracle>,
    /// What it reports: the last gradient it worked for.
    gradient: Vec<f64>,
    /// The gradient with the rule's correction, if the rule corrects steps.
    corrected: Option<Vec<f64>>,
    /// The reported gradient with noise, if there is noise.
    blurred: Vec<f64>,
    /// Its loss at the weights it last looked at.
    loss: f64,
    /// The loss it last told.
    told: Option<f64>,
    /// What it remembers of the models it received, if it forges what it sends.
    seen: SeenModels,
}

/// An engine whose agents have exact oracles.
pub struct Federation {
    members: Vec<Member>,
    dimension: usize,
    nobody_leaves: bool,
    privacy: Option<(Privacy, Seed)>,
    schedule: (Schedule, Seed),
    without: Option<AgentId>,
}

/// The mean loss over all agents.
pub struct MeanLoss(Vec<Arc<dyn Oracle>>);

impl Judge for MeanLoss {
    fn loss(&mut self, weights: &[f64]) -> Result<f64, Error> {
        let losses = self.0.iter().map(|oracle| oracle.loss(weights));
        Ok(losses.sum::<f64>() / self.0.len().max(1) as f64)
    }
}

/// The mean of some numbers; `None` if there are none.
fn mean(numbers: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = numbers.fold((0u32, 0.0), |(count, sum), number| (count + 1, sum + number));
    (count > 0).then(|| sum / f64::from(count))
}

/// What an agent with an oracle finds out.
struct Sight<'a> {
    oracle: &'a dyn Oracle,
    weights: &'a [f64],
    step_size: f64,
    loss: f64,
    company: Company,
}

/// What an agent knows about the others.
#[derive(Clone, Copy)]
struct Company {
    gone: f64,
    others: Option<f64>,
}

/// Where `steps` gradient steps on one agent's loss lead.
fn descended(oracle: &dyn Oracle, start: &[f64], steps: u32, rate: f64) -> Vec<f64> {
    let mut weights = start.to_vec();
    let mut gradient = vec![0.0; weights.len()];
    for _ in 0..steps {
        oracle.loss_and_gradient(&weights, &mut gradient);
        weights.iter_mut().zip(&gradient).for_each(|(weight, g)| *weight -= rate * g);
    }
    weights
}

impl Evidence for Sight<'_> {
    fn loss(&mut self) -> f64 {
        self.loss
    }

    fn ahead_at_most(&mut self, steps: u32, rate: f64, bound: f64) -> bool {
        self.oracle.loss(&descended(self.oracle, self.weights, steps, rate)) <= bound
    }

    fn alone(&mut self, rounds: u32) -> f64 {
        self.oracle.loss(&descended(self.oracle, self.weights, rounds, self.step_size))
    }

    fn gone(&mut self) -> f64 {
        self.company.gone
    }

    fn others(&mut self) -> Option<f64> {
        self.company.others
    }
}

/// What must survive a restart of a member.
#[derive(Serialize, Deserialize)]
struct MemberState {
    #[serde(flatten)]
    participant: ParticipantState,
    /// Empty unless it may be repeated.
    #[serde(default, with = "packed", skip_serializing_if = "Vec::is_empty")]
    gradient: Vec<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    told: Option<f64>,
    #[serde(default, skip_serializing_if = "crate::message::is_default")]
    seen: SeenModels,
}

impl Federation {
    /// The instance's agents, counted from 0, with their target losses and a common behaviour; a
    /// mixed population is dealt out with seed 0.
    pub fn new(instance: &Instance, epsilon: &[f64], behaviour: &Behaviour) -> Result<Self, Error> {
        let behaviours = behaviour.assign(instance.oracles.len(), Seed(0))?;
        Self::with_behaviours(instance, epsilon, behaviours)
    }

    /// The instance's agents, counted from 0, with their target losses and a behaviour for each.
    pub fn with_behaviours(
        instance: &Instance,
        epsilon: &[f64],
        behaviours: Vec<Behaviour>,
    ) -> Result<Self, Error> {
        let agents = instance.oracles.len();
        if epsilon.len() != agents {
            let must = format!("one number, or a list of {agents}");
            return Err(Error::bad_parameter("epsilon", format!("{epsilon:?}"), must));
        }
        if behaviours.len() != agents {
            let must = format!("one for each of the {agents} agents");
            return Err(Error::bad_parameter("behaviours", behaviours.len(), must));
        }
        let dimension = instance.dimension();
        let agents = instance.oracles.iter().zip(epsilon).zip(behaviours).enumerate();
        let members = agents.map(|(id, ((oracle, epsilon), behaviour))| Member {
            participant: Participant::new(AgentId(id as u64), *epsilon, behaviour),
            oracle: Arc::clone(oracle),
            gradient: vec![0.0; dimension],
            corrected: None,
            blurred: Vec::new(),
            loss: f64::NAN,
            told: None,
            seen: SeenModels::default(),
        });
        Ok(Self {
            members: members.collect(),
            dimension,
            nobody_leaves: false,
            privacy: None,
            schedule: (Schedule::default(), Seed(0)),
            without: None,
        })
    }

    /// A judge of models: the mean loss over all agents, leavers included.
    pub fn judge(&self) -> MeanLoss {
        MeanLoss(self.members.iter().map(|member| Arc::clone(&member.oracle)).collect())
    }

    /// How good a model every agent makes alone, by `rounds` gradient steps from `start`.
    pub fn alone(&self, start: &[f64], step_size: f64, rounds: u32) -> Vec<Score> {
        let alone = |member: &Member| {
            let model = descended(member.oracle.as_ref(), start, rounds, step_size);
            member.score(&model, None)
        };
        self.members.iter().map(alone).collect()
    }

    /// How good weights are for every agent: one vector of weights per agent.
    pub fn scores(&self, weights: &[&[f64]]) -> Vec<Score> {
        self.members
            .iter()
            .zip(weights)
            .map(|(member, weights)| member.score(weights, None))
            .collect()
    }

    /// In how many rounds each agent reported without having worked.
    pub fn idle_rounds(&self) -> Vec<u32> {
        let idle = |member: &Member| member.participant.behaviour().idle_rounds();
        self.members.iter().map(idle).collect()
    }

    /// Makes everybody clip their reports and add noise to them.
    pub fn set_privacy(&mut self, privacy: Privacy, seed: Seed) {
        self.privacy = Some((privacy, seed));
    }

    /// Makes agents reachable only when the schedule says so.
    pub fn set_schedule(&mut self, schedule: Schedule, seed: Seed) {
        self.schedule = (schedule, seed);
    }

    /// Keeps an agent out from the start, to see what the others would do without it.
    pub fn set_without(&mut self, agent: AgentId) {
        self.without = Some(agent);
    }

    /// Makes everybody stay, whatever they decide: the counterfactual of a run with departures.
    pub fn set_nobody_leaves(&mut self, nobody: bool) {
        self.nobody_leaves = nobody;
    }
}

impl Member {
    fn answer(
        &mut self,
        call: &Call<'_>,
        fresh: &mut Vec<f64>,
        must_stay: bool,
        (company, seed): (Company, Seed),
    ) -> Answer {
        if !self.participant.looks() {
            return Answer::StaysAway;
        }
        let weights = &*call.broadcast.to(self.participant.id);
        self.loss = self.oracle.loss_and_gradient(weights, fresh);
        let (oracle, step_size, loss) = (self.oracle.as_ref(), call.step_size, self.loss);
        let mut sight = Sight { oracle, weights, step_size, loss, company };
        let answer = self.participant.answer(call.round, &mut sight, must_stay);
        let manner = self.participant.manner();
        if answer.reports() && manner.works {
            std::mem::swap(&mut self.gradient, fresh);
        }
        match manner.sends {
            Sends::Times(factor) if answer.reports() => linalg::scale(&mut self.gradient, factor),
            Sends::Forged(forgery) if answer.reports() => {
                let id = self.participant.id.0;
                let mut rng = seed.stream("free-riding", u64::from(call.round), id);
                let received = weights.iter().copied();
                self.seen.forge(forgery, received, step_size, &mut rng, &mut self.gradient);
            }
            _ => {}
        }
        if answer.reports() {
            self.told = Some(manner.told(loss));
            self.corrected = call.broadcast.correction(self.participant.id).map(|mut by| {
                linalg::add_scaled(&mut by, 1.0, Vector::F64(&self.gradient));
                by
            });
        }
        answer
    }

    /// How good weights are for it. `loss` is its loss there, if that has already been computed.
    fn score(&self, weights: &[f64], loss: Option<f64>) -> Score {
        let loss = loss.unwrap_or_else(|| self.oracle.loss(weights));
        Score::new(loss).with(Measure::ACCURACY.name, self.oracle.accuracy(weights))
    }

    fn assess(&self, weights: &[f64], loss: Option<f64>) -> AgentAssessment {
        AgentAssessment {
            id: self.participant.id,
            epsilon: self.participant.epsilon,
            behaviour: Some(Cow::Borrowed(self.participant.behaviour().name())),
            score: self.score(weights, loss),
            as_of: None,
            held_back: None,
        }
    }

    fn report(&mut self, round: u32, privacy: Option<(Privacy, Seed)>) -> Report<'_> {
        let Participant { id, epsilon, .. } = self.participant;
        let loss = self.participant.manner().told(self.loss);
        let direction = self.corrected.as_ref().unwrap_or(&self.gradient);
        let Some((privacy, seed)) = privacy else {
            let report =
                Report::new(id, Loss::Exact(loss).leaves_at(epsilon), Vector::F64(&self.gradient));
            return Report { direction: Vector::F64(direction), ..report };
        };
        let mut rng = seed.stream("privacy", u64::from(round), id.0);
        self.blurred.clone_from(direction);
        privacy.blur(&mut self.blurred, &mut rng);
        let loss = privacy.blur_loss(loss, &mut rng);
        let standing = Standing::Open { loss, epsilon };
        Report { gradient: None, ..Report::new(id, standing, Vector::F64(&self.blurred)) }
    }

    fn save(&self) -> MemberState {
        let repeats = self.participant.behaviour().repeats();
        let gradient = if repeats { self.gradient.clone() } else { Vec::new() };
        let seen = self.seen.clone();
        MemberState { participant: self.participant.save(), gradient, told: self.told, seen }
    }

    fn restore(&mut self, state: MemberState) -> Result<(), Error> {
        if self.participant.behaviour().repeats() {
            let (got, expected) = (state.gradient.len(), self.gradient.len());
            if got != expected {
                let why = format!("its gradients have {got} components, not {expected}");
                return Err(Error::BadState { why });
            }
            self.gradient = state.gradient;
        }
        if !state.seen.fits(self.gradient.len()) {
            let why =
                format!("{}: it saw models of another size", called(self.participant.id, None));
            return Err(Error::BadState { why });
        }
        (self.told, self.seen) = (state.told, state.seen);
        self.participant.restore(state.participant)
    }
}

impl Engine for Federation {
    fn agents(&self) -> Vec<HeaderAgent> {
        let listed = |member: &Member| HeaderAgent {
            id: member.participant.id,
            epsilon: member.participant.epsilon,
            name: None,
        };
        self.members.iter().map(listed).collect()
    }

    fn gather(&mut self, call: &Call<'_>) -> Result<Gathered<'_>, Error> {
        let (mut goodbyes, mut returned, mut reports) = (Vec::new(), Vec::new(), Vec::new());
        let mut absent = Vec::new();
        let (schedule, seed) = self.schedule.clone();
        let (round, count) = (call.round, self.members.len() as u64);
        // The oracles know every loss, so everybody is measured in every round, even those that
        // left.
        let mut agents = Vec::with_capacity(self.members.len());
        let mut fresh = vec![0.0; self.dimension];
        let gone = self.members.iter().filter(|member| !member.participant.is_in()).count();
        let gone = gone as f64 / self.members.len().max(1) as f64;
        let told = |member: &Member| member.told.filter(|_| member.participant.is_in());
        let told: Vec<Option<f64>> = self.members.iter().map(told).collect();
        for (place, member) in self.members.iter_mut().enumerate() {
            let others = || told.iter().enumerate().filter(|(other, _)| *other != place);
            let others = mean(others().filter_map(|(_, told)| *told));
            let company = (Company { gone, others }, seed);
            let id = member.participant.id;
            let there = self.without != Some(id)
                && schedule.is_there(When { round, agent: id.0, agents: count, seed });
            if !there && member.participant.is_in() {
                absent.push(id);
            }
            let answer = match there {
                true => member.answer(call, &mut fresh, self.nobody_leaves, company),
                false => Answer::StaysAway,
            };
            let looked = answer != Answer::StaysAway && call.broadcast.personal(id).is_none();
            agents.push(member.assess(call.broadcast.shared(), looked.then_some(member.loss)));
            match answer {
                Answer::StaysAway => {}
                Answer::SitsOut => absent.push(id),
                Answer::Leaves => goodbyes.push(id),
                Answer::Returns => {
                    returned.push(id);
                    reports.push(member.report(call.round, self.privacy));
                }
                Answer::Reports => reports.push(member.report(call.round, self.privacy)),
            }
        }
        let reports =
            Reports::with_goodbyes(self.dimension, reports, goodbyes)?.with_returned(returned)?;
        let assessment = Some(Assessment { agents, population: None, constant: None });
        let reports = reports.with_absent(absent.len());
        Ok(Gathered { assessment, absent, ..Gathered::new(reports) })
    }

    fn assess(&mut self, weights: &[f64]) -> Result<Assessment, Error> {
        let agents = self.members.iter().map(|member| member.assess(weights, None)).collect();
        Ok(Assessment { agents, population: None, constant: None })
    }

    fn save(&self) -> Result<Memory, Error> {
        Memory::of(&self.members.iter().map(Member::save).collect::<Vec<_>>())
    }

    fn restore(&mut self, memory: &Memory) -> Result<(), Error> {
        let states: Vec<MemberState> = memory.read()?;
        if states.len() != self.members.len() {
            let (got, expected) = (states.len(), self.members.len());
            let why = format!("it has {got} agents, the problem {expected}");
            return Err(Error::BadState { why });
        }
        let mut members = self.members.iter_mut().zip(states);
        members.try_for_each(|(member, state)| member.restore(state))
    }

    fn abilities(&self) -> Abilities {
        // Every named problem is convex, with exact oracles.
        let plain = |member: &Member| member.participant.behaviour().is_plain();
        // Nothing is proved about agents that were not asked.
        let asked = self.schedule.0.is_always() && self.without.is_none();
        let proves = self.privacy.is_none() && asked && self.members.iter().all(plain);
        // A load says how many samples a gradient takes, and an oracle's is exact for any number.
        let able = Abilities { loads: true, personal: true, ..Abilities::default() };
        Abilities { corrections: true, proves, ..able }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{Observation3, Problem};
    use crate::record::RoundLine;
    use crate::{About, Broadcast, Losses, Mean, Personal, Server, Session};

    fn observation_3() -> (Instance, Federation) {
        let instance = Problem::Observation3(Observation3::default()).build(Seed(0)).unwrap();
        let epsilon = vec![instance.epsilon; instance.oracles.len()];
        let engine = Federation::new(&instance, &epsilon, &Behaviour::default()).unwrap();
        (instance, engine)
    }

    #[test]
    fn everybody_is_measured_in_every_round_those_who_left_included() {
        let (instance, engine) = observation_3();
        let start = instance.start.clone();
        let server = Server::new(start, Mean::default(), instance.step_size).unwrap();
        let mut lines: Vec<RoundLine> = Vec::new();
        let mut session = Session::new(server, engine, 500, About::default()).unwrap();
        session.run(&mut [&mut lines]).unwrap();
        let mut alone = 0;
        for line in &lines {
            let weights = line.weights.as_ref().unwrap();
            let measured = &line.assessment.as_ref().unwrap().score.loss;
            let true_losses: Vec<f64> =
                instance.oracles.iter().map(|oracle| oracle.loss(weights)).collect();
            assert_eq!(measured.len(), instance.oracles.len());
            for (measured, truly) in measured.iter().zip(&true_losses) {
                assert!((measured - truly).abs() <= 1e-12, "round {}", line.round);
            }
            alone += usize::from(line.agents.len() == 1);
        }
        assert!(alone > 0, "the test needs rounds in which somebody has left");
    }

    /// An oracle's gradient is one local step, so the corrections cancel.
    #[test]
    fn corrections_are_added_to_what_is_sent_and_cancel_over_everybody() {
        let play = |rule: crate::Rule| {
            let (instance, engine) = observation_3();
            let server = Server::new(instance.start.clone(), rule, instance.step_size).unwrap();
            let mut session = Session::new(server, engine, 20, About::default()).unwrap();
            session.engine_mut().set_nobody_leaves(true);
            session.run(&mut []).unwrap().unwrap();
            session.server().weights().to_vec()
        };
        let (own, mean) =
            (play(crate::rule::Scaffold::default().into()), play(Mean::default().into()));
        assert!(own.iter().zip(&mean).all(|(a, b)| (a - b).abs() < 1e-12), "{own:?} {mean:?}");
        let (instance, engine) = observation_3();
        let server = Server::new(instance.start, crate::rule::FairFed::default(), 0.1).unwrap();
        let refused = Session::new(server, engine, 20, About::default()).err().unwrap();
        assert!(refused.to_string().contains("fairfed asks how well agents' groups"), "{refused}");
    }

    #[test]
    fn nothing_is_proved_about_agents_that_are_not_always_asked() {
        let (_, mut engine) = observation_3();
        assert!(engine.abilities().proves);
        engine.set_schedule(Schedule::Random(crate::schedule::Random { p: 0.9 }), Seed(0));
        assert!(!engine.abilities().proves);
        let (_, mut without) = observation_3();
        without.set_without(AgentId(1));
        assert!(!without.abilities().proves);
    }

    #[test]
    fn an_agent_that_is_shown_weights_of_its_own_answers_about_those() {
        let (instance, mut engine) = observation_3();
        let shared = instance.start.clone();
        let elsewhere: Vec<f64> = shared.iter().map(|w| w + 1.0).collect();
        let own = vec![(AgentId(1), Personal::Fixed(elsewhere.clone()))];
        let call = Call {
            round: 1,
            broadcast: Broadcast::new(&shared).with_personal(&own),
            step_size: 0.1,
            losses: Losses::Exact,
            loads: None,
        };
        let gathered = engine.gather(&call).unwrap();
        let told: Vec<f64> =
            gathered.reports.iter().map(|report| report.exact_loss("").unwrap()).collect();
        let expected = [instance.oracles[0].loss(&shared), instance.oracles[1].loss(&elsewhere)];
        assert_eq!(told, expected);
        // The assessment is one of the server's own weights, whatever anybody was shown.
        let assessed = &gathered.assessment.unwrap().agents[1];
        assert_eq!(assessed.score.loss, instance.oracles[1].loss(&shared));
    }
}

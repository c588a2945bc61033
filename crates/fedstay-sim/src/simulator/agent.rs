//! One simulated agent: decides, does its local work, and keeps its report until it is read.

use crate::model::{Batch, Decision, Error, Loaded, Network, Order, Rows, Walk, Workspace};
use crate::simulator::DecidesOn;
use crate::simulator::corrected;
use crate::simulator::groups::Groups;
use crate::simulator::local_work::Local;
use fedstay::linalg::norm;
use fedstay::{
    AgentId, Answer, Behaviour, Decide, Evidence, Loss, Losses, Manner, Participant,
    ParticipantState, Privacy, Rates, Report, Seed, Seen, Sends, Standing, Vector, packed,
};
use serde::{Deserialize, Serialize};

/// What an agent needs to know for a round.
pub(crate) struct Task<'a> {
    pub(crate) network: &'a Network,
    pub(crate) weights: &'a Loaded,
    pub(crate) rows: &'a Rows<'a>,
    pub(crate) local: &'a Local,
    pub(crate) decides_on: DecidesOn,
    pub(crate) stands: bool,
    pub(crate) seed: Seed,
    pub(crate) round: u32,
    pub(crate) step_size: f64,
    pub(crate) losses: Losses,
    /// The loss at the received weights, where it was measured anyway.
    pub(crate) known_loss: Option<f64>,
    /// Whether it must not leave.
    pub(crate) must_stay: bool,
    /// What it does to its report before it sends it.
    pub(crate) privacy: Option<Privacy>,
    /// The share of all agents that have left, and the mean of the losses that the others told last.
    pub(crate) company: (f64, Option<f64>),
    /// What it adds to the gradient of every local step, if the rule says so.
    pub(crate) correction: Option<&'a [f32]>,
    /// How well its groups are served, if the rule asks.
    pub(crate) groups: Option<&'a Groups>,
}

/// A direction and a gradient.
type Sent = (Vec<f32>, Option<Vec<f32>>);

/// A simulated agent.
pub(crate) struct Agent {
    pub(crate) participant: Participant,
    /// What it does with the last broadcast.
    pub(crate) answer: Answer,
    direction: Vec<f32>,
    gradient: Option<Vec<f32>>,
    drawn: Vec<u32>,
    /// Its rows, hardest first, so that decisions are reached early.
    order: Order,
    /// The direction and the gradient that it sends, where they are not what it computed: forged,
    /// multiplied, or with noise.
    sent: Option<Sent>,
    /// What it remembers of the models it received, if it forges what it sends.
    seen: Seen,
    loss: Loss,
    /// How well its groups are served, where the rule asks.
    rates: Option<Rates>,
    /// The loss it last told.
    pub(crate) told: Option<f64>,
    /// Whether it could be reached in some round so far.
    pub(crate) met: bool,
    /// Whether its direction is the gradient at what it received.
    exact: bool,
    reach: f64,
    /// The slope's length in the last round: a guess at how exact the loss will have to be.
    last_norm: f64,
}

impl Agent {
    pub(crate) fn new(index: usize, behaviour: Behaviour, parameters: usize) -> Self {
        Self {
            participant: Participant::new(AgentId(index as u64), 0.0, behaviour),
            answer: Answer::StaysAway,
            direction: vec![0.0; parameters],
            gradient: None,
            drawn: Vec::new(),
            order: Order::default(),
            sent: None,
            seen: Seen::default(),
            loss: Loss::Exact(0.0),
            rates: None,
            told: None,
            met: false,
            exact: false,
            reach: 0.0,
            last_norm: 0.0,
        }
    }

    /// Receives the weights, decides, and works if it stays.
    pub(crate) fn take_part(&mut self, task: &Task<'_>, work: &mut Workspace) -> Result<(), Error> {
        let own = self.own_model(task, work)?;
        let weights = own.as_ref().unwrap_or(task.weights);
        let mut look = Look {
            agent: self.participant.id,
            task,
            weights,
            order: &mut self.order,
            work: &mut *work,
            reach: reach_of(task.losses, self.participant.epsilon, self.last_norm),
            known: task.known_loss,
            above: f64::NEG_INFINITY,
            failure: None,
        };
        self.answer = self.participant.answer(task.round, &mut look, task.must_stay);
        let (known, above) = (look.known, look.above);
        if let Some(error) = look.failure {
            return Err(error);
        }
        if !self.answer.reports() {
            return Ok(());
        }
        self.prepare(task, own.as_ref(), (known, above), work)
    }

    /// Makes an agent that was about to leave report after all. It has already decided.
    pub(crate) fn stay(&mut self, task: &Task<'_>, work: &mut Workspace) -> Result<(), Error> {
        self.participant.set_left(None);
        let own = self.own_model(task, work)?;
        self.answer = Answer::Reports;
        self.prepare(task, own.as_ref(), (None, f64::NEG_INFINITY), work)
    }

    /// The model it decides on, if that is not the one it received: its own, after its local work.
    /// An agent that does not work, or has left, has none.
    fn own_model(
        &mut self,
        task: &Task<'_>,
        work: &mut Workspace,
    ) -> Result<Option<Loaded>, Error> {
        let works = self.participant.is_in() && self.participant.manner().works;
        if task.decides_on == DecidesOn::Received || !works {
            return Ok(None);
        }
        self.work(task, work)?;
        let reach = task.local.reach(task.step_size);
        task.weights.displaced(&self.direction, -reach as f32).map(Some)
    }

    /// Does the local work for its report, unless that is done (it has its own model) or it does
    /// not work, and determines the loss it tells.
    fn prepare(
        &mut self,
        task: &Task<'_>,
        own: Option<&Loaded>,
        seen: (Option<f64>, f64),
        work: &mut Workspace,
    ) -> Result<(), Error> {
        let manner = self.participant.manner();
        if manner.works {
            self.exact =
                task.local.is_exact() && task.privacy.is_none() && task.correction.is_none();
            if own.is_none() {
                self.work(task, work)?;
            }
            if task.local.exact_gradient && !task.local.is_exact() {
                let shown = self.shown(task.rows.len());
                let some: Vec<u32> = (0..shown as u32).collect();
                let gradient = self.gradient.get_or_insert_with(|| vec![0.0; self.direction.len()]);
                let (weights, rows) = (task.weights, task.rows);
                let batch = match shown < rows.len() {
                    true => Batch::Rows(&some),
                    false => Batch::All,
                };
                task.network.loss_and_gradient(weights, rows, batch, gradient, work)?;
            }
        }
        self.last_norm = norm(Vector::F32(self.gradient.as_ref().unwrap_or(&self.direction)));
        self.reach = task.local.reach(task.step_size);
        self.rates = match task.groups {
            Some(groups) => {
                let own = self.participant.id.0 as usize;
                Some(groups.rates(own, task.network, task.weights, work)?)
            }
            None => None,
        };
        self.sent = self.altered(manner.sends, task);
        // The rule reckons with the slope that it is sent.
        let slope = self.sent.as_ref().map_or(self.last_norm, |(direction, gradient)| {
            norm(Vector::F32(gradient.as_ref().unwrap_or(direction)))
        });
        let weights = own.unwrap_or(task.weights);
        self.loss = self.complete(task, weights, (seen, slope), manner, work)?;
        if let Some(privacy) = &task.privacy {
            let (round, id) = (u64::from(task.round), self.participant.id.0);
            self.blur(privacy, task.seed.stream("privacy", round, id));
        }
        self.told = Some(self.loss.value());
        Ok(())
    }

    /// What it sends instead of what it computed, if it does. It claims that a direction which is not
    /// its gradient is one.
    fn altered(&mut self, sends: Sends, task: &Task<'_>) -> Option<Sent> {
        let times = |vector: &[f32], by: f64| -> Vec<f32> {
            vector.iter().map(|value| (f64::from(*value) * by) as f32).collect()
        };
        match sends {
            Sends::Own => None,
            Sends::Times(by) => {
                let gradient = self.gradient.as_deref().map(|gradient| times(gradient, by));
                Some((times(&self.direction, by), gradient))
            }
            Sends::Forged(forgery) => {
                let id = self.participant.id.0;
                let mut rng = task.seed.stream("free-riding", u64::from(task.round), id);
                let received = task.weights.flat().iter().copied().map(f64::from);
                let mut direction = vec![0.0f32; self.direction.len()];
                self.seen.forge(forgery, received, self.reach, &mut rng, &mut direction);
                Some((direction, None))
            }
        }
    }

    /// Clips what it is about to report and adds noise; what it computed stays as it is.
    fn blur(&mut self, privacy: &Privacy, mut rng: rand_chacha::ChaCha8Rng) {
        let (direction, gradient) = match &self.sent {
            Some((direction, gradient)) => (direction, gradient.as_deref()),
            None => (&self.direction, self.gradient.as_deref()),
        };
        let mut blurred = |vector: &[f32]| {
            let mut vector = vector.to_vec();
            privacy.blur(&mut vector, &mut rng);
            vector
        };
        self.sent = Some((blurred(direction), gradient.map(&mut blurred)));
        self.loss = privacy.blur_loss(self.loss.value(), &mut rng);
    }

    /// The loss to report: as exact as the rule needs it, now that the slope is known.
    fn complete(
        &mut self,
        task: &Task<'_>,
        weights: &Loaded,
        ((known, above), slope): ((Option<f64>, f64), f64),
        manner: Manner,
        work: &mut Workspace,
    ) -> Result<Loss, Error> {
        // What is reported must not depend on how far the agent happened to look, so beyond the
        // reach of a step it is the reach, not the partial sum at which the look ended. The rule's
        // reach is one of told losses: an agent that lies looks as far as its lie requires.
        let told = reach_of(task.losses, self.participant.epsilon, slope);
        let bound = told - manner.loss_offset;
        let exactly = |loss: f64| Loss::Exact(manner.told(loss));
        match known {
            Some(loss) if task.known_loss.is_some() || loss <= bound => return Ok(exactly(loss)),
            Some(_) => return Ok(Loss::AtLeast(told)),
            None if above > bound => return Ok(Loss::AtLeast(told)),
            None => {}
        }
        if bound == f64::INFINITY {
            let order = Some(&mut self.order);
            return Ok(exactly(task.network.evaluate(weights, task.rows, order, work)?.loss));
        }
        Ok(match task.network.decide(weights, task.rows, bound, &mut self.order, work)? {
            Decision::AtMost(loss) => exactly(loss),
            Decision::Above(_) => Loss::AtLeast(told),
        })
    }

    fn work(&mut self, task: &Task<'_>, work: &mut Workspace) -> Result<(), Error> {
        let Task { local, network, rows, .. } = task;
        let shown = self.shown(rows.len());
        local.draw(shown, task.seed, task.round, self.participant.id.0, &mut self.drawn);
        let some: Vec<u32>;
        let batches = match self.drawn.is_empty() && shown < rows.len() {
            true => {
                some = (0..shown as u32).collect();
                vec![Batch::Rows(&some); local.steps]
            }
            false => local.batches(&self.drawn),
        };
        let walk = local.walk(task.step_size, task.stands);
        let direction = &mut self.direction;
        let Some(by) = task.correction else {
            network.local_steps(task.weights, rows, &batches, walk, direction, work)?;
            // A gradient that an earlier, corrected round left is of no use.
            self.gradient = self.gradient.take().filter(|_| !local.is_exact());
            return Ok(());
        };
        let at = (task.weights, *rows);
        let gradient = corrected::local_steps(network, at, &batches, walk, by, direction, work)?;
        // What it computed anyway serves predictions, unless it computes the gradient apart.
        self.gradient = gradient.filter(|_| local.is_exact());
        Ok(())
    }

    /// How many of its rows it works on.
    fn shown(&self, rows: usize) -> usize {
        let share = self.participant.manner().rows;
        if share < 1.0 { ((share * rows as f64).ceil() as usize).clamp(1, rows) } else { rows }
    }

    pub(crate) fn report(&self, rows: usize) -> Report<'_> {
        let (direction, gradient) = match &self.sent {
            Some((direction, gradient)) => (direction, gradient.as_deref()),
            None => (&self.direction, self.gradient.as_deref()),
        };
        Report {
            agent: self.participant.id,
            standing: Standing::Open { loss: self.loss, epsilon: self.participant.epsilon },
            direction: Vector::F32(direction),
            gradient: gradient.or(self.exact.then_some(direction)).map(Vector::F32),
            reach: Some(self.reach),
            samples: self.shown(rows) as u64,
            length: self.sent.is_none().then_some(self.last_norm),
            rates: self.rates,
        }
    }

    /// What must survive a restart. The order of the rows and the last norm only affect how soon an
    /// answer is found, never the answer. The last direction matters only for an agent that repeats
    /// it, and what it told only if others look at it.
    pub(crate) fn save(&self, compared: bool) -> AgentState {
        let repeats = self.participant.behaviour().repeats();
        let widened = |values: &[f32]| values.iter().copied().map(f64::from).collect();
        AgentState {
            participant: self.participant.save(),
            seen: self.seen.clone(),
            told: self.told.filter(|_| compared),
            met: self.met,
            direction: if repeats { widened(&self.direction) } else { Vec::new() },
            gradient: match &self.gradient {
                Some(gradient) if repeats => widened(gradient),
                _ => Vec::new(),
            },
        }
    }

    pub(crate) fn restore(&mut self, state: AgentState) -> Result<(), fedstay::Error> {
        let (id, parameters) = (self.participant.id, self.direction.len());
        self.participant.restore(state.participant)?;
        let narrowed = |values: Vec<f64>| -> Result<Vec<f32>, fedstay::Error> {
            if values.len() != parameters {
                let why = format!("agent {id}: its last direction is not one of this model");
                return Err(fedstay::Error::BadState { why });
            }
            Ok(values.into_iter().map(|value| value as f32).collect())
        };
        if !state.seen.fits(parameters) {
            let why = format!("agent {id}: it saw models of another size");
            return Err(fedstay::Error::BadState { why });
        }
        (self.seen, self.told, self.met) = (state.seen, state.told, state.met);
        if self.participant.behaviour().repeats() {
            self.direction = narrowed(state.direction)?;
            let gradient = Some(state.gradient).filter(|gradient| !gradient.is_empty());
            self.gradient = gradient.map(narrowed).transpose()?;
        }
        Ok(())
    }
}

/// What must survive a restart of an agent. Its vectors are empty unless they may be repeated.
#[derive(Serialize, Deserialize)]
pub(crate) struct AgentState {
    #[serde(flatten)]
    participant: ParticipantState,
    #[serde(default)]
    seen: Seen,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    told: Option<f64>,
    #[serde(default)]
    met: bool,
    #[serde(default, with = "packed", skip_serializing_if = "Vec::is_empty")]
    direction: Vec<f64>,
    #[serde(default, with = "packed", skip_serializing_if = "Vec::is_empty")]
    gradient: Vec<f64>,
}

/// The loss up to which the rule needs exact values; slightly more, so that a loss above it fails
/// the rule's own test however that is rounded.
pub(crate) fn reach_of(losses: Losses, epsilon: f64, norm: f64) -> f64 {
    match losses {
        Losses::Exact => f64::INFINITY,
        Losses::Near { delta, step } => {
            let reach = epsilon + delta + step * norm;
            reach + 1e-9 * reach.abs().max(1e-3)
        }
    }
}

/// Finds out about an agent's loss, no more than is asked.
struct Look<'a, 'w> {
    agent: AgentId,
    task: &'a Task<'a>,
    weights: &'a Loaded,
    order: &'a mut Order,
    work: &'w mut Workspace,
    /// How far to look at least: the rule will likely ask.
    reach: f64,
    /// The loss, once it is known.
    known: Option<f64>,
    /// A lower bound until then.
    above: f64,
    failure: Option<Error>,
}

impl Look<'_, '_> {
    /// Makes the round fail; what is answered until then does not matter.
    fn fail(&mut self, error: Error) {
        self.failure = Some(error);
        self.known = Some(f64::INFINITY);
    }

    /// Where `steps` private steps on all of its rows lead.
    fn ahead(&mut self, steps: u32, rate: f64) -> Result<Loaded, Error> {
        let Self { task, weights, work, .. } = self;
        let mut direction = vec![0.0; weights.flat().len()];
        let walk = Walk::Descend { eta: rate as f32, mu: 0.0 };
        let batches = vec![Batch::All; steps as usize];
        task.network.local_steps(weights, task.rows, &batches, walk, &mut direction, work)?;
        weights.displaced(&direction, -(rate as f32) * steps as f32)
    }

    /// The loss after `rounds` rounds of its local work on the weights, alone.
    fn alone_for(&mut self, rounds: u32) -> Result<f64, Error> {
        let Self { agent, task, work, .. } = self;
        let Task { network, rows, local, seed, stands, step_size, .. } = **task;
        let hermit = Hermit { network, local, seed, agent: agent.0, stands, step_size };
        let model = hermit.train(task.weights.clone(), rounds, &|_| Ok(*rows), work)?;
        Ok(network.evaluate(&model, rows, None, work)?.loss)
    }

    fn find(&mut self, bound: f64) {
        let Self { task, weights, order, work, .. } = self;
        let found = if bound == f64::INFINITY {
            let found = task.network.evaluate(weights, task.rows, Some(order), work);
            found.map(|evaluation| Decision::AtMost(evaluation.loss))
        } else {
            task.network.decide(weights, task.rows, bound, order, work)
        };
        match found {
            Ok(Decision::AtMost(loss)) => self.known = Some(loss),
            Ok(Decision::Above(above)) => self.above = above,
            Err(error) => self.fail(error),
        }
    }
}

impl Evidence for Look<'_, '_> {
    fn loss(&mut self) -> f64 {
        if self.known.is_none() {
            self.find(f64::INFINITY);
        }
        self.known.unwrap_or(f64::INFINITY)
    }

    fn at_most(&mut self, bound: f64) -> bool {
        if self.known.is_none() && self.above <= bound {
            self.find(bound.max(self.reach));
        }
        self.known.is_some_and(|loss| loss <= bound)
    }

    fn ahead_at_most(&mut self, steps: u32, rate: f64, bound: f64) -> bool {
        // A private path that leaves the floating-point range reaches nothing, and does no harm.
        let Ok(there) = self.ahead(steps, rate) else { return false };
        let Self { task, work, order, .. } = self;
        match task.network.decide(&there, task.rows, bound, order, work) {
            Ok(decision) => decision.is_at_most(),
            Err(error) => {
                self.fail(error);
                false
            }
        }
    }

    fn alone(&mut self, rounds: u32) -> f64 {
        self.alone_for(rounds).unwrap_or(f64::INFINITY)
    }

    fn gone(&mut self) -> f64 {
        self.task.company.0
    }

    fn others(&mut self) -> Option<f64> {
        self.task.company.1
    }
}

/// An agent that trains alone.
pub(crate) struct Hermit<'a> {
    pub(crate) network: &'a Network,
    pub(crate) local: &'a Local,
    pub(crate) seed: Seed,
    pub(crate) agent: u64,
    pub(crate) stands: bool,
    pub(crate) step_size: f64,
}

impl Hermit<'_> {
    /// The model that its local work on the rows of each round makes of `start`, round after round.
    pub(crate) fn train<'r>(
        &self,
        start: Loaded,
        rounds: u32,
        seen: &dyn Fn(u32) -> Result<Rows<'r>, Error>,
        work: &mut Workspace,
    ) -> Result<Loaded, Error> {
        let Self { network, local, .. } = self;
        let walk = local.walk(self.step_size, self.stands);
        let reach = local.reach(self.step_size) as f32;
        let mut direction = vec![0.0; start.flat().len()];
        let mut drawn = Vec::new();
        let mut weights = start;
        for round in 1..=rounds {
            let rows = &seen(round)?;
            local.draw(rows.len(), self.seed, round, self.agent, &mut drawn);
            let batches = local.batches(&drawn);
            network.local_steps(&weights, rows, &batches, walk, &mut direction, work)?;
            weights = weights.displaced(&direction, -reach)?;
        }
        Ok(weights)
    }
}

//! The round of one simulated agent: decides, does its local work, and leaves its report on its desk.

use crate::model::{Batch, Error, Loaded, LossTest, Network, Order, Rows, Walk, Workspace};
use crate::simulator::corrected;
use crate::simulator::desk::{Desk, Sent};
use crate::simulator::groups::GroupedRows;
use crate::simulator::roster::Agent;
use crate::training::DecidesOn;
use crate::training::Local;
use fedstay::linalg::norm;
use fedstay::{
    AgentId, Answer, Evidence, Loss, Losses, Manner, Privacy, Seed, Sends, Standing, Vector,
};

/// What an agent needs to know for a round.
pub(crate) struct Task<'a> {
    pub(crate) network: &'a Network,
    pub(crate) weights: &'a Loaded,
    pub(crate) rows: &'a Rows<'a>,
    /// The rows by whose loss it decides: its own, or those that it holds back.
    pub(crate) judged: &'a Rows<'a>,
    /// Whether these are others, so that its gradient only hints at what becomes of that loss.
    pub(crate) holds_back: bool,
    pub(crate) local: &'a Local,
    pub(crate) decides_on: DecidesOn,
    pub(crate) stands: bool,
    pub(crate) seed: Seed,
    pub(crate) round: u32,
    pub(crate) step_size: f64,
    pub(crate) losses: Losses,
    /// Whether it tells its loss; an agent that never leaves need not, where nobody reads it.
    pub(crate) tells: bool,
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
    pub(crate) groups: Option<&'a GroupedRows>,
}

/// An agent at its desk: the work of one round.
pub(super) struct Seat {
    pub(super) agent: Box<Agent>,
    pub(super) desk: Desk,
}

impl Seat {
    /// Sits an agent down at a desk.
    pub(super) fn new(agent: Box<Agent>, mut desk: Desk) -> Self {
        desk.agent = agent.participant.id;
        desk.answer = Answer::StaysAway;
        (desk.worked, desk.exact, desk.sent, desk.rates) = (false, false, None, None);
        Self { agent, desk }
    }

    /// Receives the weights, decides, and works if it stays.
    pub(super) fn take_part(&mut self, task: &Task<'_>, work: &mut Workspace) -> Result<(), Error> {
        let own = self.own_model(task, work)?;
        let weights = own.as_ref().unwrap_or(task.weights);
        let agent = &mut *self.agent;
        let mut look = Look {
            agent: agent.participant.id,
            task,
            weights,
            order: &mut agent.order,
            work: &mut *work,
            reach: reach_of(task.losses, agent.participant.epsilon, agent.last_norm),
            known: task.known_loss,
            above: f64::NEG_INFINITY,
            failure: None,
        };
        self.desk.answer = agent.participant.answer(task.round, &mut look, task.must_stay);
        let (known, above) = (look.known, look.above);
        if let Some(error) = look.failure {
            return Err(error);
        }
        if self.desk.answer.reports() {
            self.prepare(task, own.as_ref(), (known, above), work)?;
        }
        self.keep();
        Ok(())
    }

    /// Makes an agent that was about to leave report after all. It has already decided.
    pub(super) fn stay(&mut self, task: &Task<'_>, work: &mut Workspace) -> Result<(), Error> {
        self.agent.participant.set_left(None);
        let own = self.own_model(task, work)?;
        self.desk.answer = Answer::Reports;
        self.prepare(task, own.as_ref(), (None, f64::NEG_INFINITY), work)?;
        self.keep();
        Ok(())
    }

    /// Keeps what it computed, if it may repeat that in a later round.
    fn keep(&mut self) {
        if self.desk.worked && self.agent.participant.behaviour().repeats() {
            self.agent.kept = Some((self.desk.direction.clone(), self.desk.gradient.clone()));
        }
    }

    /// Lays out what an agent repeats that does not work for its report: what it last computed, which
    /// may be its own model of this round, or nothing.
    fn repeat(&mut self, task: &Task<'_>) {
        let Self { agent, desk } = self;
        match &agent.kept {
            Some((direction, _)) if !desk.worked => desk.direction.copy_from_slice(direction),
            None if !desk.worked => desk.direction.fill(0.0),
            _ => {}
        }
        desk.gradient = agent.kept.as_ref().and_then(|(_, gradient)| gradient.clone());
        desk.exact = agent.kept.is_some() && is_exact(task);
    }

    /// The model it decides on, if that is not the one it received: its own, after its local work.
    /// An agent that does not work, or has left, has none.
    fn own_model(
        &mut self,
        task: &Task<'_>,
        work: &mut Workspace,
    ) -> Result<Option<Loaded>, Error> {
        let participant = &self.agent.participant;
        let works = participant.is_in() && participant.manner().works;
        if task.decides_on == DecidesOn::Received || !works {
            return Ok(None);
        }
        self.work(task, work)?;
        let reach = task.local.reach(task.step_size, self.shown(task.rows.len()));
        task.weights.displaced(&self.desk.direction, -reach as f32).map(Some)
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
        let manner = self.agent.participant.manner();
        let shown = self.shown(task.rows.len());
        if manner.works {
            if own.is_none() {
                self.work(task, work)?;
            }
            self.desk.exact = is_exact(task);
            match task.local.adds_gradient() {
                true => {
                    let some: Vec<u32> = (0..shown as u32).collect();
                    let parameters = self.desk.direction.len();
                    let gradient = self.desk.gradient.get_or_insert_with(|| vec![0.0; parameters]);
                    let (weights, rows) = (task.weights, task.rows);
                    let batch = match shown < rows.len() {
                        true => Batch::Rows(&some),
                        false => Batch::All,
                    };
                    task.network.loss_and_gradient(weights, rows, batch, gradient, work)?;
                }
                // A corrected step has computed the gradient on its way.
                false if task.correction.is_some() => {}
                false => self.desk.gradient = None,
            }
        } else {
            self.repeat(task);
        }
        let slope = self.desk.gradient.as_ref().unwrap_or(&self.desk.direction);
        self.desk.length = norm(Vector::F32(slope));
        self.agent.last_norm = self.desk.length;
        self.desk.reach = task.local.reach(task.step_size, shown);
        self.desk.samples = shown as u64;
        if let Some(groups) = task.groups {
            let own = self.agent.participant.id.0 as usize;
            self.desk.rates = Some(groups.rates(own, task.network, task.weights, work)?);
        }
        self.desk.sent = self.altered(manner.sends, task);
        // The rule reckons with the slope that it is sent.
        let slope = self.desk.sent.as_ref().map_or(self.desk.length, |(direction, gradient)| {
            norm(Vector::F32(gradient.as_ref().unwrap_or(direction)))
        });
        self.desk.standing = match task.tells {
            true => {
                let weights = own.unwrap_or(task.weights);
                let loss = self.complete(task, weights, (seen, slope), manner, work)?;
                Standing::Open { loss, epsilon: self.agent.participant.epsilon }
            }
            // It never leaves, so no step brings it any nearer to that.
            false => Standing::Private { tau: f64::INFINITY },
        };
        if let Some(privacy) = &task.privacy {
            let (round, id) = (u64::from(task.round), self.agent.participant.id.0);
            self.blur(privacy, task.seed.stream("privacy", round, id));
        }
        if let Standing::Open { loss, .. } = self.desk.standing {
            self.agent.told = Some(loss.value());
        }
        Ok(())
    }

    /// What it sends instead of what it computed, if it does. It claims that a direction which is not
    /// its gradient is one.
    fn altered(&mut self, sends: Sends, task: &Task<'_>) -> Option<Sent> {
        let times = |vector: &[f32], by: f64| -> Vec<f32> {
            vector.iter().map(|value| (f64::from(*value) * by) as f32).collect()
        };
        let Desk { direction, gradient, reach, .. } = &self.desk;
        match sends {
            Sends::Own => None,
            Sends::Times(by) => {
                let gradient = gradient.as_deref().map(|gradient| times(gradient, by));
                Some((times(direction, by), gradient))
            }
            Sends::Forged(forgery) => {
                let id = self.agent.participant.id.0;
                let mut rng = task.seed.stream("free-riding", u64::from(task.round), id);
                let received = task.weights.flat().iter().copied().map(f64::from);
                let mut forged = vec![0.0f32; direction.len()];
                self.agent.seen.forge(forgery, received, *reach, &mut rng, &mut forged);
                Some((forged, None))
            }
        }
    }

    /// Clips what it is about to report and adds noise; what it computed stays as it is.
    fn blur(&mut self, privacy: &Privacy, mut rng: rand_chacha::ChaCha8Rng) {
        let (direction, gradient) = self.desk.sends();
        let mut blurred = |vector: &[f32]| {
            let mut vector = vector.to_vec();
            privacy.blur(&mut vector, &mut rng);
            vector
        };
        let sent = (blurred(direction), gradient.map(&mut blurred));
        self.desk.sent = Some(sent);
        if let Standing::Open { loss, .. } = &mut self.desk.standing {
            *loss = privacy.blur_loss(loss.value(), &mut rng);
        }
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
        let Agent { participant, order, .. } = &mut *self.agent;
        // What is reported must not depend on how far the agent happened to look, so beyond the
        // reach of a step it is the reach, not the partial sum at which the look ended. The rule's
        // reach is one of told losses: an agent that lies looks as far as its lie requires.
        let told = reach_of(task.losses, participant.epsilon, slope);
        let bound = told - manner.loss_offset;
        let exactly = |loss: f64| match task.holds_back {
            true => Loss::Sampled { mean: manner.told(loss), standard_error: 0.0 },
            false => Loss::Exact(manner.told(loss)),
        };
        match known {
            Some(loss) if task.known_loss.is_some() || loss <= bound => return Ok(exactly(loss)),
            Some(_) => return Ok(Loss::AtLeast(told)),
            None if above > bound => return Ok(Loss::AtLeast(told)),
            None => {}
        }
        if bound == f64::INFINITY {
            return Ok(exactly(
                task.network.evaluate(weights, task.judged, Some(order), work)?.loss,
            ));
        }
        Ok(match task.network.decide(weights, task.judged, bound, order, work)? {
            LossTest::AtMost(loss) => exactly(loss),
            LossTest::Above(_) => Loss::AtLeast(told),
        })
    }

    fn work(&mut self, task: &Task<'_>, work: &mut Workspace) -> Result<(), Error> {
        let Task { local, network, rows, .. } = task;
        let (shown, id) = (self.shown(rows.len()), self.agent.participant.id.0);
        let Desk { drawn, direction, gradient, worked, .. } = &mut self.desk;
        local.draw(shown, task.seed, task.round, id, drawn);
        let some: Vec<u32>;
        let batches = match drawn.is_empty() && shown < rows.len() {
            true => {
                some = (0..shown as u32).collect();
                vec![Batch::Rows(&some); local.steps_on(shown)]
            }
            false => local.batches(drawn, shown),
        };
        let walk = local.walk(task.step_size, shown, task.stands);
        *worked = true;
        let Some(by) = task.correction else {
            network.local_steps(task.weights, rows, &batches, walk, direction, work)?;
            return Ok(());
        };
        let at = (task.weights, *rows);
        let found = corrected::local_steps(network, at, &batches, walk, by, direction, work)?;
        // What it computed anyway serves predictions, unless it computes the gradient apart.
        *gradient = found.filter(|_| local.is_exact());
        Ok(())
    }

    /// How many of its rows it works on.
    fn shown(&self, rows: usize) -> usize {
        let share = self.agent.participant.manner().rows;
        if share < 1.0 { ((share * rows as f64).ceil() as usize).clamp(1, rows) } else { rows }
    }
}

/// Whether what an agent computes and sends is the gradient at what it received.
fn is_exact(task: &Task<'_>) -> bool {
    task.local.is_exact() && task.privacy.is_none() && task.correction.is_none()
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
        let Task { network, rows, judged, local, seed, stands, step_size, .. } = **task;
        let lone = LoneAgent { network, local, seed, agent: agent.0, stands, step_size };
        let again = |_: u32, train: &mut dyn FnMut(&Rows<'_>) -> Result<(), Error>| train(rows);
        let model = lone.train(task.weights.clone(), rounds, &again, work)?;
        Ok(network.evaluate(&model, judged, None, work)?.loss)
    }

    fn find(&mut self, bound: f64) {
        let Self { task, weights, order, work, .. } = self;
        let found = if bound == f64::INFINITY {
            let found = task.network.evaluate(weights, task.judged, Some(order), work);
            found.map(|evaluation| LossTest::AtMost(evaluation.loss))
        } else {
            task.network.decide(weights, task.judged, bound, order, work)
        };
        match found {
            Ok(LossTest::AtMost(loss)) => self.known = Some(loss),
            Ok(LossTest::Above(above)) => self.above = above,
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
        match task.network.decide(&there, task.judged, bound, order, work) {
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
pub(crate) struct LoneAgent<'a> {
    pub(crate) network: &'a Network,
    pub(crate) local: &'a Local,
    pub(crate) seed: Seed,
    pub(crate) agent: u64,
    pub(crate) stands: bool,
    pub(crate) step_size: f64,
}

impl LoneAgent<'_> {
    /// The model that its local work on the rows of each round makes of `start`, round after round.
    /// `with_rows` calls back with the rows of a round.
    pub(crate) fn train(
        &self,
        start: Loaded,
        rounds: u32,
        with_rows: &WithRows<'_>,
        work: &mut Workspace,
    ) -> Result<Loaded, Error> {
        let Self { network, local, .. } = self;
        let mut direction = vec![0.0; start.flat().len()];
        let mut drawn = Vec::new();
        let mut weights = start;
        for round in 1..=rounds {
            with_rows(round, &mut |rows| {
                let walk = local.walk(self.step_size, rows.len(), self.stands);
                let reach = local.reach(self.step_size, rows.len()) as f32;
                local.draw(rows.len(), self.seed, round, self.agent, &mut drawn);
                let batches = local.batches(&drawn, rows.len());
                network.local_steps(&weights, rows, &batches, walk, &mut direction, work)?;
                weights = weights.displaced(&direction, -reach)?;
                Ok(())
            })?;
        }
        Ok(weights)
    }
}

/// Calls back with the rows of a round.
pub(crate) type WithRows<'a> =
    dyn Fn(u32, &mut dyn FnMut(&Rows<'_>) -> Result<(), Error>) -> Result<(), Error> + 'a;

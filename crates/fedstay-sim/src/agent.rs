//! One simulated agent: decides, does its local work, and keeps its report until it is read.

use crate::local_work::Local;
use crate::model::{Batch, Decision, Error, Loaded, Network, Order, Rows, Workspace};
use crate::simulator::DecidesOn;
use fedstay::linalg::norm;
use fedstay::{
    AgentId, Behaviour, Choice, Decide, Evidence, Loss, Losses, Report, Seed, Standing, Vector,
    View,
};
use serde_json::{Value, json};

/// What an agent needs for a round.
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
    /// Whether it may not leave.
    pub(crate) must_stay: bool,
}

/// An agent.
pub(crate) struct Agent {
    pub(crate) id: AgentId,
    pub(crate) epsilon: f64,
    pub(crate) left: Option<u32>,
    pub(crate) leaves: bool,
    behaviour: Behaviour,
    direction: Vec<f32>,
    gradient: Option<Vec<f32>>,
    drawn: Vec<u32>,
    /// Its rows, hardest first, so that decisions fall early.
    order: Order,
    loss: Loss,
    reach: f64,
    /// The slope's length in the last round: a guess at how exact the loss will have to be.
    last_norm: f64,
}

impl Agent {
    pub(crate) fn new(index: usize, behaviour: Behaviour, parameters: usize) -> Self {
        Self {
            id: AgentId(index as u64),
            epsilon: 0.0,
            left: None,
            leaves: false,
            behaviour,
            direction: vec![0.0; parameters],
            gradient: None,
            drawn: Vec::new(),
            order: Order::default(),
            loss: Loss::Exact(0.0),
            reach: 0.0,
            last_norm: 0.0,
        }
    }

    /// Receives the weights, decides, and works if it stays.
    pub(crate) fn take_part(&mut self, task: &Task<'_>, work: &mut Workspace) -> Result<(), Error> {
        let own;
        let weights = match task.decides_on {
            DecidesOn::Received => task.weights,
            DecidesOn::Own => {
                self.work(task, work)?;
                let reach = task.local.reach(task.step_size);
                own = task.weights.displaced(&self.direction, -reach as f32)?;
                &own
            }
        };
        let mut look = Look {
            task,
            weights,
            order: &mut self.order,
            work: &mut *work,
            reach: reach_of(task.losses, self.epsilon, self.last_norm),
            known: task.known_loss,
            above: f64::NEG_INFINITY,
            failure: None,
        };
        let choice = self.behaviour.decide(&mut View {
            agent: self.id,
            round: task.round,
            epsilon: self.epsilon,
            evidence: &mut look,
        });
        let (known, above) = (look.known, look.above);
        if let Some(error) = look.failure {
            return Err(error);
        }
        self.leaves = choice == Choice::Leave && !task.must_stay;
        if self.leaves {
            return Ok(());
        }
        if task.decides_on == DecidesOn::Received {
            self.work(task, work)?;
        }
        if task.local.exact_gradient && !task.local.is_exact() {
            let gradient = self.gradient.get_or_insert_with(|| vec![0.0; self.direction.len()]);
            task.network.loss_and_gradient(task.weights, task.rows, Batch::All, gradient, work)?;
        }
        self.last_norm = norm(Vector::F32(self.gradient.as_ref().unwrap_or(&self.direction)));
        self.reach = task.local.reach(task.step_size);
        self.loss = self.complete(task, weights, known, above, work)?;
        Ok(())
    }

    /// The loss to report: as exact as the rule needs it, now that the slope is known.
    fn complete(
        &mut self,
        task: &Task<'_>,
        weights: &Loaded,
        known: Option<f64>,
        above: f64,
        work: &mut Workspace,
    ) -> Result<Loss, Error> {
        // What is reported must not depend on how far the agent happened to look, so beyond the
        // reach of a step it is the reach, not the partial sum at which the looking ended.
        let bound = reach_of(task.losses, self.epsilon, self.last_norm);
        match known {
            Some(loss) if task.known_loss.is_some() || loss <= bound => {
                return Ok(Loss::Exact(loss));
            }
            Some(_) => return Ok(Loss::AtLeast(bound)),
            None if above > bound => return Ok(Loss::AtLeast(bound)),
            None => {}
        }
        if bound == f64::INFINITY {
            let order = Some(&mut self.order);
            return Ok(Loss::Exact(task.network.evaluate(weights, task.rows, order, work)?.loss));
        }
        Ok(match task.network.decide(weights, task.rows, bound, &mut self.order, work)? {
            Decision::AtMost(loss) => Loss::Exact(loss),
            Decision::Above(_) => Loss::AtLeast(bound),
        })
    }

    fn work(&mut self, task: &Task<'_>, work: &mut Workspace) -> Result<(), Error> {
        let Task { local, network, rows, .. } = task;
        local.draw(rows.len(), task.seed, task.round, self.id.0, &mut self.drawn);
        let batches = local.batches(&self.drawn);
        let walk = local.walk(task.step_size, task.stands);
        network.local_steps(task.weights, rows, &batches, walk, &mut self.direction, work)?;
        Ok(())
    }

    pub(crate) fn report(&self, samples: u64) -> Report<'_> {
        Report {
            agent: self.id,
            standing: Standing::Open { loss: self.loss, epsilon: self.epsilon },
            direction: Vector::F32(&self.direction),
            gradient: self.gradient.as_deref().map(Vector::F32),
            reach: Some(self.reach),
            samples,
        }
    }

    /// What must survive a restart. The order of the rows and the last norm only decide how soon an
    /// answer is found, never the answer.
    pub(crate) fn memory(&self) -> Value {
        json!({ "left": self.left })
    }

    pub(crate) fn recall(&mut self, memory: &Value) -> Result<(), fedstay::Error> {
        let bad = |why: &str| fedstay::Error::BadState { why: format!("agent {}: {why}", self.id) };
        self.left = match &memory["left"] {
            Value::Null => None,
            round => Some(round.as_u64().ok_or_else(|| bad("no round in which it left"))? as u32),
        };
        Ok(())
    }
}

/// Up to which loss the rule needs it exactly; a little more, so that a loss above it is above the
/// rule's own test however that is rounded.
fn reach_of(losses: Losses, epsilon: f64, norm: f64) -> f64 {
    match losses {
        Losses::Exact => f64::INFINITY,
        Losses::Near { delta, step } => {
            let reach = epsilon + delta + step * norm;
            reach + 1e-9 * reach.abs().max(1e-3)
        }
    }
}

/// What an agent finds out about weights, no more than it is asked.
struct Look<'a, 'w> {
    task: &'a Task<'a>,
    weights: &'a Loaded,
    order: &'a mut Order,
    work: &'w mut Workspace,
    /// Look at least this far: the rule will likely ask.
    reach: f64,
    /// The loss, once it is known.
    known: Option<f64>,
    /// A lower bound until then.
    above: f64,
    failure: Option<Error>,
}

impl Look<'_, '_> {
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
            Err(error) => {
                // The round fails; what is answered until then does not matter.
                self.failure = Some(error);
                self.known = Some(f64::INFINITY);
            }
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
}

//! What reaches the agents: a simulator in this process, a network, objects in another language.

use super::record::{Arrival, Constant, HeaderAgent, HeldBack};
use crate::rule::Losses;
use crate::{AgentId, Broadcast, Error, Measure, Memory, Reports, Score, Server, StopReason};
use std::borrow::Cow;
use std::ops::DerefMut;

/// What the server sends out.
#[derive(Debug, Clone)]
pub struct Call<'a> {
    /// The round, from 1.
    pub round: u32,
    /// The weights for each agent.
    pub broadcast: Broadcast<'a>,
    /// The server's step size.
    pub step_size: f64,
    /// Which losses must be exact, because the rule or the policy computes with them.
    pub losses: Losses,
    /// Each listed agent's share of the usual work, if the rule sets loads.
    pub loads: Option<&'a [(AgentId, f64)]>,
}

impl<'a> Call<'a> {
    /// The call for a server's next round, with the loads that its rule sets.
    pub fn next(server: &'a Server, loads: Option<&'a [(AgentId, f64)]>) -> Self {
        Self {
            round: server.round() + 1,
            broadcast: server.broadcast(),
            step_size: server.step_size(),
            losses: server.losses(),
            loads,
        }
    }
}

/// What came back from the agents in a round.
#[derive(Debug)]
pub struct Gathered<'a> {
    /// The reports, with the goodbyes.
    pub reports: Reports<'a>,
    /// The agents that should have answered and did not, and why. A fault is not a departure.
    pub faults: Vec<(AgentId, String)>,
    /// The agents that could not be reached by their schedule, or sat this round out. That is neither
    /// a fault nor a departure.
    pub absent: Vec<AgentId>,
    /// The agents that came in this round, and what they found, where models are kept for newcomers.
    pub arrived: Vec<Arrival>,
    /// How good the server's own weights are, in rounds in which the engine measures that.
    pub assessment: Option<Assessment>,
    /// Everybody who takes part, in rounds in which that changed.
    pub roster: Option<Vec<HeaderAgent>>,
    /// Why the run ends here, if the engine says so: too few answered. No step is then taken.
    pub stop: Option<StopReason>,
}

impl<'a> Gathered<'a> {
    /// An ordinary round: these reports and nothing else.
    pub fn new(reports: Reports<'a>) -> Self {
        Self {
            reports,
            faults: Vec::new(),
            absent: Vec::new(),
            arrived: Vec::new(),
            assessment: None,
            roster: None,
            stop: None,
        }
    }
}

/// How good weights are for the agents, including those that left, and on the population.
#[derive(Debug, Clone, PartialEq)]
pub struct Assessment {
    /// The agents that were measured, by id: all, unless the engine measures a sample.
    pub agents: Vec<AgentAssessment>,
    /// How good they are on the population, where there is one.
    pub population: Option<Score>,
    /// How good the best constant prediction is for these agents, where the engine can say: it is
    /// asked for of the delivered weights only.
    pub constant: Option<Constant>,
}

impl Assessment {
    /// How good they are for an agent, if it was measured.
    pub fn of(&self, agent: AgentId) -> Option<&AgentAssessment> {
        let place = self.agents.binary_search_by_key(&agent, |agent| agent.id).ok()?;
        Some(&self.agents[place])
    }
}

/// How good weights are for one agent.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentAssessment {
    /// The agent's id.
    pub id: AgentId,
    /// Its target loss.
    pub epsilon: f64,
    /// How it behaves, as a configuration names it, if that is known.
    pub behaviour: Option<Cow<'static, str>>,
    /// How good they are on its full local data; the loss is not a number if it was not measured.
    pub score: Score,
    /// The round in which it reported this loss, if it could not be asked about these weights: an
    /// agent that left cannot be made to answer.
    pub as_of: Option<u32>,
    /// How good they are on rows of its own that nobody trained on, where there are some: it is asked
    /// for of the delivered weights only.
    pub held_back: Option<HeldBack>,
}

impl AgentAssessment {
    /// Whether it was measured, now or, if it could not be asked, earlier.
    pub fn is_measured(&self) -> bool {
        self.as_of.is_some() || !self.score.loss.is_nan()
    }
}

/// What an engine can do, and what may be concluded from its reports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Abilities {
    /// Its agents do as much work as a rule tells them to ([`Call::loads`]).
    pub loads: bool,
    /// Its agents can each receive weights of their own ([`Broadcast::personal`]).
    pub personal: bool,
    /// Its agents add what the rule says to every local step's gradient
    /// ([`Broadcast::correction`]).
    pub corrections: bool,
    /// Its agents tell how well their groups are served ([`Report::rates`](crate::Report::rates)).
    pub rates: bool,
    /// First-order statements about its agents are proofs: convex losses, exact losses and
    /// gradients, and agents that leave at their target loss and not before.
    pub proves: bool,
    /// Its agents are strangers: a report that cannot be used costs its agent the round, not
    /// everybody the run. In a simulation such a report means that training diverged, which is the
    /// result.
    pub strangers: bool,
}

/// Whatever reaches the agents.
///
/// This one has a single agent in this process, which never leaves; `examples/custom_engine.rs` has several
/// that do.
///
/// ```
/// use fedstay::record::HeaderAgent;
/// use fedstay::{
///     About, AgentAssessment, AgentId, Assessment, Call, Engine, Error, Gathered, Loss, Mean, Memory,
///     Report, Reports, Score, Server, Session, Vector,
/// };
///
/// const AGENT: AgentId = AgentId(0);
///
/// /// Its loss is `½(w − 3)²`, and this is its gradient.
/// struct Alone([f64; 1]);
///
/// impl Engine for Alone {
///     fn agents(&self) -> Vec<HeaderAgent> {
///         vec![HeaderAgent { id: AGENT, epsilon: 0.0, name: None }]
///     }
///
///     fn gather(&mut self, call: &Call<'_>) -> Result<Gathered<'_>, Error> {
///         self.0 = [call.broadcast.to(AGENT)[0] - 3.0];
///         let standing = Loss::Exact(0.5 * self.0[0].powi(2)).leaves_at(0.0);
///         let report = Report::new(AGENT, standing, Vector::F64(&self.0));
///         Ok(Gathered::new(Reports::new(1, vec![report])?))
///     }
///
///     fn assess(&mut self, weights: &[f64]) -> Result<Assessment, Error> {
///         let agent = AgentAssessment {
///             id: AGENT,
///             epsilon: 0.0,
///             behaviour: None,
///             score: Score::new(0.5 * (weights[0] - 3.0).powi(2)),
///             as_of: None,
///             held_back: None,
///         };
///         Ok(Assessment { agents: vec![agent], population: None, constant: None })
///     }
///
///     fn save(&self) -> Result<Memory, Error> {
///         Ok(Memory::default())
///     }
///
///     fn restore(&mut self, _: &Memory) -> Result<(), Error> {
///         Ok(())
///     }
/// }
///
/// let server = Server::new(vec![0.0], Mean::default(), 0.5)?;
/// let mut session = Session::new(server, Alone([0.0]), 40, About::default())?;
/// session.run(&mut [])?;
/// assert!((session.server().weights()[0] - 3.0).abs() < 1e-9);
/// # Ok::<(), fedstay::Error>(())
/// ```
pub trait Engine {
    /// Everybody who takes part, by id; of more than [`MOST_LISTED`](super::record::MOST_LISTED)
    /// agents, those that are to be listed.
    fn agents(&self) -> Vec<HeaderAgent>;

    /// How many agents take part.
    fn count(&self) -> usize {
        self.agents().len()
    }

    /// Sends the weights to the agents that are still in and collects their answers.
    fn gather(&mut self, call: &Call<'_>) -> Result<Gathered<'_>, Error>;

    /// Measures how good weights are for the agents, including those that left.
    fn assess(&mut self, weights: &[f64]) -> Result<Assessment, Error>;

    /// What it measures besides the loss, the headline first: what [`assess`](Self::assess) gives the
    /// names of. A run's files list it.
    fn measures(&self) -> Vec<Measure> {
        Measure::usual()
    }

    /// Saves what the agents remember between rounds, for instance who has left.
    fn save(&self) -> Result<Memory, Error>;

    /// Takes up what [`save`](Self::save) gave.
    fn restore(&mut self, memory: &Memory) -> Result<(), Error>;

    /// What it can do. A session refuses a rule that needs more.
    fn abilities(&self) -> Abilities {
        Abilities::default()
    }

    /// Is told that an agent's report was dropped from the round just stepped, and why.
    fn dropped(&mut self, agent: AgentId, why: &str) {
        let _ = (agent, why);
    }
}

/// Whatever dereferences to an engine is one: `&mut E`, `Box<E>`, an enum of engines.
impl<T: DerefMut<Target: Engine>> Engine for T {
    fn agents(&self) -> Vec<HeaderAgent> {
        (**self).agents()
    }

    fn count(&self) -> usize {
        (**self).count()
    }

    fn gather(&mut self, call: &Call<'_>) -> Result<Gathered<'_>, Error> {
        (**self).gather(call)
    }

    fn assess(&mut self, weights: &[f64]) -> Result<Assessment, Error> {
        (**self).assess(weights)
    }

    fn measures(&self) -> Vec<Measure> {
        (**self).measures()
    }

    fn save(&self) -> Result<Memory, Error> {
        (**self).save()
    }

    fn restore(&mut self, memory: &Memory) -> Result<(), Error> {
        (**self).restore(memory)
    }

    fn abilities(&self) -> Abilities {
        (**self).abilities()
    }

    fn dropped(&mut self, agent: AgentId, why: &str) {
        (**self).dropped(agent, why);
    }
}

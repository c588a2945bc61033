//! What the server sends out in a round: one model for all agents, or separate models for some.

use crate::packed;
use crate::{AgentId, Vector, linalg};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt::Debug;

/// The weights each agent receives.
///
/// Nearly always, everybody receives the server's own weights. A policy may show some agents a
/// model of their own instead; only those few vectors exist in addition to the shared one.
///
/// ```
/// use fedstay::{AgentId, Broadcast, Personal};
/// let shared = [1.0, 2.0];
/// let own = [
///     (AgentId(3), Personal::Shifted { times: 0.5, along: vec![1.0, 0.0] }),
///     (AgentId(7), Personal::Fixed(vec![0.0, 0.0])),
/// ];
/// let broadcast = Broadcast::new(&shared).with_personal(&own);
/// assert_eq!(*broadcast.to(AgentId(0)), [1.0, 2.0]);
/// assert_eq!(*broadcast.to(AgentId(3)), [1.5, 2.0]);
/// assert_eq!(*broadcast.to(AgentId(7)), [0.0, 0.0]);
/// assert!(broadcast.newcomers().is_none());
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Broadcast<'a> {
    shared: &'a [f64],
    personal: &'a [(AgentId, Personal)],
    newcomers: Option<&'a Personal>,
    correcting: Option<&'a dyn Correct>,
}

/// Whoever corrects agents' local steps: a rule.
pub(crate) trait Correct: Debug + Sync {
    /// What an agent is to add to the gradient of every local step.
    fn correction(&self, agent: AgentId) -> Option<Vec<f64>>;
}

/// What one agent is shown instead of the server's weights.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Personal {
    /// The server's weights plus a multiple of a vector: a model that moves along with them.
    Shifted {
        /// How many times the vector is added. Zero shows the server's weights.
        times: f64,
        /// The vector.
        #[serde(with = "packed")]
        along: Vec<f64>,
    },
    /// The server's weights, for an agent that is no newcomer.
    Same,
    /// Weights that stay where they are, whatever the server does.
    Fixed(#[serde(with = "packed")] Vec<f64>),
}

impl Personal {
    /// Whether it differs from the server's weights at all.
    pub(crate) fn differs(&self) -> bool {
        !matches!(self, Self::Same | Self::Shifted { times: 0.0, .. })
    }

    /// The weights it stands for.
    fn weights<'a>(&'a self, shared: &'a [f64]) -> Cow<'a, [f64]> {
        match self {
            Self::Same => Cow::Borrowed(shared),
            Self::Shifted { times, along } => {
                let mut weights = shared.to_vec();
                linalg::add_scaled(&mut weights, *times, Vector::F64(along));
                Cow::Owned(weights)
            }
            Self::Fixed(weights) => Cow::Borrowed(weights),
        }
    }

    /// The number of components, where it has any of its own.
    pub(crate) fn len(&self) -> Option<usize> {
        match self {
            Self::Same => None,
            Self::Shifted { along, .. } => Some(along.len()),
            Self::Fixed(weights) => Some(weights.len()),
        }
    }

    /// Subtracts what it stands for from `gap`, which holds weights relative to which `shared` is
    /// the server's: a server's step of `s` minus an offset of `o` is `s − o`.
    pub(crate) fn subtract_offset(&self, shared: &[f64], gap: &mut [f64]) {
        match self {
            Self::Same => {}
            Self::Shifted { times, along } => linalg::add_scaled(gap, -times, Vector::F64(along)),
            Self::Fixed(weights) => {
                for ((gap, own), shared) in gap.iter_mut().zip(weights).zip(shared) {
                    *gap -= own - shared;
                }
            }
        }
    }
}

impl<'a> Broadcast<'a> {
    /// A broadcast of the same weights to everybody.
    pub fn new(shared: &'a [f64]) -> Self {
        Self { shared, personal: &[], newcomers: None, correcting: None }
    }

    /// This broadcast, with something else for the agents listed, in the order of their ids.
    pub fn with_personal(self, personal: &'a [(AgentId, Personal)]) -> Self {
        debug_assert!(personal.is_sorted_by_key(|(agent, _)| *agent));
        Self { personal, ..self }
    }

    /// This broadcast, with something else for all agents that are not listed.
    pub(crate) fn with_newcomers(self, newcomers: Option<&'a Personal>) -> Self {
        Self { newcomers, ..self }
    }

    /// This broadcast, with a rule that corrects every local step.
    pub(crate) fn with_correcting(self, correcting: Option<&'a dyn Correct>) -> Self {
        Self { correcting, ..self }
    }

    /// What an agent is to add to the gradient of every local step, if the rule corrects local steps.
    pub fn correction(&self, agent: AgentId) -> Option<Vec<f64>> {
        self.correcting?.correction(agent)
    }

    /// The server's own weights, which every agent receives unless it is shown others.
    pub fn shared(&self) -> &'a [f64] {
        self.shared
    }

    /// The weights that only this agent receives, if it is shown others.
    pub fn personal(&self, agent: AgentId) -> Option<Cow<'a, [f64]>> {
        let personal = match self.personal.binary_search_by_key(&agent, |(agent, _)| *agent) {
            Ok(place) => &self.personal[place].1,
            Err(_) => self.newcomers?,
        };
        personal.differs().then(|| personal.weights(self.shared))
    }

    /// The weights that every agent receives which was not heard yet, if those are others than the
    /// server's.
    pub fn newcomers(&self) -> Option<Cow<'a, [f64]>> {
        let newcomers = self.newcomers?;
        newcomers.differs().then(|| newcomers.weights(self.shared))
    }

    /// Whether an agent receives what newcomers do.
    pub fn is_new(&self, agent: AgentId) -> bool {
        let listed = self.personal.binary_search_by_key(&agent, |(agent, _)| *agent).is_ok();
        self.newcomers.is_some() && !listed
    }

    /// The weights that an agent receives.
    pub fn to(&self, agent: AgentId) -> Cow<'a, [f64]> {
        self.personal(agent).unwrap_or(Cow::Borrowed(self.shared))
    }
}

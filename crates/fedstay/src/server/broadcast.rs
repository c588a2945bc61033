//! What the server sends out in a round: one model for all agents, or separate models for some.

use crate::AgentId;

/// The weights each agent receives.
///
/// Nearly always, everybody receives the server's own weights. A policy may show some agents a
/// model of their own instead; only those few vectors exist in addition to the shared one.
///
/// ```
/// use fedstay::{AgentId, Broadcast};
/// let shared = [1.0, 2.0];
/// let own = [(AgentId(3), vec![1.5, 2.0])];
/// let broadcast = Broadcast::new(&shared).with_personal(&own);
/// assert_eq!(broadcast.to(AgentId(0)), [1.0, 2.0]);
/// assert_eq!(broadcast.to(AgentId(3)), [1.5, 2.0]);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Broadcast<'a> {
    shared: &'a [f64],
    personal: &'a [(AgentId, Vec<f64>)],
}

impl<'a> Broadcast<'a> {
    /// A broadcast of the same weights to everybody.
    pub fn new(shared: &'a [f64]) -> Self {
        Self { shared, personal: &[] }
    }

    /// This broadcast, with separate weights for the agents listed, in the order of their ids.
    pub fn with_personal(self, personal: &'a [(AgentId, Vec<f64>)]) -> Self {
        debug_assert!(personal.is_sorted_by_key(|(agent, _)| *agent));
        Self { personal, ..self }
    }

    /// The server's own weights, which every agent receives unless it is shown others.
    pub fn shared(&self) -> &'a [f64] {
        self.shared
    }

    /// The weights that only this agent receives, if it is shown others.
    pub fn personal(&self, agent: AgentId) -> Option<&'a [f64]> {
        let place = self.personal.binary_search_by_key(&agent, |(agent, _)| *agent).ok()?;
        Some(&self.personal[place].1)
    }

    /// The weights that an agent receives.
    pub fn to(&self, agent: AgentId) -> &'a [f64] {
        self.personal(agent).unwrap_or(self.shared)
    }
}

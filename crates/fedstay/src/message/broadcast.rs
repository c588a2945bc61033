//! What the server sends out in a round: one model for all agents, or separate models for some.

use crate::packed;
use crate::{AgentId, Vector, linalg};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt::Debug;

/// The weights each agent receives.
///
/// Nearly always, everybody receives the server's own weights. A policy may show some agents a
/// model of their own instead; only those few vectors exist in addition to the shared one. Where
/// several policies do, each starts from what the one before it shows.
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
#[derive(Debug, Clone)]
pub struct Broadcast<'a> {
    shared: &'a [f64],
    layers: Vec<Layer<'a>>,
    correcting: Option<&'a dyn Correct>,
}

/// What one policy shows some agents.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Layer<'a> {
    /// By id, what agents are shown.
    pub(crate) personal: &'a [(AgentId, Personal)],
    /// What all agents are shown that are not listed.
    pub(crate) newcomers: Option<&'a Personal>,
}

impl<'a> Layer<'a> {
    /// Whether it shows nobody anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.personal.is_empty() && self.newcomers.is_none()
    }

    fn lists(&self, agent: AgentId) -> Option<&'a Personal> {
        let place = self.personal.binary_search_by_key(&agent, |(agent, _)| *agent).ok()?;
        Some(&self.personal[place].1)
    }

    /// What it shows an agent, where that is not simply what it was given.
    pub(crate) fn of(&self, agent: AgentId) -> Option<&'a Personal> {
        self.lists(agent).or(self.newcomers)
    }
}

/// What corrects agents' local steps: a rule.
pub(crate) trait Correct: Debug + Sync {
    /// What an agent is to add to the gradient of every local step.
    fn correction(&self, agent: AgentId) -> Option<Vec<f64>>;
}

/// What one agent is shown instead of the server's weights, or instead of what an earlier policy
/// shows it.
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
    /// The server's weights, for an agent that has reported before.
    Same,
    /// Weights that stay where they are, whatever the server does.
    Fixed(#[serde(with = "packed")] Vec<f64>),
}

impl Personal {
    /// Whether it differs from the server's weights at all.
    pub(crate) fn differs(&self) -> bool {
        !matches!(self, Self::Same | Self::Shifted { times: 0.0, .. })
    }

    /// The weights it stands for, on top of those that it is relative to.
    fn weights<'a>(&'a self, base: Cow<'a, [f64]>) -> Cow<'a, [f64]> {
        match self {
            Self::Same => base,
            Self::Shifted { times, along } => {
                let mut weights = base.into_owned();
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

    /// How far what it stands for lies from the weights that it is relative to.
    pub(crate) fn offset(&self, base: &[f64]) -> Vec<f64> {
        let mut offset = vec![0.0; base.len()];
        self.subtract_offset(base, &mut offset);
        offset.iter_mut().for_each(|value| *value = -*value);
        offset
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
        Self { shared, layers: Vec::new(), correcting: None }
    }

    /// This broadcast, with something else for the agents listed, in the order of their ids.
    pub fn with_personal(self, personal: &'a [(AgentId, Personal)]) -> Self {
        self.with_layer(Layer { personal, newcomers: None })
    }

    /// This broadcast, with what one more policy makes of what agents are shown so far.
    pub(crate) fn with_layer(mut self, layer: Layer<'a>) -> Self {
        debug_assert!(layer.personal.is_sorted_by_key(|(agent, _)| *agent));
        self.layers.extend(Some(layer).filter(|layer| !layer.is_empty()));
        self
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
        self.through(|layer| layer.of(agent))
    }

    /// The weights that every agent receives which was not heard yet, if those are others than the
    /// server's.
    pub fn newcomers(&self) -> Option<Cow<'a, [f64]>> {
        self.through(|layer| layer.newcomers)
    }

    /// What `pick` takes from every layer, one on top of the other; `None` if that changes nothing.
    fn through(&self, pick: impl Fn(&Layer<'a>) -> Option<&'a Personal>) -> Option<Cow<'a, [f64]>> {
        let picked = self.layers.iter().filter_map(pick).filter(|personal| personal.differs());
        picked.fold(None, |below, personal| {
            Some(personal.weights(below.unwrap_or(Cow::Borrowed(self.shared))))
        })
    }

    /// Whether an agent receives what newcomers do.
    pub fn is_new(&self, agent: AgentId) -> bool {
        let anew = |layer: &Layer<'_>| layer.newcomers.is_some() && layer.lists(agent).is_none();
        self.layers.iter().any(anew)
    }

    /// The weights that an agent receives.
    pub fn to(&self, agent: AgentId) -> Cow<'a, [f64]> {
        self.personal(agent).unwrap_or(Cow::Borrowed(self.shared))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_layer_starts_from_what_the_one_below_it_shows() {
        let shared = [1.0, 1.0];
        let shifted = |times, along: [f64; 2]| Personal::Shifted { times, along: along.to_vec() };
        let below = [
            (AgentId(0), shifted(1.0, [1.0, 0.0])),
            (AgentId(1), Personal::Fixed(vec![5.0, 5.0])),
            (AgentId(2), Personal::Same),
        ];
        let above = [
            (AgentId(0), shifted(2.0, [0.0, 1.0])),
            (AgentId(1), shifted(2.0, [0.0, 1.0])),
            (AgentId(3), Personal::Fixed(vec![9.0, 9.0])),
        ];
        let first = Personal::Fixed(vec![0.0, 0.0]);
        let layer = Layer { personal: &below, newcomers: Some(&first) };
        let broadcast = Broadcast::new(&shared).with_layer(layer).with_personal(&above);
        let to = |agent| broadcast.to(AgentId(agent)).to_vec();
        assert_eq!([to(0), to(1), to(2)], [[2.0, 3.0], [5.0, 7.0], [1.0, 1.0]]);
        assert_eq!([to(3), to(4)], [[9.0, 9.0], [0.0, 0.0]], "the latter is a newcomer");
        assert_eq!(broadcast.newcomers().as_deref(), Some(&[0.0, 0.0][..]));
        assert!(broadcast.personal(AgentId(2)).is_none());
        assert_eq!([0, 3, 4].map(|id| broadcast.is_new(AgentId(id))), [false, true, true]);
    }
}

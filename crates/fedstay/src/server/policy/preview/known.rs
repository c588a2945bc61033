//! What `preview` remembers between rounds.

use super::rewind::Rewind;
use crate::AgentId;
use crate::Personal;
use crate::memory::inside::pairs;
use crate::message::{Layer, is_default};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a preview remembers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct PreviewMemory {
    /// The slack while landing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) delta: Option<f64>,
    /// The rounds the run has at most, where somebody has said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) rounds: Option<u32>,
    /// The length of the path that the server's weights have taken.
    pub(super) travelled: f64,
    /// What is known about every agent that has been heard and is still in.
    #[serde(with = "pairs")]
    pub(super) agents: BTreeMap<AgentId, KnownAgent>,
    /// What some agents are shown, by id.
    pub(super) personal: Vec<(AgentId, Personal)>,
    /// What agents are shown that have not been heard yet: the first weights of all. It is kept only
    /// while there are such agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) first: Option<Personal>,
}

impl PreviewMemory {
    /// What agents are shown.
    pub(super) fn layer(&self) -> Layer<'_> {
        Layer { personal: &self.personal, newcomers: self.first.as_ref() }
    }
}

/// What the server knows about an agent from its last report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct KnownAgent {
    pub(super) epsilon: f64,
    /// The first loss that it told; of a state that does not say it, none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) first: Option<f64>,
    /// Its loss at the server's weights, predicted; a lower bound if it is convex.
    pub(super) at_server: f64,
    /// Its loss at what it is shown, predicted likewise.
    pub(super) promised: f64,
    /// The length of its slope.
    pub(super) norm: f64,
    /// How far below their prediction its losses have been lately.
    pub(super) missed: f64,
    /// For how many rounds in a row it has been shown the same.
    pub(super) stood: u32,
    /// Whether that is because the nearest preview was farther away than the cap allows.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) capped: bool,
    /// Whether for convex losses what it is shown proves that it stays.
    pub(super) certain: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) rewind: Rewind,
}

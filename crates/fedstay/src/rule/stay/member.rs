//! What is remembered of a member from round to round: numbers, no vectors.

use super::lines::PricedLine;
use crate::message::is_default;
use serde::{Deserialize, Serialize};

/// One member, as it was in the last round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct PricedMember {
    /// How far above its target its loss was when it was first heard.
    pub(super) first: f64,
    /// The target loss that it told first.
    pub(super) epsilon: f64,
    /// How much of its cap it has: less where its reports contradict each other.
    pub(super) trust: f64,
    /// Which share of its cap it pulled with.
    pub(super) share: f64,
    /// How far above its target it was.
    pub(super) above: f64,
    /// How far above it was predicted to be now.
    pub(super) promised: f64,
    /// What it said in the last round, if that was exact.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) said: Option<Said>,
}

/// An exact report: the loss, by how much the gradient predicted it to change by the step that was asked for, and, if
/// it was made at a preview, how much lower it is at the server's weights by that gradient.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Said {
    pub(super) loss: f64,
    pub(super) change: f64,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) fall: Option<f64>,
}

impl PricedMember {
    pub(super) fn new(line: &PricedLine<'_>) -> Self {
        let (above, epsilon) = (line.above(), line.epsilon);
        Self { first: above, epsilon, trust: 1.0, share: 1.0, above, promised: above, said: None }
    }
}

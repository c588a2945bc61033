//! MW-FED: multiplicative weights, so that learning continues where agents are not yet content.
//!
//! ```text
//! p_m ← c · p_m  for every agent that is not content (F_m > ε_m);  normalise
//! s = −η Σ p_m g_m,   g_m = reach_m · direction_m / η
//! ```
//!
//! In its first round every agent counts as not content, so the first step is the plain mean. With
//! `variant = "weight"` all agents do the same work and `p` only weights their answers. With
//! `"load"`, the authors' own, agent m works on `round(p_m · B · M)` samples (at least one, at most
//! all it has) and the answers are weighted by the `p` that set the loads, as if the samples had
//! been pooled; what the answers say about contentment shows in the next round's loads.
//!
//! The server must know: the directions, and who is content. It never stops on its own. When an
//! agent leaves, the weights of the others are normalised again.
//!
//! MW-FED holds back only *after* an agent is content, and an agent that leaves once it is content
//! is gone by then. So among agents that decide by the threshold nobody present is ever content and
//! MW-FED is the plain mean over those that are left; it differs where content agents stay. There a
//! weight that was lost comes back only as others are content, so an agent that was content once
//! and whose loss has risen since waits for them.
//!
//! Simplified here: the authors measure contentment as validation accuracy against a target, and
//! end when all have met theirs; *Collaborative PAC Learning* doubles the weights (c = 2). An agent
//! that was not asked in a round counts as not content in it.
//!
//! References: Avrim Blum, Nika Haghtalab, Richard Lanas Phillips, Han Shao, *One for One, or All
//! for All: Equilibria and Optimality of Collaboration in Federated Learning*, ICML 2021. The
//! weights are from Avrim Blum, Nika Haghtalab, Ariel Procaccia, Mingda Qiao, *Collaborative PAC
//! Learning*, NeurIPS 2017.

use super::{Aggregator, Decision, Facts, Origin, Round, descend, watched};
use crate::memory::inside;
use crate::{AgentId, Error, Loss, Report, Standing};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub(super) const ORIGIN: Origin = Origin {
    about: "multiplicative weights (or loads) in favour of agents that are not content",
    reference: "Blum, Haghtalab, Phillips, Shao, One for One, or All for All: Equilibria and Optimality of Collaboration in Federated Learning, ICML 2021",
};

/// Multiplicative weights.
///
/// ```
/// use fedstay::rule::{MwFed, Variant};
/// use fedstay::{AgentId, Loss, Report, Reports, Server, Vector};
///
/// let near = Report::new(AgentId(0), Loss::Exact(0.1).leaves_at(0.5), Vector::F64(&[1.0, 0.0]));
/// let far = Report::new(AgentId(1), Loss::Exact(2.0).leaves_at(0.5), Vector::F64(&[0.0, 1.0]));
/// let mut server = Server::new(vec![0.0, 0.0], MwFed::new(4.0, Variant::Weight), 1.0)?;
/// // The mean at first; then the agent that is content counts a quarter of the other.
/// for expected in [[-0.5, -0.5], [-0.2, -0.8]] {
///     server.step(&Reports::new(2, vec![near, far])?)?;
///     assert_eq!(server.displacement(), expected);
/// }
/// # Ok::<(), fedstay::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MwFed {
    /// The factor for agents that are not content. Larger: those that are content lose their say
    /// sooner; 1 is the plain mean.
    pub c: f64,
    /// What the weights act on.
    pub variant: Variant,
    /// Widens the forecast of departures and changes no step.
    pub delta: f64,
    /// In how many rounds each agent was content: `p ∝ c^(−this)`, without drift or underflow.
    #[serde(rename = "memory", with = "inside::pairs", skip_serializing_if = "BTreeMap::is_empty")]
    content: BTreeMap<AgentId, u32>,
}

/// What MW-FED's weights act on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    /// The answers: all agents do the same work.
    #[default]
    Weight,
    /// The work, which is how many samples an agent sees. The answers are weighted accordingly.
    Load,
}

impl Default for MwFed {
    fn default() -> Self {
        Self::new(4.0, Variant::Weight)
    }
}

impl MwFed {
    /// The rule before its first round.
    pub fn new(c: f64, variant: Variant) -> Self {
        Self { c, variant, delta: 0.0, content: BTreeMap::new() }
    }

    /// The weights of some agents; they sum to one.
    fn weights(&self, agents: &[AgentId]) -> Vec<f64> {
        let rounds = |agent: &AgentId| self.content.get(agent).copied().unwrap_or(0);
        let least = agents.iter().map(rounds).min().unwrap_or(0);
        let powers = agents.iter().map(|agent| self.c.powf(-f64::from(rounds(agent) - least)));
        let mut weights: Vec<f64> = powers.collect();
        let total: f64 = weights.iter().sum();
        weights.iter_mut().for_each(|weight| *weight /= total);
        weights
    }

    /// Counts who is content; new agents count as not content.
    fn count(&mut self, round: &Round<'_>) -> Result<(), Error> {
        for report in round.reports.iter() {
            let content = u32::from(content(report)?);
            self.content
                .entry(report.agent)
                .and_modify(|rounds| *rounds = rounds.saturating_add(content))
                .or_insert(0);
        }
        Ok(())
    }
}

fn content(report: &Report<'_>) -> Result<bool, Error> {
    match report.standing {
        // A lower bound above the target loss is enough to know.
        Standing::Open { loss: Loss::AtLeast(bound), epsilon } if bound > epsilon => Ok(false),
        Standing::Open { epsilon, .. } => Ok(report.exact_loss("mw-fed")? <= epsilon),
        Standing::Private { .. } => report.exact_loss("mw-fed").map(|_| false),
    }
}

impl Aggregator for MwFed {
    fn aggregate(&mut self, round: &Round<'_>, step: &mut [f64]) -> Result<Decision, Error> {
        for agent in round.reports.goodbyes() {
            self.content.remove(agent);
        }
        let agents: Vec<AgentId> = round.reports.iter().map(|report| report.agent).collect();
        let as_sent = self.weights(&agents);
        self.count(round)?;
        let weights = match self.variant {
            Variant::Weight => self.weights(&agents),
            Variant::Load => as_sent,
        };
        descend(round, &weights, step);
        Ok(watched(round, step, self.delta))
    }

    fn loads(&self) -> Option<Vec<(AgentId, f64)>> {
        if self.variant == Variant::Weight || self.content.is_empty() {
            return None;
        }
        let agents: Vec<AgentId> = self.content.keys().copied().collect();
        let shares = self.weights(&agents).into_iter().map(|weight| weight * agents.len() as f64);
        Some(agents.iter().copied().zip(shares).collect())
    }

    fn facts(&self) -> Facts {
        // It must be known who is content; the forecast asks for a little more.
        let known = Facts::watching(self.delta).near(2.0);
        Facts { sets_loads: self.variant == Variant::Load, ..known }
    }

    fn check(&self) -> Result<(), Error> {
        if !(self.c.is_finite() && self.c >= 1.0) {
            return Err(Error::bad_parameter("rule.c", self.c, "a number, one or more"));
        }
        super::check_delta(self.delta)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Reports, Server, Vector};

    const SIDES: [[f64; 2]; 2] = [[1.0, 0.0], [0.0, 1.0]];

    fn reports(losses: [f64; 2]) -> Reports<'static> {
        let report = |id: usize| {
            Report::new(
                AgentId(id as u64),
                Loss::Exact(losses[id]).leaves_at(0.5),
                Vector::F64(&SIDES[id][..]),
            )
        };
        Reports::new(2, vec![report(0), report(1)]).unwrap()
    }

    #[test]
    fn weights_follow_contentment_and_loads_follow_weights() {
        let rule = |variant| MwFed::new(4.0, variant);
        let mut weight = Server::new(vec![0.0; 2], rule(Variant::Weight), 1.0).unwrap();
        let mut load = Server::new(vec![0.0; 2], rule(Variant::Load), 1.0).unwrap();
        assert_eq!((weight.loads(), load.loads()), (None, None));
        // The first round is the mean, though agent 0 is content.
        for server in [&mut weight, &mut load] {
            server.step(&reports([0.1, 2.0])).unwrap();
            assert_eq!(server.displacement(), [-0.5, -0.5]);
            server.step(&reports([0.1, 2.0])).unwrap();
        }
        // 1 : 4 in the second; with loads the samples of this round were drawn before it was known.
        assert_eq!(weight.displacement(), [-0.2, -0.8]);
        assert_eq!(load.displacement(), [-0.5, -0.5]);
        assert_eq!(load.loads().unwrap(), [(AgentId(0), 0.4), (AgentId(1), 1.6)]);
        load.step(&reports([2.0, 2.0])).unwrap();
        assert_eq!(load.displacement(), [-0.2, -0.8]);
        assert_eq!(weight.loads(), None);
    }

    #[test]
    fn the_weights_of_the_others_are_normalised_when_one_leaves() {
        let mut server = Server::new(vec![0.0; 2], MwFed::default(), 1.0).unwrap();
        for _ in 0..3 {
            server.step(&reports([0.1, 2.0])).unwrap();
        }
        let alone =
            Report::new(AgentId(0), Loss::Exact(0.1).leaves_at(0.5), Vector::F64(&SIDES[0]));
        let leaves = Reports::with_goodbyes(2, vec![alone], vec![AgentId(1)]).unwrap();
        server.step(&leaves).unwrap();
        assert_eq!(server.displacement(), [-1.0, 0.0]);
    }

    #[test]
    fn a_bound_that_does_not_settle_contentment_is_refused() {
        let with = |bound| {
            let standing = Standing::Open { loss: Loss::AtLeast(bound), epsilon: 0.5 };
            Report::new(AgentId(7), standing, Vector::F64(&SIDES[0]))
        };
        assert_eq!(content(&with(0.6)), Ok(false));
        assert!(matches!(content(&with(0.5)), Err(Error::NeedsExactLoss { .. })));
    }

    #[test]
    fn a_thousand_content_rounds_are_forgiven_one_by_one() {
        let mut server = Server::new(vec![0.0; 2], MwFed::default(), 1.0).unwrap();
        for _ in 0..2000 {
            server.step(&reports([0.1, 2.0])).unwrap();
        }
        assert_eq!(server.displacement(), [0.0, -1.0]);
        for _ in 0..1999 {
            server.step(&reports([2.0, 0.1])).unwrap();
        }
        assert_eq!(server.displacement(), [-0.5, -0.5]);
    }
}

//! `keep-best`: follow the rule, but return the best weights seen, not the last.

use super::{Place, Policy, PolicyFacts, Turn, Until, Wrap};
use crate::list::Origin;
use crate::message::is_default;
use crate::packed;
use crate::rule::{Decision, Landing, Round, Shown};
use crate::{AgentId, Error};
use serde::{Deserialize, Serialize};

pub(super) const ORIGIN: Origin = Origin {
    about: "follow the rule, but return the best weights seen for everybody",
    reference: "",
};

/// Return the weights with the lowest mean loss over all agents.
///
/// The server can judge weights only by what agents report about them. Once somebody has left,
/// nothing newer can be judged for everybody, so the best weights come from the rounds up to the
/// first departure; in that round itself, the agents that leave are content and count with their ε.
/// Where a policy before it shows agents something else, what is judged, and delivered, is still the
/// server's own model, by the losses that follow for it from what they report.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct KeepBest {
    #[serde(skip_serializing_if = "is_default")]
    memory: KeepBestMemory,
}

/// What keep-best remembers: the best weights so far, and what it takes to judge the next ones.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct KeepBestMemory {
    best: Option<BestModel>,
    epsilons: Vec<(AgentId, f64)>,
    somebody_left: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct BestModel {
    loss: f64,
    round: u32,
    #[serde(with = "packed")]
    weights: Vec<f64>,
}

impl Wrap for KeepBest {
    fn facts(&self) -> PolicyFacts {
        PolicyFacts::in_place(Place::Delivers)
    }

    fn clash(&self, other: &Policy) -> Option<&'static str> {
        matches!(other, Policy::Preview(preview) if preview.until == Until::Content).then_some(
            "with policy.until = \"content\" a preview delivers the model that it ends with, keep-best \
             an earlier one: leave keep-best out, or set policy.until = \"rounds\"",
        )
    }

    fn apply(
        &mut self,
        turn: &Turn<'_>,
        _: &mut [f64],
        decision: &mut Decision,
    ) -> Result<(), Error> {
        if turn.others_show() {
            // A preview may say so of the last weights, but these are delivered.
            decision.landed = decision.landed.map(|_| Landing::No);
        }
        self.memory.consider(turn.round, &decision.shown)
    }

    fn heard_nobody(&mut self, round: &Round<'_>) -> Result<(), Error> {
        self.memory.consider(round, &[])
    }

    fn deliver(&self) -> Option<&[f64]> {
        self.memory.best.as_ref().map(|best| best.weights.as_slice())
    }
}

impl KeepBestMemory {
    /// Judges the weights of a round. What an agent that was shown others would have said of them is
    /// in its line of `shown`.
    fn consider(&mut self, round: &Round<'_>, shown: &[Shown]) -> Result<(), Error> {
        if self.somebody_left {
            return Ok(());
        }
        let mut total = 0.0;
        let mut count = 0usize;
        for report in round.reports.iter() {
            let told = report.exact_loss("keep-best")?;
            let place = shown.binary_search_by_key(&report.agent, |shown| shown.agent);
            total += place.map_or(told, |place| shown[place].real);
            count += 1;
        }
        for (agent, epsilon) in &self.epsilons {
            if round.reports.goodbyes().contains(agent) {
                total += epsilon;
                count += 1;
            }
        }
        self.epsilons = round
            .reports
            .iter()
            .filter_map(|report| report.epsilon().map(|epsilon| (report.agent, epsilon)))
            .collect();
        self.somebody_left = !round.reports.goodbyes().is_empty();
        let loss = total / count.max(1) as f64;
        if count > 0 && self.best.as_ref().is_none_or(|best| loss < best.loss) {
            self.best =
                Some(BestModel { loss, round: round.number, weights: round.weights.to_vec() });
        }
        Ok(())
    }
}

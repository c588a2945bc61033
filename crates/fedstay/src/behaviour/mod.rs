//! Behaviours: how an agent decides whether to go on taking part.
//!
//! Leaving lives on the agent's side: the server sees only who reported and who said goodbye. One
//! file a behaviour; [`Behaviour`] is the list.

mod never;
mod threshold;

pub use never::Never;
pub use threshold::Threshold;

use crate::AgentId;
use serde::{Deserialize, Serialize};

/// Stay for another round, or leave for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Choice {
    /// Report in this round.
    Stay,
    /// Say goodbye; report nothing, in this round or later.
    Leave,
}

/// What an agent can find out about the weights it received. Finding out costs it work, so an
/// engine answers only what is asked, and no more of it than needed.
pub trait Evidence {
    /// The loss on the agent's full local data.
    fn loss(&mut self) -> f64;

    /// Whether that loss is at most `bound`: often cheaper than the loss itself.
    fn at_most(&mut self, bound: f64) -> bool {
        self.loss() <= bound
    }
}

/// What an agent knows when it decides.
pub struct View<'a> {
    /// Who decides.
    pub agent: AgentId,
    /// The round, from 1.
    pub round: u32,
    /// The precision at which it is content.
    pub epsilon: f64,
    /// What it can find out.
    pub evidence: &'a mut dyn Evidence,
}

/// How an agent decides.
pub trait Decide {
    /// Stay or leave, on receipt of the weights and before any report.
    fn decide(&mut self, view: &mut View<'_>) -> Choice;
}

/// Every behaviour, under the name it has in a configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Behaviour {
    /// Leaves once its loss is at most its precision.
    Threshold(Threshold),
    /// Never leaves.
    Never(Never),
}

impl Default for Behaviour {
    fn default() -> Self {
        Self::Threshold(Threshold {})
    }
}

impl Behaviour {
    /// The name in a configuration, one sentence, and the reference of every behaviour.
    pub const LIST: &'static [crate::list::Entry] = &[
        crate::list::Entry {
            name: "threshold",
            about: "leaves for good as soon as the received model is good enough, F_m(w) ≤ ε_m",
            reference: "arXiv 2311.16459, Section 2",
        },
        crate::list::Entry {
            name: "never",
            about: "never leaves: the ceiling every rule is measured against",
            reference: "arXiv 2311.16459, \"irrational\" agents",
        },
    ];

    /// The name in a configuration.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Threshold(_) => "threshold",
            Self::Never(_) => "never",
        }
    }
}

impl Decide for Behaviour {
    fn decide(&mut self, view: &mut View<'_>) -> Choice {
        match self {
            Self::Threshold(behaviour) => behaviour.decide(view),
            Self::Never(behaviour) => behaviour.decide(view),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixed(f64);

    impl Evidence for Fixed {
        fn loss(&mut self) -> f64 {
            self.0
        }
    }

    fn choice(behaviour: &mut Behaviour, loss: f64) -> Choice {
        let evidence = &mut Fixed(loss);
        behaviour.decide(&mut View { agent: AgentId(0), round: 1, epsilon: 0.2, evidence })
    }

    #[test]
    fn the_list_and_the_enum_are_the_same() {
        for entry in Behaviour::LIST {
            let behaviour: Behaviour =
                serde_json::from_value(serde_json::json!({ "kind": entry.name })).unwrap();
            assert_eq!(behaviour.name(), entry.name);
        }
    }

    #[test]
    fn a_tie_is_content() {
        let mut threshold = Behaviour::default();
        assert_eq!(choice(&mut threshold, 0.2), Choice::Leave);
        assert_eq!(choice(&mut threshold, 0.2 + 1e-15), Choice::Stay);
        assert_eq!(choice(&mut Behaviour::Never(Never {}), 0.0), Choice::Stay);
    }
}

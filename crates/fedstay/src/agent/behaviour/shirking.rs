//! `shirking`: stay, but stop working.
//!
//! Where a `threshold` agent would leave, this one stays and saves itself the work: from the first
//! round in which `F_m ≤ ε_m` it reports the last direction it computed, again and again. It still
//! reports its true loss, because it looks at every model anyway. With `refresh = n` it works in
//! every n-th of these rounds.
//!
//! Nobody has left, so the verdict is *retained*; what a stale direction does to the others shows
//! in their losses.
//!
//! Reference: this project; free riders in federated learning are surveyed by Fraboni, Vidal,
//! Lorenzi, *Free-rider Attacks on Model Aggregation in Federated Learning*, AISTATS 2021.

use super::{Choice, Decide, Manner, Origin, View};
use serde::{Deserialize, Serialize};

pub(super) const ORIGIN: Origin = Origin {
    about: "stays but stops working once content: reports a stale direction",
    reference: "after Fraboni, Vidal, Lorenzi, Free-rider Attacks on Model Aggregation in Federated Learning, AISTATS 2021",
};

/// Stays, but stops working once content.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Shirking {
    /// It still works once in this many rounds; 0 for never again.
    pub refresh: u32,
    #[serde(skip_serializing_if = "super::is_default")]
    memory: Contentment,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct Contentment {
    /// The rounds since it was first content; `None` before that.
    since: Option<u32>,
    /// In how many of those rounds it did not work.
    idle: u32,
}

impl Shirking {
    fn works(&self) -> bool {
        self.memory.since.is_none_or(|since| self.refresh > 0 && since % self.refresh == 0)
    }
}

impl Decide for Shirking {
    fn decide(&mut self, view: &mut View<'_>) -> Choice {
        match &mut self.memory.since {
            Some(since) => *since += 1,
            None if view.evidence.at_most(view.epsilon) => self.memory.since = Some(1),
            None => {}
        }
        self.memory.idle += u32::from(!self.works());
        Choice::Stay
    }

    fn manner(&self) -> Manner {
        Manner { works: self.works(), ..Manner::default() }
    }

    fn repeats(&self) -> bool {
        true
    }

    fn idle_rounds(&self) -> u32 {
        self.memory.idle
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::choice;
    use super::*;
    use crate::Behaviour;

    #[test]
    fn it_works_until_content_and_then_only_to_refresh() {
        let worked = |refresh| -> Vec<bool> {
            let mut agent = Behaviour::Shirking(Shirking { refresh, ..Shirking::default() });
            let losses = [0.5, 0.1, 0.5, 0.5, 0.5, 0.5];
            let round = |loss: &f64| {
                assert_eq!(choice(&mut agent, *loss), Choice::Stay);
                agent.manner().works
            };
            losses.iter().map(round).collect()
        };
        assert_eq!(worked(0), [true, false, false, false, false, false]);
        assert_eq!(worked(3), [true, false, false, true, false, false]);
    }
}

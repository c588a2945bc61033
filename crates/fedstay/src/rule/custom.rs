//! Rules from outside this crate.

use super::Aggregator;
use std::fmt;
use std::ops::{Deref, DerefMut};

/// Copies a rule behind a `Box`. Every rule that is `Clone` has this automatically.
pub trait CloneRule {
    /// A copy of the rule, with what it remembers.
    fn clone_rule(&self) -> Box<dyn Aggregator>;
}

impl<T: Aggregator + Clone + 'static> CloneRule for T {
    fn clone_rule(&self) -> Box<dyn Aggregator> {
        Box::new(self.clone())
    }
}

/// A custom rule, which is not in the list; see [`Server::with_rule`](crate::Server::with_rule).
pub struct CustomRule {
    pub(crate) rule: Box<dyn Aggregator>,
    name: String,
}

impl CustomRule {
    pub(super) fn new(rule: Box<dyn Aggregator>) -> Self {
        let name = rule.facts().name.unwrap_or_else(|| "custom".to_owned());
        Self { rule, name }
    }

    /// What it calls itself, or `custom`; see [`Facts::name`](super::Facts::name).
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Deref for CustomRule {
    type Target = dyn Aggregator;

    fn deref(&self) -> &(dyn Aggregator + 'static) {
        &*self.rule
    }
}

impl DerefMut for CustomRule {
    fn deref_mut(&mut self) -> &mut (dyn Aggregator + 'static) {
        &mut *self.rule
    }
}

impl Clone for CustomRule {
    fn clone(&self) -> Self {
        Self { rule: self.rule.clone_rule(), name: self.name.clone() }
    }
}

impl fmt::Debug for CustomRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rule.fmt(f)
    }
}

/// Two custom rules are equal if they look equal: nothing is known about them but what they show.
impl PartialEq for CustomRule {
    fn eq(&self, other: &Self) -> bool {
        format!("{self:?}") == format!("{other:?}")
    }
}

#[cfg(test)]
mod tests {
    use crate::rule::{Decision, Facts, Round};
    use crate::{AgentId, Aggregator, Error, Loss, Report, Reports, Server, Vector};

    /// Moves by the first agent's direction, by less in every round.
    #[derive(Debug, Clone)]
    struct Fading {
        rounds: u32,
        can_be_saved: bool,
    }

    impl Aggregator for Fading {
        fn aggregate(&mut self, round: &Round<'_>, step: &mut [f64]) -> Result<Decision, Error> {
            self.rounds += 1;
            let first = &round.reports.as_slice()[0];
            step[0] = -first.direction.get(0).unwrap_or(0.0) / f64::from(self.rounds);
            Ok(Decision::new(round.forecast(step, 0.0), round.step_size))
        }

        fn facts(&self) -> Facts {
            let name = self.can_be_saved.then(|| "fading".to_owned());
            Facts { name, ..Facts::default() }
        }

        fn save(&self) -> Option<String> {
            self.can_be_saved.then(|| self.rounds.to_string())
        }

        fn restore(&mut self, saved: &str) -> Result<(), Error> {
            self.rounds = saved.parse().map_err(|_| Error::BadState { why: saved.to_owned() })?;
            Ok(())
        }
    }

    fn fading(can_be_saved: bool) -> Box<dyn Aggregator> {
        Box::new(Fading { rounds: 0, can_be_saved })
    }

    fn step(server: &mut Server) {
        let g = [1.0];
        let report = Report::new(AgentId(0), Loss::Exact(9.0).leaves_at(0.1), Vector::F64(&g));
        server.step(&Reports::new(1, vec![report]).unwrap()).unwrap();
    }

    #[test]
    fn a_rule_from_outside_runs_and_its_state_is_taken_up() {
        let mut server = Server::with_rule(vec![0.0], fading(true), 0.1).unwrap();
        step(&mut server);
        step(&mut server);
        assert_eq!((server.weights(), server.rule().name()), (&[-1.5][..], "fading"));
        let text = serde_json::to_string(&server.state()).unwrap();
        let state = || serde_json::from_str(&text).unwrap();
        let error = Server::from_state(state()).unwrap_err().to_string();
        assert!(error.contains("from_state_with"), "{error}");
        let mut resumed = Server::from_state_with(state(), fading(true)).unwrap();
        step(&mut server);
        step(&mut resumed);
        assert_eq!(resumed.weights(), server.weights());
        assert_eq!(resumed.state(), server.state());
        let listed = Server::new(vec![0.0], crate::Mean::default(), 0.1).unwrap();
        assert!(Server::from_state_with(listed.state(), fading(true)).is_err());
    }

    #[test]
    fn a_rule_that_cannot_be_saved_is_refused_and_not_forgotten() {
        let mut server = Server::with_rule(vec![0.0], fading(false), 0.1).unwrap();
        step(&mut server);
        assert_eq!(server.rule().name(), "custom", "it does not say what it is called");
        assert_eq!(server.progress(), Err(Error::CannotSave));
        let error = serde_json::to_string(&server.state()).unwrap_err().to_string();
        assert!(error.contains("`Aggregator::save`"), "{error}");
        assert_eq!(
            Server::from_state_with(server.state(), fading(false)).err(),
            Some(Error::CannotSave)
        );
        assert!(serde_json::to_string(server.rule()).is_err());
    }

    #[test]
    fn two_that_look_equal_are_equal() {
        let rule = |saved| crate::Rule::from(fading(saved));
        assert_eq!(rule(true), rule(true).clone());
        assert_ne!(rule(true), rule(false));
    }
}

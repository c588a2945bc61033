//! The agent's side of a round: decide, stay or leave, come back. It exists once; engines add the
//! work and the evidence.

use super::behaviour::{Behaviour, Choice, Evidence, Manner, View};
use crate::message::called;
use crate::{AgentId, Error};
use serde::{Deserialize, Serialize};

/// What an agent does with a broadcast.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// It stays and reports.
    Reports,
    /// It had left, comes back and reports.
    Returns,
    /// It says goodbye and reports nothing.
    Leaves,
    /// It has left and remains away.
    StaysAway,
    /// It is in, and reports nothing in this round. It has not left.
    SitsOut,
}

impl Answer {
    /// Whether the agent reports.
    pub fn reports(self) -> bool {
        matches!(self, Self::Reports | Self::Returns)
    }

    /// Its name in JSON and in Python.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reports => "reports",
            Self::Returns => "returns",
            Self::Leaves => "leaves",
            Self::StaysAway => "stays-away",
            Self::SitsOut => "sits-out",
        }
    }
}

/// An agent's part in a run: who it is, what it wants, how it decides, and whether it has left.
///
/// ```
/// use fedstay::{AgentId, Answer, Behaviour, Evidence, Participant};
///
/// struct Known(f64);
/// impl Evidence for Known {
///     fn loss(&mut self) -> f64 {
///         self.0
///     }
/// }
/// let mut agent = Participant::new(AgentId(0), 0.1, Behaviour::default());
/// assert_eq!(agent.answer(1, &mut Known(0.5), false), Answer::Reports);
/// assert_eq!(agent.answer(2, &mut Known(0.1), false), Answer::Leaves);
/// assert!(!agent.looks(), "it has left for good");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Participant {
    /// Its id.
    pub id: AgentId,
    /// Its target loss.
    pub epsilon: f64,
    behaviour: Behaviour,
    left: Option<u32>,
}

/// What must survive a restart of a participant; the rest is given again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ParticipantState {
    left: Option<u32>,
    behaviour: Behaviour,
}

impl Participant {
    /// A participant that has not left.
    pub fn new(id: AgentId, epsilon: f64, behaviour: Behaviour) -> Self {
        Self { id, epsilon, behaviour, left: None }
    }

    /// How it decides and reports.
    pub fn behaviour(&self) -> &Behaviour {
        &self.behaviour
    }

    /// How it reports in the round it has just decided to stay in.
    pub fn manner(&self) -> Manner {
        self.behaviour.manner()
    }

    /// The round in which it left, if it is out.
    pub fn left(&self) -> Option<u32> {
        self.left
    }

    /// Whether it is taking part.
    pub fn is_in(&self) -> bool {
        self.left.is_none()
    }

    /// Whether it takes note of a broadcast: it is in, or may come back.
    pub fn looks(&self) -> bool {
        self.is_in() || self.behaviour.comes_back()
    }

    /// Decides about the weights of a round and acts on the decision. With `must_stay` it decides,
    /// but stays whatever the decision.
    pub fn answer(&mut self, round: u32, evidence: &mut dyn Evidence, must_stay: bool) -> Answer {
        if !self.looks() {
            return Answer::StaysAway;
        }
        let (agent, epsilon, present) = (self.id, self.epsilon, self.is_in());
        let view = &mut View { agent, round, epsilon, present, evidence };
        match (self.behaviour.decide(view), self.left) {
            (Choice::Leave, None) if !must_stay => {
                self.left = Some(round);
                Answer::Leaves
            }
            (Choice::SitOut, None) => Answer::SitsOut,
            (Choice::Leave | Choice::SitOut, Some(_)) => Answer::StaysAway,
            (_, None) => Answer::Reports,
            (_, Some(_)) => {
                self.left = None;
                Answer::Returns
            }
        }
    }

    /// Puts it in or out, for an engine that decides about this itself.
    pub fn set_left(&mut self, left: Option<u32>) {
        self.left = left;
    }

    /// What must survive a restart.
    pub fn save(&self) -> ParticipantState {
        ParticipantState { left: self.left, behaviour: self.behaviour.clone() }
    }

    /// Takes up what [`save`](Self::save) gave.
    ///
    /// # Errors
    /// If the state is that of another kind of agent.
    pub fn restore(&mut self, state: ParticipantState) -> Result<(), Error> {
        let (got, expected) = (state.behaviour.name(), self.behaviour.name());
        if got != expected {
            let why = format!("{} is {expected}, and was {got}", called(self.id, None));
            return Err(Error::BadState { why });
        }
        (self.left, self.behaviour) = (state.left, state.behaviour);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::behaviour::{Never, Returning};

    struct Known(f64);

    impl Evidence for Known {
        fn loss(&mut self) -> f64 {
            self.0
        }
    }

    #[test]
    fn it_leaves_comes_back_and_stays_where_it_must() {
        let returning = Behaviour::Returning(Returning { rise: 0.5 });
        let mut agent = Participant::new(AgentId(4), 0.2, returning);
        let answers: Vec<Answer> = [0.5, 0.1, 0.1, 0.5]
            .iter()
            .zip(1..)
            .map(|(loss, round)| agent.answer(round, &mut Known(*loss), false))
            .collect();
        let expected = [Answer::Reports, Answer::Leaves, Answer::StaysAway, Answer::Returns];
        assert_eq!((answers, agent.left()), (expected.to_vec(), None));
        assert_eq!(agent.answer(5, &mut Known(0.1), true), Answer::Reports);
    }

    #[test]
    fn only_the_same_kind_of_agent_takes_up_a_state() {
        let mut agent = Participant::new(AgentId(0), 0.2, Behaviour::default());
        agent.answer(3, &mut Known(0.1), false);
        let state = agent.save();
        let mut same = Participant::new(AgentId(0), 0.2, Behaviour::default());
        same.restore(state.clone()).unwrap();
        assert_eq!(same, agent);
        let mut other = Participant::new(AgentId(0), 0.2, Behaviour::Never(Never {}));
        assert!(other.restore(state).unwrap_err().to_string().contains("threshold"));
    }
}

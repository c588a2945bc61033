//! What an agent needs while it is asked, and what is read of it when the round is over.
//!
//! Directions are as long as the model, so there are as many desks as agents are asked in a round, and
//! the agent that is asked next sits down at one of them.

use fedstay::{AgentId, Answer, Rates, Report, Standing, Vector};

/// A direction and a gradient.
pub(super) type Sent = (Vec<f32>, Option<Vec<f32>>);

/// An agent's place to work for one round.
pub(super) struct Desk {
    /// Who sits here.
    pub(super) agent: AgentId,
    /// What it does with the broadcast.
    pub(super) answer: Answer,
    pub(super) direction: Vec<f32>,
    pub(super) gradient: Option<Vec<f32>>,
    /// Whether the direction was computed in this round.
    pub(super) worked: bool,
    /// The rows of its batches.
    pub(super) drawn: Vec<u32>,
    /// The direction and the gradient that it sends, where they are not what it computed: forged,
    /// multiplied, or with noise.
    pub(super) sent: Option<Sent>,
    /// What it tells about how close it is to leaving.
    pub(super) standing: Standing,
    /// Whether its direction is the gradient at what it received.
    pub(super) exact: bool,
    /// The sum of its local step sizes.
    pub(super) reach: f64,
    /// The length of what it computed.
    pub(super) length: f64,
    /// How many rows it works on.
    pub(super) samples: u64,
    /// How well its groups are served, where the rule asks.
    pub(super) rates: Option<Rates>,
}

impl Desk {
    /// A place for somebody to compute with this many weights.
    pub(super) fn new(parameters: usize) -> Self {
        Self {
            agent: AgentId(0),
            answer: Answer::StaysAway,
            direction: vec![0.0; parameters],
            gradient: None,
            worked: false,
            drawn: Vec::new(),
            sent: None,
            standing: Standing::Private { tau: f64::INFINITY },
            exact: false,
            reach: 0.0,
            length: 0.0,
            samples: 0,
            rates: None,
        }
    }

    /// What it sends, and the gradient beside it.
    pub(super) fn sends(&self) -> (&[f32], Option<&[f32]>) {
        match &self.sent {
            Some((direction, gradient)) => (direction, gradient.as_deref()),
            None => (&self.direction, self.gradient.as_deref()),
        }
    }

    /// Its report of the round.
    pub(super) fn report(&self) -> Report<'_> {
        let (direction, gradient) = self.sends();
        Report {
            agent: self.agent,
            standing: self.standing,
            direction: Vector::F32(direction),
            gradient: gradient.or(self.exact.then_some(direction)).map(Vector::F32),
            reach: Some(self.reach),
            samples: self.samples,
            length: self.sent.is_none().then_some(self.length),
            rates: self.rates,
        }
    }
}

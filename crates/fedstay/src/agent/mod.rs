//! The agents' side: how they take part, when they can be reached, how they decide, and the noise they
//! may add.

pub mod behaviour;
pub(crate) mod forgery;
mod participant;
pub mod privacy;
pub mod schedule;

pub use participant::{Answer, Participant, ParticipantState};

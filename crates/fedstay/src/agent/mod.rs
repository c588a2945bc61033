//! The agents' side: how they take part, how they decide, and the noise they may add.

pub mod behaviour;
mod participant;
pub mod privacy;

pub use participant::{Answer, Participant, ParticipantState};

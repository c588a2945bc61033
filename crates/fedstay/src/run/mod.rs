//! A run around the server's steps: engine, session, books, and what is left behind as data.

mod book;
mod engine;
pub mod fairness;
pub mod ledger;
pub mod record;
mod session;
pub mod verdict;

use crate::Decision;
pub use book::{BetweenRounds, Book, RoundRecord};
pub use engine::{Abilities, AgentAssessment, Assessment, Call, Engine, Gathered};
pub use session::{About, Session, SessionState, step_with};

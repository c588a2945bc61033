//! Federated learning that keeps its agents: the core.
//!
//! In federated learning a server trains one model over agents that keep their data. Taking part
//! costs an agent something, so a rational one leaves for good as soon as the current model is
//! good enough for it, `F_m(w) ≤ ε_m`, and takes its data along. This crate has the server's side
//! of that story (rules that turn reports into a step, some of which keep everybody), the agents'
//! side (how they decide), the loop that joins the two, and the verdict on what happened.
//!
//! **An algorithm is a server that, each round, turns reports into a step.** So the [`Server`] is a
//! pure state machine: no I/O, no clock, no threads, no randomness of its own. An engine that is
//! called by us (the simulator) and one that calls us (Flower) use the same [`Server::step`].
//!
//! ```
//! use fedstay::{AdaGd, AgentId, Report, Reports, Server, Vector};
//!
//! // Two agents: the first is nearly content (ε = 0.1), the second is far from it.
//! let near = [1.0, 0.0];
//! let far = [1.0, 1.0];
//! let mut server = Server::new(vec![0.0, 0.0], AdaGd { delta: 0.05, ..AdaGd::default() }, 0.1)?;
//! let reports = Reports::new(
//!     2,
//!     vec![
//!         Report::new(AgentId(0), 0.2, 0.1, Vector::F64(&near)),
//!         Report::new(AgentId(1), 3.0, 0.1, Vector::F64(&far)),
//!     ],
//! )?;
//! let decision = server.step(&reports)?;
//! assert_eq!(decision.split.d, [AgentId(0)]);
//! // The step leaves the first agent's loss alone and still helps the second.
//! assert!(server.weights()[0].abs() < 1e-15 && server.weights()[1] < 0.0);
//! # Ok::<(), fedstay::Error>(())
//! ```

mod agent;
pub mod aggregate;
mod broadcast;
pub mod diagnose;
mod error;
pub mod list;
mod memory;
pub mod numerics;
pub mod packed;
pub mod policy;
pub mod problem;
mod report;
mod run;
mod saved;
mod server;

pub use agent::{Answer, Participant, ParticipantState, behaviour, privacy};
pub use aggregate::rules::*;
pub use aggregate::{Aggregator, Decision, Facts, Losses, Round, Rule, Split, StopReason};
pub use behaviour::{Behaviour, Choice, Decide, Evidence, Manner, View};
pub use broadcast::Broadcast;
pub use error::Error;
pub use memory::Memory;
pub use numerics::{Seed, fingerprint, linalg, projection};
pub use policy::Policy;
pub use privacy::Privacy;
pub use report::{AgentId, Loss, Report, Reports, Standing, Vector, tau};
pub use run::{
    Abilities, About, AgentAssessment, Assessment, Book, Call, Engine, Gathered, Moment,
    RoundRecord, Session, SessionState, consistency, record, verdict,
};
pub use server::{Progress, Server, ServerState};

/// The README's example, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

//! Federated learning that keeps its agents: the core.
//!
//! In federated learning a server trains one model over agents that keep their data. Taking part
//! costs an agent something, so a rational one leaves for good as soon as the current model is good
//! enough for it, `F_m(w) ≤ ε_m`, and takes its data with it. This crate has the server's side of
//! that story (rules that turn reports into a step, some of which keep everybody), the agents' side
//! (how they decide), the loop that joins the two, and the verdict on what happened.
//!
//! **An algorithm is a server that, each round, turns reports into a step.** So the [`Server`] is a
//! pure state machine: no I/O, no clock, no threads, no randomness of its own. An engine that is
//! called by us (the simulator) and one that calls us (Flower) use the same [`Server::step`].
//!
//! | room | what |
//! |---|---|
//! | [`numerics`] | [`Vector`]s of any precision, projections, seeds: what users need of `fedstay_kernels` |
//! | `message` | [`Report`]s in, a [`Decision`] and a [`Broadcast`] out; [`Error`] |
//! | `memory`, [`list`] | state on its way into a checkpoint and back; lists of everything that varies |
//! | [`rule`] | [`Rule`], one file per rule with its options, and the trait [`Aggregator`] for rules of your own |
//! | `agent` | [`Participant`] (decide, stay or leave, come back), [`behaviour`], [`schedule`], [`privacy`] |
//! | `server` | [`Server`]; [`optimiser`], [`policy`]: what wraps any rule |
//! | `run` | [`Session`] (the loop, once), [`Engine`], [`Book`], the [`ledger`], [`record`]s, [`verdict`]s |
//! | `book` | books that a run may keep: [`consistency`], [`worth`]; when an agent leaves: [`forecast`] |
//! | `theory` | [`problem`]s with exact oracles, [`diagnose`] |
//!
//! Each room uses those above it in this table, never one below; `tests/tree.rs` reads the sources and
//! says so.
//!
//! ```
//! use fedstay::{AdaGd, AgentId, Loss, Report, Reports, Server, Vector};
//!
//! // Two agents: the first is nearly content (ε = 0.1), the second is far from it.
//! let near = [1.0, 0.0];
//! let far = [1.0, 1.0];
//! let mut server = Server::new(vec![0.0, 0.0], AdaGd { delta: 0.05, ..AdaGd::default() }, 0.1)?;
//! let reports = Reports::new(
//!     2,
//!     vec![
//!         Report::new(AgentId(0), Loss::Exact(0.2).leaves_at(0.1), Vector::F64(&near)),
//!         Report::new(AgentId(1), Loss::Exact(3.0).leaves_at(0.1), Vector::F64(&far)),
//!     ],
//! )?;
//! let decision = server.step(&reports)?;
//! assert_eq!(decision.split.d, [AgentId(0)]);
//! // The step leaves the first agent's loss alone and still helps the second.
//! assert!(server.weights()[0].abs() < 1e-15 && server.weights()[1] < 0.0);
//! # Ok::<(), fedstay::Error>(())
//! ```

mod agent;
mod book;
pub mod list;
mod memory;
mod message;
pub mod numerics;
pub mod rule;
mod run;
mod server;
mod theory;

pub use agent::behaviour::{self, Behaviour, Choice, Decide, Evidence, Manner, Sends, View};
pub use agent::forgery::{Forgery, SeenModels};
pub use agent::privacy::{self, Privacy};
pub use agent::schedule::{self, Schedule};
pub use agent::{Answer, Participant, ParticipantState};
pub use book::{consistency, forecast, worth};
pub use memory::Memory;
pub use message::{
    AgentId, Better, Broadcast, Decision, Error, Interval, Loss, Measure, MeasureName, Measures,
    Personal, Rates, Report, Reports, Score, ScorePart, Split, Standing, StopReason, Unit, tau,
};
pub use numerics::{Seed, Vector, fingerprint, linalg, packed, projection};
pub use rule::{AdaGd, Aggregator, Facts, Losses, Mean, Retain, Round, Rule, SLACK};
pub use run::{
    Abilities, About, AgentAssessment, Assessment, BetweenRounds, Book, Call, Engine, Gathered,
    RoundRecord, Session, SessionState, fairness, ledger, record, step_with, verdict,
};
pub use server::{
    ForgetMethod, Forgetting, Optimiser, Policies, Policy, Progress, Server, ServerState,
    optimiser, policy,
};
pub use theory::{diagnose, problem};

/// The README's examples, compiled and run as doc tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

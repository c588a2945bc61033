//! Draws runs and says in words what came of them: below the command, the live page and the wheel.
//!
//! [`plot`] draws figures of any kind, [`picture`] draws and reports runs with it, and [`words`]
//! has what verdicts, stop reasons, landings and states are called. Nothing here knows a command, a
//! socket or a terminal.

mod markup;
pub mod picture;
pub mod plot;
pub mod words;

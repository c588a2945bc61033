//! What is kept of finished runs, where, and how it is asked for.

pub(super) mod columns;
pub(super) mod frame;
pub(super) mod outcome;
pub(super) mod query;
mod seal;
pub(super) mod series;
pub(super) mod sketch;
pub mod stats;
pub(super) mod store;

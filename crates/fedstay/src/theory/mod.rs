//! What the paper proves, and problems on which it can be seen.

pub mod diagnose;
pub mod problem;

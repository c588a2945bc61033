//! Books that belong to every run: each keeps one part of its summary, one file per part;
//! and when an agent is predicted to leave, for everything that follows a run.

pub mod consistency;
pub mod forecast;
pub mod worth;

//! Books that belong to every run: each keeps one part of its summary, one file per part.

pub mod consistency;
pub mod worth;

//! The paper behind fedstay, as two subcommands of `fedstay`: its figures, and the tournament of rules
//! against behaviours. `fedstay-cli` has them behind its feature `paper`.

pub mod figure;
mod tournament;

pub use figure::Figure;
pub use tournament::Tournament;

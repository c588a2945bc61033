//! What is required of the program under hostile input, in one place: cargo-fuzz feeds it bytes of
//! its own making (`fuzz_targets/`), CI feeds it structured cases
//! (`crates/fedstay-cli/tests/fuzz.rs`).

pub mod bodies;
pub mod damage;
pub mod draw;
pub mod exact;
pub mod steps;

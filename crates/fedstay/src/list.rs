//! What a list (of rules, of behaviours, of problems …) says about its entries.

use serde::Serialize;

/// One entry of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// The name in a configuration.
    pub name: &'static str,
    /// One sentence.
    pub about: &'static str,
    /// Where it comes from.
    pub reference: &'static str,
}

//! What a list (of rules, of behaviours, of problems …) says about its entries.

use serde::Serialize;

/// One entry of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Its name in a configuration.
    pub name: &'static str,
    /// One sentence that says what it does.
    pub about: &'static str,
    /// Where it comes from.
    pub reference: &'static str,
}

/// What the file of an entry says about it; the list adds the name.
pub(crate) struct Origin {
    /// What it does, in half a sentence.
    pub(crate) about: &'static str,
    /// Where it comes from.
    pub(crate) reference: &'static str,
}

impl Origin {
    pub(crate) const fn named(self, name: &'static str) -> Entry {
        Entry { name, about: self.about, reference: self.reference }
    }
}

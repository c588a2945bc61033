//! The answer of a plan in words that a steering committee reads: the five parts, a sentence per member,
//! two tables, and the recommendation. The terminal and the page show the same.

mod advice;
mod numbers;
mod owners;
mod parts;
mod ways;

pub use advice::advice;
pub use owners::{member, members_table};
pub use parts::{averaging, came_in, chance, gaining, method, title, without};
pub use ways::{way, ways_table};

use super::{capital, count, list};
pub(crate) use numbers::{difference, interval, value};

/// A table in words: headings, how soon each column can be spared, rows, and what the headings mean.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanTable {
    /// The headings, each with how soon it is left out where there is no room; 0 is never.
    pub headings: Vec<(String, u8)>,
    /// The rows.
    pub rows: Vec<Vec<String>>,
    /// What the headings mean, in a line or two.
    pub glossary: String,
}

/// More names than this are not listed in a sentence.
const MOST_NAMES: usize = 6;

/// Names in a sentence: `a, b and c`, or the first few `and 12 more`.
pub(crate) fn names(names: &[String]) -> String {
    if names.len() <= MOST_NAMES {
        return list(names);
    }
    let more = names.len() - (MOST_NAMES - 1);
    format!("{} and {more} more", names[..MOST_NAMES - 1].join(", "))
}

#[cfg(test)]
mod tests;

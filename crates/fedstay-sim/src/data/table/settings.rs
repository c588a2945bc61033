//! What can be said about a table.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// One file, or several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Paths {
    /// A file, or a pattern such as `sites/*.csv`.
    One(PathBuf),
    /// Several of these.
    Several(Vec<PathBuf>),
}

impl Paths {
    /// Each of them.
    pub fn each(&self) -> &[PathBuf] {
        match self {
            Self::One(path) => std::slice::from_ref(path),
            Self::Several(paths) => paths,
        }
    }
}

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReadAs {
    /// Numbers.
    Number,
    /// One of several texts.
    Category,
    /// Days, as 2024-05-31.
    Date,
}

impl ReadAs {
    /// Its name in a file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Number => "number",
            Self::Category => "category",
            Self::Date => "date",
        }
    }
}

/// What stands in for a number that is missing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fill {
    /// The median of the column's training rows.
    #[default]
    Median,
    /// Their mean.
    Mean,
    /// Nothing: a table in which something is missing is refused.
    Refuse,
    /// Nothing: rows in which something is missing are left out.
    Drop,
}

impl Fill {
    /// Its name in a file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Median => "median",
            Self::Mean => "mean",
            Self::Refuse => "refuse",
            Self::Drop => "drop",
        }
    }
}

/// What separates a number's decimals.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DecimalSign {
    /// `3.5`.
    #[default]
    #[serde(rename = ".")]
    Point,
    /// `3,5`.
    #[serde(rename = ",")]
    Comma,
}

/// How letters are written as bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Encoding {
    /// UTF-8.
    #[default]
    #[serde(rename = "utf-8")]
    Utf8,
    /// Latin-1 with the letters that Windows adds (code page 1252).
    #[serde(rename = "latin-1")]
    Latin1,
}

/// Whose rows say what is usual, when features are brought to one scale.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scaling {
    /// All training rows: what owners would find out together by counts, sums and sums of squares.
    #[default]
    Federated,
    /// Each owner's own training rows.
    Owner,
    /// Nobody's: features stay as they are.
    None,
}

/// What becomes of owners with too few rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Small {
    /// They are one owner together.
    #[default]
    Join,
    /// Their rows are not used.
    LeaveOut,
    /// The table is refused.
    Refuse,
}

/// What is missing, unless a file says otherwise.
pub(super) fn missing() -> Vec<String> {
    ["", "NA", "NaN", "?", "."].map(String::from).into()
}

/// The rows that an owner must have, unless a file says otherwise.
pub(super) fn least() -> usize {
    20
}

/// Every owner has test rows, unless a file says otherwise.
pub(super) fn by_owner() -> String {
    OWNER.into()
}

/// A share of every owner's rows is kept for testing.
pub(super) const OWNER: &str = "owner";
/// A share of all rows is.
pub(super) const POOLED: &str = "pooled";
/// The owner is the file.
pub(super) const FILE: &str = "file";

//! What something remembers between rounds, on its way into a checkpoint and back.

pub(crate) mod inside;
pub mod packed;

use crate::Error;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The saved state of an engine, a book or a rule from elsewhere.
///
/// Whoever saves it knows its type and reads it back as that; everybody in between only carries it. An
/// empty memory is what something without a state saves.
///
/// ```
/// use fedstay::Memory;
/// let memory = Memory::of(&vec![1, 2, 3])?;
/// assert_eq!(memory.read::<Vec<u32>>()?, [1, 2, 3]);
/// assert!(memory.read::<String>().is_err());
/// # Ok::<(), fedstay::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Memory(Value);

impl Memory {
    /// Saves a value.
    ///
    /// # Errors
    /// When it holds something that JSON cannot say, a map without text for keys for instance.
    pub fn of(value: &impl Serialize) -> Result<Self, Error> {
        serde_json::to_value(value).map(Self).map_err(unusable)
    }

    /// Reads back what [`of`](Self::of) saved.
    ///
    /// # Errors
    /// When it is something else.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Error> {
        T::deserialize(&self.0).map_err(unusable)
    }

    /// Takes over a text of JSON, from a language that has its own types.
    ///
    /// # Errors
    /// When it is not JSON.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        serde_json::from_str(text).map(Self).map_err(unusable)
    }

    /// The text of JSON that it is.
    pub fn to_json(&self) -> String {
        self.0.to_string()
    }

    /// Whether nothing was saved.
    pub fn is_empty(&self) -> bool {
        self.0.is_null()
    }
}

fn unusable(error: serde_json::Error) -> Error {
    Error::BadState { why: error.to_string() }
}

//! What something remembers between rounds, on its way into a checkpoint and back.

pub(crate) mod inside;

use crate::Error;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The saved state of an engine, a book or a custom rule.
///
/// Only the code that saves it knows its type and reads it back as that; everything in between just
/// carries it. Something without a state saves an empty memory.
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
    /// If it holds something that JSON cannot express, such as a map whose keys are not strings.
    pub fn of(value: &impl Serialize) -> Result<Self, Error> {
        serde_json::to_value(value).map(Self).map_err(unusable)
    }

    /// Reads back what [`of`](Self::of) saved.
    ///
    /// # Errors
    /// If it is of another type.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Error> {
        T::deserialize(&self.0).map_err(unusable)
    }

    /// Takes JSON text from a language that has its own types.
    ///
    /// # Errors
    /// If the text is not JSON.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        serde_json::from_str(text).map(Self).map_err(unusable)
    }

    /// The memory as JSON text.
    pub fn to_json(&self) -> String {
        self.0.to_string()
    }
}

fn unusable(error: serde_json::Error) -> Error {
    Error::BadState { why: error.to_string() }
}

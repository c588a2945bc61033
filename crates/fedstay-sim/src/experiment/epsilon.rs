//! The target loss at which an agent is content, as a file says it.

use super::SpecError;
use serde::{Deserialize, Serialize};

/// One number for all, one per agent, or a multiple of what the agent reaches alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "epsilon must be a number, a list of numbers, or \"1.1 * local\"")]
pub enum Epsilon {
    /// The same for every agent.
    One(f64),
    /// One per agent, by id.
    Each(Vec<f64>),
    /// A multiple of the loss the agent reaches by training alone: `"1.1 * local"`.
    Relative(Relative),
}

/// A multiple of the loss an agent reaches alone, written `"1.1 * local"`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Relative(pub f64);

impl TryFrom<String> for Relative {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let factor = text.trim().strip_suffix("local").map(str::trim_end);
        let factor = factor.and_then(|rest| rest.strip_suffix('*')).map(str::trim);
        match factor.map(str::parse::<f64>) {
            Some(Ok(factor)) if factor.is_finite() && factor > 0.0 => Ok(Self(factor)),
            _ => {
                Err(format!("`{text}` is not a relative target loss; write it as \"1.1 * local\""))
            }
        }
    }
}

impl From<Relative> for String {
    fn from(relative: Relative) -> Self {
        format!("{} * local", relative.0)
    }
}

impl Epsilon {
    /// One target loss per agent; `local` gives what each reaches alone, if that is needed.
    ///
    /// # Errors
    /// When the list has the wrong length, or a number is not finite.
    pub fn each(
        &self,
        agents: usize,
        local: impl FnOnce() -> Result<Vec<f64>, SpecError>,
    ) -> Result<Vec<f64>, SpecError> {
        let each = match self {
            Self::One(epsilon) => vec![*epsilon; agents],
            Self::Each(list) => list.clone(),
            Self::Relative(Relative(factor)) => {
                local()?.into_iter().map(|loss| factor * loss).collect()
            }
        };
        if each.len() != agents {
            return Err(SpecError::Epsilons { got: each.len(), agents });
        }
        match each.iter().find(|epsilon| !epsilon.is_finite()) {
            Some(epsilon) => Err(SpecError::EpsilonNotFinite { epsilon: *epsilon }),
            None => Ok(each),
        }
    }
}

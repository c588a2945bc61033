//! `withholding`: decide on all rows, work on some.
//!
//! It decides as `threshold` does, on all of its rows, but works for the federation on the first ones
//! only, a share of `rows`, and says that it has that many. A model that never saw the rest serves it
//! less well, so it stays longer and costs everybody rounds. On a named problem there are no rows to
//! withhold, and it is `threshold`.
//!
//! Reference: agents that choose how much of their data to contribute are those of Karimireddy, Guo,
//! Jordan, *Mechanisms that Incentivize Data Sharing in Federated Learning*, arXiv 2207.04557, 2022.

use super::{Choice, Decide, Manner, Origin, View};
use crate::Error;
use serde::{Deserialize, Serialize};

pub(super) const ORIGIN: Origin = Origin {
    about: "leaves content; decides on all of its rows and works on a share of them",
    reference: "after Karimireddy, Guo, Jordan, arXiv 2207.04557",
};

/// Works on a share of its rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Withholding {
    /// The share of its rows that it works on. 1 is `threshold`.
    pub rows: f64,
}

impl Default for Withholding {
    fn default() -> Self {
        Self { rows: 0.2 }
    }
}

impl Decide for Withholding {
    fn decide(&mut self, view: &mut View<'_>) -> Choice {
        if view.evidence.at_most(view.epsilon) { Choice::Leave } else { Choice::Stay }
    }

    fn manner(&self) -> Manner {
        Manner { rows: self.rows, ..Manner::default() }
    }

    fn needs_simulator(&self) -> bool {
        true
    }

    fn check(&self) -> Result<(), Error> {
        match self.rows > 0.0 && self.rows <= 1.0 {
            true => Ok(()),
            false => {
                Err(Error::bad_parameter("behaviour.rows", self.rows, "a share above 0, at most 1"))
            }
        }
    }
}

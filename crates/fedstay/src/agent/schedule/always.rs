//! `always`: everybody, in every round.

use super::{Attend, Origin, When};
use serde::{Deserialize, Serialize};

pub(super) const ORIGIN: Origin =
    Origin { about: "everybody is there in every round", reference: "arXiv 2311.16459" };

/// Everybody is always there. It has no parameters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Always {}

impl Attend for Always {
    fn is_there(&self, _: When) -> bool {
        true
    }
}

//! Who is who.

use serde::{Deserialize, Serialize};

/// The id by which the server knows an agent, and files too. It has no `Display`: what a person reads calls
/// agents by their names ([`called`](crate::record::called)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AgentId(pub u64);

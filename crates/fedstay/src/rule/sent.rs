//! What agents sent last, for rules that use it again.

use crate::{AgentId, Report, linalg, packed};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::{collections::BTreeMap, sync::Arc};

/// The last direction of every agent; shared, because a server copies its rule every round.
pub(super) type Last = BTreeMap<AgentId, Arc<LastSent>>;

/// What an agent sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct LastSent {
    pub(super) agent: AgentId,
    pub(super) round: u32,
    /// The samples behind it; states from before this was kept count everybody alike.
    #[serde(default)]
    pub(super) samples: u64,
    #[serde(with = "packed")]
    pub(super) direction: Vec<f64>,
}

impl LastSent {
    /// The direction of a report, times a number.
    pub(super) fn new(report: &Report<'_>, times: f64, round: u32) -> Arc<Self> {
        let mut direction = vec![0.0; report.direction.len()];
        linalg::add_scaled(&mut direction, times, report.direction);
        Arc::new(Self { agent: report.agent, round, samples: report.samples, direction })
    }
}

/// They are written as a list.
pub(super) fn serialize<S: Serializer>(last: &Last, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(last.values().map(|sent| &**sent))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(source: D) -> Result<Last, D::Error> {
    let last = Vec::<LastSent>::deserialize(source)?.into_iter();
    Ok(last.map(|sent| (sent.agent, Arc::new(sent))).collect())
}

//! All devices are alike: every row goes to a device at random.

use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::Deal;
use crate::data::DataError;

/// A partition with no heterogeneity but chance.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Iid {}

impl Iid {
    /// Deals the rows out.
    pub(super) fn deal(
        &self,
        deal: &Deal<'_>,
        rng: &mut ChaCha8Rng,
    ) -> Result<Vec<Vec<usize>>, DataError> {
        let each = deal.rows_each()?;
        let mut rows: Vec<usize> = (0..deal.labels.len()).collect();
        rows.shuffle(rng);
        Ok(rows.chunks_exact(each).take(deal.devices).map(<[_]>::to_vec).collect())
    }
}

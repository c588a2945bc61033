//! Every device has a few pieces of the sorted rows.
//!
//! The rows are sorted by class and cut into shards of n/k rows; every device gets k of them at
//! random. With k = 2 most devices see two classes. Where devices are unequal, a device gets more or
//! fewer shards of the same size instead.
//!
//! Reference: B. McMahan, E. Moore, D. Ramage, S. Hampson and B. Agüera y Arcas,
//! *Communication-Efficient Learning of Deep Networks from Decentralized Data*, 2017.

use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use std::ops::Range;

use super::sizes::{Sizing, one};
use super::{Deal, Dealing, Dealt, Law, Origin, Portions};
use crate::data::DataError;

pub(super) const ORIGIN: Origin = Origin {
    about: "rows sorted by class and cut up; every device gets k of the pieces",
    reference: "",
};

/// Every device gets a few pieces of the sorted rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shards {
    /// The number of shards of a device, on average where devices are unequal.
    #[serde(default = "two")]
    pub k: usize,
    /// How many rows the devices have.
    #[serde(default)]
    pub sizes: Sizing,
    /// How unequal that is; 0 is equal.
    #[serde(default = "one")]
    pub skew: f64,
}

fn two() -> usize {
    2
}

impl Shards {
    /// Checks that devices of `each` rows, which may be as a file says, can have this number of shards.
    pub(super) fn check(&self, each: usize, given: bool) -> Result<(), DataError> {
        if self.k == 0 || self.k > each {
            let why = format!("{} is not between 1 and the {each} rows of a device", self.k);
            return Err(DataError::setting("partition.k", why));
        }
        if given && !each.is_multiple_of(self.k) {
            let why = format!("{each} is not a multiple of partition.k = {}", self.k);
            return Err(DataError::setting("data.per_agent", why));
        }
        Ok(())
    }
}

impl Dealing for Shards {
    fn sizing(&self) -> (Sizing, f64) {
        (self.sizes, self.skew)
    }

    fn describe(&self) -> String {
        format!("{} shards a device", self.k)
    }

    fn deal(&self, portions: &Portions<'_>, rng: &mut ChaCha8Rng) -> Dealt {
        let deal = portions.deal;
        let classes = deal.classes("shards")?;
        let each = deal.rows_each()?;
        self.check(each, deal.per_agent.is_some())?;
        let sorted = Deal::shuffled(classes, rng).concat();
        let mut shards: Vec<&[usize]> = sorted.chunks_exact(each / self.k).collect();
        shards.shuffle(rng);
        let mut shards = shards.into_iter();
        let mut take = |count| shards.by_ref().take(count).flatten().copied().collect();
        Ok(portions.counts(self.k).into_iter().map(&mut take).collect())
    }

    fn law(&self, deal: &Deal<'_>, each: usize, _: &[Range<usize>]) -> Result<Law, DataError> {
        deal.classes("shards")?;
        self.check(each, true)?;
        Ok(Law::Shards { k: self.k, width: each / self.k })
    }

    fn limit(&self, _: &Deal<'_>, _: &[usize]) -> String {
        format!("{} equal shards each leave them over", self.k)
    }

    fn instead(&self, stated: &str) -> String {
        format!("partition.kind = \"iid\" leaves fewer over; {stated}")
    }
}

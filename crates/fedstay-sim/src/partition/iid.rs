//! All devices are alike: every row goes to a device at random.

use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use std::ops::Range;

use super::sizes::{Sizing, one};
use super::{Deal, Dealing, Dealt, Law, Origin, Portions};
use crate::data::DataError;

pub(super) const ORIGIN: Origin =
    Origin { about: "every device gets rows at random", reference: "" };

/// A partition with no heterogeneity but chance, and the devices' sizes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Iid {
    /// How many rows the devices have.
    #[serde(default)]
    pub sizes: Sizing,
    /// How unequal that is; 0 is equal.
    #[serde(default = "one")]
    pub skew: f64,
}

impl Default for Iid {
    fn default() -> Self {
        Self { sizes: Sizing::default(), skew: one() }
    }
}

impl Dealing for Iid {
    fn sizing(&self) -> (Sizing, f64) {
        (self.sizes, self.skew)
    }

    fn describe(&self) -> String {
        "i.i.d.".into()
    }

    fn deal(&self, portions: &Portions<'_>, rng: &mut ChaCha8Rng) -> Dealt {
        let counts = portions.rows_each()?;
        let mut rows: Vec<usize> = (0..portions.deal.targets.len()).collect();
        rows.shuffle(rng);
        let mut rows = rows.into_iter();
        Ok(counts.into_iter().map(|count| rows.by_ref().take(count).collect()).collect())
    }

    fn law(&self, _: &Deal<'_>, _: usize, _: &[Range<usize>]) -> Result<Law, DataError> {
        Ok(Law::Iid)
    }
}

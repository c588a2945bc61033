//! Every device has the rows of one owner: the data say who holds what.
//!
//! Nothing is drawn: a device has its owner's training rows in the order of the file, all of them.

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use std::ops::Range;

use super::sizes::Sizing;
use super::unused::LONGEST_NAME;
use super::{Deal, Dealing, Dealt, Law, Origin, Portions};
use crate::data::{DataError, Owners, Small};
use crate::is_default;
use crate::text::quoted;

pub(super) const ORIGIN: Origin =
    Origin { about: "every agent is an owner and has its own rows, by data.owner", reference: "" };

/// The rows as the data say who holds them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Owner {
    /// What becomes of owners with fewer rows than `data.least`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub small: Small,
}

impl Dealing for Owner {
    fn sizing(&self) -> (Sizing, f64) {
        (Sizing::Equal, 0.0)
    }

    fn describe(&self) -> String {
        "every owner its own rows".into()
    }

    fn is_given(&self) -> bool {
        true
    }

    fn devices(&self, asked: usize, owners: Option<&Owners>) -> Result<usize, DataError> {
        let there = known(owners)?.names.len();
        if asked == 0 || asked == there {
            return Ok(there);
        }
        let why = format!(
            "{asked} are asked for, but data.owner names {there}: leave this out, since every owner is one"
        );
        Err(DataError::setting("agents", why))
    }

    fn deal(&self, portions: &Portions<'_>, _: &mut ChaCha8Rng) -> Dealt {
        let deal = portions.deal;
        let owners = known(deal.owners)?;
        if deal.per_agent.is_some() {
            let why = "every owner has the rows it has: leave this out, or choose another \
                       partition.kind";
            return Err(DataError::setting("data.per_agent", why));
        }
        let rows = owners.rows(deal.targets.len());
        match rows.iter().position(Vec::is_empty) {
            Some(owner) => {
                let name = quoted(&owners.names[owner], LONGEST_NAME);
                let why = format!("`{name}` has no training rows: leave its rows out of the table");
                Err(DataError::setting("data.owner", why))
            }
            None => Ok(rows),
        }
    }

    fn law(&self, _: &Deal<'_>, _: usize, _: &[Range<usize>]) -> Result<Law, DataError> {
        let why =
            "owners have the rows they have: leave this out, or choose another partition.kind";
        Err(DataError::setting("data.replace", why))
    }
}

/// The owners, if the data have any.
fn known(owners: Option<&Owners>) -> Result<&Owners, DataError> {
    owners.ok_or_else(|| {
        let why = "\"owner\" needs data.owner, the column of a csv table, or of a table, that says who holds a row";
        DataError::setting("partition.kind", why)
    })
}

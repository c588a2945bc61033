//! Who holds what: dealing the training rows out to devices.
//!
//! Every way of dealing is one file in this folder and one kind of [`Partition`]. All devices end
//! up with equally many rows unless [`Sizing`] says otherwise, no row goes to two of them, and chance
//! comes from the given stream alone. With `data.replace` the rows of every device are drawn with
//! replacement instead, when they are needed: see `replace.rs`.

use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::data::{DataError, Fits};

mod by_class;
mod dirichlet;
mod histogram;
mod iid;
mod replace;
mod shards;
mod sizes;
mod unused;

pub use self::by_class::{ByClass, Mix};
pub use self::dirichlet::Dirichlet;
pub use self::histogram::Histogram;
pub use self::iid::Iid;
pub(crate) use self::replace::Drawing;
pub use self::shards::Shards;
pub use self::sizes::Sizing;

/// The `[partition]` table of an experiment: every way of dealing rows out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Partition {
    /// Device i has class i, and some of every other.
    ByClass(ByClass),
    /// Every device has its own random mixture of the classes.
    Dirichlet(Dirichlet),
    /// Every device has a few pieces of the sorted rows.
    Shards(Shards),
    /// All devices are alike.
    Iid(Iid),
}

impl Default for Partition {
    fn default() -> Self {
        Partition::ByClass(ByClass::default())
    }
}

/// What is dealt out, and to how many devices.
#[derive(Debug, Clone, Copy)]
pub struct Deal<'a> {
    /// The class of every training row.
    pub labels: &'a [u16],
    /// The classes' names.
    pub classes: &'a [String],
    /// How many devices there are.
    pub devices: usize,
    /// The rows of a device, on average where they are unequal; by default as many as all can have
    /// equally.
    pub per_agent: Option<usize>,
}

/// A deal with every device's share of the rows.
#[derive(Debug)]
struct Portions<'a> {
    deal: &'a Deal<'a>,
    /// `None` if all are equal.
    shares: Option<Vec<f64>>,
}

impl Partition {
    /// Every kind with a description, in the order in which they are listed.
    pub const KINDS: [(&'static str, &'static str); 4] = [
        ("by-class", "device i has class i and, by q and mix, some of every other"),
        ("dirichlet", "every device draws its own mixture of classes, uneven for a small alpha"),
        ("shards", "rows sorted by class and cut up; every device gets k of the pieces"),
        ("iid", "every device gets rows at random"),
    ];

    /// The name it is listed under.
    pub fn kind(&self) -> &'static str {
        match self {
            Partition::ByClass(_) => "by-class",
            Partition::Dirichlet(_) => "dirichlet",
            Partition::Shards(_) => "shards",
            Partition::Iid(_) => "iid",
        }
    }

    /// A description for the head of an output; with a `q` it names the reading.
    pub fn describe(&self) -> String {
        let how = match self {
            Partition::ByClass(by_class) => by_class.describe(),
            Partition::Dirichlet(Dirichlet { alpha, .. }) => format!("Dirichlet({alpha}) mixtures"),
            Partition::Shards(Shards { k, .. }) => format!("{k} shards a device"),
            Partition::Iid(_) => "i.i.d.".into(),
        };
        how + &sizes::describe(self.sizing())
    }

    /// How unequal the devices are: by which law, and how much.
    fn sizing(&self) -> (Sizing, f64) {
        match self {
            Partition::ByClass(ByClass { sizes, skew, .. })
            | Partition::Dirichlet(Dirichlet { sizes, skew, .. })
            | Partition::Shards(Shards { sizes, skew, .. })
            | Partition::Iid(Iid { sizes, skew }) => (*sizes, *skew),
        }
    }

    /// Whether all devices get equally many rows.
    pub fn is_equal(&self) -> bool {
        matches!(self.sizing(), (Sizing::Equal, _) | (_, 0.0))
    }

    /// Deals out the rows: those of every device, each in random order.
    pub fn deal(
        &self,
        deal: &Deal<'_>,
        rng: &mut ChaCha8Rng,
    ) -> Result<Vec<Vec<usize>>, DataError> {
        if deal.devices == 0 {
            return Err(DataError::setting("agents", "there must be at least one"));
        }
        if deal.per_agent == Some(0) {
            return Err(DataError::setting("data.per_agent", "must be at least 1"));
        }
        if deal.devices > deal.labels.len() {
            // Checked before anything is counted for each device.
            return Err(deal.too_few(deal.per_agent.unwrap_or(1), 0));
        }
        let deal = &Portions { deal, shares: sizes::shares(self.sizing(), deal.devices, rng)? };
        let mut devices = match self {
            Partition::ByClass(by_class) => by_class.deal(deal, rng),
            Partition::Dirichlet(dirichlet) => dirichlet.deal(deal, rng),
            Partition::Shards(shards) => shards.deal(deal, rng),
            Partition::Iid(_) => iid::deal(deal, rng),
        }?;
        devices.iter_mut().for_each(|rows| rows.shuffle(rng));
        Ok(devices)
    }
}

impl Deal<'_> {
    /// The rows of each class, in random order.
    fn shuffled_classes(&self, rng: &mut ChaCha8Rng) -> Vec<Vec<usize>> {
        let mut rows = vec![Vec::new(); self.classes.len()];
        for (row, &label) in self.labels.iter().enumerate() {
            rows[usize::from(label)].push(row);
        }
        rows.iter_mut().for_each(|rows| rows.shuffle(rng));
        rows
    }

    /// How many rows a device gets where any row may go to any device.
    fn rows_each(&self) -> Result<usize, DataError> {
        let most = self.labels.len() / self.devices;
        match self.per_agent.unwrap_or(most.max(1)) {
            rows if rows <= most => Ok(rows),
            rows => Err(self.too_few(rows, most)),
        }
    }

    /// The error that there are not enough rows for every device, but would be with `fits` each.
    fn too_few(&self, rows: usize, fits: usize) -> DataError {
        DataError::TooFew {
            has: self.labels.len(),
            needs: rows.saturating_mul(self.devices),
            devices: self.devices,
            per_agent: rows,
            fits: Fits(fits),
        }
    }
}

impl Portions<'_> {
    /// How many of `each` per device on average every device gets.
    fn counts(&self, each: usize) -> Vec<usize> {
        match &self.shares {
            None => vec![each; self.deal.devices],
            Some(shares) => sizes::counts(shares, each.saturating_mul(self.deal.devices)),
        }
    }

    /// How many rows every device gets where any row may go to any device.
    fn rows_each(&self) -> Result<Vec<usize>, DataError> {
        Ok(self.counts(self.deal.rows_each()?))
    }
}

#[cfg(test)]
mod tests;

//! Who holds what: dealing the training rows out to devices.
//!
//! Every way of dealing is one file in this folder and one kind of [`Partition`]. All devices end
//! up with equally many rows unless [`Sizing`] says otherwise, no row goes to two of them, and chance
//! comes from the given stream alone. With `data.replace` the rows of every device are drawn with
//! replacement instead, when they are needed: see `replace.rs`.

use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use std::ops::Range;

use crate::data::{Classes, DataError, Fits, Owners, Small, TargetsOf};
use fedstay::list::Origin;
use fedstay::listed;

mod by_class;
mod dirichlet;
mod histogram;
mod iid;
mod owner;
mod replace;
mod shards;
mod sizes;
mod unused;

pub use self::by_class::{ByClass, Mix};
pub use self::dirichlet::Dirichlet;
pub use self::histogram::Histogram;
pub use self::iid::Iid;
pub use self::owner::Owner;
pub(crate) use self::replace::Drawing;
use self::replace::Law;
pub use self::shards::Shards;
pub use self::sizes::Sizing;

listed! {
    /// The `[partition]` table of an experiment: every way of dealing rows out.
    pub enum Partition: Dealing, "kind", ByClass {
        /// Device i has class i, and some of every other.
        ByClass(ByClass) = "by-class", by_class::ORIGIN;
        /// Every device has its own random mixture of the classes.
        Dirichlet(Dirichlet) = "dirichlet", dirichlet::ORIGIN;
        /// Every device has a few pieces of the sorted rows.
        Shards(Shards) = "shards", shards::ORIGIN;
        /// All devices are alike.
        Iid(Iid) = "iid", iid::ORIGIN;
        /// Every device has the rows of one owner.
        Owner(Owner) = "owner", owner::ORIGIN;
    }
}

/// The rows of every device.
type Dealt = Result<Vec<Vec<usize>>, DataError>;

/// A way of dealing rows out.
trait Dealing {
    /// How unequal the devices are: by which law, and how much.
    fn sizing(&self) -> (Sizing, f64);

    /// A description for the head of an output, without the sizes.
    fn describe(&self) -> String;

    /// Whether the data say who holds what, so that nothing is drawn.
    fn is_given(&self) -> bool {
        false
    }

    /// How many devices there are where this number is asked for: 0 leaves it to the data.
    ///
    /// # Errors
    /// When the data say something else.
    fn devices(&self, asked: usize, owners: Option<&Owners>) -> Result<usize, DataError> {
        let _ = owners;
        Ok(asked)
    }

    /// Deals the rows out.
    ///
    /// # Errors
    /// When a setting is out of range, or there are too few rows.
    fn deal(&self, portions: &Portions<'_>, rng: &mut ChaCha8Rng) -> Dealt;

    /// How rows are drawn with replacement, `each` per device on average, where `classes` are the rows of
    /// each class.
    ///
    /// # Errors
    /// When a setting is out of range, or there is no such law.
    fn law(&self, deal: &Deal<'_>, each: usize, classes: &[Range<usize>])
    -> Result<Law, DataError>;

    /// Classes that no device takes, of which rows are `left`: which, what leaves them out, and whether the
    /// file asks for that.
    fn untaken(&self, deal: &Deal<'_>, left: &[usize]) -> Option<(Vec<usize>, String, bool)> {
        let _ = (deal, left);
        None
    }

    /// Why the rows that are left of the other classes could not be dealt to all devices alike.
    fn limit(&self, deal: &Deal<'_>, left: &[usize]) -> String {
        let _ = (deal, left);
        "too few for one more each".into()
    }

    /// What can be set so that fewer rows are left over; `stated` says how to state that it is meant.
    fn instead(&self, stated: &str) -> String {
        format!("fewer agents leave fewer over; {stated}")
    }
}

/// What is dealt out, and to how many devices.
#[derive(Debug, Clone, Copy)]
pub struct Deal<'a> {
    /// What a model is to say of every training row.
    pub targets: TargetsOf<'a>,
    /// Who holds which row, where the data say so.
    pub owners: Option<&'a Owners>,
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
    /// A description for the head of an output; with a `q` it names the reading.
    pub fn describe(&self) -> String {
        self.inner().describe() + &sizes::describe(self.sizing())
    }

    /// How unequal the devices are: by which law, and how much.
    fn sizing(&self) -> (Sizing, f64) {
        self.inner().sizing()
    }

    /// Whether all devices get equally many rows.
    pub fn is_equal(&self) -> bool {
        matches!(self.sizing(), (Sizing::Equal, _) | (_, 0.0))
    }

    /// Whether the data say who holds what: the devices are then their owners.
    pub fn is_given(&self) -> bool {
        self.inner().is_given()
    }

    /// What becomes of owners with too few rows.
    pub fn small(&self) -> Small {
        match self {
            Self::Owner(owner) => owner.small,
            _ => Small::default(),
        }
    }

    /// How many devices there are where this number is asked for; 0 leaves it to the data.
    ///
    /// # Errors
    /// When the data say something else.
    pub fn devices(&self, asked: usize, owners: Option<&Owners>) -> Result<usize, DataError> {
        self.inner().devices(asked, owners)
    }

    /// Deals out the rows: those of every device, each in random order unless the data say who holds what.
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
        if deal.devices > deal.targets.len() {
            // Checked before anything is counted for each device.
            return Err(deal.too_few(deal.per_agent.unwrap_or(1), 0));
        }
        let deal = &Portions { deal, shares: sizes::shares(self.sizing(), deal.devices, rng)? };
        let mut devices = self.inner().deal(deal, rng)?;
        if !self.is_given() {
            devices.iter_mut().for_each(|rows| rows.shuffle(rng));
        }
        Ok(devices)
    }
}

impl<'a> Deal<'a> {
    /// The classes, for a kind of partition that deals rows out by them.
    ///
    /// # Errors
    /// When rows have numbers instead.
    fn classes(&self, kind: &str) -> Result<Classes<'a>, DataError> {
        match self.targets {
            TargetsOf::Classes(classes) => Ok(classes),
            TargetsOf::Numbers { name, .. } => {
                let why = format!(
                    "\"{kind}\" deals rows out by their classes, but `{name}` is a number: choose \
                     \"iid\""
                );
                Err(DataError::setting("partition.kind", why))
            }
        }
    }

    /// The rows of each of these classes, in random order.
    fn shuffled(classes: Classes<'_>, rng: &mut ChaCha8Rng) -> Vec<Vec<usize>> {
        let mut rows = vec![Vec::new(); classes.names.len()];
        for (row, &label) in classes.of.iter().enumerate() {
            rows[usize::from(label)].push(row);
        }
        rows.iter_mut().for_each(|rows| rows.shuffle(rng));
        rows
    }

    /// How many rows a device gets where any row may go to any device.
    fn rows_each(&self) -> Result<usize, DataError> {
        let most = self.targets.len() / self.devices;
        match self.per_agent.unwrap_or(most.max(1)) {
            rows if rows <= most => Ok(rows),
            rows => Err(self.too_few(rows, most)),
        }
    }

    /// The error that there are not enough rows for every device, but would be with `fits` each.
    fn too_few(&self, rows: usize, fits: usize) -> DataError {
        DataError::TooFew {
            has: self.targets.len(),
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

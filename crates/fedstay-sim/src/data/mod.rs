//! Data sets: what an agent holds, and where it comes from.
//!
//! Every data set is one file in this folder and one kind of [`Source`]. [`Data`] is the `[data]`
//! table of an experiment: a source, the number of rows per agent, and the classes that are kept.

use fedstay::list::Origin;
use fedstay::listed;
use fedstay::record::UnusedRows;
use serde::{Deserialize, Serialize};

mod cache;
mod checked;
mod cifar10;
mod clinics;
mod csv;
mod dataset;
mod digits;
mod error;
pub mod fetch;
mod idx;
mod labels;
mod mnist;
mod npy;
mod npz;
mod owners;
mod row_targets;
pub mod table;
mod targets;

pub use self::cache::cache_dir;
pub use self::cifar10::Cifar10;
pub use self::clinics::Clinics;
pub use self::csv::{Csv, LabelColumn, Predicted};
pub use self::dataset::{Channels, Dataset, Image, Inputs, Row, RowGroups};
pub(crate) use self::dataset::{CopiedInputs, Copies};
pub use self::digits::Digits;
pub use self::error::{DataError, Fits};
pub use self::mnist::{FashionMnist, Mnist};
pub use self::npz::Npz;
pub use self::owners::Owners;
pub use self::row_targets::{Output, RowTargets};
pub use self::table::{Draw, Small, Table};
pub use self::targets::{Classes, Scale, Targets, TargetsOf};

/// How the rows of a data set are read.
pub trait Load {
    /// Reads the data set as it is: every class, not yet standardised.
    ///
    /// # Errors
    /// When a file is missing or is not what it claims to be; the message says what to do.
    fn load(&self) -> Result<LoadedData, DataError>;

    /// The same for a run, where the seed draws test rows; by default they are the same for all seeds.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    fn load_for(&self, draw: Draw) -> Result<LoadedData, DataError> {
        let _ = draw;
        self.load()
    }

    /// The feature with this name; `None` for data whose features have none.
    ///
    /// # Errors
    /// When features have names, and this is not one of them.
    fn feature(&self, name: &str) -> Result<Option<usize>, DataError> {
        let _ = name;
        Ok(None)
    }
}

listed! {
    /// Where rows come from: every data set there is.
    pub enum Source: deref Load, "kind", Digits {
        /// The 1,797 digits that come with the program.
        Digits(Digits) = "digits", digits::ORIGIN;
        /// Four real clinics, built in.
        Clinics(Clinics) = "clinics", clinics::ORIGIN;
        /// CIFAR-10.
        Cifar10(Cifar10) = "cifar10", cifar10::ORIGIN;
        /// MNIST.
        Mnist(Mnist) = "mnist", mnist::ORIGIN;
        /// Fashion-MNIST.
        FashionMnist(FashionMnist) = "fashion-mnist", mnist::FASHION_ORIGIN;
        /// A table of your own.
        Csv(Csv) = "csv", csv::ORIGIN;
        /// Tables as they are.
        Table(Table) = "table", table::ORIGIN;
        /// Arrays of your own.
        Npz(Npz) = "npz", npz::ORIGIN;
    }
}

/// A data set with its split: training rows first, then the test rows.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadedData {
    /// The rows.
    pub data: Dataset,
    /// How many of them are for training.
    pub train: usize,
    /// How they are to be standardised.
    pub channels: Channels,
    /// How many more rows were read, of classes that are left out.
    pub left_out: usize,
    /// Other rows that were read and are not used, and why.
    pub not_used: Vec<UnusedRows>,
    /// What to know about the data before believing anything.
    pub warnings: Vec<String>,
}

impl LoadedData {
    /// A data set of which every row is used.
    pub fn whole(data: Dataset, train: usize, channels: Channels) -> Self {
        LoadedData {
            data,
            train,
            channels,
            left_out: 0,
            not_used: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Keeps only the rows of `classes`, and numbers the classes in that order.
    ///
    /// # Errors
    /// When the list is empty, names a class twice, or names one that the data do not have.
    pub fn select(&mut self, classes: &[ClassRef]) -> Result<(), DataError> {
        if classes.is_empty() {
            return Err(DataError::setting("data.classes", NO_CLASSES));
        }
        let known = self.data.classes("data.classes")?.names;
        let chosen = classes
            .iter()
            .map(|class| class.find("data.classes", &self.data.name, known))
            .collect::<Result<Vec<_>, _>>()?;
        let mut renumbered = vec![None; known.len()];
        for (new, &old) in chosen.iter().enumerate() {
            if renumbered[old].replace(new as u16).is_some() {
                let class = &known[old];
                return Err(DataError::setting("data.classes", format!("{class} is named twice")));
            }
        }
        let is_chosen = |&row: &usize| renumbered[self.data.targets.kind(row)].is_some();
        let order: Vec<usize> = (0..self.data.len()).filter(is_chosen).collect();
        let train = order.partition_point(|&row| row < self.train);
        self.left_out += self.data.len() - order.len();
        self.data.arrange(&order);
        if let Targets::Classes { of, names } = &mut self.data.targets {
            for label in of {
                *label = renumbered[usize::from(*label)].expect("only chosen rows are left");
            }
            *names = chosen.iter().map(|&old| names[old].clone()).collect();
        }
        self.train = train;
        Ok(())
    }

    /// Standardises features, and targets that are numbers, with the mean and deviation of the training rows.
    pub fn standardise(&mut self) {
        self.data.targets.standardise(0..self.train);
        match self.channels {
            Channels::PerOwner => self.data.standardise_by_owner(self.train),
            Channels::AsTheyAre => {}
            channels => self.data.standardise(0..self.train, channels),
        }
    }

    /// Splits a data set that has no test rows of its own: of every class (and of every owner, where
    /// rows have one), `share` of the rows, evenly spread over the file. No chance is involved, so the split is the same for all seeds.
    fn split(mut data: Dataset, share: f64, channels: Channels) -> Result<Self, DataError> {
        if !(0.0..1.0).contains(&share) {
            let why = format!("{share} is not a share of the rows: choose one from 0 to below 1");
            return Err(DataError::setting("data.test_share", why));
        }
        let kinds = data.targets.kinds();
        let owner =
            |row: usize| data.owners.as_ref().map_or(0, |owners| usize::from(owners.of[row]));
        let owners = data.owners.as_ref().map_or(1, |owners| owners.names.len());
        let mut seen = vec![0u32; owners * kinds];
        let (test, mut order): (Vec<usize>, Vec<usize>) = (0..data.len()).partition(|&row| {
            let seen = &mut seen[owner(row) * kinds + data.targets.kind(row)];
            *seen += 1;
            (f64::from(*seen) * share).floor() > (f64::from(*seen - 1) * share).floor()
        });
        let train = order.len();
        order.extend(test);
        data.arrange(&order);
        Ok(LoadedData::whole(data, train, channels))
    }
}

/// A class, by its name or its number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ClassRef {
    /// Its place in the data set's list, from 0.
    Index(usize),
    /// Its name.
    Name(String),
}

impl ClassRef {
    /// The class's place in `classes`; `key` and `name` say in an error who asked for what.
    pub(crate) fn find(
        &self,
        key: &'static str,
        name: &str,
        classes: &[String],
    ) -> Result<usize, DataError> {
        let (found, class) = match self {
            ClassRef::Index(index) => {
                (Some(*index).filter(|&index| index < classes.len()), index.to_string())
            }
            ClassRef::Name(name) => {
                (classes.iter().position(|class| class == name), format!("`{name}`"))
            }
        };
        found.ok_or_else(|| DataError::unknown_class(key, &class, name, classes))
    }
}

/// The `[data]` table of an experiment.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Data {
    /// Where the rows come from; the digits by default.
    #[serde(flatten)]
    pub source: Source,
    /// How many rows every agent gets; by default as many as all can have equally.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_agent: Option<usize>,
    /// Whether every agent draws its rows with replacement, instead of rows being dealt out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replace: bool,
    /// The classes that are kept, in this order; all by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classes: Option<Vec<ClassRef>>,
    /// What puts rows into one of two groups, for rules that ask how well groups are served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<GroupBy>,
    /// The class about which both groups are to be treated alike; all rows count without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub positive: Option<ClassRef>,
}

/// What puts rows into one of two groups: those above the mean are the second.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum GroupBy {
    /// A feature, by its place from 0.
    Feature(usize),
    /// The mean of all features, by the name `brightness`, or a column of a table by its own name.
    Name(String),
}

impl GroupBy {
    /// The feature; `None` for the mean of all.
    fn feature(&self, source: &Source, data: &Dataset) -> Result<Option<usize>, DataError> {
        let features = data.features();
        let named = match self {
            Self::Name(name) if name == "brightness" => return Ok(None),
            Self::Name(name) => source.feature(name)?,
            Self::Feature(feature) => Some(*feature).filter(|feature| *feature < features),
        };
        if named.is_some() {
            return Ok(named);
        }
        let asked = match self {
            Self::Feature(feature) => feature.to_string(),
            Self::Name(name) => format!("`{name}`"),
        };
        let last = features.saturating_sub(1);
        let why = format!(
            "{asked} is neither `brightness` nor one of the features of {}, numbered from 0 to {last} \
             without the label",
            data.name
        );
        Err(DataError::setting("data.group", why))
    }
}

impl Data {
    /// Checks what can be checked before a file is read.
    ///
    /// # Errors
    /// When no data could be chosen this way.
    pub(crate) fn check(&self) -> Result<(), DataError> {
        match &self.classes {
            Some(classes) if classes.is_empty() => {
                Err(DataError::setting("data.classes", NO_CLASSES))
            }
            _ => Ok(()),
        }
    }

    /// Whether a number is predicted, as far as the file says.
    pub(crate) fn predicts_number(&self) -> bool {
        match &self.source {
            Source::Csv(csv) => csv.task == Predicted::Number,
            Source::Table(table) => table.predicts_number(),
            _ => false,
        }
    }

    /// Reads the rows, keeps the chosen classes and standardises: ready to be dealt out.
    ///
    /// # Errors
    /// When a file is missing or is not what it claims to be, or a setting does not fit it.
    pub fn load(&self) -> Result<LoadedData, DataError> {
        self.load_for(Draw::default())
    }

    /// The same for a run, whose seed draws test rows where the data leave that to it.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn load_for(&self, draw: Draw) -> Result<LoadedData, DataError> {
        let mut loaded = self.source.load_for(draw)?;
        if let Some(classes) = &self.classes {
            loaded.select(classes)?;
        }
        if let Some(group) = &self.group {
            loaded.data.classes("data.group")?;
            let feature = group.feature(&self.source, &loaded.data)?;
            let positive = match &self.positive {
                Some(class) => {
                    let classes = loaded.data.classes("data.positive")?.names;
                    Some(class.find("data.positive", &loaded.data.name, classes)? as u16)
                }
                None => None,
            };
            loaded.data.group(feature, positive, 0..loaded.train);
        }
        loaded.standardise();
        Ok(loaded)
    }
}

/// The message for an empty list of classes.
const NO_CLASSES: &str =
    "the list is empty; name at least one class, or leave the key out to use all of them";

/// What `#[serde(default)]` needs for a switch that is on.
fn yes() -> bool {
    true
}

/// The share of a data set's rows that is kept for testing by default.
fn one_fifth() -> f64 {
    0.2
}

#[cfg(test)]
mod tests;

//! A table as people have it: texts, blanks, days, several files, and a column that says who holds a row.
//!
//! A table is read once, whatever is wrong with it (`raw`); then it is settled which rows are used and
//! whose they are (`prepared`), which of them are for testing (`draw`), and what features become of the
//! columns (`encode`). A run refuses the first thing that is wrong; a [`Reading`] tells all of them.

mod blocks;
mod column;
mod date;
mod draw;
mod encode;
mod files;
mod findings;
mod leaks;
mod named;
mod packed;
mod prepared;
mod raw;
mod reading;
mod records;
mod roles;
mod settings;
mod values;
mod written;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use self::column::Role;
use self::files::TableFile;
use self::prepared::Prepared;
pub use self::raw::Problem;
use self::raw::RawTable;
pub use self::reading::{ColumnReading, OwnerReading, Reading};
pub use self::settings::{DecimalSign, Encoding, Fill, Paths, ReadAs, Scaling, Small};
use super::{
    Channels, DataError, Dataset, Inputs, LabelColumn, Load, LoadedData, Origin, Owners, Predicted,
    one_fifth, yes,
};

pub(super) const ORIGIN: Origin = Origin {
    about: "tables as they are: texts, blanks, days, several files, and who holds which row",
    reference: "",
};

/// A table, or several with the same columns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// The files: CSV, TSV, both also with gzip, or Parquet.
    pub path: Paths,
    /// The column that is predicted, by its name or its number from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<LabelColumn>,
    /// What is predicted; classes, unless they are too many numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Predicted>,
    /// Makes two classes of a label of numbers: those above this, and all others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub above: Option<f64>,
    /// The column that says who holds a row, or `file`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<LabelColumn>,
    /// The columns that nobody is to read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leave_out: Vec<String>,
    /// What columns hold, where that does not show.
    #[serde(default, rename = "as", skip_serializing_if = "BTreeMap::is_empty")]
    pub read_as: BTreeMap<String, ReadAs>,
    /// The texts that mean that something is missing.
    #[serde(default = "settings::missing")]
    pub missing: Vec<String>,
    /// What stands in for a number that is missing.
    #[serde(default)]
    pub fill: Fill,
    /// What separates a number's decimals.
    #[serde(default)]
    pub decimal: DecimalSign,
    /// How letters are written as bytes.
    #[serde(default)]
    pub encoding: Encoding,
    /// Whether the first line names the columns.
    #[serde(default = "yes")]
    pub header: bool,
    /// What separates two values; what the first line has most of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delimiter: Option<char>,
    /// Whose rows say what is usual, when features are brought to one scale.
    #[serde(default)]
    pub scale: Scaling,
    /// Which rows are for testing: a share of every `owner`'s, a share of all (`pooled`), or what a column or
    /// a second path says.
    #[serde(default = "settings::by_owner")]
    pub test: String,
    /// The share of rows that is drawn for testing.
    #[serde(default = "one_fifth")]
    pub test_share: f64,
    /// The column whose values are not torn apart: a patient's rows are on one side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub together: Option<String>,
    /// The column that puts rows in order: the last ones are for testing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// The rows that an owner must have.
    #[serde(default = "settings::least")]
    pub least: usize,
    /// What is read instead of a file on a disk.
    #[serde(skip)]
    pub(super) content: Option<&'static [u8]>,
}

/// What decides which rows are for testing, besides the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Draw {
    /// The seed of the run.
    pub seed: u64,
    /// What becomes of owners with too few rows.
    pub small: Small,
}

impl Table {
    /// The table at a path with every setting at its default.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: Paths::One(path.into()),
            label: None,
            task: None,
            above: None,
            owner: None,
            leave_out: Vec::new(),
            read_as: BTreeMap::new(),
            missing: settings::missing(),
            fill: Fill::default(),
            decimal: DecimalSign::default(),
            encoding: Encoding::default(),
            header: true,
            delimiter: None,
            scale: Scaling::default(),
            test: settings::by_owner(),
            test_share: one_fifth(),
            together: None,
            time: None,
            least: settings::least(),
            content: None,
        }
    }

    /// A table that comes with the program.
    pub(super) fn built_in(name: &str, content: &'static [u8]) -> Self {
        Self { content: Some(content), ..Self::new(name) }
    }

    /// Whether it says that a number is predicted.
    pub(crate) fn predicts_number(&self) -> bool {
        self.task == Some(Predicted::Number)
    }

    /// Its files, in the order of their names.
    fn files(&self) -> Result<Vec<TableFile>, DataError> {
        match (self.content, &self.path) {
            (Some(content), Paths::One(path)) => {
                Ok(vec![TableFile { path: path.clone(), content: Some(content) }])
            }
            _ => files::named(&self.path),
        }
    }

    /// What it is called: its file, or the folder of its files.
    fn name(&self, files: &[TableFile]) -> String {
        match files {
            [file] => file.stem(),
            _ => {
                let folder = files.first().and_then(|file| file.path.parent()?.file_name());
                folder.map_or("table".into(), |name| name.to_string_lossy().into())
            }
        }
    }

    /// Reads the table as far as that goes without the seed; nothing may stand in the way.
    fn prepared(&self, small: Small) -> Result<(Prepared, Vec<String>), DataError> {
        let mut prepared = Prepared::of(RawTable::read(self)?, self, small);
        let mut problems = prepared.problems(self);
        let mut warnings = Vec::new();
        for finding in findings::of_columns(&prepared, self) {
            match finding.key {
                Some(key) => problems.push(Problem { key, why: finding.why }),
                None => warnings.push(finding.why),
            }
        }
        if problems.is_empty() && encode::names(&prepared.raw).is_empty() {
            let why = "no column is left that a model could read".to_owned();
            problems.push(Problem { key: "data.leave_out", why });
        }
        match &problems[..] {
            [] => Ok((prepared, warnings)),
            [one] => Err(DataError::setting(one.key, &one.why[..])),
            [first, rest @ ..] => {
                let why = format!(
                    "{} (and {} more; `fedstay data read` lists all)",
                    first.why,
                    rest.len()
                );
                Err(DataError::setting(first.key, why))
            }
        }
    }
}

impl Load for Table {
    fn load(&self) -> Result<LoadedData, DataError> {
        self.load_for(Draw::default())
    }

    fn load_for(&self, draw: Draw) -> Result<LoadedData, DataError> {
        let (mut prepared, warnings) = self.prepared(draw.small)?;
        let test = prepared.tests(self, draw);
        let targets = prepared.targets();
        let name = self.name(&prepared.raw.files);
        let (rows, features) = prepared.features(self.fill, &test)?;
        let owners = (!prepared.owner.is_empty()).then(|| Owners {
            of: prepared.rows.iter().map(|row| prepared.owner[*row as usize]).collect(),
            names: std::mem::take(&mut prepared.owners),
        });
        let inputs = Inputs::Floats { rows, features };
        let mut data = Dataset { name, inputs, image: None, targets, groups: None, owners };
        let (tested, mut order): (Vec<usize>, Vec<usize>) =
            (0..test.len()).partition(|row| test[*row]);
        let train = order.len();
        order.extend(tested);
        data.arrange(&order);
        let channels = match self.scale {
            Scaling::Federated => Channels::PerFeature,
            Scaling::Owner => Channels::PerOwner,
            Scaling::None => Channels::AsTheyAre,
        };
        let not_used = prepared.unused;
        Ok(LoadedData { data, train, channels, left_out: 0, not_used, warnings })
    }

    /// The place of the feature with this name: a column's, or that of one text of a category.
    fn feature(&self, name: &str) -> Result<Option<usize>, DataError> {
        let names = encode::names(&self.prepared(Small::default())?.0.raw);
        let place = names.iter().position(|own| own == name);
        place.map(Some).ok_or_else(|| {
            let name = crate::text::quoted(name, raw::LONGEST_NAME);
            let why = format!("no feature is called `{name}`; there are {}", names.join(", "));
            DataError::setting("data.group", why)
        })
    }
}

#[cfg(test)]
mod laws;
#[cfg(test)]
mod tests;

//! A table of your own: one row per sample, numbers in every column but one, which is the class, or in
//! every column. A column of names may say who holds each row.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use ::csv::{Reader, ReaderBuilder, StringRecord, Trim};
use serde::{Deserialize, Serialize};

use super::labels::Labels;
use super::{
    Channels, DataError, Dataset, Inputs, Load, LoadedData, Origin, Owners, Targets, one_fifth, yes,
};
use crate::is_default;

pub(super) const ORIGIN: Origin = Origin {
    about: "a table of your own: one row per sample, one column for the class",
    reference: "",
};

/// Comma-separated values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Csv {
    /// The file.
    pub path: PathBuf,
    /// The column with the class or the number to predict, by its name or its number from 0; the last
    /// one by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<LabelColumn>,
    /// What is predicted.
    #[serde(default, skip_serializing_if = "is_default")]
    pub task: Predicted,
    /// The column that says who holds a row, by its name or its number from 0. It is no feature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<LabelColumn>,
    /// Whether the first line names the columns.
    #[serde(default = "yes")]
    pub header: bool,
    /// What separates two values.
    #[serde(default = "comma")]
    pub delimiter: char,
    /// The share of every class's rows, and of every owner's, that is kept for testing.
    #[serde(default = "one_fifth")]
    pub test_share: f64,
}

/// What is predicted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Predicted {
    /// Which class a row belongs to.
    #[default]
    Classes,
    /// A number.
    Number,
}

/// A column, by its number or its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum LabelColumn {
    /// Its number, from 0.
    Index(usize),
    /// Its name in the first line.
    Name(String),
}

fn comma() -> char {
    ','
}

const HINT: &str = "correct the file, or set data.label, data.header and data.delimiter to match";
const EMPTY_COLUMN: &str =
    "commas at the ends of lines make an empty column: remove them, or fill the column in";

impl Csv {
    /// The table at `path` with every setting at its default.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Csv {
            path: path.into(),
            label: None,
            task: Predicted::default(),
            owner: None,
            header: true,
            delimiter: comma(),
            test_share: one_fifth(),
        }
    }

    /// The table, opened.
    fn reader(&self) -> Result<Reader<File>, DataError> {
        let delimiter = u8::try_from(self.delimiter)
            .map_err(|_| DataError::setting("data.delimiter", "must be one byte, such as `;`"))?;
        let file = File::open(&self.path).map_err(|source| {
            DataError::io(&self.path, "set data.path to the table you want to read", source)
        })?;
        Ok(ReaderBuilder::new()
            .has_headers(self.header)
            .delimiter(delimiter)
            .trim(Trim::All)
            .from_reader(file))
    }

    /// The error that a column, which is to have the class, is empty.
    fn no_label(&self, column: &str, found: String) -> DataError {
        let expected = format!("the class in column {column}");
        let hint = match self.label {
            None => {
                "the class is in the last column unless data.label says otherwise, and commas at the \
                 ends of lines make an empty one: remove them, or set data.label"
            }
            Some(_) => "set data.label to the column with the class",
        };
        DataError::wrong(&self.path, expected, found, hint)
    }

    /// Refuses a first line that is a row: it would be lost. Columns that are called by their numbers,
    /// as some programs write them, are let through.
    fn check_names(&self, names: &StringRecord, columns: Columns) -> Result<(), DataError> {
        let features =
            || names.iter().enumerate().filter(|&(column, _)| columns.is_feature(column));
        let are_numbers = features().all(|(_, name)| name.parse::<f64>().is_ok());
        // The class may have a name among numbers, but not a number that is not its own.
        let has_name = |name: &str| name.parse::<f64>().is_err();
        let are_places = |first: usize| {
            let own = |column: usize, name: &str| name.parse() == Ok(column + first);
            let mut named = names.iter().enumerate();
            named.all(|(column, name)| {
                own(column, name) || !columns.is_feature(column) && has_name(name)
            })
        };
        let few = features().count() < 2;
        if names.is_empty() || !are_numbers || (!few && (are_places(0) || are_places(1))) {
            return Ok(());
        }
        let found = names.iter().collect::<Vec<_>>().join(", ");
        let hint = "set data.header = false if the table begins with a row; columns whose names are \
                    numbers need others";
        Err(DataError::wrong(&self.path, "the names of the columns in line 1", found, hint))
    }

    /// What its columns are called; nothing for a table without names.
    fn names(&self, reader: &mut Reader<File>) -> Result<StringRecord, DataError> {
        match self.header {
            true => Ok(reader.headers().map_err(|error| torn(&self.path, &error))?.clone()),
            false => Ok(StringRecord::new()),
        }
    }

    /// Which of this number of columns hold the label and the owner.
    fn columns(&self, names: &StringRecord, count: usize) -> Result<Columns, DataError> {
        let label = match &self.label {
            None => count.saturating_sub(1),
            Some(asked) => self.column("data.label", asked, names, count)?,
        };
        let owner = self.owner.as_ref().map(|asked| self.column("data.owner", asked, names, count));
        let columns = Columns { count, label, owner: owner.transpose()? };
        if columns.owner == Some(label) {
            let why = format!(
                "column {} is the label: set data.label to the column that is predicted",
                called(names, label)
            );
            return Err(DataError::setting("data.owner", why));
        }
        Ok(columns)
    }

    /// The column that a key asks for, of this number of columns.
    fn column(
        &self,
        key: &'static str,
        asked: &LabelColumn,
        names: &StringRecord,
        count: usize,
    ) -> Result<usize, DataError> {
        let found = match asked {
            LabelColumn::Index(index) => Some(*index).filter(|&index| index < count),
            LabelColumn::Name(name) => names.iter().position(|column| column == name),
        };
        found.ok_or_else(|| {
            let asked = match asked {
                LabelColumn::Name(name) => format!("no column is named `{name}`"),
                LabelColumn::Index(_) => {
                    format!("the columns are numbered from 0 to {}", count.saturating_sub(1))
                }
            };
            let place = self.path.display();
            DataError::setting(key, format!("{asked} in {place}; {}", has(names)))
        })
    }

    /// What the label's column says, once all rows are read.
    fn targets(&self, label: Label, column: String) -> Result<Targets, DataError> {
        let path = &self.path;
        match label {
            Label::Numbers(numbers) => {
                let first = numbers.first().copied().unwrap_or_default();
                if numbers.iter().all(|number| *number == first) {
                    let expected = format!("numbers that differ in column {column}");
                    let found = format!("`{first}` alone in {} rows", numbers.len());
                    let hint = "set data.label to the column that is predicted";
                    return Err(DataError::wrong(path, expected, found, hint));
                }
                let name = column.trim_matches('`').to_owned();
                Ok(Targets::numbers(&numbers, name))
            }
            Label::Classes { labels, missing } => {
                if labels.len() > 0 && labels.count("") == labels.len() {
                    let found = format!("nothing in any of {} rows", labels.len());
                    return Err(self.no_label(&column, found));
                }
                self.check_whole(&labels, missing, "a class", &column)?;
                labels.check(path, &format!("column {column}"), "data.label")?;
                Ok(labels.targets())
            }
        }
    }

    /// Refuses rows without a name, the first of them in the line `missing`.
    fn check_whole(
        &self,
        labels: &Labels,
        missing: Option<u64>,
        what: &str,
        column: &str,
    ) -> Result<(), DataError> {
        let Some(line) = missing else { return Ok(()) };
        let expected = format!("{what} in column {column} of every row");
        let found = format!("none in {} rows, the first of them line {line}", labels.count(""));
        let hint = "fill them in, or leave these rows out";
        Err(DataError::wrong(&self.path, expected, found, hint))
    }
}

/// Which columns are not features.
#[derive(Debug, Clone, Copy, Default)]
struct Columns {
    /// How many columns there are.
    count: usize,
    label: usize,
    owner: Option<usize>,
}

impl Columns {
    fn is_feature(&self, column: usize) -> bool {
        column != self.label && Some(column) != self.owner
    }

    /// How many of the columns are features.
    fn features(&self) -> usize {
        (0..self.count).filter(|column| self.is_feature(*column)).count()
    }
}

/// What the label's column says of the rows read so far.
enum Label {
    Classes { labels: Labels, missing: Option<u64> },
    Numbers(Vec<f64>),
}

impl Load for Csv {
    /// Reads the table. Classes may be any text; they are numbered in the order of their values,
    /// as numbers where all of them are. So are owners.
    fn load(&self) -> Result<LoadedData, DataError> {
        let path = &self.path;
        let mut reader = self.reader()?;
        let names = self.names(&mut reader)?;
        let mut rows = Vec::new();
        let mut label = match self.task {
            Predicted::Classes => Label::Classes { labels: Labels::default(), missing: None },
            Predicted::Number => Label::Numbers(Vec::new()),
        };
        let (mut owners, mut unowned) = (Labels::default(), None);
        let (mut columns, mut count) = (Columns::default(), 0);
        for record in reader.records() {
            let record = record.map_err(|error| torn(path, &error))?;
            if count == 0 {
                columns = self.columns(&names, record.len())?;
                self.check_names(&names, columns)?;
            }
            count += 1;
            for (column, text) in record.iter().enumerate() {
                if columns.is_feature(column) {
                    rows.push(number(path, &names, &record, column, text, f32::is_finite)?);
                }
            }
            let text = &record[columns.label];
            match &mut label {
                Label::Numbers(numbers) => {
                    let place = columns.label;
                    numbers.push(number(path, &names, &record, place, text, f64::is_finite)?);
                }
                Label::Classes { labels, missing } => {
                    note_missing(missing, text, &record);
                    labels.push(text, ("classes", "data.label"))?;
                }
            }
            if let Some(owner) = columns.owner {
                note_missing(&mut unowned, &record[owner], &record);
                owners.push(&record[owner], ("owners", "data.owner"))?;
            }
        }
        let features = columns.features();
        if features == 0 {
            let found = format!("{} columns in {count} rows", columns.count);
            return Err(DataError::wrong(path, "rows of numbers and a class", found, HINT));
        }
        let targets = self.targets(label, called(&names, columns.label))?;
        let owners = match columns.owner {
            Some(owner) => {
                self.check_whole(&owners, unowned, "an owner", &called(&names, owner))?;
                let (of, names) = owners.sorted();
                Some(Owners { names, of })
            }
            None => None,
        };
        let data = Dataset {
            groups: None,
            name: path.file_stem().map_or("csv".into(), |stem| stem.to_string_lossy().into()),
            inputs: Inputs::Floats { rows, features },
            image: None,
            targets,
            owners,
        };
        LoadedData::split(data, self.test_share, Channels::PerFeature)
    }

    /// The place among the features of the column with this name, which puts rows into groups.
    ///
    /// # Errors
    /// When no column is called so, or it is the one with the class or the owner.
    fn feature(&self, name: &str) -> Result<Option<usize>, DataError> {
        let names = self.names(&mut self.reader()?)?;
        let asked = LabelColumn::Name(name.to_owned());
        let place = self.column("data.group", &asked, &names, names.len())?;
        let columns = self.columns(&names, names.len())?;
        if !columns.is_feature(place) {
            let what = if place == columns.label { "the class" } else { "the owner" };
            let (file, has) = (self.path.display(), has(&names));
            let why = format!("`{name}` is {what} in {file}; {has}");
            return Err(DataError::setting("data.group", why));
        }
        Ok(Some((0..place).filter(|column| columns.is_feature(*column)).count()))
    }
}

/// Notes the line of the first row that says nothing.
fn note_missing(missing: &mut Option<u64>, text: &str, record: &StringRecord) {
    if text.is_empty() {
        missing.get_or_insert(line_of(record));
    }
}

/// A column as an error names it.
fn called(names: &StringRecord, column: usize) -> String {
    names.get(column).map_or(column.to_string(), |name| format!("`{name}`"))
}

/// What the columns are called.
fn has(names: &StringRecord) -> String {
    match names.is_empty() {
        true => "the columns have no names (data.header = false)".to_owned(),
        false => format!("the columns are {}", names.iter().collect::<Vec<_>>().join(", ")),
    }
}

/// A value of a column of numbers; `fits` says which will do.
fn number<T: Copy + FromStr>(
    path: &Path,
    names: &StringRecord,
    record: &StringRecord,
    column: usize,
    text: &str,
    fits: impl Fn(T) -> bool,
) -> Result<T, DataError> {
    text.parse().ok().filter(|value: &T| fits(*value)).ok_or_else(|| {
        let (line, is_last) = (line_of(record), column + 1 == record.len());
        let column = called(names, column);
        let expected = format!("a number in line {line}, column {column}");
        let hint = if text.is_empty() && is_last { EMPTY_COLUMN } else { HINT };
        DataError::wrong(path, expected, format!("`{text}`"), hint)
    })
}

/// The line a row begins in.
fn line_of(record: &StringRecord) -> u64 {
    record.position().map_or(0, ::csv::Position::line)
}

/// The parser's error, with the file's name.
fn torn(path: &Path, error: &::csv::Error) -> DataError {
    DataError::wrong(path, "a table", error.to_string(), HINT)
}

#[cfg(test)]
mod tests {
    use super::super::{Data, GroupBy, Row, Source};
    use super::*;

    fn read(content: &str, change: impl FnOnce(&mut Csv)) -> Result<LoadedData, String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("table.csv");
        std::fs::write(&path, content).unwrap();
        let mut csv = Csv { test_share: 0.0, ..Csv::new(path) };
        change(&mut csv);
        csv.load().map_err(|error| error.to_string())
    }

    #[test]
    fn the_class_may_stand_in_any_column_and_be_any_text() {
        let loaded = read("a,kind,b\n1,wet,2.5\n3, dry ,-4e1\n", |csv| {
            csv.label = Some(LabelColumn::Name("kind".into()));
        })
        .unwrap();
        let classes = loaded.data.targets.classes().unwrap();
        assert_eq!(
            (classes.of, classes.names),
            (&[1, 0][..], &["dry", "wet"].map(String::from)[..])
        );
        assert_eq!(loaded.data.row(1), Row::Floats(&[3.0, -40.0]));
        assert_eq!(loaded.data.name, "table");
    }

    #[test]
    fn numbered_classes_are_sorted_as_numbers() {
        let loaded = read("1;10\n2;9\n3;-1\n", |csv| {
            (csv.header, csv.delimiter) = (false, ';');
        })
        .unwrap();
        let classes = loaded.data.targets.classes().unwrap();
        assert_eq!(classes.names, ["-1", "9", "10"]);
        assert_eq!(classes.of, [2, 1, 0]);
    }

    #[test]
    fn a_value_that_is_no_number_is_found_by_line_and_column() {
        for text in ["x", "", "nan", "inf", "1e99"] {
            let error = read(&format!("a,b,y\n1,2,0\n1,{text},1\n"), |_| ()).unwrap_err();
            let told = format!("expected a number in line 3, column `b`, found `{text}`");
            assert!(error.contains(&told), "{error}");
        }
    }

    #[test]
    fn commas_at_the_ends_of_lines_are_no_class() {
        for table in ["a,b,y,\n1,2,0,\n3,4,1,\n", "a,b,y\n1,2,\n3,4,\n"] {
            let error = read(table, |_| ()).unwrap_err();
            assert!(error.contains("nothing in any of 2 rows"), "{error}");
            assert!(error.contains("ends of lines") && error.contains("data.label"), "{error}");
        }
        let error = read("1,2,0,\n3,4,1,\n", |csv| csv.header = false).unwrap_err();
        assert!(error.contains("column 3") && error.contains("ends of lines"), "{error}");
        // With the class named, the column that they make is one of numbers without a number.
        let label = LabelColumn::Name("y".into());
        let error = read("a,b,y,\n1,2,0,\n3,4,1,\n", |csv| csv.label = Some(label)).unwrap_err();
        assert!(error.contains("a number in line 2") && error.contains("ends of lines"), "{error}");
    }

    #[test]
    fn rows_without_a_class_are_named() {
        let error = read("a,y\n1,x\n2,\n3,z\n4,\n", |_| ()).unwrap_err();
        assert!(error.contains("a class in column `y` of every row"), "{error}");
        assert!(error.contains("none in 2 rows, the first of them line 3"), "{error}");
    }

    #[test]
    fn a_table_of_one_class_is_refused() {
        let error = read("a,y\n1,x\n2,x\n3,x\n", |_| ()).unwrap_err();
        assert!(error.contains("two classes or more in column `y`"), "{error}");
        assert!(error.contains("`x` alone in 3 rows") && error.contains("data.label"), "{error}");
    }

    #[test]
    fn a_first_line_that_is_a_row_is_not_lost_unsaid() {
        for table in [
            "1.5,2,0\n3,4,1\n5,6,0\n",
            "1,2,0\n2,1,1\n3,4,0\n",
            "5,yes\n6,no\n",
            "1e3,2,yes\n3,4,no\n",
        ] {
            let error = read(table, |_| ()).unwrap_err();
            assert!(error.contains("the names of the columns in line 1"), "{error}");
            assert!(error.contains("data.header = false"), "{error}");
            assert!(read(table, |csv| csv.header = false).is_ok(), "{table}");
        }
        // Columns called by their numbers, and names of which only some are numbers.
        for table in ["0,1,2\n3,4,1\n5,6,0\n", "1,2,y\n3,4,1\n5,6,0\n", "age,7,y\n3,4,1\n5,6,0\n"] {
            assert_eq!(read(table, |_| ()).unwrap().data.len(), 2, "{table}");
        }
    }

    #[test]
    fn groups_go_by_a_column_under_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("table.csv");
        // `age` is the second feature: the class before it is not counted.
        std::fs::write(&path, "income,kind, age\n1,a,20\n9,b,70\n2,a,30\n8,b,60\n").unwrap();
        let label = Some(LabelColumn::Name("kind".into()));
        let csv = Csv { test_share: 0.0, label, ..Csv::new(&path) };
        let data = |group: GroupBy| Data {
            source: Source::Csv(csv.clone()),
            group: Some(group),
            ..Data::default()
        };
        let named = |name: &str| data(GroupBy::Name(name.into())).load();
        let groups = |loaded: LoadedData| loaded.data.groups.unwrap().second;
        let by_number = data(GroupBy::Feature(1)).load().unwrap();
        assert_eq!(groups(named("age").unwrap()), groups(by_number));
        assert_eq!(groups(named("age").unwrap()).iter().filter(|second| **second).count(), 2);
        for (name, why) in [("kind", "`kind` is the class"), ("sex", "no column is named `sex`")] {
            let error = named(name).err().unwrap().to_string();
            assert!(error.starts_with("data.group: ") && error.contains(why), "{error}");
            assert!(error.contains("the columns are income, kind, age"), "{error}");
        }
    }

    #[test]
    fn what_does_not_fit_the_table_is_refused() {
        let error = read("a,y\n1,0\n", |csv| csv.label = Some(LabelColumn::Name("z".into())));
        assert!(error.unwrap_err().contains("no column is named `z`"));
        let error = read("a,y\n1,0\n", |csv| csv.label = Some(LabelColumn::Index(2)));
        assert!(error.unwrap_err().contains("numbered from 0 to 1"));
        assert!(read("a,y\n1,0\n1\n", |_| ()).unwrap_err().contains("found record with 1 fields"));
        assert!(read("", |_| ()).unwrap_err().contains("expected rows of numbers and a class"));
        assert!(read("a,y\n", |_| ()).is_err());
        assert!(read("y\n1\n", |_| ()).is_err());
        let missing = Csv::new("no/such.csv").load().unwrap_err().to_string();
        assert!(missing.contains("such.csv is not there: set data.path"), "{missing}");
    }

    fn number(csv: &mut Csv) {
        csv.task = Predicted::Number;
    }

    #[test]
    fn a_label_may_be_a_number() {
        let loaded = read("a,price\n1,10\n2,30\n3,20\n", number).unwrap();
        let Targets::Numbers { of, name, scale } = &loaded.data.targets else { panic!() };
        assert_eq!((name.as_str(), scale.mean), ("price", 20.0));
        assert!(of[0] < of[2] && of[2] < of[1]);
        let error = read("a,price\n1,10\n2,dear\n", number).unwrap_err();
        assert!(error.contains("a number in line 3, column `price`, found `dear`"), "{error}");
        let error = read("a,price\n1,10\n2,10\n", number).unwrap_err();
        assert!(error.contains("numbers that differ in column `price`"), "{error}");
    }

    /// The owner's column is text, no feature, and every owner keeps a row for training.
    #[test]
    fn a_column_may_say_who_holds_a_row() {
        let table = "site,a,y\nSt Mary,1,x\nOslo,2,x\nSt Mary,3,y\nOslo,4,y\nBern,5,x\n";
        let owned = |csv: &mut Csv| csv.owner = Some(LabelColumn::Name("site".into()));
        let loaded = read(table, owned).unwrap();
        let owners = loaded.data.owners.as_ref().unwrap();
        assert_eq!(
            (owners.names.join(", "), &owners.of[..]),
            ("Bern, Oslo, St Mary".into(), &[2, 1, 2, 1, 0][..])
        );
        assert_eq!((loaded.data.features(), loaded.data.row(4)), (1, Row::Floats(&[5.0])));
        let split = read(table, |csv| {
            owned(csv);
            csv.test_share = 0.9;
        });
        let split = split.unwrap();
        let owners = split.data.owners.as_ref().unwrap();
        assert!(owners.rows(split.train).iter().all(|rows| !rows.is_empty()));
        let error = read("site,a,y\nOslo,1,x\n,2,y\n", owned).unwrap_err();
        assert!(error.contains("an owner in column `site` of every row"), "{error}");
        assert!(error.contains("none in 1 rows, the first of them line 3"), "{error}");
        let error = read(table, |csv| csv.owner = Some(LabelColumn::Name("clinic".into())));
        assert!(error.unwrap_err().starts_with("data.owner: no column is named `clinic`"));
        let error = read(table, |csv| csv.owner = Some(LabelColumn::Index(2))).unwrap_err();
        assert!(error.starts_with("data.owner: column `y` is the label"), "{error}");
    }

    #[test]
    fn no_bytes_make_it_panic() {
        let whole = b"a,b,y\n1,\"2\",x\n3,4,\xff\xfe\n5,6,z\n";
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.csv");
        for len in 0..=whole.len() {
            std::fs::write(&path, &whole[..len]).unwrap();
            let _ = Csv::new(&path).load();
        }
    }
}

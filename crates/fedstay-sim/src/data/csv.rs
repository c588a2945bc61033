//! A table of your own: one row per sample, numbers in every column but one, which is the class.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use ::csv::{Reader, ReaderBuilder, StringRecord, Trim};
use serde::{Deserialize, Serialize};

use super::{Channels, DataError, Dataset, Inputs, Load, LoadedData, Origin, one_fifth, yes};

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
    /// The column with the class, by its name or its number from 0; the last one by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<LabelColumn>,
    /// Whether the first line names the columns.
    #[serde(default = "yes")]
    pub header: bool,
    /// What separates two values.
    #[serde(default = "comma")]
    pub delimiter: char,
    /// The share of every class's rows that is kept for testing.
    #[serde(default = "one_fifth")]
    pub test_share: f64,
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
    fn check_names(&self, names: &StringRecord, label: usize) -> Result<(), DataError> {
        let features = || names.iter().enumerate().filter(|&(column, _)| column != label);
        let are_numbers = features().all(|(_, name)| name.parse::<f64>().is_ok());
        // The class may have a name among numbers, but not a number that is not its own.
        let has_name = |name: &str| name.parse::<f64>().is_err();
        let are_places = |first: usize| {
            let own = |column: usize, name: &str| name.parse() == Ok(column + first);
            let mut named = names.iter().enumerate();
            named.all(|(column, name)| own(column, name) || column == label && has_name(name))
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

    /// Which column holds the class.
    fn column(&self, names: &StringRecord, columns: usize) -> Result<usize, DataError> {
        let found = match &self.label {
            None => columns.checked_sub(1),
            Some(LabelColumn::Index(index)) => Some(*index).filter(|&index| index < columns),
            Some(LabelColumn::Name(name)) => names.iter().position(|column| column == name),
        };
        found.ok_or_else(|| {
            let asked = match &self.label {
                Some(LabelColumn::Name(name)) => format!("no column is named `{name}`"),
                _ => format!("the columns are numbered from 0 to {}", columns.saturating_sub(1)),
            };
            let place = self.path.display();
            DataError::setting("data.label", format!("{asked} in {place}; {}", has(names)))
        })
    }
}

impl Load for Csv {
    /// Reads the table. Classes may be any text; they are numbered in the order of their values,
    /// as numbers where all of them are.
    fn load(&self) -> Result<LoadedData, DataError> {
        let path = &self.path;
        let mut reader = self.reader()?;
        let names = self.names(&mut reader)?;
        let (mut rows, mut labels) = (Vec::new(), Labels::default());
        let (mut columns, mut label, mut missing) = (0, 0, None);
        for record in reader.records() {
            let record = record.map_err(|error| torn(path, &error))?;
            if columns == 0 {
                columns = record.len();
                label = self.column(&names, columns)?;
                self.check_names(&names, label)?;
            }
            for (column, text) in record.iter().enumerate().filter(|&(column, _)| column != label) {
                rows.push(number(path, &names, &record, column, text)?);
            }
            if record[label].is_empty() {
                missing.get_or_insert(line_of(&record));
            }
            labels.push(&record[label])?;
        }
        let column = names.get(label).map_or(label.to_string(), |name| format!("`{name}`"));
        if let Some(line) = missing {
            let without = labels.count("");
            if without == labels.rows.len() {
                let found = format!("nothing in any of {without} rows");
                return Err(self.no_label(&column, found));
            }
            let expected = format!("a class in column {column} of every row");
            let found = format!("none in {without} rows, the first of them line {line}");
            let hint = "fill them in, or leave these rows out";
            return Err(DataError::wrong(path, expected, found, hint));
        }
        if columns < 2 {
            let found = format!("{columns} columns in {} rows", labels.rows.len());
            return Err(DataError::wrong(path, "rows of numbers and a class", found, HINT));
        }
        labels.check(path, &format!("column {column}"), "data.label")?;
        let (labels, classes) = labels.sorted();
        let data = Dataset {
            groups: None,
            name: path.file_stem().map_or("csv".into(), |stem| stem.to_string_lossy().into()),
            inputs: Inputs::Floats { rows, features: columns - 1 },
            image: None,
            labels,
            classes,
        };
        LoadedData::split(data, self.test_share, Channels::PerFeature)
    }

    /// The place among the features of the column with this name, which puts rows into groups.
    ///
    /// # Errors
    /// When no column is called so, or it is the one with the class.
    fn feature(&self, name: &str) -> Result<Option<usize>, DataError> {
        let names = self.names(&mut self.reader()?)?;
        let refuse = |why: String| {
            let place = self.path.display();
            Err(DataError::setting("data.group", format!("{why} in {place}; {}", has(&names))))
        };
        let Some(place) = names.iter().position(|column| column == name) else {
            return refuse(format!("no column is named `{name}`"));
        };
        let label = self.column(&names, names.len())?;
        if place == label {
            return refuse(format!("`{name}` is the class"));
        }
        // Features are counted without the class.
        Ok(Some(place - usize::from(place > label)))
    }
}

/// What the columns are called.
fn has(names: &StringRecord) -> String {
    match names.is_empty() {
        true => "the columns have no names (data.header = false)".to_owned(),
        false => format!("the columns are {}", names.iter().collect::<Vec<_>>().join(", ")),
    }
}

/// A value of a feature column.
fn number(
    path: &Path,
    names: &StringRecord,
    record: &StringRecord,
    column: usize,
    text: &str,
) -> Result<f32, DataError> {
    text.parse().ok().filter(|value: &f32| value.is_finite()).ok_or_else(|| {
        let (line, is_last) = (line_of(record), column + 1 == record.len());
        let column = names.get(column).map_or(column.to_string(), |name| format!("`{name}`"));
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

/// Classes in the order in which they first appear.
#[derive(Default)]
pub(super) struct Labels {
    rows: Vec<u16>,
    numbers: HashMap<String, u16>,
}

impl Labels {
    /// The class of the next row.
    pub(super) fn push(&mut self, class: &str) -> Result<(), DataError> {
        let number = match self.numbers.get(class) {
            Some(&number) => number,
            None => {
                let number = u16::try_from(self.numbers.len()).map_err(|_| {
                    let why = "more than 65,536 classes: is it a measured value and not a class?";
                    DataError::setting("data.label", why)
                })?;
                self.numbers.insert(class.to_owned(), number);
                number
            }
        };
        self.rows.push(number);
        Ok(())
    }

    /// How many rows have a class.
    fn count(&self, class: &str) -> usize {
        let number = self.numbers.get(class);
        self.rows.iter().filter(|row| Some(*row) == number).count()
    }

    /// Refuses labels that tell nothing apart.
    ///
    /// # Errors
    /// When all rows have one class; `place` says where the classes are, `key` what sets that.
    pub(super) fn check(&self, path: &Path, place: &str, key: &str) -> Result<(), DataError> {
        let mut classes = self.numbers.keys();
        match (classes.next(), classes.next()) {
            (Some(class), None) => {
                let found = format!("`{class}` alone in {} rows", self.rows.len());
                let hint = format!(
                    "a label with one class teaches nothing; set {key} to the one that differs between \
                     rows"
                );
                Err(DataError::wrong(path, format!("two classes or more in {place}"), found, &hint))
            }
            _ => Ok(()),
        }
    }

    /// The class of every row and the classes' names, sorted.
    pub(super) fn sorted(self) -> (Vec<u16>, Vec<String>) {
        let mut classes: Vec<(String, u16)> = self.numbers.into_iter().collect();
        let as_numbers: Option<HashMap<u16, i128>> =
            classes.iter().map(|(class, number)| Some((*number, class.parse().ok()?))).collect();
        classes.sort_by(|(left, a), (right, b)| match &as_numbers {
            Some(values) => values[a].cmp(&values[b]).then_with(|| left.cmp(right)),
            None => left.cmp(right),
        });
        let mut places = vec![0u16; classes.len()];
        for (place, (_, number)) in classes.iter().enumerate() {
            places[usize::from(*number)] = place as u16;
        }
        let labels = self.rows.into_iter().map(|number| places[usize::from(number)]).collect();
        (labels, classes.into_iter().map(|(class, _)| class).collect())
    }
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
        assert_eq!(loaded.data.classes, ["dry", "wet"]);
        assert_eq!(loaded.data.labels, [1, 0]);
        assert_eq!(loaded.data.row(1), Row::Floats(&[3.0, -40.0]));
        assert_eq!(loaded.data.name, "table");
    }

    #[test]
    fn numbered_classes_are_sorted_as_numbers() {
        let loaded = read("1;10\n2;9\n3;-1\n", |csv| {
            (csv.header, csv.delimiter) = (false, ';');
        })
        .unwrap();
        assert_eq!(loaded.data.classes, ["-1", "9", "10"]);
        assert_eq!(loaded.data.labels, [2, 1, 0]);
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

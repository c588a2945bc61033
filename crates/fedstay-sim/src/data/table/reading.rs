//! A look at a table before anything is made of it: every column, every owner, and everything that is
//! wrong, at once.

use std::path::PathBuf;

use fedstay::record::UnusedRows;

use super::blocks::Blocks;
use super::column::{Role, TableColumn};
use super::encode;
use super::findings;
use super::prepared::Prepared;
use super::raw::{LONGEST_NAME, Problem, RawTable};
use super::records;
use super::settings::{DecimalSign, Encoding, Fill, ReadAs, Small};
use super::values::{CellValues, Levels, has_decimal_comma};
use super::{Draw, Table};
use crate::data::{DataError, LabelColumn, Predicted};
use crate::text::quoted;

/// What a table holds, and what will become of it.
#[derive(Debug, Clone)]
pub struct Reading {
    /// The files, in the order of their names.
    pub files: Vec<PathBuf>,
    /// The rows that were read.
    pub rows: usize,
    /// Those that are used, in training or in testing.
    pub used: usize,
    /// Those that are kept for testing.
    pub test: usize,
    /// Those that are not used, and why.
    pub unused: Vec<UnusedRows>,
    /// Every column, in the order of the file.
    pub columns: Vec<ColumnReading>,
    /// Every owner, with those that are too small joined or left out; none where rows have none.
    pub owners: Vec<OwnerReading>,
    /// Owners with fewer rows than there have to be, and how many they have.
    pub small: Vec<(String, usize)>,
    /// The classes; none where a number is predicted, or it is not known yet what is.
    pub classes: Vec<String>,
    /// What a reader should know before believing anything.
    pub warnings: Vec<String>,
    /// What stands in the way of a run.
    pub problems: Vec<Problem>,
    table: Table,
    small_owners: Small,
}

/// A column.
#[derive(Debug, Clone)]
pub struct ColumnReading {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub role: Role,
    /// What it holds; nothing where nobody looked.
    pub kind: Option<ReadAs>,
    /// The share of the rows that say nothing.
    pub missing: f64,
    /// How many different values it has.
    pub distinct: Option<usize>,
    /// One of them.
    pub example: String,
    /// What will become of it.
    pub becomes: String,
}

/// An owner.
#[derive(Debug, Clone)]
pub struct OwnerReading {
    /// What it is called.
    pub name: String,
    /// Its rows.
    pub rows: usize,
    /// Those of them that are kept for testing.
    pub test: usize,
    /// How many rows have the second of two classes.
    pub positives: Option<usize>,
    /// The mean of the number that is predicted.
    pub mean: Option<f64>,
    /// Whether it has too few rows.
    pub small: bool,
}

impl Reading {
    /// CellReading a table. What its settings leave open is guessed, except for the label and the owner, and
    /// stands in [`table`](Self::table) afterwards; what is wrong is collected.
    ///
    /// # Errors
    /// When a file cannot be read at all.
    pub fn of(table: &Table, draw: Draw) -> Result<Self, DataError> {
        let mut table = table.clone();
        let mut warnings = Vec::new();
        let raw = read(&mut table, &mut warnings)?;
        let mut prepared = Prepared::of(raw, &table, draw.small);
        let mut problems = prepared.problems(&table);
        let mut reasons: Vec<Option<&str>> = vec![None; prepared.raw.columns.len()];
        for finding in findings::of_columns(&prepared, &table) {
            match (finding.leave, finding.key) {
                (Some(reason), key) => {
                    reasons[finding.column] = Some(reason);
                    if key.is_some() {
                        warnings.push(finding.why);
                    }
                }
                (None, Some(key)) => problems.push(Problem { key, why: finding.why }),
                (None, None) => warnings.push(finding.why),
            }
        }
        let rows = prepared.raw.rows;
        let read = |(column, reason): (&TableColumn, &Option<&str>)| {
            let role = if reason.is_some() { Role::LeftOut } else { column.role };
            ColumnReading {
                name: column.name.clone(),
                role,
                kind: column.kind.filter(|_| role == Role::Feature),
                missing: column.missing.0 as f64 / rows.max(1) as f64,
                distinct: distinct(column),
                example: column.example.clone(),
                becomes: becomes(column, role, *reason, &prepared, table.fill),
            }
        };
        let columns: Vec<ColumnReading> =
            prepared.raw.columns.iter().zip(&reasons).map(read).collect();
        for column in &columns {
            let left_out = table.leave_out.contains(&column.name);
            if column.role == Role::LeftOut && !left_out {
                table.leave_out.push(column.name.clone());
            }
            if let (Role::Feature, Some(kind)) = (column.role, column.kind) {
                table.read_as.insert(column.name.clone(), kind);
            }
        }
        if table.label.is_some()
            && table.task.is_none()
            && problems.iter().all(|one| one.key != "data.task")
        {
            table.task = Some(Predicted::Classes);
        }
        let tests = prepared.tests(&table, draw);
        let mut reading = Self {
            files: prepared.raw.files.iter().map(|file| file.path.clone()).collect(),
            rows,
            used: prepared.rows.len(),
            test: tests.iter().filter(|test| **test).count(),
            unused: prepared.unused.clone(),
            columns,
            owners: Vec::new(),
            small: prepared.small.clone(),
            classes: prepared.classes.clone(),
            warnings,
            problems,
            table,
            small_owners: draw.small,
        };
        reading.note_owners(&prepared, &tests);
        Ok(reading)
    }

    /// The table with every guess in its settings.
    #[must_use]
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// What becomes of owners with too few rows.
    #[must_use]
    pub fn small_owners(&self) -> Small {
        self.small_owners
    }

    /// The name of the column that is predicted, if that is known.
    #[must_use]
    pub fn label(&self) -> Option<&str> {
        self.columns.iter().find(|column| column.role == Role::Label).map(|column| &column.name[..])
    }

    /// Counts the rows of every owner.
    fn note_owners(&mut self, prepared: &Prepared, tests: &[bool]) {
        if prepared.owner.is_empty() {
            return;
        }
        let owners = prepared.owners.len();
        let (mut test, mut positives) = (vec![0; owners], vec![0; owners]);
        let mut sums = vec![0.0; owners];
        let numbers = prepared.raw.of(Role::Label).and_then(|label| match &label.values {
            CellValues::Exact(numbers) if numbers.len() == prepared.raw.rows => Some(numbers),
            _ => None,
        });
        for (row, is_test) in prepared.rows.iter().zip(tests) {
            let row = *row as usize;
            let owner = usize::from(prepared.owner[row]);
            test[owner] += usize::from(*is_test);
            positives[owner] += usize::from(prepared.class.get(row) == Some(&1));
            sums[owner] += numbers.map_or(0.0, |numbers| numbers.get(row));
        }
        let sizes = prepared.sizes();
        let read = |(at, name): (usize, &String)| OwnerReading {
            name: name.clone(),
            rows: sizes[at],
            test: test[at],
            positives: (prepared.classes.len() == 2).then_some(positives[at]),
            mean: numbers.map(|_| sums[at] / sizes[at].max(1) as f64),
            small: sizes[at] < self.table.least,
        };
        self.owners = prepared.owners.iter().enumerate().map(read).collect();
    }
}

/// CellReading the columns, and finds out how the files are written.
fn read(table: &mut Table, warnings: &mut Vec<String>) -> Result<RawTable, DataError> {
    let mut raw = match RawTable::read(table) {
        Err(error) if table.encoding == Encoding::Utf8 && records::is_other_encoding(&error) => {
            table.encoding = Encoding::Latin1;
            warnings
                .push("the text is not UTF-8 and was read as Latin-1: look at its accents".into());
            RawTable::read(table)?
        }
        read => read?,
    };
    if table.delimiter.is_none() {
        let signs = raw.files.iter().map(|file| records::delimiter(file, table));
        let signs = signs.collect::<Result<Vec<_>, _>>()?;
        if signs.windows(2).all(|two| two[0] == two[1]) {
            table.delimiter = signs[0];
        }
    }
    let is_comma = |column: &TableColumn| match &column.values {
        CellValues::Texts(_, Levels { texts, .. }) => {
            !texts.is_empty()
                && texts.iter().any(|text| text.contains(','))
                && texts.iter().all(|text| has_decimal_comma(text) || text.parse::<f64>().is_ok())
        }
        _ => false,
    };
    let read_by_point = table.decimal == DecimalSign::Point && table.delimiter != Some(',');
    if read_by_point && raw.columns.iter().any(is_comma) {
        table.decimal = DecimalSign::Comma;
        warnings.push("numbers such as 3,5 were read with a decimal comma".into());
        raw = RawTable::read(table)?;
    }
    Ok(raw)
}

/// How many different values a column has.
fn distinct(column: &TableColumn) -> Option<usize> {
    fn of<T: Copy>(values: &Blocks<T>, bits: impl Fn(T) -> Option<u64>) -> usize {
        let mut all: Vec<u64> = values.iter().filter_map(bits).collect();
        all.sort_unstable();
        all.dedup();
        all.len()
    }
    Some(match &column.values {
        CellValues::Numbers(numbers) => {
            of(numbers, |number| (!number.is_nan()).then(|| u64::from(number.to_bits())))
        }
        CellValues::Exact(numbers) => {
            of(numbers, |number| (!number.is_nan()).then(|| number.to_bits()))
        }
        CellValues::Marks(marks) => of(marks, Some),
        CellValues::Texts(_, levels) => levels.texts.len(),
        CellValues::Skipped | CellValues::TooMany => return None,
    })
}

/// What will become of a column, in words.
fn becomes(
    column: &TableColumn,
    role: Role,
    reason: Option<&str>,
    prepared: &Prepared,
    fill: Fill,
) -> String {
    let missing = column.missing.0 > 0;
    match (role, &column.values) {
        (Role::LeftOut, _) => {
            reason.map_or("left out".into(), |reason| format!("left out: {reason}"))
        }
        (Role::Label, _) => match &prepared.classes[..] {
            [] => "predicted as a number".into(),
            [no, yes] => format!("predicted: {} or {}", short(no), short(yes)),
            many => format!("predicted: {} classes", many.len()),
        },
        (Role::Owner, _) => format!("{} owners", prepared.owners.len()),
        (Role::Together, _) => "its rows stay together".into(),
        (Role::Time, _) => "the last rows test".into(),
        (Role::Test, _) => "says which rows test".into(),
        (Role::Feature, CellValues::Texts(_, levels)) => {
            let names = encode::category("", levels, missing);
            match &names[..] {
                [one] => format!("1 where it{one}"),
                many if missing => format!("{} of 0 and 1, one for missing", many.len()),
                many => format!("{} of 0 and 1", many.len()),
            }
        }
        (Role::Feature, _) => {
            let what = match column.kind {
                Some(ReadAs::Date) => "days since 1970",
                _ => "as it is",
            };
            match (missing, fill) {
                (false, _) => what.into(),
                (true, Fill::Median | Fill::Mean) => {
                    format!("{what}, {} if missing, and 0/1", fill.name())
                }
                (true, Fill::Drop) => format!("{what}, rows dropped if missing"),
                (true, Fill::Refuse) => format!("{what}, refused if missing"),
            }
        }
    }
}

fn short(text: &str) -> String {
    quoted(text, LONGEST_NAME / 2)
}

/// A column as a key names it.
pub(super) fn named(column: &LabelColumn) -> toml::Value {
    match column {
        LabelColumn::Index(index) => toml::Value::from(*index as i64),
        LabelColumn::Name(name) => toml::Value::from(&name[..]),
    }
}

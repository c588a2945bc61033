//! Reading the files of a table into columns, and everything that is wrong with them.

use std::collections::HashMap;

use ::csv::StringRecord;

use super::Table;
use super::column::{Role, TableColumn};
use super::files::{self, TableFile};
use super::records::{self, Records};
use super::roles::Roles;
use super::settings::{Paths, ReadAs};
use super::values::CellReading;
use crate::data::DataError;
use crate::text::quoted;

/// What stands in the way of using a table as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The key that settles it.
    pub key: &'static str,
    /// What is wrong, and what to type.
    pub why: String,
}

/// The columns of a table as they were read.
pub(super) struct RawTable {
    pub(super) files: Vec<TableFile>,
    pub(super) columns: Vec<TableColumn>,
    pub(super) rows: usize,
    /// Where the rows of each file begin.
    pub(super) starts: Vec<usize>,
    /// Where the rows of a second path begin, which are for testing.
    pub(super) tests: Option<usize>,
    /// Whether owners are files.
    pub(super) by_file: bool,
    pub(super) reads: CellReading,
    pub(super) problems: Vec<Problem>,
}

/// How many rows are looked at to see what columns hold.
const LOOKED_AT: usize = 1000;
/// A name is cut to this in a sentence.
pub(super) const LONGEST_NAME: usize = 40;
/// Problems of one kind are told up to here.
const MOST_TOLD: usize = 5;

impl RawTable {
    /// CellReading the files. What is wrong with cells, names and settings is collected.
    ///
    /// # Errors
    /// When a file cannot be read at all.
    pub(super) fn read(table: &Table) -> Result<Self, DataError> {
        let mut files = table.files()?;
        let first = &files[0];
        let mut problems = Vec::new();
        let mut opened = records::open(first, table)?;
        let names = names(&mut *opened, first, table, &mut problems)?;
        let mut roles = Roles { names: &names, table, problems: &mut problems, by_file: false };
        let (roles, tests, by_file) = roles.all();
        let tests = match tests {
            Some(path) => {
                let more = files::named(&Paths::One(path.into()))?;
                let at = files.len();
                files.extend(more);
                Some(at)
            }
            None => None,
        };
        let reads = CellReading::new(&table.missing, table.decimal);
        let seen = look(&mut *opened, names.len(), &reads)?;
        let columns = names.iter().zip(roles).zip(seen).map(|((name, role), seen)| {
            let (told, seen) = match role {
                Role::Feature => (table.read_as.get(name).copied(), seen),
                Role::Label => (table.predicts_number().then_some(ReadAs::Number), None),
                _ => (None, None),
            };
            TableColumn::new(name.clone(), role, told.or(seen), told.is_some())
        });
        let columns = columns.collect();
        let mut raw = Self {
            files,
            columns,
            rows: 0,
            starts: Vec::new(),
            tests: None,
            by_file,
            reads,
            problems,
        };
        raw.pass(table, true)?;
        raw.tests = tests.map(|file| raw.starts[file]);
        let mut again = false;
        raw.columns.iter_mut().for_each(|column| again |= column.again());
        if again {
            raw.pass(table, false)?;
        }
        raw.columns.iter_mut().for_each(|column| column.settle(&raw.reads));
        raw.tell_odd();
        Ok(raw)
    }

    /// CellReading all rows of all files; a second pass reads only what the first could not.
    fn pass(&mut self, table: &Table, first: bool) -> Result<(), DataError> {
        let Self { files, columns, reads, problems, starts, .. } = self;
        let open: Vec<bool> = columns
            .iter()
            .map(|column| first || column.odd.is_some() && column.is_open())
            .collect();
        let (mut row, mut rows) = (StringRecord::new(), 0);
        let mut torn = 0;
        for (number, file) in files.iter().enumerate() {
            let mut records = records::open(file, table)?;
            let places = places(&mut *records, columns, (&files[0], file), problems, first)?;
            if first {
                starts.push(rows);
            }
            while records.next(&mut row)? {
                if row.len() != places.1 {
                    torn += 1;
                    if first && torn <= MOST_TOLD {
                        let (file, unit, place) =
                            (file.path.display(), records.unit(), records.place());
                        let why = format!(
                            "{file}, {unit} {place}: {} values for {} columns; correct the file, or set \
                             data.delimiter if another sign separates them",
                            row.len(),
                            places.1
                        );
                        problems.push(Problem { key: "data.path", why });
                    }
                    continue;
                }
                rows += 1;
                let place = (number, records.place());
                for ((column, open), at) in columns.iter_mut().zip(&open).zip(&places.0) {
                    if *open
                        && (column.is_open()
                            || column.role == Role::LeftOut && column.example.is_empty())
                    {
                        column.push(row.get(*at).unwrap_or_default(), reads, place);
                    }
                }
            }
        }
        if first && torn > MOST_TOLD {
            let why = format!("{torn} rows have more or fewer values than there are columns");
            problems.push(Problem { key: "data.path", why });
        }
        self.rows = rows;
        Ok(())
    }

    /// Tells of texts where a number or a day has to be.
    fn tell_odd(&mut self) {
        for column in &self.columns {
            let Some((text, place)) = &column.odd else { continue };
            if !column.told && column.role == Role::Feature {
                continue;
            }
            let what = match column.role {
                Role::Time => "a number or a day such as 2024-05-31",
                _ if column.kind == Some(ReadAs::Date) => "a day such as 2024-05-31",
                _ => "a number",
            };
            let why = format!(
                "`{}` is to be {what}, but {} has `{}`; add that to data.missing if it means missing",
                quoted(&column.name, LONGEST_NAME),
                self.at(*place),
                quoted(text, LONGEST_NAME)
            );
            let key = match column.role {
                Role::Time => "data.time",
                Role::Label => "data.task",
                _ => "data.as",
            };
            self.problems.push(Problem { key, why });
        }
    }

    /// A place in words.
    pub(super) fn at(&self, place: (usize, u64)) -> String {
        let line = place.1;
        match self.files.len() {
            1 => format!("line {line}"),
            _ => format!("{}, line {line}", self.files[place.0].path.display()),
        }
    }

    /// The column with a role.
    pub(super) fn of(&self, role: Role) -> Option<&TableColumn> {
        self.columns.iter().find(|column| column.role == role)
    }
}

/// What the columns are called; a name of its own for each, and a problem where that takes an invention.
fn names(
    records: &mut dyn Records,
    file: &TableFile,
    table: &Table,
    problems: &mut Vec<Problem>,
) -> Result<Vec<String>, DataError> {
    let path = &file.path;
    let mut names = records.names().to_vec();
    if !table.header && names.is_empty() {
        let mut row = StringRecord::new();
        records.next(&mut row)?;
        return Ok((0..row.len()).map(|column| column.to_string()).collect());
    }
    if names.is_empty() || names.iter().all(String::is_empty) {
        let hint = "the first line names the columns; set data.header = false if it is a row";
        return Err(DataError::wrong(path, "the names of columns", "nothing", hint));
    }
    let numbers: Vec<f64> = names.iter().filter_map(|name| name.parse().ok()).collect();
    let counted =
        |first: usize| numbers.iter().enumerate().all(|(at, name)| *name == (at + first) as f64);
    if numbers.len() == names.len() && (names.len() < 3 || !(counted(0) || counted(1))) {
        let why = format!(
            "{}: the names of the columns in line 1 are numbers ({}); set data.header = false if the table \
             begins with a row",
            path.display(),
            quoted(&names.join(", "), LONGEST_NAME)
        );
        problems.push(Problem { key: "data.header", why });
    }
    for name in names.iter_mut().enumerate().filter(|(_, name)| name.is_empty()) {
        *name.1 = format!("unnamed {}", name.0 + 1);
    }
    let mut seen: HashMap<String, usize> = HashMap::new();
    for (column, called) in names.iter_mut().enumerate() {
        let Some(earlier) = seen.insert(called.clone(), column) else { continue };
        let why = format!(
            "{}: two columns are called `{}`, the {} and the {}: rename one",
            path.display(),
            quoted(called, LONGEST_NAME),
            nth(earlier + 1),
            nth(column + 1)
        );
        problems.push(Problem { key: "data.path", why });
        *called = format!("{called} ({})", column + 1);
    }
    Ok(names)
}

/// `1st`, `2nd`, `13th`.
fn nth(number: usize) -> String {
    let ending = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

/// Where a file has each of the columns, and how many it has.
fn places(
    records: &mut dyn Records,
    columns: &[TableColumn],
    (first, file): (&TableFile, &TableFile),
    problems: &mut Vec<Problem>,
    tell: bool,
) -> Result<(Vec<usize>, usize), DataError> {
    if first == file || records.names().is_empty() {
        return Ok(((0..columns.len()).collect(), columns.len()));
    }
    let mut unused = Vec::new();
    let own = names(records, file, &Table::new(""), &mut unused)?;
    let at = |column: &TableColumn| own.iter().position(|name| *name == column.name);
    let found: Vec<Option<usize>> = columns.iter().map(at).collect();
    if tell {
        let (path, other) = (file.path.display(), first.path.display());
        let lacks =
            |name: &str, lacks: &dyn std::fmt::Display, has: &dyn std::fmt::Display| Problem {
                key: "data.path",
                why: format!(
                    "{lacks} has no column `{}`, but {has} has: give all files the same columns",
                    quoted(name, LONGEST_NAME)
                ),
            };
        let missing = columns.iter().zip(&found).filter(|(_, at)| at.is_none());
        problems
            .extend(missing.take(MOST_TOLD).map(|(column, _)| lacks(&column.name, &path, &other)));
        let more = own.iter().filter(|name| columns.iter().all(|column| column.name != **name));
        problems.extend(more.take(MOST_TOLD).map(|name| lacks(name, &other, &path)));
    }
    let places = found.into_iter().map(|at| at.unwrap_or(usize::MAX)).collect();
    Ok((places, own.len()))
}

/// What the columns of the first rows hold.
fn look(
    records: &mut dyn Records,
    columns: usize,
    reads: &CellReading,
) -> Result<Vec<Option<ReadAs>>, DataError> {
    let mut seen: Vec<Option<ReadAs>> = vec![None; columns];
    let mut row = StringRecord::new();
    for _ in 0..LOOKED_AT {
        if !records.next(&mut row)? {
            break;
        }
        for (seen, text) in seen.iter_mut().zip(row.iter()) {
            *seen = match (*seen, reads.kind(text)) {
                (None, kind) => kind,
                (seen, None) => seen,
                (Some(seen), Some(kind)) if seen == kind => Some(seen),
                _ => Some(ReadAs::Category),
            };
        }
    }
    // What looks like texts may turn out to be something else where nothing else is missing.
    Ok(seen.into_iter().map(|seen| seen.filter(|kind| *kind != ReadAs::Category)).collect())
}

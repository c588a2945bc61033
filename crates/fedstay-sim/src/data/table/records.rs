//! The rows of a file as texts, whatever the file is.

use std::io::{BufRead, BufReader, Read};

use ::csv::{Reader, ReaderBuilder, StringRecord, Trim};

use super::Table;
use super::files::{Format, TableFile};
use super::packed::PackedRows;
use crate::data::DataError;

/// The rows of a file, one after the other.
pub(super) trait Records {
    /// What its columns are called, as they are written; none for a table without names.
    fn names(&self) -> &[String];

    /// Brings the next row into `row`; whether there was one.
    fn next(&mut self, row: &mut StringRecord) -> Result<bool, DataError>;

    /// Where the row that was read last begins.
    fn place(&self) -> u64;

    /// What a place counts.
    fn unit(&self) -> &'static str {
        "line"
    }
}

/// A file, opened at its first row.
pub(super) fn open(file: &TableFile, table: &Table) -> Result<Box<dyn Records>, DataError> {
    match file.format()? {
        Format::Parquet => Ok(Box::new(PackedRows::open(file)?)),
        format => Ok(Box::new(Lines::open(file, format, table)?)),
    }
}

/// What separates the columns of a file of text; nothing for one of Parquet.
pub(super) fn delimiter(file: &TableFile, table: &Table) -> Result<Option<char>, DataError> {
    let format = file.format()?;
    if format == Format::Parquet {
        return Ok(None);
    }
    if table.delimiter.is_some() {
        return Ok(table.delimiter);
    }
    let mut first = Vec::new();
    let text = file.text(format, table.encoding)?;
    BufReader::new(text.take(LONGEST))
        .read_until(b'\n', &mut first)
        .map_err(|source| DataError::io(&file.path, "", source))?;
    let mut quoted = false;
    let mut counts = [0; SIGNS.len()];
    for byte in first {
        quoted ^= byte == b'"';
        if let Some(sign) = SIGNS.iter().position(|sign| !quoted && byte == *sign as u8) {
            counts[sign] += 1;
        }
    }
    // The first of those there are most of; a comma where there is none.
    let most = (0..SIGNS.len()).rev().max_by_key(|sign| counts[*sign]).unwrap_or(0);
    Ok(Some(SIGNS[most]))
}

/// What may separate columns.
const SIGNS: [char; 4] = [',', ';', '\t', '|'];
/// How much of a table's first line is looked at.
const LONGEST: u64 = 1 << 20;

/// Lines of text.
struct Lines {
    path: std::path::PathBuf,
    reader: Reader<Box<dyn Read>>,
    names: Vec<String>,
    place: u64,
    latin: bool,
}

impl Lines {
    fn open(file: &TableFile, format: Format, table: &Table) -> Result<Self, DataError> {
        let sign = delimiter(file, table)?.unwrap_or(',');
        let sign = u8::try_from(sign)
            .map_err(|_| DataError::setting("data.delimiter", "must be one byte, such as `;`"))?;
        let reader = ReaderBuilder::new()
            .has_headers(table.header)
            .delimiter(sign)
            .trim(Trim::All)
            .flexible(true)
            .buffer_capacity(1 << 17)
            .from_reader(file.text(format, table.encoding)?);
        let latin = table.encoding != super::Encoding::Utf8;
        let mut lines =
            Self { path: file.path.clone(), names: Vec::new(), place: 1, reader, latin };
        if table.header {
            let named = lines.reader.headers().cloned();
            let names = named.map_err(|error| lines.torn(&error))?;
            lines.names = names.iter().map(str::to_owned).collect();
        }
        Ok(lines)
    }

    /// What an error of the format means.
    fn torn(&self, error: &::csv::Error) -> DataError {
        let line = error.position().map_or(1, ::csv::Position::line);
        match error.kind() {
            ::csv::ErrorKind::Utf8 { .. } => {
                let hint = match self.latin {
                    true => "save it as UTF-8",
                    false => "set data.encoding = \"latin-1\", or save it as UTF-8",
                };
                DataError::wrong(&self.path, UTF_8, format!("other bytes in line {line}"), hint)
            }
            ::csv::ErrorKind::Io(source) => {
                let source = std::io::Error::new(source.kind(), source.to_string());
                DataError::io(&self.path, "", source)
            }
            _ => DataError::wrong(
                &self.path,
                "rows of a table",
                error.to_string(),
                "correct the file",
            ),
        }
    }
}

impl Records for Lines {
    fn names(&self) -> &[String] {
        &self.names
    }

    fn next(&mut self, row: &mut StringRecord) -> Result<bool, DataError> {
        let more = self.reader.read_record(row).map_err(|error| self.torn(&error))?;
        if more {
            self.place = row.position().map_or(self.place, ::csv::Position::line);
        }
        Ok(more)
    }

    fn place(&self) -> u64 {
        self.place
    }
}

/// Whether a file cannot be read because its letters are written otherwise.
pub(super) fn is_other_encoding(error: &DataError) -> bool {
    matches!(error, DataError::Wrong { expected, .. } if expected == UTF_8)
}

const UTF_8: &str = "text in UTF-8";

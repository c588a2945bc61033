//! Rows of Parquet, as the texts that a table of text would have for them.

use ::csv::StringRecord;
use bytes::Bytes;
use parquet::basic::{LogicalType, TimeUnit};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, FileReader, SerializedFileReader};
use parquet::record::Field;
use parquet::record::reader::RowIter;

use super::date;
use super::files::TableFile;
use super::records::Records;
use crate::data::DataError;

/// The rows of a Parquet file.
pub(super) struct PackedRows {
    path: std::path::PathBuf,
    names: Vec<String>,
    /// Whether a column counts nanoseconds, which its values do not say.
    nanoseconds: Vec<bool>,
    rows: RowIter<'static>,
    place: u64,
}

impl PackedRows {
    pub(super) fn open(file: &TableFile) -> Result<Self, DataError> {
        let hint = "set data.path to the table you want to read";
        match file.content {
            Some(content) => Self::of(file, Bytes::from_static(content)),
            None => {
                let opened = std::fs::File::open(&file.path);
                Self::of(file, opened.map_err(|source| DataError::io(&file.path, hint, source))?)
            }
        }
    }

    fn of<R: ChunkReader + 'static>(file: &TableFile, content: R) -> Result<Self, DataError> {
        let torn = |error: ParquetError| torn(file, &error);
        let reader = SerializedFileReader::new(content).map_err(torn)?;
        let about = reader.metadata().file_metadata();
        let schema = about.schema_descr();
        let (mut names, mut nanoseconds) = (Vec::new(), Vec::new());
        for field in schema.root_schema().get_fields() {
            let name = field.name().to_owned();
            if !field.is_primitive() {
                let found = format!("a nested column `{name}`");
                let hint = "write each part as a column of its own";
                return Err(DataError::wrong(&file.path, "a table", found, hint));
            }
            let nanos = |kind: &LogicalType| matches!(kind, LogicalType::Timestamp(time) if matches!(time.unit, TimeUnit::NANOS));
            nanoseconds.push(field.get_basic_info().logical_type_ref().is_some_and(nanos));
            names.push(name);
        }
        // The iterator takes it for granted that every part of the file is there.
        for part in 0..reader.num_row_groups() {
            reader.get_row_group(part).map_err(torn)?;
        }
        let rows = RowIter::from_file_into(Box::new(reader));
        Ok(Self { path: file.path.clone(), names, nanoseconds, rows, place: 0 })
    }
}

impl Records for PackedRows {
    fn names(&self) -> &[String] {
        &self.names
    }

    fn next(&mut self, row: &mut StringRecord) -> Result<bool, DataError> {
        let Some(next) = self.rows.next() else { return Ok(false) };
        let file = TableFile { path: self.path.clone(), content: None };
        let next = next.map_err(|error| torn(&file, &error))?;
        row.clear();
        self.place += 1;
        for ((_, field), nanos) in next.into_columns().into_iter().zip(&self.nanoseconds) {
            match field {
                Field::Null => row.push_field(""),
                Field::Str(text) => row.push_field(text.trim()),
                Field::Long(count) if *nanos => {
                    row.push_field(&date::text(count as f64 / DAY / 1e9))
                }
                Field::Date(days) => row.push_field(&date::text(f64::from(days))),
                Field::TimestampMillis(count) => {
                    row.push_field(&date::text(count as f64 / DAY / 1e3));
                }
                Field::TimestampMicros(count) => {
                    row.push_field(&date::text(count as f64 / DAY / 1e6));
                }
                Field::Bytes(bytes) => row.push_field(bytes.as_utf8().unwrap_or_default().trim()),
                // The shortest text that reads back as the same number, without `.0`.
                Field::Float(number) => row.push_field(&number.to_string()),
                Field::Double(number) => row.push_field(&number.to_string()),
                other => row.push_field(&other.to_string()),
            }
        }
        Ok(true)
    }

    fn place(&self) -> u64 {
        self.place
    }

    fn unit(&self) -> &'static str {
        "row"
    }
}

/// The seconds of a day.
const DAY: f64 = 86_400.0;

/// What an error of the format means.
fn torn(file: &TableFile, error: &ParquetError) -> DataError {
    let said = error.to_string();
    let hint = match said.contains("Disabled feature") {
        true => "write it with compression = \"snappy\", \"gzip\" or none",
        false => "write it again: it may be cut off",
    };
    DataError::wrong(&file.path, "a whole Parquet file", said, hint)
}

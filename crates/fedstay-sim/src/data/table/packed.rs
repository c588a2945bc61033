//! Rows of Parquet, as the texts that a table of text would have for them.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

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
    file: TableFile,
    names: Vec<String>,
    /// Whether a column counts nanoseconds, which its values do not say.
    nanoseconds: Vec<bool>,
    rows: RowIter<'static>,
    place: u64,
}

impl PackedRows {
    pub(super) fn open(file: &TableFile) -> Result<Self, DataError> {
        let hint = "set data.path to the table you want to read";
        let opened = match file.content {
            Some(content) => return guarded(file, || Self::of(file, Bytes::from_static(content))),
            None => std::fs::File::open(&file.path),
        };
        let opened = opened.map_err(|source| DataError::io(&file.path, hint, source))?;
        guarded(file, || Self::of(file, opened))
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
        Ok(Self { file: file.clone(), names, nanoseconds, rows, place: 0 })
    }
}

impl Records for PackedRows {
    fn names(&self) -> &[String] {
        &self.names
    }

    fn next(&mut self, row: &mut StringRecord) -> Result<bool, DataError> {
        let Self { file, rows, .. } = self;
        let next = guarded(file, || rows.next().transpose().map_err(|error| torn(file, &error)));
        let Some(next) = next? else { return Ok(false) };
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

thread_local! {
    /// Whether this thread reads something that it may panic over.
    static READS: Cell<bool> = const { Cell::new(false) };
}

/// CellReading a file with a library that panics over some damaged ones, which is no reason for us to.
fn guarded<T>(
    file: &TableFile,
    work: impl FnOnce() -> Result<T, DataError>,
) -> Result<T, DataError> {
    static SILENCE: Once = Once::new();
    SILENCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !READS.get() {
                usual(panic);
            }
        }));
    });
    READS.set(true);
    let read = catch_unwind(AssertUnwindSafe(work));
    READS.set(false);
    read.unwrap_or_else(|_| {
        let hint = "write it again: it is damaged";
        Err(DataError::wrong(&file.path, "a whole Parquet file", "parts that do not fit", hint))
    })
}

/// What an error of the format means.
fn torn(file: &TableFile, error: &ParquetError) -> DataError {
    let said = error.to_string();
    let hint = match said.contains("Disabled feature") {
        true => "write it with compression = \"snappy\", \"gzip\" or none",
        false => "write it again: it may be cut off",
    };
    DataError::wrong(&file.path, "a whole Parquet file", said, hint)
}

#[cfg(test)]
mod tests {
    use crate::data::table::{Draw, Reading, Table};
    use crate::data::{LabelColumn, Load};
    use parquet::basic::Compression;
    use parquet::data_type::{
        BoolType, ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type,
    };
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;
    use std::sync::Arc;

    const SCHEMA: &str = "message table {
        required int64 count; optional double dose; optional binary sex (utf8); required boolean well;
        required int32 day (date); required int64 seen (timestamp(nanos, true)); required binary y (utf8);
    }";

    /// Four rows of every type that a table has; the third has neither dose nor sex.
    fn written(compression: Compression) -> Vec<u8> {
        let schema = Arc::new(parse_message_type(SCHEMA).unwrap());
        let properties = Arc::new(WriterProperties::builder().set_compression(compression).build());
        let mut bytes = Vec::new();
        let mut file = SerializedFileWriter::new(&mut bytes, schema, properties).unwrap();
        let mut group = file.next_row_group().unwrap();
        let texts =
            |texts: &[&str]| texts.iter().map(|text| ByteArray::from(*text)).collect::<Vec<_>>();
        macro_rules! column {
            ($kind:ty, $values:expr, $there:expr) => {{
                let mut column = group.next_column().unwrap().unwrap();
                column.typed::<$kind>().write_batch($values, $there, None).unwrap();
                column.close().unwrap();
            }};
        }
        let there: Option<&[i16]> = Some(&[1, 1, 0, 1]);
        column!(Int64Type, &[3, 4, 5, 6], None);
        column!(DoubleType, &[0.5, 2.0, 1e-3], there);
        column!(ByteArrayType, &texts(&["F", "M", "F"]), there);
        column!(BoolType, &[true, false, true, true], None);
        column!(Int32Type, &[0, 1, 19_874, 2], None);
        let day = 86_400_000_000_000;
        column!(Int64Type, &[0, day / 2, day, 2 * day], None);
        column!(ByteArrayType, &texts(&["a", "b", "a", "b"]), None);
        group.close().unwrap();
        file.close().unwrap();
        bytes
    }

    fn table(folder: &tempfile::TempDir, bytes: &[u8]) -> Table {
        let path = folder.path().join("t.parquet");
        std::fs::write(&path, bytes).unwrap();
        let label = Some(LabelColumn::Name("y".into()));
        Table { label, test_share: 0.0, least: 0, ..Table::new(path) }
    }

    /// The same rows as text are the same table.
    #[test]
    fn parquet_is_read_like_text() {
        let folder = tempfile::tempdir().unwrap();
        let text = "count,dose,sex,well,day,seen,y\n3,0.5,F,true,1970-01-01,1970-01-01,a\n\
                    4,2,M,false,1970-01-02,1970-01-01T12:00:00,b\n5,,,true,2024-05-31,1970-01-02,a\n\
                    6,0.001,F,true,1970-01-03,1970-01-03,b\n";
        let path = folder.path().join("t.csv");
        std::fs::write(&path, text).unwrap();
        let csv = Table { path: super::super::Paths::One(path), ..table(&folder, b"") };
        let expected = csv.load().unwrap().data;
        for compression in [Compression::UNCOMPRESSED, Compression::SNAPPY] {
            let table = table(&folder, &written(compression));
            assert_eq!(table.load().unwrap().data, expected, "{compression:?}");
        }
    }

    #[test]
    fn a_damaged_file_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let whole = written(Compression::SNAPPY);
        for len in (4..whole.len()).step_by(7) {
            let told = table(&folder, &whole[..len]).load().unwrap_err().to_string();
            assert!(told.contains("t.parquet") && !told.contains('\n'), "{told}");
        }
        for at in (4..whole.len()).step_by(5) {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x55;
            let table = table(&folder, &damaged);
            let _ = Reading::of(&table, Draw::default());
        }
    }
}

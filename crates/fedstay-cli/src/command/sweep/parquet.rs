//! Parquet: one row group, every column optional. The `parquet` crate is used without Arrow, which
//! is a stack of its own and not needed for a table of numbers.

use anyhow::Result;
use fedstay_sim::sweep::{Column, Values};
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;
use std::sync::Arc;

/// The table as a Parquet file.
pub(super) fn bytes(columns: &[Column]) -> Result<Vec<u8>> {
    let fields = columns.iter().map(field).collect::<Result<_>>()?;
    let schema = Type::group_type_builder("fedstay").with_fields(fields).build()?;
    let properties = WriterProperties::builder().build();
    let mut writer = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    for column in columns {
        match &column.values {
            Values::Whole(values) => write::<Int64Type, _>(&mut group, values, |value| *value)?,
            Values::Number(values) => write::<DoubleType, _>(&mut group, values, |value| *value)?,
            Values::Text(values) => {
                write::<ByteArrayType, _>(&mut group, values, |text| {
                    ByteArray::from(text.as_str())
                })?;
            }
        }
    }
    group.close()?;
    Ok(writer.into_inner()?)
}

fn field(column: &Column) -> Result<Arc<Type>> {
    let (physical, logical) = match column.values {
        Values::Whole(_) => (Physical::INT64, None),
        Values::Number(_) => (Physical::DOUBLE, None),
        Values::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
    };
    let builder = Type::primitive_type_builder(&column.name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical);
    Ok(Arc::new(builder.build()?))
}

/// Writes one column: its values without the gaps, and for every row whether there is one.
fn write<T: DataType, V>(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    values: &[Option<V>],
    of: impl Fn(&V) -> T::T,
) -> Result<()> {
    let there: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    let values: Vec<T::T> = values.iter().flatten().map(of).collect();
    if let Some(mut column) = group.next_column()? {
        column.typed::<T>().write_batch(&values, Some(&there), None)?;
        column.close()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    #[test]
    fn a_table_comes_back_with_its_gaps() {
        let column = |name: &str, values| Column { name: name.to_owned(), values };
        let columns = [
            column("partition.q", Values::Number(vec![Some(0.5), None, Some(-1e300)])),
            column("left", Values::Whole(vec![Some(i64::MAX), Some(0), None])),
            column("rule", Values::Text(vec![Some("ε".into()), None, Some(String::new())])),
        ];
        let bytes = bytes(&columns).unwrap();
        assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), &bytes).unwrap();
        let reader = SerializedFileReader::new(file.reopen().unwrap()).unwrap();
        let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        assert_eq!(rows.len(), 3);
        assert_eq!(rows[2].get_double(0).unwrap(), -1e300);
        assert!(rows[1].get_double(0).is_err() && rows[2].get_long(1).is_err());
        assert_eq!(rows[0].get_long(1).unwrap(), i64::MAX);
        assert_eq!(rows[0].get_string(2).unwrap(), "ε");
    }
}

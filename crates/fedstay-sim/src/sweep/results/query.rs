//! Questions of one's own, in SQL, and their answers as plain values.

use crate::sweep::{Store, StoreError};
use rusqlite::types::ValueRef;

/// What a store answers to a question in SQL.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryTable {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The rows: one field for each column.
    pub rows: Vec<Vec<Field>>,
}

/// One value of a [`QueryTable`].
#[derive(Debug, Clone, PartialEq)]
pub enum Field {
    /// There is none.
    Nothing,
    /// A whole number.
    Whole(i64),
    /// A number.
    Real(f64),
    /// A text; what is not UTF-8 in it is replaced.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

impl From<ValueRef<'_>> for Field {
    fn from(value: ValueRef<'_>) -> Self {
        match value {
            ValueRef::Null => Self::Nothing,
            ValueRef::Integer(value) => Self::Whole(value),
            ValueRef::Real(value) => Self::Real(value),
            ValueRef::Text(text) => Self::Text(String::from_utf8_lossy(text).into_owned()),
            ValueRef::Blob(bytes) => Self::Bytes(bytes.to_vec()),
        }
    }
}

impl Store {
    /// Asks a question in SQL about the tables `runs`, `series` and `work`.
    ///
    /// # Errors
    /// When it is not SQL, or would change a store that was opened to be read.
    pub fn ask(&self, sql: &str) -> Result<QueryTable, StoreError> {
        let mut statement = self.connection.prepare(sql).map_err(self.named())?;
        let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let mut found = statement.query([]).map_err(self.named())?;
        let mut rows = Vec::new();
        while let Some(row) = found.next().map_err(self.named())? {
            let field = |column| row.get_ref(column).map(Field::from);
            let fields = (0..columns.len()).map(field).collect::<Result<_, _>>();
            rows.push(fields.map_err(self.named())?);
        }
        Ok(QueryTable { columns, rows })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_plain_values() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("a.db")).unwrap();
        let told = store.ask("SELECT NULL AS a, 2 AS b, 0.5 AS c, 'x' AS d, x'00ff' AS e").unwrap();
        assert_eq!(told.columns, ["a", "b", "c", "d", "e"]);
        let (text, bytes) = (Field::Text("x".into()), Field::Bytes(vec![0, 255]));
        assert_eq!(told.rows, [[Field::Nothing, Field::Whole(2), Field::Real(0.5), text, bytes]]);
        let error = store.ask("SELECT").unwrap_err();
        assert!(error.to_string().ends_with(error.why()) && error.to_string().contains("a.db"));
    }
}

//! Checksums: a store that was damaged never answers with other numbers.
//!
//! Every row of `runs` has a checksum over its own columns and its series. SQLite's own
//! check of the file finds what a row cannot know about itself: rows that are gone, indices that
//! point elsewhere.

use crate::sweep::results::store::TABLES;
use crate::sweep::{Store, StoreError};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row};
use sha2::{Digest, Sha256};

/// A run with its series, all columns, the checksum last.
pub(in crate::sweep) const WHOLE: &str = "SELECT key, results, build, config, outcome, error, rule, seed, \
     rounds, stop, verdict, left_count, first_departure, accuracy_mean, accuracy_min, accuracy_max, \
     population_accuracy, loss_mean, loss_min, loss_max, population_loss, summary, points, checksum \
     FROM runs LEFT JOIN series USING (key) WHERE key = ?1";

/// The first 128 bits of SHA-256 over everything in a row of [`WHOLE`] but the checksum itself: kind
/// and bytes of each column, with their lengths, so that nothing can move from one to another.
pub(in crate::sweep) fn checksum(row: &Row<'_>) -> rusqlite::Result<String> {
    let mut hash = Sha256::new();
    let mut add = |kind: &[u8], bytes: &[u8]| {
        hash.update(kind);
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    for index in 0..row.as_ref().column_count() - 1 {
        match row.get_ref(index)? {
            ValueRef::Null => add(b"null", &[]),
            ValueRef::Integer(value) => add(b"whole", &value.to_le_bytes()),
            ValueRef::Real(value) => add(b"real", &value.to_le_bytes()),
            ValueRef::Text(text) => add(b"text", text),
            ValueRef::Blob(bytes) => add(b"blob", bytes),
        }
    }
    Ok(hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect())
}

/// How the tables are described, as SQLite keeps it.
fn described(connection: &Connection) -> rusqlite::Result<Vec<Vec<u8>>> {
    let sql = "SELECT CAST(sql AS BLOB) FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name";
    connection.prepare(sql)?.query_map([], |row| row.get(0))?.collect()
}

impl Store {
    /// Looks at the whole file as SQLite does: the tables, every page, every index.
    ///
    /// # Errors
    /// When something does not fit; the message says what to do.
    pub(in crate::sweep) fn check_file(&self) -> Result<(), StoreError> {
        let found = Connection::open_in_memory().and_then(|new| {
            new.execute_batch(TABLES)?;
            if described(&self.connection)? != described(&new)? {
                return Ok("its tables are not described as they were".to_owned());
            }
            self.connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))
        });
        let why = match found {
            Ok(found) if found == "ok" => return Ok(()),
            Ok(found) => found,
            Err(error) => error.to_string(),
        };
        Err(self.failed(format!(
            "the store is damaged ({}); bring back a copy of it, or remove it and `fedstay sweep` \
             computes everything again",
            why.replace('\n', " ")
        )))
    }

    /// Looks at everything: the file, and every row.
    ///
    /// # Errors
    /// When something is not as it was written; the message says what to do.
    pub fn verify(&self) -> Result<(), StoreError> {
        self.check_file()?;
        match self.damaged()?.first() {
            None => Ok(()),
            Some(key) => Err(self.damaged_row(key)),
        }
    }

    pub(in crate::sweep) fn damaged_row(&self, key: &str) -> StoreError {
        self.failed(format!(
            "run {key} is damaged: its row does not have its checksum; `fedstay sweep` with the same \
             file and store computes it again"
        ))
    }

    /// The keys of the rows that are not as they were written.
    fn damaged(&self) -> Result<Vec<String>, StoreError> {
        let mut keys: Vec<String> = self.keys()?.into_iter().collect();
        keys.sort();
        let mut statement = self.connection.prepare(WHOLE).map_err(self.named())?;
        let mut damaged = Vec::new();
        for key in keys {
            let right = statement
                .query_row([&key], |row| Ok(checksum(row)? == row.get::<_, String>("checksum")?))
                .optional();
            // A value of another kind than its column's is as damaged as another value.
            if !matches!(right, Ok(Some(true))) {
                damaged.push(key);
            }
        }
        Ok(damaged)
    }

    /// Removes the rows that are damaged, so that they are computed again. Returns how many.
    ///
    /// # Errors
    /// When the file itself is damaged, or cannot be written to.
    pub(in crate::sweep) fn forget_damaged(&self) -> Result<usize, StoreError> {
        self.check_file()?;
        let damaged = self.damaged()?;
        for key in &damaged {
            let transaction = self.connection.unchecked_transaction().map_err(self.named())?;
            for table in ["series", "runs"] {
                let sql = format!("DELETE FROM {table} WHERE key = ?1");
                transaction.execute(&sql, [key]).map_err(self.named())?;
            }
            transaction.commit().map_err(self.named())?;
        }
        Ok(damaged.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::run_cell;

    const TEXT: &str = "rounds = 3\neval_every = 1\n[rule]\nkind = \"fedavg\"\n[data]\n\
                        per_agent = 10\n[model]\nhidden = [4]";

    #[test]
    fn every_column_of_a_row_is_under_its_checksum() {
        let folder = tempfile::tempdir().unwrap();
        let run = run_cell(TEXT).unwrap();
        let columns = [
            "build = 'x'",
            "results = 77",
            "config = replace(config, '3', '4')",
            "outcome = 'diverged'",
            "error = 'too far'",
            "rule = 'ada-gd'",
            "seed = 5",
            "rounds = rounds + 1",
            "verdict = NULL",
            "left_count = left_count + 1",
            "accuracy_mean = accuracy_mean * 1.0000001",
            "loss_max = 'text'",
            "summary = replace(summary, '0.', '1.')",
            "checksum = '00'",
        ];
        for (number, change) in columns.iter().enumerate() {
            let store = Store::open(&folder.path().join(format!("{number}.db"))).unwrap();
            store.insert(&run).unwrap();
            store.verify().unwrap();
            store.connection.execute(&format!("UPDATE runs SET {change}"), []).unwrap();
            for error in [store.get(&run.key).unwrap_err(), store.verify().unwrap_err()] {
                assert!(error.to_string().contains(&run.key), "{change}: {error}");
                assert!(error.to_string().contains("fedstay sweep"), "{change}: {error}");
            }
            assert_eq!(store.forget_damaged().unwrap(), 1);
            assert!(store.keys().unwrap().is_empty());
            store.insert(&run).unwrap();
            assert_eq!(store.get(&run.key).unwrap(), Some(run.clone()));
        }
        let store = Store::open(&folder.path().join("series.db")).unwrap();
        store.insert(&run).unwrap();
        store.connection.execute("UPDATE series SET points = zeroblob(72)", []).unwrap();
        assert!(store.get(&run.key).is_err());
        store.connection.execute("DELETE FROM series", []).unwrap();
        assert!(store.get(&run.key).is_err());
    }
}

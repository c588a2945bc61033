//! The store: one SQLite file with one row a finished run.
//!
//! Tables `runs` and `series` hold results and nothing about how they came to be: they are the same
//! whatever was killed, shared or computed where. What may differ (when, how long, by whom) is in
//! `work` and `claims`. Every run is written in one transaction, in WAL mode, so that a process that
//! is killed leaves whole rows and other processes read and write meanwhile.

use crate::run::Identity;
use crate::sweep::plan::key::{RESULTS, canonical};
use crate::sweep::results::seal::{WHOLE, checksum};
use crate::sweep::{Finished, Outcome, Series};
use fedstay::record::{AsJson, Summary};
use rusqlite::{Connection, OpenFlags, OptionalExtension, params};
use serde_json::Value;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The form of the tables; raised when an older one can no longer be read.
const SCHEMA: i64 = 2;
/// What came before had results under the program's version and no checksums.
const WITHOUT_CHECKSUMS: i64 = 1;
/// Marks the file as one of ours: "fsty".
const APPLICATION: i64 = 0x6673_7479;
/// How long to wait for another process that is writing.
const PATIENCE: Duration = Duration::from_secs(60);

pub(in crate::sweep) const TABLES: &str = "
CREATE TABLE IF NOT EXISTS runs (
    key TEXT PRIMARY KEY,       -- hash of the configuration and of the results' number
    results INTEGER NOT NULL,   -- that number: raised when runs come out differently
    build TEXT NOT NULL,        -- who computed it: version and commit
    config TEXT NOT NULL,       -- the whole experiment, JSON with sorted keys
    outcome TEXT NOT NULL,      -- finished, diverged
    error TEXT,                 -- why it diverged
    rule TEXT NOT NULL,
    seed INTEGER NOT NULL,
    rounds INTEGER,
    stop TEXT,
    verdict TEXT,
    left_count INTEGER,
    first_departure INTEGER,
    accuracy_mean REAL,
    accuracy_min REAL,
    accuracy_max REAL,
    population_accuracy REAL,
    loss_mean REAL,
    loss_min REAL,
    loss_max REAL,
    population_loss REAL,
    summary TEXT,               -- summary.json as `fedstay run` writes it
    checksum TEXT NOT NULL      -- over all other columns and the series
);
CREATE TABLE IF NOT EXISTS series (
    key TEXT PRIMARY KEY REFERENCES runs (key),
    points BLOB NOT NULL        -- a point: round, present as u32, eight f64, little-endian
);
CREATE TABLE IF NOT EXISTS work (
    id INTEGER PRIMARY KEY,
    finished_at INTEGER NOT NULL,   -- seconds since 1970
    runs INTEGER NOT NULL,
    seconds REAL NOT NULL,          -- of one worker
    steps_taken INTEGER NOT NULL,
    steps_alone INTEGER NOT NULL,   -- had every run been computed alone
    steps_nobody_leaves INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS claims (
    family TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    host TEXT NOT NULL,
    process INTEGER NOT NULL,
    beat INTEGER NOT NULL           -- seconds since 1970
);
";

/// What was measured in every run, one row per measure: a view over the summaries, so that a new
/// measure changes no table. It is made anew for every connection, so that older stores have it too.
const MEASURES: &str = "
CREATE TEMP VIEW IF NOT EXISTS measures AS
SELECT runs.key AS key, runs.rule AS rule, runs.seed AS seed, part.key AS measure,
    json_extract(part.value, '$.mean') AS mean,
    json_extract(part.value, '$.min') AS min,
    json_extract(part.value, '$.max') AS max,
    json_extract(runs.summary, '$.population.' || part.key) AS population
FROM runs, json_each(runs.summary) AS part
WHERE part.type = 'object' AND json_type(part.value, '$.mean') IS NOT NULL;
";

/// What went wrong with a store; the message names the file.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {why}")]
pub struct StoreError {
    path: String,
    why: String,
}

impl StoreError {
    /// What went wrong, without the name of the file.
    pub fn why(&self) -> &str {
        &self.why
    }
}

/// A store that is open.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    identity: Identity,
    pub(in crate::sweep) connection: Connection,
}

/// Where the store of a sweep's file is, unless somebody says otherwise: `sweeps/NAME.db`.
pub fn usual_store(file: &Path) -> PathBuf {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    Path::new("sweeps").join(format!("{stem}.db"))
}

/// Work done on a store.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct WorkDone {
    /// Runs computed.
    pub runs: u64,
    /// Seconds of one worker.
    pub seconds: f64,
    /// Local steps taken.
    pub taken: u64,
    /// Local steps the same runs would have taken, each computed alone.
    pub alone: u64,
    /// The same, had nobody left.
    pub nobody_leaves: u64,
}

impl WorkDone {
    /// The share of the local steps that sharing saved.
    pub fn shared(&self) -> f64 {
        1.0 - self.taken as f64 / self.alone.max(1) as f64
    }

    /// The share of the local steps that was not needed because agents had left.
    pub fn departed(&self) -> f64 {
        1.0 - self.alone as f64 / self.nobody_leaves.max(1) as f64
    }
}

impl Store {
    /// Opens a store, or makes one.
    ///
    /// # Errors
    /// When the file is something else, of another version, or cannot be written to.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(|error| StoreError {
                path: folder.display().to_string(),
                why: error.to_string(),
            })?;
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let store = Self::connect(path, flags)?;
        store.prepare()?;
        store.run(MEASURES)?;
        Ok(store)
    }

    /// Opens a store that is there, to read it and nothing else.
    ///
    /// # Errors
    /// When there is none, or it is something else.
    pub fn read(path: &Path) -> Result<Self, StoreError> {
        if !path.exists() {
            return Err(StoreError {
                path: path.display().to_string(),
                why: "there is no such store yet; `fedstay sweep FILE.toml` makes one".into(),
            });
        }
        let store = Self::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        store.check()?;
        store.run(MEASURES)?;
        store.run("PRAGMA query_only = TRUE")?;
        Ok(store)
    }

    fn connect(path: &Path, flags: OpenFlags) -> Result<Self, StoreError> {
        let named = |error: rusqlite::Error| StoreError {
            path: path.display().to_string(),
            why: error.to_string(),
        };
        let connection = Connection::open_with_flags(path, flags).map_err(named)?;
        connection.busy_timeout(PATIENCE).map_err(named)?;
        let unknown = |error: std::io::Error| StoreError {
            path: path.display().to_string(),
            why: error.to_string(),
        };
        let identity = Identity::of(path).map_err(unknown)?;
        Ok(Self { path: path.to_owned(), identity, connection })
    }

    /// Says so if the file is gone: SQLite writes on into one that was deleted, and nothing of it is
    /// left at the end.
    ///
    /// # Errors
    /// When the file was deleted or replaced since it was opened.
    pub fn check_there(&self) -> Result<(), StoreError> {
        Self::there(&self.path, self.identity)
    }

    fn there(path: &Path, identity: Identity) -> Result<(), StoreError> {
        match identity.is_at(path) {
            true => Ok(()),
            false => Err(StoreError {
                path: path.display().to_string(),
                why: "was deleted or replaced while results were written to it, and those are lost; type \
                      the same command again to compute them anew"
                    .into(),
            }),
        }
    }

    /// What [`check_there`](Self::check_there) asks, for after the store was closed.
    pub(in crate::sweep) fn watch(&self) -> impl Fn() -> Result<(), StoreError> + use<> {
        let (path, identity) = (self.path.clone(), self.identity);
        move || Self::there(&path, identity)
    }

    fn prepare(&self) -> Result<(), StoreError> {
        let tables: i64 = self.one("SELECT count(*) FROM sqlite_schema")?;
        if tables > 0 {
            self.check()?;
        }
        self.write_ahead()?;
        // Runs are few and dear: each is on the disk before the next one starts.
        self.run("PRAGMA synchronous = FULL")?;
        if tables == 0 {
            // Two processes may get here at once; all of it can be done twice.
            self.run(&format!(
                "BEGIN IMMEDIATE; PRAGMA application_id = {APPLICATION}; PRAGMA user_version = \
                 {SCHEMA}; {TABLES} COMMIT;"
            ))?;
        }
        Ok(())
    }

    /// Changing the journal needs the file for a moment alone, and SQLite does not wait for that by
    /// itself: another process may be opening it just now.
    fn write_ahead(&self) -> Result<(), StoreError> {
        let mut tries = 0;
        loop {
            match self.one::<String>("PRAGMA journal_mode = WAL") {
                Ok(mode) if mode == "wal" => return Ok(()),
                Ok(mode) => {
                    return Err(
                        self.failed(format!("this disk allows no WAL (journal mode {mode})"))
                    );
                }
                Err(error) if tries >= 200 => return Err(error),
                Err(_) => std::thread::sleep(Duration::from_millis(25)),
            }
            tries += 1;
        }
    }

    fn check(&self) -> Result<(), StoreError> {
        let application: i64 = self.one("PRAGMA application_id")?;
        let schema: i64 = self.one("PRAGMA user_version")?;
        match (application, schema) {
            (APPLICATION, SCHEMA) => Ok(()),
            (APPLICATION, WITHOUT_CHECKSUMS) => Err(self.failed(
                "an earlier fedstay made this store, without checksums and with its version in place \
                 of a number that says whether results still hold; export it with that version, and \
                 compute anew into another --store"
                    .into(),
            )),
            (APPLICATION, other) => {
                Err(self.failed(format!("its schema is {other}, this version reads {SCHEMA}")))
            }
            _ => Err(self.failed("this is a database, but not a sweep's store".into())),
        }
    }

    pub(in crate::sweep) fn failed(&self, why: String) -> StoreError {
        StoreError { path: self.path.display().to_string(), why }
    }

    pub(in crate::sweep) fn named(&self) -> impl Fn(rusqlite::Error) -> StoreError + '_ {
        |error| self.failed(error.to_string())
    }

    fn run(&self, sql: &str) -> Result<(), StoreError> {
        self.connection.execute_batch(sql).map_err(self.named())
    }

    fn one<T: rusqlite::types::FromSql>(&self, sql: &str) -> Result<T, StoreError> {
        self.connection.query_row(sql, [], |row| row.get(0)).map_err(self.named())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps a finished run. One that is there already stays: it is the same.
    ///
    /// # Errors
    /// When the disk is full or another process holds the store for too long.
    pub fn insert(&self, run: &Finished) -> Result<(), StoreError> {
        let mut config = String::new();
        canonical(&run.config, &mut config);
        let summary = run.summary();
        let error = match &run.outcome {
            Outcome::Finished(_) => None,
            Outcome::Diverged(why) => Some(why),
        };
        let text = match summary {
            Some(summary) => {
                Some(summary.to_json().map_err(|error| self.failed(error.to_string()))?)
            }
            None => None,
        };
        // Columns from before there were other measures; `measures` has all of them.
        let over = |name: &str| summary.and_then(|summary| summary.score.get(name)).copied();
        let population =
            |name: &str| summary.and_then(|summary| summary.population.as_ref()?.of(name));
        let (accuracy, loss) = (over("accuracy"), over("loss"));
        let transaction = self.connection.unchecked_transaction().map_err(self.named())?;
        let new = transaction
            .execute(
                "INSERT OR IGNORE INTO runs VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, \
                 ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, '')",
                params![
                    run.key,
                    RESULTS,
                    run.build,
                    config,
                    if error.is_some() { "diverged" } else { "finished" },
                    error,
                    run.config["rule"]["kind"].as_str().unwrap_or_default(),
                    run.config["seed"].as_i64().unwrap_or_default(),
                    summary.map(|summary| summary.rounds),
                    summary.map(|summary| summary.stop.name()),
                    summary.map(|summary| summary.verdict.name()),
                    summary.map(|summary| summary.left.len() as i64),
                    summary.and_then(|summary| summary.left.first()).map(|left| left.round),
                    accuracy.map(|spread| spread.mean),
                    accuracy.map(|spread| spread.min),
                    accuracy.map(|spread| spread.max),
                    population("accuracy"),
                    loss.map(|spread| spread.mean),
                    loss.map(|spread| spread.min),
                    loss.map(|spread| spread.max),
                    population("loss"),
                    text,
                ],
            )
            .map_err(self.named())?;
        if new == 0 {
            return Ok(());
        }
        let (key, points) = (&run.key, run.series.to_bytes());
        transaction
            .execute("INSERT OR REPLACE INTO series VALUES (?1, ?2)", params![key, points])
            .map_err(self.named())?;
        // Over the row as SQLite gives it back, which is what a reader will hold it against.
        let sum = transaction.query_row(WHOLE, [key], checksum).map_err(self.named())?;
        transaction
            .execute("UPDATE runs SET checksum = ?2 WHERE key = ?1", params![key, sum])
            .map_err(self.named())?;
        transaction.commit().map_err(self.named())?;
        self.check_there()
    }

    /// The keys of all runs that are there.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn keys(&self) -> Result<HashSet<String>, StoreError> {
        let mut statement =
            self.connection.prepare("SELECT key FROM runs").map_err(self.named())?;
        let keys = statement.query_map([], |row| row.get(0)).map_err(self.named())?;
        keys.collect::<Result<_, _>>().map_err(self.named())
    }

    /// One run.
    ///
    /// # Errors
    /// When the store cannot be read, or the row is damaged.
    pub fn get(&self, key: &str) -> Result<Option<Finished>, StoreError> {
        let row = self.connection.query_row(WHOLE, [key], |row| {
            let sound = checksum(row)? == row.get::<_, String>("checksum")?;
            let texts: (String, String) = (row.get("build")?, row.get("config")?);
            let ends: (Option<String>, Option<String>) = (row.get("error")?, row.get("summary")?);
            Ok((sound, texts, ends, row.get::<_, Vec<u8>>("points")?))
        });
        let (build, config, error, summary, points) = match row.optional() {
            Ok(None) => return Ok(None),
            Ok(Some((true, (build, config), (error, summary), points))) => {
                (build, config, error, summary, points)
            }
            // A value of another kind than its column's is damage too.
            Ok(Some(_)) | Err(rusqlite::Error::InvalidColumnType(..)) => {
                return Err(self.damaged_row(key));
            }
            Err(error) => return Err(self.named()(error)),
        };
        let damaged = |what: &str| self.failed(format!("run {key}: its {what} cannot be read"));
        let config: Value = serde_json::from_str(&config).map_err(|_| damaged("configuration"))?;
        let outcome = match (summary, error) {
            (Some(summary), _) => {
                let summary =
                    Summary::from_json(summary.as_bytes()).map_err(|_| damaged("summary"))?;
                Outcome::Finished(Box::new(summary))
            }
            (None, error) => Outcome::Diverged(error.unwrap_or_default()),
        };
        let series = Series::from_bytes(&points).ok_or_else(|| damaged("series"))?;
        Ok(Some(Finished { key: key.to_owned(), build, config, outcome, series }))
    }

    /// Keeps what computing took.
    pub(in crate::sweep) fn note_work(&self, work: &WorkDone) -> Result<(), StoreError> {
        self.connection
            .execute(
                "INSERT INTO work (finished_at, runs, seconds, steps_taken, steps_alone, \
                 steps_nobody_leaves) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![
                    crate::sweep::compute::claim::now(),
                    work.runs as i64,
                    work.seconds,
                    work.taken as i64,
                    work.alone as i64,
                    work.nobody_leaves as i64,
                ],
            )
            .map(|_| ())
            .map_err(self.named())
    }

    /// All work that was done on this store. What a killed process had begun is not in it.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn work(&self) -> Result<WorkDone, StoreError> {
        let sql = "SELECT total(runs), total(seconds), total(steps_taken), total(steps_alone), \
                   total(steps_nobody_leaves) FROM work";
        let work = self.connection.query_row(sql, [], |row| {
            let whole = |index: usize| Ok::<u64, rusqlite::Error>(row.get::<_, f64>(index)? as u64);
            Ok(WorkDone {
                runs: whole(0)?,
                seconds: row.get(1)?,
                taken: whole(2)?,
                alone: whole(3)?,
                nobody_leaves: whole(4)?,
            })
        });
        work.map_err(self.named())
    }

    /// All results as text, in an order that does not depend on when they came, and without the
    /// builds that computed them: two stores with the same dump hold the same.
    ///
    /// # Errors
    /// When the store cannot be read, or is damaged.
    pub fn dump(&self) -> Result<String, StoreError> {
        self.check_file()?;
        let mut text = String::new();
        let mut keys: Vec<String> = self.keys()?.into_iter().collect();
        keys.sort();
        for key in keys {
            if let Some(run) = self.get(&key)? {
                let run = Finished { build: String::new(), ..run };
                let json = run.to_json().map_err(|error| self.failed(error.to_string()))?;
                text.push_str(&json);
                text.push('\n');
            }
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::run_cell;

    fn finished(extra: &str) -> Finished {
        let text = format!(
            "{extra}\nrounds = 3\neval_every = 1\n[rule]\nkind = \"fedavg\"\n[data]\nper_agent = 10\n\
             [model]\nhidden = [4]"
        );
        run_cell(&text).unwrap()
    }

    #[test]
    fn a_run_comes_back_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/folder/a.db");
        let store = Store::open(&path).unwrap();
        let run = finished("seed = 1");
        store.insert(&run).unwrap();
        store.insert(&run).unwrap();
        assert_eq!(store.get(&run.key).unwrap(), Some(run.clone()));
        assert_eq!(store.get("nothing").unwrap(), None);
        let diverged = Finished {
            outcome: Outcome::Diverged("too far".into()),
            key: "d".into(),
            ..run.clone()
        };
        store.insert(&diverged).unwrap();
        assert_eq!(store.get("d").unwrap(), Some(diverged));
        assert_eq!(Store::read(&path).unwrap().keys().unwrap().len(), 2);
    }

    #[test]
    fn the_dump_forgets_the_order_in_which_runs_came() {
        let folder = tempfile::tempdir().unwrap();
        let runs = [finished("seed = 1"), finished("seed = 2"), finished("seed = 3")];
        let dump = |name: &str, order: [usize; 3]| {
            let store = Store::open(&folder.path().join(name)).unwrap();
            order.iter().for_each(|index| store.insert(&runs[*index]).unwrap());
            store.dump().unwrap()
        };
        assert_eq!(dump("a", [0, 1, 2]), dump("b", [2, 0, 1]));
        assert!(dump("a", [0, 1, 2]).lines().count() == 3);
    }

    #[test]
    fn what_is_no_store_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text.db");
        std::fs::write(&path, "this is no database, by any means").unwrap();
        for error in [Store::open(&path).unwrap_err(), Store::read(&path).unwrap_err()] {
            assert!(error.to_string().contains("text.db"), "{error}");
        }
        let other = folder.path().join("other.db");
        Connection::open(&other).unwrap().execute_batch("CREATE TABLE mine (a)").unwrap();
        let error = Store::open(&other).unwrap_err().to_string();
        assert!(error.contains("not a sweep's store"), "{error}");
        let error = Store::read(&folder.path().join("none.db")).unwrap_err().to_string();
        assert!(error.contains("fedstay sweep"), "{error}");
    }

    #[test]
    fn a_store_without_checksums_is_refused_and_says_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("old.db");
        let old = Connection::open(&path).unwrap();
        let pragmas = format!("PRAGMA application_id = {APPLICATION}; PRAGMA user_version = 1;");
        old.execute_batch(&format!("{pragmas} CREATE TABLE runs (key TEXT)")).unwrap();
        for error in [Store::open(&path).unwrap_err(), Store::read(&path).unwrap_err()] {
            let error = error.to_string();
            assert!(error.contains("earlier fedstay") && error.contains("--store"), "{error}");
        }
    }

    #[test]
    fn the_build_is_recorded_and_tells_nothing_apart() {
        let folder = tempfile::tempdir().unwrap();
        let here = finished("seed = 1");
        assert!(here.build.starts_with(env!("CARGO_PKG_VERSION")), "{}", here.build);
        let elsewhere = Finished { build: "0.0.1 (abc)".into(), ..here.clone() };
        let dump = |name: &str, run: &Finished| {
            let store = Store::open(&folder.path().join(name)).unwrap();
            store.insert(run).unwrap();
            assert_eq!(store.get(&run.key).unwrap().unwrap().build, run.build);
            store.dump().unwrap()
        };
        assert_eq!(dump("a", &here), dump("b", &elsewhere));
    }

    #[test]
    fn a_reader_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        Store::open(&path).unwrap().insert(&finished("seed = 1")).unwrap();
        let reader = Store::read(&path).unwrap();
        assert!(reader.ask("DELETE FROM runs").is_err());
        assert_eq!(reader.keys().unwrap().len(), 1);
    }
}

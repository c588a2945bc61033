//! Several processes on one store: who computes what.
//!
//! A process claims a family before it computes it and keeps its claims alive by a heartbeat. A
//! claim is void when its process is gone (seen at once on the same machine) or has not been heard
//! of for half a minute. Should two compute the same all the same, they write the same rows.

use crate::sweep::{Store, StoreError};
use rusqlite::{OptionalExtension, params};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds without a heartbeat after which a claim is void.
const PATIENCE: i64 = 30;
/// Seconds between heartbeats.
pub(in crate::sweep) const BEAT: u64 = 5;

/// Seconds since 1970.
pub(in crate::sweep) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

/// Who claims.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::sweep) struct Claimer {
    name: String,
    host: String,
    process: u32,
}

impl Claimer {
    /// This process, now.
    pub(in crate::sweep) fn me() -> Self {
        let process = std::process::id();
        let host = host();
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { name: format!("{host}/{process}/{}", since.as_nanos()), host, process }
    }
}

/// The machine, as far as process numbers mean something: its name, boot and namespace.
fn host() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    format!(
        "{} {} {}",
        read("/proc/sys/kernel/hostname"),
        read("/proc/sys/kernel/random/boot_id"),
        namespace.display()
    )
}

/// Whether a process of this machine is certainly gone.
fn gone(process: u32) -> bool {
    Path::new("/proc/self").exists() && !Path::new(&format!("/proc/{process}")).exists()
}

impl Store {
    /// Claims a family; no, if somebody else who is alive has it.
    pub(in crate::sweep) fn claim(
        &self,
        family: &str,
        owner: &Claimer,
    ) -> Result<bool, StoreError> {
        let sql = rusqlite::TransactionBehavior::Immediate;
        let transaction =
            rusqlite::Transaction::new_unchecked(&self.connection, sql).map_err(self.named())?;
        let held = transaction
            .query_row(
                "SELECT owner, host, process, beat FROM claims WHERE family = ?1",
                [family],
                |row| {
                    let owner: (String, String) = (row.get(0)?, row.get(1)?);
                    Ok((owner, row.get::<_, u32>(2)?, row.get::<_, i64>(3)?))
                },
            )
            .optional()
            .map_err(self.named())?;
        if let Some(((name, host), process, beat)) = held {
            let void = name == owner.name
                || host == owner.host && gone(process)
                || (now() - beat).abs() > PATIENCE;
            if !void {
                return Ok(false);
            }
        }
        transaction
            .execute(
                "INSERT OR REPLACE INTO claims VALUES (?1, ?2, ?3, ?4, ?5)",
                params![family, owner.name, owner.host, owner.process, now()],
            )
            .map_err(self.named())?;
        transaction.commit().map_err(self.named())?;
        Ok(true)
    }

    /// Says that all claims of an owner are alive.
    pub(in crate::sweep) fn beat(&self, owner: &Claimer) -> Result<(), StoreError> {
        let sql = "UPDATE claims SET beat = ?2 WHERE owner = ?1";
        let done = self.connection.execute(sql, params![owner.name, now()]);
        done.map(|_| ()).map_err(self.named())
    }

    /// Gives all claims of an owner back.
    pub(in crate::sweep) fn release_all(&self, owner: &Claimer) -> Result<(), StoreError> {
        let sql = "DELETE FROM claims WHERE owner = ?1";
        let done = self.connection.execute(sql, params![owner.name]);
        done.map(|_| ()).map_err(self.named())
    }

    /// Gives a claim back.
    pub(in crate::sweep) fn release(
        &self,
        family: &str,
        owner: &Claimer,
    ) -> Result<(), StoreError> {
        let sql = "DELETE FROM claims WHERE family = ?1 AND owner = ?2";
        let done = self.connection.execute(sql, params![family, owner.name]);
        done.map(|_| ()).map_err(self.named())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(name: &str, host: &str, process: u32) -> Claimer {
        Claimer { name: name.into(), host: host.into(), process }
    }

    #[test]
    fn a_claim_holds_while_its_owner_lives() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        let (one, other) = (Store::open(&path).unwrap(), Store::open(&path).unwrap());
        let (me, elsewhere) = (Claimer::me(), owner("b", "another machine", 1));
        assert!(one.claim("f", &me).unwrap());
        assert!(one.claim("f", &me).unwrap());
        assert!(!other.claim("f", &elsewhere).unwrap());
        one.release("f", &me).unwrap();
        assert!(other.claim("f", &elsewhere).unwrap());
        assert!(!one.claim("f", &me).unwrap());
        // Not heard of for a while.
        other.connection.execute("UPDATE claims SET beat = beat - 31", []).unwrap();
        assert!(one.claim("f", &me).unwrap());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_that_is_gone_claims_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("a.db")).unwrap();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let dead = owner("dead", &host(), child.id());
        child.wait().unwrap();
        assert!(store.claim("f", &dead).unwrap());
        assert!(store.claim("f", &Claimer::me()).unwrap());
    }
}

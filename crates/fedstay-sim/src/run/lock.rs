//! One process writes a run's folder at a time.

use super::FolderError;
use super::disk::{named, remove_leftovers};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::Path;

/// The lock on a run's folder: held on its file `.lock` for as long as this lives. The system
/// releases it when the process dies, however it dies, so there is nothing to clean up afterwards.
///
/// The file stays, empty: removing it would let two processes hold locks on two files of one name.
#[derive(Debug)]
pub struct RunLock {
    file: File,
    process: u32,
}

impl RunLock {
    /// Takes the lock on an existing folder, and removes what killed writers left behind.
    ///
    /// # Errors
    /// [`FolderError::Taken`] when another process has it, with its number where that is known.
    pub fn take(folder: &Path) -> Result<Self, FolderError> {
        let path = folder.join(".lock");
        if path.is_symlink() {
            return Err(FolderError::Content(format!(
                "{} is a symbolic link, which would be written through: remove it",
                path.display()
            )));
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(&path).map_err(named(&path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let process = std::fs::read_to_string(&path).unwrap_or_default();
                let process = process.trim().parse::<u32>();
                let who = process.map_or(String::new(), |process| format!(" (process {process})"));
                return Err(FolderError::Taken(format!(
                    "the run in {} is being written by another process{who}; wait until it is over, \
                     or end that process first",
                    folder.display()
                )));
            }
            // Some network disks do not support locks; a run there is no worse off than without
            // one.
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {}
            Err(TryLockError::Error(error)) => return Err(named(&path)(error).into()),
        }
        let process = std::process::id();
        file.set_len(0).and_then(|()| write!(file, "{process}")).map_err(named(&path))?;
        remove_leftovers(folder)?;
        Ok(Self { file, process })
    }
}

impl Drop for RunLock {
    fn drop(&mut self) {
        // A fork shares its parent's lock and must not release it.
        if std::process::id() == self.process {
            let _ = self.file.set_len(0);
            let _ = self.file.unlock();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_lock_that_leads_elsewhere_is_refused_and_nothing_is_made_there() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("run");
        std::fs::create_dir(&run).unwrap();
        let elsewhere = folder.path().join("elsewhere");
        std::os::unix::fs::symlink(&elsewhere, run.join(".lock")).unwrap();
        let error = RunLock::take(&run).unwrap_err().to_string();
        assert!(error.contains("symbolic link") && error.contains("remove it"), "{error}");
        assert!(!elsewhere.exists());
    }

    #[test]
    fn a_folder_has_one_writer_and_says_which() {
        let folder = tempfile::tempdir().unwrap();
        let first = RunLock::take(folder.path()).unwrap();
        let error = RunLock::take(folder.path()).unwrap_err();
        assert!(matches!(error, FolderError::Taken(_)));
        let me = std::process::id().to_string();
        assert!(error.to_string().contains(&me), "{error}");
        drop(first);
        drop(RunLock::take(folder.path()).unwrap());
        assert_eq!(std::fs::read(folder.path().join(".lock")).unwrap(), b"");
    }
}

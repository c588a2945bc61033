//! Opens files of a run's folder, and no others.
//!
//! A request never names a path: runs are known by an id that is looked up. What is left to guard
//! against is a folder that someone else wrote into: a `rounds.jsonl` that is a link to a secret, a
//! pipe that never answers, a folder that became a link since it was found.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// When a file was last written, and how long it is: a different stamp means that there is
/// something to read.
pub(crate) type Stamp = (SystemTime, u64);

/// A folder that was found under one of the folders given on the command line.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// The folder given, without links.
    pub(crate) root: PathBuf,
    /// The run's folder, without links; inside `root`.
    pub(crate) folder: PathBuf,
}

impl Place {
    /// The folder, if it is inside the root once every link is followed.
    pub(crate) fn new(root: &Path, folder: &Path) -> Option<Self> {
        let folder = folder.canonicalize().ok()?;
        folder.starts_with(root).then(|| Self { root: root.to_owned(), folder })
    }

    /// Opens a plain file of the folder; `None` if it does not exist. Links are not followed.
    pub(crate) fn open(&self, name: &str) -> io::Result<Option<File>> {
        let path = self.folder.join(name);
        let refuse = |why: &str| Err(io::Error::other(format!("{name} {why}, so it is not read")));
        let there = match std::fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            there => there?,
        };
        if there.is_symlink() {
            return refuse("is a link");
        }
        if !there.is_file() {
            return refuse("is not a plain file");
        }
        if self.folder.canonicalize()? != self.folder {
            return refuse("is in a folder that has been replaced by a link");
        }
        let file = File::open(&path)?;
        // The file may have been replaced by a link between the check and the opening.
        match same(&there, &file.metadata()?) {
            true => Ok(Some(file)),
            false => refuse("was replaced while it was opened"),
        }
    }

    /// The stamp of a file; `None` if the file does not exist.
    pub(crate) fn stamp(&self, name: &str) -> Option<Stamp> {
        let there = std::fs::symlink_metadata(self.folder.join(name)).ok()?;
        Some((there.modified().ok()?, there.len()))
    }

    /// The whole text of a small file; `None` if the file does not exist.
    pub(crate) fn read(&self, name: &str, most: u64) -> io::Result<Option<Vec<u8>>> {
        let Some(file) = self.open(name)? else { return Ok(None) };
        let mut bytes = Vec::new();
        file.take(most + 1).read_to_end(&mut bytes)?;
        match bytes.len() as u64 > most {
            true => Err(io::Error::other(format!("{name} has more than {most} bytes"))),
            false => Ok(Some(bytes)),
        }
    }
}

/// Whether both are the same file.
#[cfg(unix)]
pub(crate) fn same(a: &Metadata, b: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

/// Whether both are the same file, as far as this system can tell.
#[cfg(not(unix))]
pub(crate) fn same(a: &Metadata, b: &Metadata) -> bool {
    a.created().ok() == b.created().ok()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_pipes_and_folders_outside_are_refused() {
        let temporary = tempfile::tempdir().unwrap();
        let root = temporary.path().join("runs").canonicalize();
        assert!(root.is_err());
        std::fs::create_dir_all(temporary.path().join("runs/a")).unwrap();
        std::fs::create_dir(temporary.path().join("secrets")).unwrap();
        std::fs::write(temporary.path().join("secrets/rounds.jsonl"), "secret\n").unwrap();
        let root = temporary.path().join("runs").canonicalize().unwrap();

        symlink(temporary.path().join("secrets"), root.join("b")).unwrap();
        assert_eq!(Place::new(&root, &root.join("b")), None);
        assert_eq!(Place::new(&root, &root.join("a/../../secrets")), None);

        let place = Place::new(&root, &root.join("a")).unwrap();
        assert!(place.open("rounds.jsonl").unwrap().is_none());
        symlink(temporary.path().join("secrets/rounds.jsonl"), root.join("a/rounds.jsonl"))
            .unwrap();
        let error = place.open("rounds.jsonl").unwrap_err().to_string();
        assert!(error.contains("is a link"), "{error}");
        std::fs::create_dir(root.join("a/config.toml")).unwrap();
        assert!(place.open("config.toml").unwrap_err().to_string().contains("not a plain file"));

        // A folder that becomes a link after it was found.
        std::fs::rename(root.join("a"), root.join("c")).unwrap();
        symlink(temporary.path().join("secrets"), root.join("a")).unwrap();
        assert!(place.open("rounds.jsonl").is_err());
    }

    #[test]
    fn a_file_that_is_too_large_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::write(root.join("summary.json"), vec![b'x'; 1000]).unwrap();
        let place = Place::new(&root, &root).unwrap();
        assert!(place.read("summary.json", 999).unwrap_err().to_string().contains("more than 999"));
        assert_eq!(place.read("summary.json", 1000).unwrap().unwrap().len(), 1000);
    }
}

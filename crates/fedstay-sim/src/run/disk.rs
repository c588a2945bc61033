//! Files that are written as a whole, or not at all.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// Writes a file under a temporary name beside it and renames it, so that a reader, a crash or a
/// full disk never sees half of it. The temporary name carries the process id, so that two programs
/// that write the same file do not collide there. An error names the file.
///
/// # Errors
/// When the folder cannot be written to or the disk is full; the old file is then still there.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace(path, bytes, OpenOptions::new().write(true).create(true).truncate(true))
}

/// Writes a file as [`write_whole`] does, readable only by its owner where the system knows owners.
pub(super) fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    replace(path, bytes, &options)
}

fn replace(path: &Path, bytes: &[u8], options: &OpenOptions) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(name);
    let written = options.open(&temporary).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    let renamed = written.and_then(|()| {
        std::fs::rename(&temporary, path)?;
        sync_folder_of(path)
    });
    renamed.map_err(|error| {
        // Nothing more can be done about a temporary file that cannot be removed.
        let _ = std::fs::remove_file(&temporary);
        named(path)(error)
    })
}

/// Waits until a new name is on disk, so that a power cut does not bring the old file back.
pub(super) fn sync_folder_of(path: &Path) -> io::Result<()> {
    // On other systems a folder cannot be opened as a file, and the system does this by itself.
    #[cfg(unix)]
    {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let synced = File::open(parent.unwrap_or(Path::new("."))).and_then(|f| f.sync_all());
        use io::ErrorKind::{InvalidInput, PermissionDenied, Unsupported};
        match synced {
            // A disk that cannot sync a folder, or a folder that may be written to but not read.
            Err(error) if matches!(error.kind(), InvalidInput | PermissionDenied | Unsupported) => {
            }
            other => other?,
        }
    }
    let _ = path;
    Ok(())
}

/// Removes what killed writers left behind in a run's folder: `NAME.PROCESS.tmp`. The caller must
/// hold the folder's lock.
pub(super) fn remove_leftovers(folder: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(folder).map_err(named(folder))? {
        let path = entry.map_err(named(folder))?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let process = name.strip_suffix(".tmp").and_then(|name| name.rsplit_once('.'));
        if process.is_some_and(|(_, process)| process.parse::<u32>().is_ok()) {
            std::fs::remove_file(&path).map_err(named(&path))?;
        }
    }
    Ok(())
}

/// A file as the system knows it, whatever becomes of its name: where a file is deleted while it is
/// being written, the system writes on, into nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    #[cfg(unix)]
    place: (u64, u64),
}

impl Identity {
    /// Of the file that the name leads to now.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let known = std::fs::metadata(path).map_err(named(path))?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            Ok(Self { place: (known.dev(), known.ino()) })
        }
        #[cfg(not(unix))]
        {
            let _ = known;
            Ok(Self {})
        }
    }

    /// Whether the name still leads to this file.
    pub(crate) fn is_at(self, path: &Path) -> bool {
        Self::of(path).is_ok_and(|now| now == self)
    }
}

/// What to do about a full disk, said after the error that it is full.
pub(super) fn with_room(then: impl FnOnce() -> String) -> impl FnOnce(io::Error) -> io::Error {
    move |error| match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            io::Error::new(error.kind(), format!("{error}; make room, then {}", then()))
        }
        _ => error,
    }
}

/// Names the file in front of what went wrong with it.
pub(super) fn named(path: &Path) -> impl Fn(io::Error) -> io::Error + '_ {
    move |error| io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leftovers_of_killed_writers_go_and_nothing_else_does() {
        let folder = tempfile::tempdir().unwrap();
        let names = ["checkpoint.71.tmp", "checkpoint", "notes.tmp", "a.b.tmp", "x.71"];
        names.iter().for_each(|name| std::fs::write(folder.path().join(name), "").unwrap());
        remove_leftovers(folder.path()).unwrap();
        let left: Vec<bool> = names.iter().map(|name| folder.path().join(name).exists()).collect();
        assert_eq!(left, [false, true, true, true, true]);
    }

    #[test]
    fn a_full_disk_says_how_to_continue_and_other_errors_say_nothing_of_it() {
        let after = |kind| with_room(|| "continue".to_owned())(io::Error::from(kind)).to_string();
        let full = after(io::ErrorKind::StorageFull);
        assert!(full.ends_with("; make room, then continue"), "{full}");
        assert!(!after(io::ErrorKind::PermissionDenied).contains("room"));
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_was_replaced_is_another_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rounds");
        let _open = File::create(&path).unwrap();
        let known = Identity::of(&path).unwrap();
        assert!(known.is_at(&path));
        std::fs::remove_file(&path).unwrap();
        assert!(!known.is_at(&path));
        std::fs::write(&path, "").unwrap();
        assert!(!known.is_at(&path), "the first one is still open, so this is not it");
    }

    #[cfg(unix)]
    #[test]
    fn what_is_private_is_the_owners_alone() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        write_private(&path, b"1").unwrap();
        write_private(&path, b"2").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"2");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o077, 0);
    }
}

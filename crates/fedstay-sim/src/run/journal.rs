//! A file of lines that only grows, with a running hash of what was written.
//!
//! The first line, the header, stands apart: where agents join late it is rewritten, and the rest
//! stays as it was.

use super::FolderError;
use super::disk::{Identity, named, write_whole};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

/// How far a journal had come: a checkpoint remembers it, and a resumed run is checked against it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mark {
    /// The hash of the first line.
    first: String,
    /// How many bytes follow it.
    bytes: u64,
    /// Their hash.
    sha256: String,
}

/// A journal that is being written.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    pub(super) file: File,
    identity: Identity,
    first: Vec<u8>,
    bytes: u64,
    hash: Sha256,
    line: Vec<u8>,
}

impl Journal {
    /// Creates a journal with its first line; what was there is gone.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn create(path: &Path, first: &impl Serialize) -> io::Result<Self> {
        let first = to_line(first)?;
        write_whole(path, &first)?;
        Self::at_end(path, first, 0, Sha256::new())
    }

    /// Opens a journal as it was at `mark`; what follows is cut off.
    ///
    /// # Errors
    /// When what was there at `mark` is no longer there. The file is then left as it was found.
    pub fn resume(path: &Path, mark: &Mark) -> Result<Self, FolderError> {
        Self::take_up(path, mark, true)
    }

    /// As [`resume`](Self::resume), where the first line may have been rewritten since.
    ///
    /// # Errors
    /// As [`resume`](Self::resume).
    pub fn resume_under_any_header(path: &Path, mark: &Mark) -> Result<Self, FolderError> {
        Self::take_up(path, mark, false)
    }

    fn take_up(path: &Path, mark: &Mark, same_first: bool) -> Result<Self, FolderError> {
        let changed = |how: String| FolderError::Changed { file: path.to_owned(), how };
        let mut reader = BufReader::new(File::open(path).map_err(named(path))?);
        let mut first = Vec::new();
        reader.read_until(b'\n', &mut first).map_err(named(path))?;
        if same_first && hex(&Sha256::digest(&first)) != mark.first {
            return Err(changed("does not begin as the run had written it".into()));
        }
        let mut hash = Sha256::new();
        let (mut left, mut buffer) = (mark.bytes, vec![0; 1 << 16]);
        while left > 0 {
            let most = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            let read = reader.read(&mut buffer[..most]).map_err(named(path))?;
            if read == 0 {
                let how = format!("has {left} bytes fewer than the run had written by then");
                return Err(changed(how));
            }
            hash.update(&buffer[..read]);
            left -= read as u64;
        }
        if hex(&hash.clone().finalize()) != mark.sha256 {
            let how = "is not what the run had written: a line was changed, added or lost";
            return Err(changed(how.into()));
        }
        let length = first.len() as u64 + mark.bytes;
        let file = OpenOptions::new().write(true).open(path).map_err(named(path))?;
        file.set_len(length).map_err(named(path))?;
        Ok(Self::at_end(path, first, mark.bytes, hash)?)
    }

    fn at_end(path: &Path, first: Vec<u8>, bytes: u64, hash: Sha256) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).open(path).map_err(named(path))?;
        let identity = Identity::of(path)?;
        Ok(Self { path: path.to_owned(), file, identity, first, bytes, hash, line: Vec::new() })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether its name still leads to it: it may have been deleted, and lines go nowhere.
    pub fn is_there(&self) -> bool {
        self.identity.is_at(&self.path)
    }

    /// Appends a line in one write: a process that is killed leaves it whole or not at all.
    ///
    /// # Errors
    /// When the disk is full.
    pub fn append(&mut self, value: &impl Serialize) -> io::Result<()> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, value)?;
        self.line.push(b'\n');
        self.file.write_all(&self.line)?;
        self.hash.update(&self.line);
        self.bytes += self.line.len() as u64;
        Ok(())
    }

    /// Replaces the first line, if it differs.
    ///
    /// # Errors
    /// When the disk is full; the journal is then as it was.
    pub fn replace_first(&mut self, first: &impl Serialize) -> io::Result<()> {
        let first = to_line(first)?;
        if first == self.first {
            return Ok(());
        }
        let before = std::fs::read(&self.path)?;
        let mut whole = first.clone();
        whole.extend_from_slice(before.get(self.first.len()..).unwrap_or_default());
        write_whole(&self.path, &whole)?;
        self.file = OpenOptions::new().append(true).open(&self.path)?;
        self.identity = Identity::of(&self.path)?;
        self.first = first;
        Ok(())
    }

    /// How far it has come, once all of it is on disk.
    ///
    /// # Errors
    /// When the disk is full.
    pub fn mark(&mut self) -> io::Result<Mark> {
        self.file.sync_data()?;
        Ok(Mark {
            first: hex(&Sha256::digest(&self.first)),
            bytes: self.bytes,
            sha256: hex(&self.hash.clone().finalize()),
        })
    }
}

/// A value as a line of JSON.
pub(super) fn to_line(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}

/// A hash as text.
pub(super) fn hex(hash: &[u8]) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_resumes_where_it_was_marked_and_only_if_nothing_before_was_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines");
        let mut journal = Journal::create(&path, &"header").unwrap();
        (0..100).for_each(|number| journal.append(&number).unwrap());
        let mark = journal.mark().unwrap();
        journal.append(&"lost").unwrap();
        let whole = std::fs::read(&path).unwrap();

        let mut resumed = Journal::resume(&path, &mark).unwrap();
        assert_eq!(resumed.mark().unwrap(), mark);
        resumed.append(&"lost").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), whole);

        // A longer header moves everything after it, and the mark still holds.
        resumed.replace_first(&"a longer header").unwrap();
        resumed.append(&1).unwrap();
        assert!(Journal::resume(&path, &mark).is_err());
        Journal::resume_under_any_header(&path, &mark).unwrap();

        let covered = whole.len() - b"\"lost\"\n".len();
        for place in 0..covered {
            let mut damaged = whole.clone();
            damaged[place] ^= 1 << (place % 7);
            std::fs::write(&path, &damaged).unwrap();
            assert!(Journal::resume(&path, &mark).is_err(), "byte {place}");
            assert_eq!(std::fs::read(&path).unwrap(), damaged, "left as it was found");
        }
        std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
        let error = Journal::resume(&path, &mark).unwrap_err().to_string();
        assert!(error.contains("bytes fewer"), "{error}");
    }
}

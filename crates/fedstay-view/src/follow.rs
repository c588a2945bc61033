//! Follows a file of lines that somebody else is writing.
//!
//! A last line without an end is still being written, so it is not read yet. A file that was
//! replaced (another file under the same name), cut, or changed before the place read so far is
//! read again from its beginning.

use crate::inside::{Place, same};
use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};

/// A longer line is not a line of ours. A round of 100,000 agents has about 5 MB.
const LONGEST: usize = 64 << 20;
/// Bytes before the place read so far that must not have changed.
const MEMORY: usize = 256;
const CHUNK: usize = 1 << 18;

/// Something that reading the file brought.
#[derive(Debug, PartialEq)]
pub(crate) enum FileEvent {
    /// The file starts over: what was read from it before is void.
    Restarted,
    /// A whole line, with its number from 1.
    Line(usize, Vec<u8>),
    /// A line that is too long to be kept, by its number.
    TooLong(usize),
}

/// A file that is followed.
#[derive(Debug)]
pub(crate) struct FollowedFile {
    name: &'static str,
    seen: Option<Metadata>,
    /// Bytes read, including those of the unfinished line.
    offset: u64,
    /// The bytes right before `offset`.
    memory: Vec<u8>,
    /// The beginning of a line whose end has not been written yet.
    unfinished: Vec<u8>,
    skipping: bool,
    lines: usize,
}

impl FollowedFile {
    pub(crate) fn new(name: &'static str) -> Self {
        Self {
            name,
            seen: None,
            offset: 0,
            memory: Vec::new(),
            unfinished: Vec::new(),
            skipping: false,
            lines: 0,
        }
    }

    /// Reads what is new and passes it on, until `enough` says so. Returns whether the end of the
    /// file was reached.
    pub(crate) fn poll(
        &mut self,
        place: &Place,
        mut take: impl FnMut(FileEvent),
        enough: impl Fn() -> bool,
    ) -> io::Result<bool> {
        let Some(mut file) = place.open(self.name)? else {
            // Between two names of a rename there may be no file; what was read stays until a new
            // one is there.
            return Ok(true);
        };
        let now = file.metadata()?;
        if self.changed(&mut file, &now)? {
            *self = Self::new(self.name);
            take(FileEvent::Restarted);
        }
        self.seen = Some(now);
        file.seek(SeekFrom::Start(self.offset))?;
        let mut chunk = vec![0; CHUNK];
        loop {
            let count = file.read(&mut chunk)?;
            if count == 0 {
                return Ok(true);
            }
            self.offset += count as u64;
            self.remember(&chunk[..count]);
            self.split(&chunk[..count], &mut take);
            if enough() {
                return Ok(false);
            }
        }
    }

    fn changed(&self, file: &mut File, now: &Metadata) -> io::Result<bool> {
        let Some(seen) = &self.seen else { return Ok(false) };
        if !same(seen, now) || now.len() < self.offset {
            return Ok(true);
        }
        let mut there = vec![0; self.memory.len()];
        file.seek(SeekFrom::Start(self.offset - self.memory.len() as u64))?;
        file.read_exact(&mut there)?;
        Ok(there != self.memory)
    }

    fn remember(&mut self, bytes: &[u8]) {
        let tail = &bytes[bytes.len().saturating_sub(MEMORY)..];
        self.memory.extend_from_slice(tail);
        let excess = self.memory.len().saturating_sub(MEMORY);
        self.memory.drain(..excess);
    }

    fn split(&mut self, bytes: &[u8], take: &mut impl FnMut(FileEvent)) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let ends = piece.ends_with(b"\n");
            if !self.skipping && self.unfinished.len() + piece.len() > LONGEST {
                self.skipping = true;
                self.unfinished = Vec::new();
            }
            if !self.skipping {
                self.unfinished.extend_from_slice(piece);
            }
            if ends {
                self.lines += 1;
                let line = std::mem::take(&mut self.unfinished);
                take(match std::mem::take(&mut self.skipping) {
                    true => FileEvent::TooLong(self.lines),
                    false => FileEvent::Line(self.lines, line),
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn place(folder: &tempfile::TempDir) -> Place {
        let root = folder.path().canonicalize().unwrap();
        Place::new(&root, &root).unwrap()
    }

    fn poll(follow: &mut FollowedFile, place: &Place) -> Vec<FileEvent> {
        let mut events = Vec::new();
        follow.poll(place, |event| events.push(event), || false).unwrap();
        events
    }

    fn line(number: usize, text: &str) -> FileEvent {
        FileEvent::Line(number, text.as_bytes().to_vec())
    }

    #[test]
    fn a_line_is_there_once_it_ends() {
        let folder = tempfile::tempdir().unwrap();
        let (place, path) = (place(&folder), folder.path().join("rounds.jsonl"));
        let mut follow = FollowedFile::new("rounds.jsonl");
        assert_eq!(poll(&mut follow, &place), []);
        let mut file = File::create(&path).unwrap();
        file.write_all(b"one\ntw").unwrap();
        assert_eq!(poll(&mut follow, &place), [line(1, "one\n")]);
        assert_eq!(poll(&mut follow, &place), []);
        file.write_all(b"o\nthree\n").unwrap();
        assert_eq!(poll(&mut follow, &place), [line(2, "two\n"), line(3, "three\n")]);
    }

    #[test]
    fn a_file_that_is_replaced_cut_or_changed_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let (place, path) = (place(&folder), folder.path().join("rounds.jsonl"));
        let mut follow = FollowedFile::new("rounds.jsonl");
        std::fs::write(&path, "one\ntwo\n").unwrap();
        assert_eq!(poll(&mut follow, &place).len(), 2);

        let new = folder.path().join("new");
        std::fs::write(&new, "one\ntwo\nthree\n").unwrap();
        std::fs::rename(&new, &path).unwrap();
        let events = poll(&mut follow, &place);
        assert_eq!(events[0], FileEvent::Restarted, "replaced");
        assert_eq!(events.len(), 4);

        let file = File::options().write(true).open(&path).unwrap();
        file.set_len(4).unwrap();
        assert_eq!(poll(&mut follow, &place), [FileEvent::Restarted, line(1, "one\n")], "cut");

        // Cut and grown beyond the old length between two looks.
        std::fs::write(&path, "uno\ndos\ntres\n").unwrap();
        assert_eq!(poll(&mut follow, &place).len(), 4, "changed");
    }

    #[test]
    fn a_line_without_an_end_costs_no_more_than_the_longest() {
        let folder = tempfile::tempdir().unwrap();
        let (place, path) = (place(&folder), folder.path().join("rounds.jsonl"));
        let mut file = File::create(&path).unwrap();
        file.write_all(b"one\n").unwrap();
        // A hole in the file: 80 MB of zeros that take no room on the disk.
        file.set_len(4 + (80 << 20)).unwrap();
        let mut follow = FollowedFile::new("rounds.jsonl");
        assert_eq!(poll(&mut follow, &place), [line(1, "one\n")]);
        assert!(follow.unfinished.capacity() <= LONGEST);
        let mut file = File::options().append(true).open(&path).unwrap();
        file.write_all(b"\nthree\n").unwrap();
        assert_eq!(poll(&mut follow, &place), [FileEvent::TooLong(2), line(3, "three\n")]);
    }
}

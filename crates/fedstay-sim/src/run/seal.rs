//! What a finished run wrote, so that what was changed since can be told.
//!
//! `SHA256SUMS` has the form of the program `sha256sum`: `sha256sum -c SHA256SUMS` checks it without us.
//! It guards against damage and mix-ups, not against somebody who writes it again.

use super::disk::{named, write_whole};
use super::journal::hex;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The file with the hashes.
pub const SUMS: &str = "SHA256SUMS";
/// The files of a run that a reader believes. Pictures and reports may be drawn again at any time.
const SEALED: [&str; 5] =
    ["config.toml", "rounds.jsonl", "gram.jsonl", "model.safetensors", "summary.json"];
/// More than the hashes of all these files take.
const LONGEST: u64 = 1 << 14;

/// The hash of some bytes, as text.
pub(super) fn hash_of_bytes(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// The hash of a file, read piece by piece.
pub(super) fn hash_of_file(path: &Path) -> io::Result<String> {
    File::open(path).and_then(hash_of_opened).map_err(named(path))
}

fn hash_of_opened(mut file: File) -> io::Result<String> {
    let (mut hash, mut buffer) = (Sha256::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex(&hash.finalize())),
            read => hash.update(&buffer[..read]),
        }
    }
}

/// Writes down the hashes of a run's files.
///
/// # Errors
/// When the disk is full.
pub(super) fn seal(folder: &Path, sums: &[(&str, String)]) -> io::Result<()> {
    let lines: String = sums.iter().map(|(name, sum)| format!("{sum}  {name}\n")).collect();
    write_whole(&folder.join(SUMS), lines.as_bytes())
}

/// The files of a finished run that are no longer what the run wrote. None of a run that is not over, or
/// was written without hashes; a file that was removed is not mistaken for anything.
pub fn changed_since(folder: &Path) -> Vec<&'static str> {
    if !folder.join("summary.json").is_file() {
        return Vec::new();
    }
    changed_among(&SEALED, |name| {
        let path = folder.join(name);
        path.is_file().then(|| File::open(path).ok()).flatten()
    })
}

/// Those of some files of a finished run that are no longer what the run wrote, for a reader that opens
/// files in its own way; `open` gives nothing for a file that is not there.
pub fn changed_among<'a>(names: &[&'a str], open: impl Fn(&str) -> Option<File>) -> Vec<&'a str> {
    let mut text = String::new();
    let read = open(SUMS).map(|file| file.take(LONGEST).read_to_string(&mut text));
    if !matches!(read, Some(Ok(_))) {
        return Vec::new();
    }
    let known = |name: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once("  "));
        lines.find(|(_, named)| *named == name).map(|(sum, _)| sum)
    };
    let changed = |name: &&&'a str| {
        let now = open(name).and_then(|file| hash_of_opened(file).ok());
        known(name).zip(now).is_some_and(|(then, now)| then != now)
    };
    names.iter().filter(changed).copied().collect()
}

/// Whether a file by this name in this folder belongs to a run and must not be written over.
pub fn is_of_a_run(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let own = SEALED.contains(&name) || [SUMS, "checkpoint", ".lock"].contains(&name);
    own && path.with_file_name("rounds.jsonl").is_file()
}

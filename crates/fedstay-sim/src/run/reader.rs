//! Reads a run back: finished, running, or cut off in the middle of a line.

use fedstay::record::{AsJson, GramLine, Header, RoundLine};
use serde::Deserialize;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// The longest header that is read on its own, in bytes: that of a million agents.
const MOST_HEADER: u64 = 64 << 20;

/// The rounds of a run.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// The first line.
    pub header: Header,
    /// One line per round.
    pub rounds: Vec<RoundLine>,
    /// Lines that could not be read, with their numbers from 1.
    pub unreadable: Vec<(usize, String)>,
}

/// Reads `rounds.jsonl`. A last line without a line end is a round that is still being written, and
/// is left out; any other line that cannot be read is named and left out.
///
/// # Errors
/// When there is no such file or its first line is not the header of a run.
pub fn read_rounds(path: &Path) -> Result<Recorded, String> {
    let text = read(path)?;
    let mut lines = text.split_inclusive('\n');
    let header = header(path, lines.next().unwrap_or_default())?;
    let (rounds, unreadable) = parse(lines, RoundLine::check);
    Ok(Recorded { header, rounds, unreadable })
}

/// Reads the first line of `rounds.jsonl`: what the run is.
///
/// # Errors
/// When there is no such file or its first line is not the header of a run.
pub fn read_header(path: &Path) -> Result<Header, String> {
    let told = |error: std::io::Error| format!("{}: {error}", path.display());
    let mut first = Vec::new();
    let file = std::fs::File::open(path).map_err(told)?;
    BufReader::new(file.take(MOST_HEADER)).read_until(b'\n', &mut first).map_err(told)?;
    header(path, &String::from_utf8_lossy(&first))
}

fn header(path: &Path, first: &str) -> Result<Header, String> {
    let header = Header::from_json(first.as_bytes()).map_err(|error| {
        format!("{}: its first line is not the header of a run: {error}", path.display())
    })?;
    match header.schema == Header::SCHEMA {
        true => Ok(header),
        false => {
            let (got, want) = (&header.schema, Header::SCHEMA);
            Err(format!("{}: its schema is {got}, this version reads {want}", path.display()))
        }
    }
}

/// Reads `gram.jsonl`.
///
/// # Errors
/// When there is no such file or its first line does not name the schema.
pub fn read_gram(path: &Path) -> Result<Vec<GramLine>, String> {
    #[derive(Deserialize)]
    struct GramHeader {
        schema: String,
    }
    let text = read(path)?;
    let mut lines = text.split_inclusive('\n');
    let first: Result<GramHeader, _> = serde_json::from_str(lines.next().unwrap_or_default());
    match first {
        Ok(first) if first.schema == GramLine::SCHEMA => Ok(parse(lines, GramLine::check).0),
        _ => Err(format!("{}: its first line does not say {}", path.display(), GramLine::SCHEMA)),
    }
}

fn read(path: &Path) -> Result<String, String> {
    let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn parse<'a, T: AsJson>(
    lines: impl Iterator<Item = &'a str>,
    check: impl Fn(&T) -> Result<(), String>,
) -> (Vec<T>, Vec<(usize, String)>) {
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    for (number, line) in lines.enumerate() {
        let read = T::from_json(line.as_bytes()).map_err(|error| error.to_string());
        match read.and_then(|line| check(&line).map(|()| line)) {
            Ok(line) => good.push(line),
            Err(_) if !line.ends_with('\n') => {}
            Err(why) => bad.push((number + 2, why)),
        }
    }
    (good, bad)
}

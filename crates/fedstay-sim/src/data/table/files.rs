//! The files of a table: which they are, and their bytes as text.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Seek};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

use super::settings::{Encoding, Paths};
use crate::data::DataError;

/// A file, or what stands in for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TableFile {
    /// Where it is.
    pub(super) path: PathBuf,
    /// What is in it, where it is not on a disk.
    pub(super) content: Option<&'static [u8]>,
}

/// The bytes of a file, which can be read again.
pub(super) trait Bytes: Read + Seek {}
impl<T: Read + Seek> Bytes for T {}

/// What a file holds, by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Text,
    Gzip,
    Parquet,
}

impl TableFile {
    /// What it is called without its folder and its endings: `sites/oslo.csv.gz` is `oslo`.
    pub(super) fn stem(&self) -> String {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let mut stem: &str = &name;
        for ending in [".gz", ".csv", ".tsv", ".txt", ".parquet"] {
            stem = match stem
                .len()
                .checked_sub(ending.len())
                .and_then(|at| stem.split_at_checked(at))
            {
                Some((rest, end)) if end.eq_ignore_ascii_case(ending) && !rest.is_empty() => rest,
                _ => stem,
            };
        }
        stem.to_owned()
    }

    /// Its bytes as they are.
    pub(super) fn open(&self) -> Result<Box<dyn Bytes>, DataError> {
        if let Some(content) = self.content {
            return Ok(Box::new(Cursor::new(content)));
        }
        let hint = "set data.path to the table you want to read";
        let named = |source| DataError::io(&self.path, hint, source);
        let file = File::open(&self.path).map_err(named)?;
        if file.metadata().map_err(named)?.is_dir() {
            let hint = format!(
                "name its files, as in \"{}/*.csv\"",
                self.path.display().to_string().trim_end_matches('/')
            );
            return Err(DataError::wrong(&self.path, "a file", "a folder", &hint));
        }
        Ok(Box::new(BufReader::with_capacity(1 << 17, file)))
    }

    /// What it holds, by its first bytes; what nobody here can read is refused by name.
    pub(super) fn format(&self) -> Result<Format, DataError> {
        let mut first = Vec::new();
        let mut bytes = self.open()?;
        let named = |source| DataError::io(&self.path, "", source);
        bytes.by_ref().take(8).read_to_end(&mut first).map_err(named)?;
        let other = match &first[..] {
            [b'P', b'A', b'R', b'1', ..] => return Ok(Format::Parquet),
            [0x1f, 0x8b, ..] => return Ok(Format::Gzip),
            [b'P', b'K', 3, 4, ..] => "an Excel workbook or another zip archive",
            [0xd0, 0xcf, 0x11, 0xe0, ..] => "an Excel workbook",
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "text in UTF-16",
            [0x28, 0xb5, 0x2f, 0xfd, ..] => "zstd",
            [b'A', b'R', b'R', b'O', b'W', b'1', ..] => "an Arrow or Feather file",
            _ => return Ok(Format::Text),
        };
        let hint = "save it as CSV in UTF-8, or as Parquet";
        Err(DataError::wrong(&self.path, "CSV, TSV, either with gzip, or Parquet", other, hint))
    }

    /// Its text in UTF-8, whatever it is packed and written in; for a file that is not Parquet.
    pub(super) fn text(
        &self,
        format: Format,
        encoding: Encoding,
    ) -> Result<Box<dyn Read>, DataError> {
        let bytes = self.open()?;
        let plain: Box<dyn Read> = match format {
            Format::Gzip => Box::new(BufReader::with_capacity(1 << 17, MultiGzDecoder::new(bytes))),
            Format::Text | Format::Parquet => Box::new(bytes),
        };
        Ok(match encoding {
            Encoding::Utf8 => plain,
            Encoding::Latin1 => Box::new(FromLatin1 { bytes: plain, letters: Vec::new(), at: 0 }),
        })
    }
}

/// Text in Latin-1, read as UTF-8.
struct FromLatin1 {
    bytes: Box<dyn Read>,
    letters: Vec<u8>,
    at: usize,
}

impl Read for FromLatin1 {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.at == self.letters.len() {
            let mut some = [0; 1 << 13];
            let read = self.bytes.read(&mut some)?;
            let text: String = some[..read].iter().map(|byte| letter(*byte)).collect();
            (self.letters, self.at) = (text.into_bytes(), 0);
        }
        let read = (self.letters.len() - self.at).min(into.len());
        into[..read].copy_from_slice(&self.letters[self.at..][..read]);
        self.at += read;
        Ok(read)
    }
}

/// The letter that a byte of code page 1252 stands for; Latin-1 has control characters in their place.
fn letter(byte: u8) -> char {
    const FROM_128: &str = "€\u{81}‚ƒ„…†‡ˆ‰Š‹Œ\u{8d}Ž\u{8f}\u{90}‘’“”•–—˜™š›œ\u{9d}žŸ";
    match byte {
        0x80..=0x9f => FROM_128.chars().nth(usize::from(byte - 0x80)).unwrap_or(char::from(byte)),
        _ => char::from(byte),
    }
}

/// The files that some paths and patterns name, in the order of their names.
///
/// # Errors
/// When a pattern names none, or a file is named twice.
pub(super) fn named(paths: &Paths) -> Result<Vec<TableFile>, DataError> {
    let mut files = Vec::new();
    for path in paths.each() {
        let written = path.display().to_string();
        if written.is_empty() || !written.contains('*') || path.exists() {
            files.push(path.clone());
            continue;
        }
        let found = matching(path);
        if found.is_empty() {
            let why =
                format!("no file is called like `{written}`; `*` stands for any part of a name");
            return Err(DataError::setting("data.path", why));
        }
        files.extend(found);
    }
    if files.is_empty() {
        return Err(DataError::setting("data.path", "the list is empty: name a file"));
    }
    files.sort();
    if let Some(twice) = files.windows(2).find(|two| two[0] == two[1]) {
        let why = format!("{} is named twice", twice[0].display());
        return Err(DataError::setting("data.path", why));
    }
    Ok(files.into_iter().map(|path| TableFile { path, content: None }).collect())
}

/// The files that a pattern names; `*` stands for any part of one name.
fn matching(pattern: &Path) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::new()];
    for part in pattern.components() {
        let part = part.as_os_str();
        let Some(text) = part.to_str().filter(|text| text.contains('*')) else {
            found.iter_mut().for_each(|path| path.push(part));
            continue;
        };
        let inside = |folder: &PathBuf| {
            let there = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
            let names = std::fs::read_dir(there).into_iter().flatten().flatten();
            let names = names.filter_map(|entry| entry.file_name().into_string().ok());
            let hidden = text.starts_with('.');
            let fits = move |name: &String| fits(text, name) && (hidden || !name.starts_with('.'));
            names.filter(fits).map(|name| folder.join(name)).collect::<Vec<_>>()
        };
        found = found.iter().flat_map(inside).collect();
    }
    found.retain(|path| path.is_file());
    found
}

/// Whether a name is as a pattern says.
fn fits(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|start| name.strip_prefix(start)) else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    let Some((end, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_part_of_a_name() {
        for (pattern, name, yes) in [
            ("*.csv", "oslo.csv", true),
            ("*.csv", "oslo.csv.gz", false),
            ("h-*-*.csv", "h-a-b.csv", true),
            ("h-*-*.csv", "h-a.csv", false),
            ("*", "", true),
            ("a*a", "a", false),
            ("a*b*c", "axbxxc", true),
        ] {
            assert_eq!(fits(pattern, name), yes, "{pattern} {name}");
        }
    }

    #[test]
    fn files_are_sorted_and_named_once() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["b.csv", "a.csv", "c.txt", ".hidden.csv"] {
            std::fs::write(dir.path().join(name), "x").unwrap();
        }
        let all = Paths::One(dir.path().join("*.csv"));
        let stems: Vec<String> = named(&all).unwrap().iter().map(TableFile::stem).collect();
        assert_eq!(stems, ["a", "b"]);
        let twice = Paths::Several(vec![dir.path().join("*.csv"), dir.path().join("a.csv")]);
        assert!(named(&twice).unwrap_err().to_string().contains("a.csv is named twice"));
        let none = named(&Paths::One(dir.path().join("*.tsv"))).unwrap_err().to_string();
        assert!(none.starts_with("data.path: no file is called like"), "{none}");
        assert!(named(&Paths::Several(Vec::new())).is_err());
        let folder = TableFile { path: dir.path().into(), content: None };
        let told = folder.format().err().unwrap().to_string();
        assert!(told.contains("expected a file, found a folder: name its files"), "{told}");
    }

    #[test]
    fn latin_1_is_read_as_letters() {
        let file = TableFile { path: "x".into(), content: Some(b"d\xe9c\x80d\xe9") };
        let mut text = String::new();
        file.text(Format::Text, Encoding::Latin1).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "déc€dé");
    }

    #[test]
    fn what_cannot_be_read_is_called_by_its_name() {
        for (bytes, what) in [
            (&b"PK\x03\x04rest"[..], "an Excel workbook"),
            (b"\xff\xfea\0,\0", "UTF-16"),
            (b"ARROW1\0\0", "Feather"),
        ] {
            let file = TableFile { path: "x.csv".into(), content: Some(bytes) };
            let told = file.format().err().unwrap().to_string();
            assert!(told.contains(what) && told.contains("save it as CSV"), "{told}");
        }
    }
}

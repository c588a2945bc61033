//! Files that must be the published ones, byte for byte.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use md5::{Digest, Md5};

use super::DataError;

/// A file as its authors published it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Published {
    /// Its name in the data set's folder.
    pub(super) name: &'static str,
    /// Its size.
    pub(super) bytes: u64,
    /// Its MD5, in hexadecimal: a guard against mistakes, not against malice.
    pub(super) md5: &'static str,
}

/// Makes the struct of a data set that is read from the files that its authors published.
macro_rules! published {
    ($(#[$about:meta])* $name:ident) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name {
            /// The folder with the files, under the names they were published under; the fetched ones by
            /// default.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub path: Option<std::path::PathBuf>,
            /// Whether the files must be the published ones. Switch it off for your own files in the same
            /// format, which may have any number of rows.
            pub check: bool,
        }

        impl Default for $name {
            fn default() -> Self {
                Self { path: None, check: true }
            }
        }
    };
}
pub(super) use published;

impl Published {
    /// Reads `path` to its end; fails unless size and sum are the published ones.
    pub(super) fn verify(&self, path: &Path, hint: &str) -> Result<(), DataError> {
        let file = Checked::open(path, Some(self.md5), hint)?;
        if file.len() != self.bytes {
            let (expected, found) = (bytes(self.bytes), bytes(file.len()));
            return Err(DataError::wrong(path, expected, found, hint));
        }
        file.finish()
    }
}

/// A file that is summed while it is read.
pub(super) struct Checked {
    path: PathBuf,
    hint: String,
    len: u64,
    reader: BufReader<File>,
    sum: Option<(Md5, &'static str)>,
}

impl Checked {
    /// Opens `path`; with an `md5`, [`Checked::finish`] will compare it.
    pub(super) fn open(
        path: &Path,
        md5: Option<&'static str>,
        hint: &str,
    ) -> Result<Self, DataError> {
        let named = |source| DataError::io(path, hint, source);
        let file = File::open(path).map_err(named)?;
        let about = file.metadata().map_err(named)?;
        if !about.is_file() {
            return Err(DataError::wrong(path, "a file", "something else", hint));
        }
        Ok(Checked {
            path: path.to_path_buf(),
            hint: hint.to_owned(),
            len: about.len(),
            reader: BufReader::with_capacity(1 << 17, file),
            sum: md5.map(|expected| (Md5::new(), expected)),
        })
    }

    /// The size of the file.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Reads what is left and compares the sum.
    pub(super) fn finish(mut self) -> Result<(), DataError> {
        io::copy(&mut self, &mut io::sink())
            .map_err(|source| DataError::io(&self.path, &self.hint, source))?;
        let Some((sum, expected)) = self.sum else { return Ok(()) };
        let found = hex(&sum.finalize());
        if found == expected {
            return Ok(());
        }
        Err(DataError::Checksum {
            path: self.path,
            expected: expected.into(),
            found,
            hint: self.hint,
        })
    }
}

impl Read for Checked {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(into)?;
        if let Some((sum, _)) = &mut self.sum {
            sum.update(&into[..read]);
        }
        Ok(read)
    }
}

/// `count` bytes, in words.
pub(super) fn bytes(count: u64) -> String {
    format!("{count} bytes")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABC: Published =
        Published { name: "abc", bytes: 3, md5: "900150983cd24fb0d6963f7d28e17f72" };

    #[test]
    fn size_and_sum_must_be_the_published_ones() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(ABC.name);
        let verify = |content: &str| {
            std::fs::write(&path, content).unwrap();
            ABC.verify(&path, "fetch it again").map_err(|error| error.to_string())
        };
        assert_eq!(verify("abc"), Ok(()));
        assert!(
            verify("ab").unwrap_err().ends_with("expected 3 bytes, found 2 bytes: fetch it again")
        );
        assert!(
            verify("abd")
                .unwrap_err()
                .contains("abc: expected MD5 900150983cd24fb0d6963f7d28e17f72, found")
        );
        std::fs::remove_file(&path).unwrap();
        let missing = ABC.verify(&path, "fetch it").unwrap_err().to_string();
        assert!(missing.ends_with("abc is not there: fetch it"), "{missing}");
        let folder = ABC.verify(dir.path(), "fetch it").unwrap_err();
        assert!(matches!(folder, DataError::Wrong { .. } | DataError::Io { .. }), "{folder}");
    }
}

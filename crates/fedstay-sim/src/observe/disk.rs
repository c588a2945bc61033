//! Files that are there as a whole, or not at all.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// Writes a file under a temporary name beside it and renames it, so that a reader, a crash or a
/// full disk never meets half of it. An error names the file.
///
/// # Errors
/// When the folder cannot be written to or the disk is full; the old file is then still there.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".tmp");
    let temporary = path.with_file_name(name);
    let written = File::create(&temporary).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    let renamed = written.and_then(|()| std::fs::rename(&temporary, path));
    renamed.map_err(|error| {
        // Nothing more can be done about a temporary file that does not go away.
        let _ = std::fs::remove_file(&temporary);
        io::Error::new(error.kind(), format!("{}: {error}", path.display()))
    })
}

